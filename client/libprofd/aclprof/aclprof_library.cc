#include "client/libprofd/aclprof/aclprof_library.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "proto/attach/device_environment.h"

namespace profd::lib::aclprof {
namespace {

std::optional<uint32_t> FirstNumber(std::span<const char* const> variables) {
  for (const char* name : variables) {
    const char* text = ::getenv(name);
    uint32_t number = 0;
    if (text != nullptr && ParseNumber(std::string_view(text), &number)) return number;
  }
  return std::nullopt;
}

}  // namespace

std::string AclprofLibrary::Load(AclprofLibrary* library) {
  std::string why;
  void* const handle = OpenVendorLibrary(kLibrary, {"lib64"}, &why);
  if (handle == nullptr) return why;
  FindFunction(handle, "aclprofSetConfig", &library->set_config_);
  const bool complete = FindFunction(handle, "aclprofInit", &library->init_) &&
                        FindFunction(handle, "aclprofFinalize", &library->finalize_) &&
                        FindFunction(handle, "aclprofCreateConfig", &library->create_config_) &&
                        FindFunction(handle, "aclprofDestroyConfig", &library->destroy_config_) &&
                        FindFunction(handle, "aclprofStart", &library->start_) &&
                        FindFunction(handle, "aclprofStop", &library->stop_);
  return complete ? std::string() : std::string(kLibrary) + " lacks functions of aclprof";
}

Called AclprofLibrary::Init(const std::string& path) {
  return Guarded([&] { return init_(path.c_str(), path.size()); });
}

Called AclprofLibrary::SetConfig(int type, const std::string& value) {
  if (set_config_ == nullptr) return {kFeatureUnsupported, {}};
  return Guarded([&] { return set_config_(type, value.c_str(), value.size()); });
}

Called AclprofLibrary::CreateConfig(std::vector<uint32_t> devices, int metrics, uint64_t bits) {
  return Guarded([&]() -> int {
    config_ = create_config_(devices.data(), static_cast<uint32_t>(devices.size()), metrics, nullptr, bits);
    return config_ == nullptr ? kInvalidParam : 0;
  });
}

Called AclprofLibrary::Start() {
  return Guarded([this] { return start_(config_); });
}
Called AclprofLibrary::Stop() {
  return Guarded([this] { return stop_(config_); });
}
Called AclprofLibrary::Finalize() {
  Called destroyed;
  if (Config* const config = std::exchange(config_, nullptr); config != nullptr) {
    destroyed = Guarded([&] { return destroy_config_(config); });
  }
  Called finalized = Guarded([this] { return finalize_(); });
  return finalized.ok() ? destroyed : finalized;
}

std::vector<uint32_t> AclprofLibrary::Devices() {
  constexpr uint32_t kMost = 64;
  DeviceCountFunction function = nullptr;
  void* const runtime = ::dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD);
  const bool found = runtime != nullptr && FindFunction(runtime, "aclrtGetDeviceCount", &function);
  uint32_t count = 0;
  if (!found || !Guarded([&] { return function(&count); }).ok() || count == 0) count = 1;
  std::vector<uint32_t> devices(std::min(count, kMost));
  std::iota(devices.begin(), devices.end(), 0U);
  return devices;
}

std::vector<uint32_t> AclprofLibrary::OwnDevice() {
  // The runtime knows of the calling thread's device only.
  std::optional<uint32_t> own = FirstNumber(attach::kDeviceVariables);
  if (!own) own = FirstNumber(attach::kLocalRankVariables);
  const size_t count = Devices().size();
  // A process that sees one device has no other, whatever its rank.
  if (!own || count == 1 || *own >= count) return {};
  return {*own};
}

}  // namespace profd::lib::aclprof
