// Start-up of DcmiService: which NPUs there are and who they are (dcmi-and-metrics 1.2).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <iterator>

#include "base/text.h"
#include "driver/dcmi_service_impl.h"
#include "driver/staggered.h"

namespace profd {
namespace {

// Text the driver put into a fixed field; it need not be terminated, and serial numbers come
// padded.
template <class Char, size_t N>
std::string Text(const Char (&field)[N]) {
  static_assert(sizeof(Char) == 1);
  const char* begin = reinterpret_cast<const char*>(field);
  std::string text(Trim(
      std::string_view(begin, static_cast<size_t>(std::find(begin, begin + N, '\0') - begin))));
  for (char& c : text) {
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  }
  return text;
}

std::string UuidText(const abi::DcmiDieId& die) {
  const auto& w = die.soc_die;
  if (std::ranges::all_of(w, [](uint32_t word) { return word == 0; })) return {};
  return fmt::format("{:08X}-{:08X}-{:08X}-{:08X}-{:08X}", w[0], w[1], w[2], w[3], w[4]);
}

bool IsAbandoned(int code) { return code == kDcmiAbandoned; }

// Threads that one card may hold in calls that do not return. They cost memory, and a card that has
// kept so many of them needs a reset anyway.
constexpr size_t kMaxSearches = 4;

// For the facts that a device keeps for the life of the daemon (the labels of its metrics).
constexpr int kIdentityTries = 3;

// Another attempt may have another answer.
bool MayPass(int code) {
  const DcmiErrorClass what = ClassifyDcmi(code);
  return what == DcmiErrorClass::kTransient || what == DcmiErrorClass::kDeviceDown;
}

// For such a fact: an error that may pass is tried again, a few times and at once.
template <class Ask>
int Insist(Ask&& ask) {
  int code = ask();
  for (int tries = 1; tries < kIdentityTries && MayPass(code) && !IsAbandoned(code); ++tries) code = ask();
  return code;
}

}  // namespace

Status DcmiService::Start() {
  RunListing(options_.init_patience);
  {
    MutexLock lock(state_->mutex);
    if (!state_->TakeListing(state_->clock.SteadyNs() + options_.init_retry_ns, 0)) {
      return Unavailable(state_->WhyPending(options_));
    }
    RETURN_IF_ERROR(DcmiStatus(state_->facts.code, state_->facts.what));
  }
  (void)CheckCards(state_->clock.SteadyNs(), options_.start);
  return Status::Ok();
}

void DcmiService::RunListing(std::chrono::milliseconds patience) {
  std::vector<std::function<void()>> jobs;
  {
    MutexLock lock(state_->mutex);
    if (state_->attempt != nullptr) return;
    state_->no_thread = false;
    state_->attempt = std::make_shared<State::Listing>();
    state_->attempt->calls.since_ns = state_->clock.SteadyNs();
    jobs.emplace_back([state = state_, listing = state_->attempt] {
      state->List(*listing);
      MutexLock done_lock(state->mutex);
      listing->done = true;
    });
  }
  const auto ends = RunStaggered("profd-dcmi-init", std::move(jobs), {patience, patience, std::chrono::milliseconds(0)});
  if (ends.front() != StaggeredEnd::kNoThread) return;
  MutexLock lock(state_->mutex);
  state_->attempt = nullptr;
  state_->no_thread = true;
  state_->next_listing_ns = state_->clock.SteadyNs() + options_.init_retry_ns;
}

bool DcmiService::State::TakeListing(int64_t next_ns, int64_t awaited_until_ns) {
  if (attempt == nullptr || !attempt->done) return false;
  facts = std::move(*attempt);
  attempt = nullptr;
  listed = facts.code == abi::kDcmiOk;
  next_listing_ns = next_ns;
  for (int id : facts.cards) {
    Card& card = cards.emplace_back();
    card.id = id;
    card.awaited_until_ns = awaited_until_ns;
  }
  return true;
}

void DcmiService::ListAgain(int64_t now_steady_ns) {
  {
    MutexLock lock(state_->mutex);
    // The cards have the time that Start gives them.
    const auto grace = std::chrono::nanoseconds(options_.start.handovers + options_.start.patience);
    state_->TakeListing(now_steady_ns + options_.init_retry_ns, now_steady_ns + grace.count());
    if (!state_->IsPending() || now_steady_ns < state_->next_listing_ns) return;
  }
  RunListing(std::chrono::milliseconds(0));
}

bool DcmiService::State::IsPending() const {
  return !listed && (attempt != nullptr || no_thread || MayPass(facts.code));
}

bool DcmiService::IsPending() const {
  MutexLock lock(state_->mutex);
  return state_->IsPending();
}

std::string DcmiService::State::WhyPending(const Options& options) const {
  if (no_thread) {
    return fmt::format("{}: the system has no thread for it; tried again every {} s", NameOf(DcmiCall::kInit),
                       options.init_retry_ns / kNsPerSecond);
  }
  const int64_t for_ns = attempt != nullptr ? clock.SteadyNs() - attempt->calls.since_ns : 0;
  if (MayPass(facts.code) && for_ns < std::chrono::nanoseconds(options.init_patience).count()) {
    return fmt::format("{}; tried again every {} s", DcmiStatus(facts.code, facts.what).message(),
                       options.init_retry_ns / kNsPerSecond);
  }
  const DcmiCall call = attempt != nullptr ? attempt->calls.call : DcmiCall::kInit;
  return fmt::format("{} has not returned for {} s; profd uses libdcmi when it does", NameOf(call), for_ns / kNsPerSecond);
}

std::string DcmiService::dcmi_version() const {
  MutexLock lock(state_->mutex);
  return state_->facts.dcmi_version;
}

std::string DcmiService::driver_version() const {
  MutexLock lock(state_->mutex);
  return state_->facts.driver_version;
}

void DcmiService::State::List(Listing& listing) {
  listing.what = "dcmi_init";
  listing.code = Initialise(listing);
  if (listing.code != abi::kDcmiOk) return;
  listing.what = "enumerating NPUs";
  listing.code = ListCards(listing);
  if (listing.code == abi::kDcmiOk) ReadVersions(listing);
}

int DcmiService::State::Initialise(Listing& listing) {
  const DcmiFunctions& f = library.functions;
  // The generation whose init worked; chips of the newest one answer v2 only.
  DcmiApi worked = DcmiApi::kNone;
  const int code = Run(listing.calls, DcmiCall::kInit, [&] {
    int v1_code = f.init != nullptr ? f.init() : kDcmiSymbolMissing;
    if (v1_code == abi::kDcmiOk) worked = DcmiApi::kV1;
    if (v1_code == abi::kDcmiOk || f.v2_init == nullptr) return v1_code;
    const int v2_code = f.v2_init();
    if (v2_code == abi::kDcmiOk) worked = DcmiApi::kV2;
    // A library that has both and is not ready yet may refuse the other generation for good.
    return v2_code != abi::kDcmiOk && MayPass(v1_code) ? v1_code : v2_code;
  });
  if (code == abi::kDcmiOk) api = worked;
  return code;
}

// With v2 a card is an NPU.
int DcmiService::State::ListCards(Listing& listing) {
  const DcmiFunctions& f = library.functions;
  std::array<int, 2 * abi::kDcmiMaxCards> ids{};
  int count = 0;
  const bool v2 = api == DcmiApi::kV2;
  const int code = Run(listing.calls, v2 ? DcmiCall::kDeviceList : DcmiCall::kCardList, [&] {
    if (v2) {
      return f.v2_device_list != nullptr ? f.v2_device_list(ids.data(), &count, abi::kDcmiMaxCards)
                                         : kDcmiSymbolMissing;
    }
    return f.card_list != nullptr ? f.card_list(&count, ids.data(), abi::kDcmiMaxCards)
                                  : kDcmiSymbolMissing;
  });
  if (code != abi::kDcmiOk) return code;
  listing.cards.assign(ids.begin(), ids.begin() + std::clamp(count, 0, abi::kDcmiMaxCards));
  if (v2) std::erase_if(listing.cards, [](int id) { return id < 0; });
  return code;
}

std::vector<const DcmiDevice*> DcmiService::CheckCards(int64_t now_steady_ns,
                                                       const StaggerPace& pace) {
  ListAgain(now_steady_ns);
  std::vector<std::function<void()>> searches;
  std::vector<std::shared_ptr<State::Search>> begun;
  {
    MutexLock lock(state_->mutex);
    for (State::Card& card : state_->cards) {
      if (card.answered || now_steady_ns < card.next_try_ns ||
          card.searches.size() >= kMaxSearches) {
        continue;
      }
      auto search = std::make_shared<State::Search>(card.id);
      card.searches.push_back(search);
      begun.push_back(search);
      card.next_try_ns = now_steady_ns + options_.retry_ns;
      searches.emplace_back([state = state_, search] {
        state->FindOnCard(*search);
        MutexLock done_lock(state->mutex);
        search->done = true;
      });
    }
  }
  if (searches.empty()) return TakeFound();
  const std::vector<StaggeredEnd> ends = RunStaggered("profd-discover", std::move(searches), pace);
  {
    // Those that never began are none of the calls that do not return.
    MutexLock lock(state_->mutex);
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] != StaggeredEnd::kNoThread) continue;
      for (State::Card& card : state_->cards) std::erase(card.searches, begun[i]);
    }
  }
  return TakeFound();
}

