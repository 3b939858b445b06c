// The input of fuzz_rpc: records of "what, flags, length" (1, 1 and 2 bytes) and as many bytes.
// `what` is the number of a method of profd.v1 in the order of the file, or from kOther on one of
// the ways around them; the bytes are the request as it goes over the wire.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace profd::fuzz {

inline constexpr uint8_t kOther = 0x80;
enum class Other : uint8_t { kHealth, kNoMethod, kReflection, kAttach };
inline constexpr size_t kOthers = 4;

enum CallFlags : uint8_t {
  kCallerBits = 0x03,  // RpcDaemon::As
  kCancel = 0x04,      // takes it back at once
  kVerbatim = 0x08,    // no reference in it is replaced
  kMore = 0x10,        // reads four messages of a stream instead of one
  kTwice = 0x20,       // sends a second request after the first
  kBeside = 0x40,      // continues with the next record before the answer
};

struct CallRecord {
  uint8_t what = 0;
  uint8_t flags = 0;
  std::string bytes;
};

inline constexpr size_t kMaxCalls = 12;

inline std::vector<CallRecord> TakeCalls(Input input) {
  std::vector<CallRecord> calls;
  while (!input.empty() && calls.size() < kMaxCalls) {
    CallRecord call;
    call.what = input.Take<uint8_t>();
    call.flags = input.Take<uint8_t>();
    call.bytes = input.TakePiece(input.Take<uint16_t>());
    calls.push_back(std::move(call));
  }
  return calls;
}

// Of all services, in the order of the file.
inline const std::vector<const google::protobuf::MethodDescriptor*>& Methods() {
  static const auto methods = [] {
    std::vector<const google::protobuf::MethodDescriptor*> all;
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName("profd/v1/profd.proto");
    FUZZ_EXPECT(file != nullptr);
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) all.push_back(file->service(i)->method(j));
    }
    return all;
  }();
  return methods;
}

// Null for the others.
inline const google::protobuf::MethodDescriptor* MethodOf(uint8_t what) {
  return what >= kOther ? nullptr : Methods()[what % Methods().size()];
}

// "/profd.v1.NodeService/GetNode"
inline std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

inline std::unique_ptr<google::protobuf::Message> NewMessage(
    const google::protobuf::Descriptor& type) {
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
}

// References in a request: a text "@N" is the id of the N-th session that was started before in
// this input, "#N" the name of its dump; a number kOwnPid is the caller's process.
inline constexpr int32_t kOwnPid = 7777;

}  // namespace profd::fuzz
