// An object that uses mstx, as the vendor's header compiles it into each: a table of its own, filled at the first call.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "client/libprofd/fake_daemon_test_support.h"
#include "client/libprofd/mstx/mstx_abi.h"

namespace profd::mstx {

inline Init LoadInjection() {
  void* library = ::dlopen(PROFD_MSTX, RTLD_LAZY | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  return library == nullptr ? nullptr : reinterpret_cast<Init>(::dlsym(library, "InitInjectionMstx"));
}

// Where a table has not been filled. In the vendor's header such an entry becomes null.
inline void Trampoline() {}

class MarkingObject {
 public:
  // `domain_size`: what it reports of its table of domains.
  explicit MarkingObject(unsigned domain_size = kDomainCount) : domain_size_(domain_size) {
    for (auto& module : functions_) module.fill(&Trampoline);
  }
  int FillBy(Init init) {
    current_ = this;
    return init(&Table);
  }
  template <class Call>
  Call Get(Module module, unsigned place) const {
    return reinterpret_cast<Call>(functions_[module][place]);
  }
  bool IsFilled(Module module, unsigned place) const {
    return functions_[module][place] != &Trampoline;
  }
  void Mark(const char* message) const { Get<MarkCall>(kCore, kMark)(message, nullptr); }
  uint64_t Start(const char* message) const {
    return Get<RangeStartCall>(kCore, kRangeStart)(message, nullptr);
  }
  void End(uint64_t id) const { Get<RangeEndCall>(kCore, kRangeEnd)(id); }
  DomainHandle Create(const char* name) const { return Get<CreateCall>(kDomain, kCreate)(name); }
  void DomainMark(DomainHandle domain, const char* message) const {
    Get<DomainMarkCall>(kDomain, kDomainMark)(domain, message, nullptr);
  }
  uint64_t DomainStart(DomainHandle domain, const char* message) const {
    return Get<DomainRangeStartCall>(kDomain, kDomainRangeStart)(domain, message, nullptr);
  }
  void DomainEnd(DomainHandle domain, uint64_t id) const {
    Get<DomainRangeEndCall>(kDomain, kDomainRangeEnd)(domain, id);
  }

 private:
  static int Table(int module, Function*** table, unsigned* size) {
    if (module < kCore || module > kMemory) return 1;
    auto index = static_cast<size_t>(module);
    for (size_t i = 1; i < 8; ++i) current_->addresses_[index][i] = &current_->functions_[index][i];
    *table = current_->addresses_[index].data();
    *size = module == kCore ? kCoreCount : module == kDomain ? current_->domain_size_ : kMemoryCount;
    return 0;
  }
  static inline MarkingObject* current_ = nullptr;
  const unsigned domain_size_;
  std::array<std::array<Function, 8>, 4> functions_{};
  std::array<std::array<Function*, 8>, 4> addresses_{};
};

class MstxTest : public lib::LibprofdTest {
 protected:
  // "kind value domain|name"
  static std::vector<std::string> Texts(const std::vector<lib::RingView::Taken>& taken) {
    std::vector<std::string> texts;
    for (const auto& mark : taken) {
      std::string name = mark.name;
      for (char& c : name) c = c == attach::kDomainEnd ? '|' : c;
      texts.push_back(std::to_string(static_cast<int>(mark.kind)) + " " + std::to_string(mark.value) +
                      " " + name);
    }
    return texts;
  }
  void Activate(lib::FakeDaemon& daemon) {
    daemon.Send(attach::SessionNotice{"s-1", "running", {}, 0, {}});
    ASSERT_TRUE(Eventually([] { return profd_active() == 1; }));
  }
};

}  // namespace profd::mstx
