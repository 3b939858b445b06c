// What the writers of seeds share.
#pragma once

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "driver/abi/channels.h"
#include "sim/engine_test_support.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::fuzz {

class Corpus {
 public:
  explicit Corpus(std::string root) : root_(std::move(root)) {}
  void Write(const std::string& target, const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories(root_ + "/" + target);
    std::ofstream(root_ + "/" + target + "/" + name, std::ios::binary) << bytes;
  }

 private:
  std::string root_;
};

template <class... Values>
std::string Raw(Values... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

inline std::string WithLength(std::string_view piece) {
  return Raw(static_cast<uint16_t>(piece.size())).append(piece);
}

inline std::string MessageBytes(const std::string& text, google::protobuf::Message& message) {
  FUZZ_EXPECT(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message.SerializeAsString();
}
template <class Message>
std::string MessageBytes(const std::string& text) {
  Message message;
  return MessageBytes(text, message);
}

// In reads of odd sizes, as a driver gives them.
inline std::string InPieces(std::string_view bytes) {
  std::string out;
  for (size_t size = 37; !bytes.empty(); size = size * 3 % 911 + 1) {
    out += WithLength(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  return out;
}

// About 2 KiB of whole records or lines, of as many sampling instants as there are in it.
inline std::string Capture(const abi::ChannelFormat& format, const char* scenario) {
  sim::Engine engine(scenario);
  if (engine.Start(0, format.id, 20) != 0) return "";
  engine.AdvanceMs(400);
  std::string bytes = engine.ReadAll(0, format.id);
  size_t end = std::min<size_t>(bytes.size(), 2048);
  if (format.framing == abi::Framing::kBinary) {
    end -= end % format.record_size;
    if (format.record_size > 512) end = std::min<size_t>(bytes.size(), 3 * format.record_size);
  } else {
    end = end == 0 ? 0 : bytes.rfind('\n', end - 1) + 1;
  }
  bytes.resize(end);
  return bytes;
}

// corpus_exports.cc: seeds of what reads dumps.
void WriteExports(Corpus& corpus);
// corpus_calls.cc: seeds of what comes over sockets.
void WriteMessages(Corpus& corpus);

}  // namespace profd::fuzz
