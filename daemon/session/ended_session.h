// What is shown of a session that has ended. Kept as bytes: of a node with eight NPUs the message
// itself takes several times as much, and hundreds of them are kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "profd/v1/profd.pb.h"

namespace profd {

class EndedSession {
 public:
  EndedSession() = default;
  explicit EndedSession(const v1::Session& view) { Set(view); }

  void Set(const v1::Session& view) {
    state_ = view.status().state();
    bytes_.clear();
    view.AppendToString(&bytes_);
    bytes_.shrink_to_fit();
  }
  v1::Session Get() const {
    v1::Session view;
    // Our own bytes: they parse.
    static_cast<void>(view.ParseFromString(bytes_));
    return view;
  }
  template <class Change>
  void Edit(Change change) {
    v1::Session view = Get();
    change(view);
    Set(view);
  }
  v1::Session::State state() const { return state_; }
  size_t bytes() const { return sizeof *this + bytes_.capacity(); }
  // Somewhere in its strings; false = no part of it has this name.
  bool Mentions(std::string_view text) const { return bytes_.find(text) != std::string::npos; }

 private:
  std::string bytes_;
  v1::Session::State state_ = v1::Session::STATE_UNSPECIFIED;
};

}  // namespace profd
