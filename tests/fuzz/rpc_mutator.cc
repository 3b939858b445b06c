// Mutations for fuzz_rpc: calls are added, removed, swapped and repeated, and within a request
// fields are set to values that the daemon could take, so that most of what is tried gets past
// protobuf.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collectors/collector.h"
#include "proto/options/options.h"
#include "tests/fuzz/rpc_calls.h"

// Null without libFuzzer.
extern "C" [[gnu::weak]] size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace profd::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void Change(std::vector<CallRecord>* calls) {
    const size_t kind = Below(10);
    if (calls->empty() || (kind == 0 && calls->size() < kMaxCalls)) {
      calls->insert(calls->begin() + static_cast<std::ptrdiff_t>(Below(calls->size() + 1)), New());
      return;
    }
    CallRecord& call = (*calls)[Below(calls->size())];
    if (kind == 1) {
      calls->erase(calls->begin() + (&call - calls->data()));
    } else if (kind == 2) {
      std::swap(call, (*calls)[Below(calls->size())]);
    } else if (kind == 3 && calls->size() < kMaxCalls) {
      CallRecord copy = call;
      calls->push_back(std::move(copy));
    } else if (kind == 4) {
      call.flags ^= static_cast<uint8_t>(1U << Below(8));
    } else if (kind == 5 || MethodOf(call.what) == nullptr || !ChangeFields(&call)) {
      ChangeBytes(&call);
    }
  }

 private:
  size_t Below(size_t count) { return random_() % count; }

  CallRecord New() {
    CallRecord call;
    call.what =
        Below(8) == 0
            ? static_cast<uint8_t>(kOther + Below(kOthers))
            : static_cast<uint8_t>(Below(Methods().size()));
    call.flags = static_cast<uint8_t>(Below(3));
    ChangeFields(&call);
    return call;
  }

  void ChangeBytes(CallRecord* call) {
    if (LLVMFuzzerMutate == nullptr) {
      if (!call->bytes.empty())
        call->bytes[Below(call->bytes.size())] = static_cast<char>(random_());
      return;
    }
    const size_t size = call->bytes.size();
    call->bytes.resize(std::min<size_t>(2 * size + 16, UINT16_MAX));
    auto* data = reinterpret_cast<uint8_t*>(call->bytes.data());
    call->bytes.resize(LLVMFuzzerMutate(data, size, call->bytes.size()));
  }

  // False where the bytes are no request.
  bool ChangeFields(CallRecord* call) {
    const auto* method = MethodOf(call->what);
    if (method == nullptr) return false;
    auto request = NewMessage(*method->input_type());
    if (!request->ParseFromString(call->bytes)) return false;
    for (size_t i = Below(3) + 1; i > 0; --i) ChangeField(request.get());
    call->bytes = request->SerializeAsString().substr(0, UINT16_MAX);
    return true;
  }

  void ChangeField(Message* message) {
    const auto& type = *message->GetDescriptor();
    if (type.field_count() == 0) return;
    const auto* field =
        type.field(static_cast<int>(Below(static_cast<size_t>(type.field_count()))));
    const Reflection& reflection = *message->GetReflection();
    if (Below(6) == 0) {
      reflection.ClearField(message, field);
      return;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Message* inner = nullptr;
      if (!field->is_repeated()) {
        inner = reflection.MutableMessage(message, field);
      } else if (int count = reflection.FieldSize(*message, field); count > 0 && Below(2) == 0) {
        inner = reflection.MutableRepeatedMessage(
            message, field, static_cast<int>(Below(static_cast<size_t>(count))));
      } else {
        inner = reflection.AddMessage(message, field);
      }
      ChangeField(inner);
      if (field->is_map()) ChangeField(inner);
      return;
    }
    field->is_repeated() ? Add(reflection, message, field) : Set(reflection, message, field);
  }

  void Set(const Reflection& reflection, Message* message, const FieldDescriptor* field) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(message, field, Text());
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(message, field, Below(2) != 0);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(message, field, Real());
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.SetInt32(message, field, Whole<int32_t>());
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(message, field, Whole<int64_t>());
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection.SetUInt32(message, field, Whole<uint32_t>());
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection.SetUInt64(message, field, Whole<uint64_t>());
        break;
      default:
        break;
    }
  }
  void Add(const Reflection& reflection, Message* message, const FieldDescriptor* field) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.AddString(message, field, Text());
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.AddInt32(message, field, Whole<int32_t>());
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection.AddUInt32(message, field, Whole<uint32_t>());
        break;
      default:
        break;
    }
  }

  template <class Int>
  Int Whole() {
    static constexpr std::array<int64_t, 16> kTelling = {
        0, 1, 2, 3, 5, 7, 10, 20, 50, 100, 1000, 60000, 86400, kOwnPid, -1, 4096};
    switch (Below(8)) {
      case 0:
        return std::numeric_limits<Int>::max();
      case 1:
        return std::numeric_limits<Int>::min();
      case 2:
        return static_cast<Int>(random_());
      default:
        return static_cast<Int>(kTelling[Below(kTelling.size())]);
    }
  }
  double Real() {
    static constexpr std::array<double, 10> kTelling = {
        0, 1, 10, 50, 100, 1000, 0.1, -1, 1e308, std::numeric_limits<double>::quiet_NaN()};
    return kTelling[Below(kTelling.size())];
  }
  std::string Text() {
    static const std::vector<std::string> kTelling = {
        "", "@0", "@1", "#0", "#1", "job", "on", "off", "l0", "10", "50", "100", "cpu,mem", "read", "write", "200MB",
        "PipeUtilization", "../..", "/etc", "a/b", "\x1b[2J", "\xc2\x9b", "\"", R"({"sys_hardware_mem_freq":"50"})",
        R"({"host_sys":"cpu,mem","host_sys_usage":"cpu"})", R"({"output":"/tmp/x","storage_limit":"200MB"})",
        R"({"a":{}})", std::string(129, 'x'), std::string(2000, '\xc3') + "\xa9", "\xe2\x80\xae",
        "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA"};
    switch (Below(4)) {
      case 0:
        return std::string(Collectors()[Below(Collectors().size())].spec->name);
      case 1:
        return std::string(options::Table()[Below(options::Table().size())].key);
      default:
        return kTelling[Below(kTelling.size())];
    }
  }

  std::minstd_rand random_;
};

size_t Write(const std::vector<CallRecord>& calls, uint8_t* data, size_t max_size) {
  size_t at = 0;
  for (const CallRecord& call : calls) {
    const auto length = static_cast<uint16_t>(std::min<size_t>(call.bytes.size(), UINT16_MAX));
    if (at + 4 + length > max_size) break;
    data[at] = call.what;
    data[at + 1] = call.flags;
    std::memcpy(data + at + 2, &length, sizeof length);
    std::memcpy(data + at + 4, call.bytes.data(), length);
    at += 4U + length;
  }
  return at;
}

}  // namespace
}  // namespace profd::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  namespace fuzz = profd::fuzz;
  std::vector<fuzz::CallRecord> calls = fuzz::TakeCalls({data, size});
  fuzz::Mutator(seed).Change(&calls);
  const size_t written = fuzz::Write(calls, data, max_size);
  return written > 0 || LLVMFuzzerMutate == nullptr ? written
                                                    : LLVMFuzzerMutate(data, size, max_size);
}