// Late ones come behind the others: devices() must not move.
std::vector<const DcmiDevice*> DcmiService::TakeFound() {
  std::vector<State::FoundNpu> found;
  std::vector<const DcmiDevice*> taken;
  MutexLock lock(state_->mutex);
  for (State::Card& card : state_->cards) {
    for (const auto& search : card.searches) {
      if (!search->done) continue;
      card.awaited_until_ns = 0;
      // An answer that there is nothing is one, too; an error that may pass is none.
      card.answered = card.answered || !search->failed;
      std::move(search->found.begin(), search->found.end(), std::back_inserter(found));
      search->found.clear();
    }
    std::erase_if(card.searches, [](const auto& search) { return search->done; });
  }
  std::ranges::sort(found, [](const State::FoundNpu& a, const State::FoundNpu& b) {
    return a.device.logical_id < b.device.logical_id;
  });
  for (State::FoundNpu& one : found) {
    // One that is listed twice would be counted twice.
    if (FindByLogicalId(one.device.logical_id) != nullptr || devices_.size() >= kMaxDcmiDevices) {
      continue;
    }
    one.device.index = static_cast<int>(devices_.size());
    state_->SlotOf(one.device) = one.slot;
    devices_.push_back(std::move(one.device));
    device_count_.store(devices_.size(), std::memory_order_release);
    taken.push_back(&devices_.back());
  }
  return taken;
}

