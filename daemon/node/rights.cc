#include "daemon/node/rights.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace profd {
namespace {

struct CapabilityUse {
  unsigned number;
  RightLoss text;
  bool for_dumps;
};

constexpr std::array kCapabilityUses = {
    CapabilityUse{CAP_CHOWN,
          {"CAP_CHOWN", "no dumps for other users, and no socket for a group profd is not in"},
          true},
    CapabilityUse{CAP_DAC_OVERRIDE,
          {"CAP_DAC_OVERRIDE", "no dumps for other users, no removal of dumps they have, and no job of "
                               "a process that does not attach"},
          true},
    CapabilityUse{CAP_SYS_PTRACE,
          {"CAP_SYS_PTRACE", "no job, rank and devices of another user's process that does not attach"},
          false},
};

constexpr bool Has(uint64_t set, unsigned number) { return (set >> number & 1) != 0; }

}  // namespace

Rights Rights::OfThisProcess() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  uint64_t held = 0;
  if (::syscall(SYS_capget, &header, data.data()) == 0) {
    held = data[0].effective | static_cast<uint64_t>(data[1].effective) << 32;
  }
  return {::geteuid(), held};
}

std::vector<RightLoss> Rights::Losses() const {
  std::vector<RightLoss> losses;
  if (!privileged()) return losses;
  for (const CapabilityUse& known : kCapabilityUses) {
    if (!Has(capabilities_, known.number)) losses.push_back(known.text);
  }
  return losses;
}

Status Rights::MayGiveDump(uint32_t uid) const {
  if (uid == uid_) return Status::Ok();
  std::string missing;
  for (const CapabilityUse& known : kCapabilityUses) {
    if (!known.for_dumps || Has(capabilities_, known.number)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : " and ", known.text.capability);
  }
  if (missing.empty()) return Status::Ok();
  return PermissionDenied(
      fmt::format("profd runs as uid {} without {}: it cannot make a dump for uid {}; live samples "
                  "need none (no_dump)",
                  uid_, missing, uid));
}

}  // namespace profd
