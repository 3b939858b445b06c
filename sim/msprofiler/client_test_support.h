// A client of libmsprofiler.so as a test drives it, and what is in its results.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/temp_dir.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/child_test_support.h"
#include "sim/msprofiler/msprofiler.h"
#include "sim/mspti/mspti.h"

namespace profd::sim::aclprof {

namespace fs = std::filesystem;

inline const Library& Acl() {
  static const Library* const library = new Library(PROFD_SIM_ASCENDCL);
  return *library;
}
inline const char*& LibraryPath() {
  static const char* path = PROFD_SIM_MSPROFILER;
  return path;
}
// Loaded with the first call, after the settings.
inline const Library& Msprofiler() {
  static const Library* const library = [] {
    Acl();
    return new Library(LibraryPath());
  }();
  return *library;
}
inline void Settings(const std::string& settings) { ::setenv("PROFD_SIM_APP", settings.c_str(), 1); }

// 100 us of the 50 MHz counter. Both ends are whole counts of a clock that drifts by up to 5 ppm: one count more or less.
inline auto IsHundredUs() { return testing::AllOf(testing::Ge(uint64_t{4999}), testing::Le(uint64_t{5001})); }

inline int Init(const std::string& path) { return CALL(Msprofiler(), aclprofInit)(path.c_str(), path.size()); }
inline Config* Create(std::vector<uint32_t> devices, uint64_t bits, int metrics = kNoMetrics) {
  return CALL(Msprofiler(), aclprofCreateConfig)(devices.data(), static_cast<uint32_t>(devices.size()), metrics,
                                                 nullptr, bits);
}
inline int Start(const Config* config) { return CALL(Msprofiler(), aclprofStart)(config); }
inline Config* Begin(const TempDir& folder, std::vector<uint32_t> devices, uint64_t bits, int metrics = kNoMetrics) {
  EXPECT_EQ(Init(folder.path()), kOk);
  Config* const config = Create(std::move(devices), bits, metrics);
  EXPECT_EQ(Start(config), kOk);
  return config;
}
inline int Stop(const Config* config) { return CALL(Msprofiler(), aclprofStop)(config); }
inline int Finalize() { return CALL(Msprofiler(), aclprofFinalize)(); }
inline int Set(int type, const std::string& value) {
  return CALL(Msprofiler(), aclprofSetConfig)(type, value.c_str(), value.size());
}

inline void Launch(const std::string& name, uint32_t task_type = prof::kTaskAicore, int count = 1) {
  acl::Tensor tensor{};
  tensor.shape[0] = 16;
  acl::Kernel kernel{};
  kernel.name = name.c_str();
  kernel.type = "MatMulV2";
  kernel.function = "aclnnMatmul";
  kernel.task_type = task_type;
  kernel.block_dim = 24;
  kernel.duration_ns = 100'000;
  kernel.tensors = &tensor;
  kernel.tensor_count = 1;
  for (int i = 0; i < count; ++i) EXPECT_EQ(CALL(Acl(), simAclLaunch)(&kernel, nullptr), 0);
}
inline void Synchronize() { EXPECT_EQ(CALL(Acl(), aclrtSynchronizeDevice)(), 0); }

// Of the one result below a folder: contents by path, slices of a file joined in order.
inline std::map<std::string, std::string> Read(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".done") paths.push_back(entry.path());
  }
  const auto slice = [](const fs::path& path) {
    const std::string name = path.string();
    const size_t at = name.rfind(".slice_");
    return at == std::string::npos ? 0 : std::stoi(name.substr(at + 7));
  };
  std::sort(paths.begin(), paths.end(), [&](const auto& a, const auto& b) { return slice(a) < slice(b); });
  for (const fs::path& path : paths) {
    std::string name = fs::relative(path, folder).string();
    name = name.substr(name.find('/') + 1);
    files[name.substr(0, name.rfind(".slice_"))] += ReadText(path);
  }
  return files;
}
template <class T>
T At(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
inline size_t Results(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// A complete run of one kernel.
inline std::map<std::string, std::string> RunOne(const TempDir& folder, uint64_t bits, int metrics = kNoMetrics,
                                          uint32_t task_type = prof::kTaskAicore) {
  Config* const config = Begin(folder, {0}, bits, metrics);
  Launch("conv", task_type);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_EQ(CALL(Msprofiler(), aclprofDestroyConfig)(config), kOk);
  EXPECT_EQ(Finalize(), kOk);
  return Read(folder.path());
}

}  // namespace profd::sim::aclprof