const DcmiService::State::Card* DcmiService::State::SilentCardOf(int logical_id) const {
  const Card* silent = nullptr;
  for (const Card& card : cards) {
    if (card.answered) continue;
    // The number of a card identifies the NPU where a card has one only; else any may be meant.
    if (silent == nullptr || card.id == logical_id) silent = &card;
  }
  return silent;
}

bool DcmiService::HangsSilently(int logical_id) const {
  if (FindByLogicalId(logical_id) != nullptr) return false;
  MutexLock lock(state_->mutex);
  const State::Card* silent = state_->SilentCardOf(logical_id);
  return silent != nullptr && !silent->searches.empty() && state_->clock.SteadyNs() >= silent->awaited_until_ns;
}

bool DcmiService::IsAwaited(int logical_id) const {
  if (FindByLogicalId(logical_id) != nullptr) return false;
  MutexLock lock(state_->mutex);
  const State::Card* silent = state_->SilentCardOf(logical_id);
  return state_->IsPending() || (silent != nullptr && state_->clock.SteadyNs() < silent->awaited_until_ns);
}

std::string DcmiService::SilenceOf(int logical_id, int physical_id) const {
  if (FindByLogicalId(logical_id) != nullptr) return {};
  MutexLock lock(state_->mutex);
  if (state_->IsPending()) return state_->WhyPending(options_);
  const State::Card* silent = state_->SilentCardOf(logical_id);
  if (silent == nullptr) return {};
  if (state_->clock.SteadyNs() < silent->awaited_until_ns) {
    return fmt::format("npu {} has not answered DCMI calls yet", physical_id);
  }
  if (silent->searches.size() >= kMaxSearches) {
    return fmt::format(
        "npu {} does not answer DCMI calls: {} of them have not returned; see dmesg and `npu-smi "
        "info`, it needs a reset, and profd a restart if it is not found then",
        physical_id, silent->searches.size());
  }
  return fmt::format("npu {} does not answer DCMI calls; retried every {} s", physical_id,
                     options_.retry_ns / kNsPerSecond);
}

