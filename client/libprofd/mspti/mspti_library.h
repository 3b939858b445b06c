// The vendor's library as it was found in this process. Every call may throw through its C interface; here
// it answers kInner then, with the reason.
#pragma once

#include <string>
#include <string_view>

#include "client/libprofd/mspti/mspti_abi.h"

namespace profd::lib::mspti {

struct Called {
  int code = kSuccess;
  std::string why;  // what it threw
  bool ok() const { return code == kSuccess; }
};

class MsptiLibrary {
 public:
  // Empty: loaded, and never closed. Otherwise why there is none.
  static std::string Load(MsptiLibrary* library);

  Called Subscribe();
  Called RegisterCallbacks(RequestFunction request, CompleteFunction complete);
  Called Enable(Kind kind);
  Called Disable(Kind kind);
  Called FlushAll();
  Called Unsubscribe();

  // 2026-05 and later; the strings of those versions outlive the complete callback.
  bool has_is_enabled() const { return is_enabled_ != nullptr; }

 private:
  SubscribeFunction subscribe_ = nullptr;
  UnsubscribeFunction unsubscribe_ = nullptr;
  RegisterCallbacksFunction register_callbacks_ = nullptr;
  KindFunction enable_ = nullptr;
  KindFunction disable_ = nullptr;
  FlushAllFunction flush_all_ = nullptr;
  IsEnabledFunction is_enabled_ = nullptr;
  Subscriber* subscriber_ = nullptr;
};

// Whether the process has a library of this name mapped already.
bool IsMapped(const char* library);
// One whose file has this name, from whatever folder; for libraries without a soname.
bool IsMappedFile(std::string_view file_name);

}  // namespace profd::lib::mspti