bool DcmiService::HasSilentCards() const {
  if (IsPending()) return true;
  MutexLock lock(state_->mutex);
  return std::ranges::any_of(state_->cards, [](const State::Card& card) { return !card.answered; });
}

void DcmiService::State::FindOnCard(Search& search) {
  const DcmiFunctions& f = library.functions;
  const int card = search.card;
  if (api == DcmiApi::kV2) {
    AddNpu(search, 0, card, PhysicalId(search, f.v2_chip_phy_id, card));
    return;
  }
  int count = 0;
  int code = Run(search.calls, DcmiCall::kDeviceNumInCard, [&] {
    return f.device_num_in_card != nullptr ? f.device_num_in_card(card, &count)
                                           : kDcmiSymbolMissing;
  });
  // A card whose chips cannot be counted has at least its first one tried.
  search.failed = MayPass(code);
  count = code == abi::kDcmiOk ? std::clamp(count, 0, abi::kDcmiMaxDevicesInCard) : 1;
  for (int chip = 0; chip < count; ++chip) {
    int type = abi::kUnitNpu;
    code = Run(search.calls, DcmiCall::kDeviceType, [&] {
      return f.device_type.v1 != nullptr ? f.device_type.v1(card, chip, &type) : kDcmiSymbolMissing;
    });
    if (code == abi::kDcmiOk && type != abi::kUnitNpu) continue;  // the card's MCU or CPU
    int logical_id = -1;
    code = Run(search.calls, DcmiCall::kLogicId, [&] {
      return f.device_logic_id != nullptr ? f.device_logic_id(&logical_id, card, chip)
                                          : kDcmiSymbolMissing;
    });
    search.failed = search.failed || MayPass(code);
    if (code != abi::kDcmiOk || logical_id < 0) continue;
    AddNpu(search, chip, logical_id, PhysicalId(search, f.phyid_from_logicid, logical_id));
  }
}

int DcmiService::State::PhysicalId(Search& search, abi::DcmiConvertIdFn convert, int logical_id) {
  unsigned answer = 0;
  const int code = Insist([&] {
    return Run(search.calls, DcmiCall::kPhysicalId, [&] {
      return convert != nullptr ? convert(static_cast<unsigned>(logical_id), &answer) : kDcmiSymbolMissing;
    });
  });
  return code == abi::kDcmiOk && answer <= INT_MAX ? static_cast<int>(answer) : logical_id;
}

void DcmiService::State::AddNpu(Search& search, int chip, int logical_id, int physical_id) {
  FoundNpu& found = search.found.emplace_back();
  found.device.card = search.card;
  found.device.chip = chip;
  found.device.logical_id = logical_id;
  found.device.physical_id = found.slot.physical_id = physical_id;
  ReadIdentity(found);
  ReadLabels(found);
}

void DcmiService::State::ReadVersions(Listing& listing) {
  const DcmiFunctions& f = library.functions;
  const bool v2 = api == DcmiApi::kV2;
  auto read = [&](DcmiCall call, abi::DcmiGetVersionFn fn, std::string* out) {
    char text[512] = {};
    const int code = Run(listing.calls, call,
                         [&] { return fn != nullptr ? fn(text, sizeof text / 2) : kDcmiSymbolMissing; });
    if (code == abi::kDcmiOk) *out = Text(text);
  };
  read(DcmiCall::kDcmiVersion, v2 ? f.v2_dcmi_version : f.dcmi_version, &listing.dcmi_version);
  read(DcmiCall::kDriverVersion, v2 ? f.v2_driver_version : f.driver_version, &listing.driver_version);
}

template <class T, class Fn>
DcmiAnswer<T> DcmiService::State::QueryFact(FoundNpu& found, DcmiCall call, Fn&& fn) {
  DcmiAnswer<T> answer;
  Insist([&] {
    answer = Query<T>(found.device, found.slot, call, {}, fn);
    return answer.code;
  });
  return answer;
}

void DcmiService::State::ReadIdentity(FoundNpu& found) {
  const DcmiFunctions& f = library.functions;
  DcmiDevice* device = &found.device;
  auto chip = QueryFact<abi::DcmiChipInfoV2>(found, DcmiCall::kChipInfo, [&](auto& at, auto* o) {
    const int code = at.Invoke(f.chip_info, o);
    // The older one fills the same struct, but for npu_name.
    return f.old_chip_info != nullptr && ClassifyDcmi(code) == DcmiErrorClass::kUnsupported ? at.InvokeV1(f.old_chip_info, o) : code;
  });
  if (chip.ok()) {
    device->chip_type = Text(chip.value.chip_type);
    device->chip_name = Text(chip.value.chip_name);
    device->chip_version = Text(chip.value.chip_ver);
    device->npu_name = Text(chip.value.npu_name);
    device->aicore_count = chip.value.aicore_cnt;
  }
  for (DcmiCall call : {DcmiCall::kVdie, DcmiCall::kDdie}) {
    if (!device->uuid.empty()) break;
    const int type = call == DcmiCall::kVdie ? abi::kDieVdie : abi::kDieDdie;
    auto die = QueryFact<abi::DcmiDieId>(found, call, [&](auto& at, auto* o) { return at.Invoke(f.die, type, o); });
    if (die.ok()) device->uuid = UuidText(die.value);
  }
}

void DcmiService::State::ReadLabels(FoundNpu& found) {
  const DcmiFunctions& f = library.functions;
  DcmiDevice* device = &found.device;
  auto pcie = QueryFact<abi::DcmiPcieInfoAll>(found, DcmiCall::kPcieInfo, [&](auto& at, auto* o) {
    return at.Invoke(f.pcie_info, o);
  });
  if (pcie.ok()) {
    device->pci_bus_id =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pcie.value.domain & 0xFFFFFFF,
                    pcie.value.bdf_busid, pcie.value.bdf_deviceid, pcie.value.bdf_funcid);
  }
  auto board = QueryFact<abi::DcmiBoardInfo>(found, DcmiCall::kBoardInfo, [&](auto& at, auto* o) {
    if (at.api == DcmiApi::kV1) return at.InvokeV1(f.board_info, o);
    if (f.v2_board_info != nullptr) return at.InvokeV2(f.v2_board_info, o);
    return at.InvokeV2(f.v2_board_id, &o->board_id);
  });
  if (board.ok()) {
    // The training series of before 910B keeps a revision in the low four bits.
    const bool first_training_series = device->chip_name.starts_with("910") &&
                                       !device->chip_name.starts_with("910B") &&
                                       !device->chip_name.starts_with("910_93");
    device->board_id =
        fmt::format("0x{:x}", board.value.board_id >> (first_training_series ? 4 : 0));
  }
  auto mainboard = QueryFact<unsigned>(found, DcmiCall::kMainboardId,
                                       [&](auto& at, auto* o) { return at.InvokeV1(f.mainboard_id, o); });
  if (mainboard.ok()) device->mainboard_id = mainboard.value;
  auto label = QueryFact<abi::DcmiElabelInfo>(found, DcmiCall::kElabel, [&](auto& at, auto* o) {
    const bool v2 = at.api == DcmiApi::kV2;
    const abi::DcmiGetElabelFn fn = v2 ? f.v2_elabel : f.elabel;
    return fn != nullptr ? fn(v2 ? at.logical_id : at.card, o) : kDcmiSymbolMissing;
  });
  if (label.ok()) {
    device->product = Text(label.value.product_name);
    device->model = Text(label.value.model);
    device->serial = Text(label.value.serial_number);
  }
  // Others do not support it.
  if (!device->Is310P()) return;
  struct Product {
    char name[256];
  };
  auto product = QueryFact<Product>(found, DcmiCall::kProductType, [&](auto& at, auto* o) {
    return at.InvokeV1(f.product_type, o->name, static_cast<int>(sizeof o->name));
  });
  if (product.ok()) device->product_type = Text(product.value.name);
}

}  // namespace profd
