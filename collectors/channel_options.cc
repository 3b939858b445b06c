#include "collectors/channel_options.h"

#include <algorithm>

namespace profd {
namespace {

size_t PlaceOf(const CollectorSpec& spec, const CollectorOption& option) {
  return static_cast<size_t>(&option - spec.options.data());
}

bool MustAgree(const CollectorOption& option) {
  return option.use == OptionUse::kNumber || option.use == OptionUse::kChoice;
}

// The driver's periods are full milliseconds.
double Rounded(double hz) {
  if (hz <= 0) return 0;
  const double period_ms = std::max(1.0, static_cast<double>(static_cast<int64_t>(1000.0 / hz)));
  return 1000.0 / period_ms;
}

}  // namespace

std::string OptionKeys(const CollectorSpec& spec) {
  std::string keys;
  for (const CollectorOption& option : spec.options) {
    if (option.key.empty() || option.use == OptionUse::kChoice) continue;
    keys.append(keys.empty() ? "" : ",").append(option.key);
  }
  return keys;
}

void SetOption(const CollectorSpec& spec, const CollectorOption& option, double number,
               ChannelOptions* options) {
  if (option.use != OptionUse::kRate) options->values[PlaceOf(spec, option)] = number;
  if (option.use != OptionUse::kNumber) options->hz = std::max(options->hz, number);
}

void SetChoices(const CollectorSpec& spec,
                const std::function<std::string(std::string_view key)>& text_of,
                ChannelOptions* options) {
  for (const CollectorOption& option : spec.options) {
    if (option.use != OptionUse::kChoice) continue;
    options->values[PlaceOf(spec, option)] = text_of(option.key) == option.item ? 1 : 0;
  }
}

void SetEverything(const CollectorSpec& spec, double hz, ChannelOptions* options) {
  options->hz = hz;
  for (const CollectorOption& option : spec.options) {
    if (option.use == OptionUse::kPart) options->values[PlaceOf(spec, option)] = hz;
  }
}

std::array<double, kCollectorOptions> PartRates(const CollectorSpec& spec,
                                                const ChannelOptions& options) {
  std::array<double, kCollectorOptions> rates{};
  for (size_t i = 0; i < rates.size(); ++i) {
    if (spec.options[i].use == OptionUse::kPart) rates[i] = Rounded(options.values[i]);
  }
  return rates;
}

ChannelOptions MergeOptions(const CollectorSpec& spec, const ChannelOptions& a,
                            const ChannelOptions& b) {
  ChannelOptions merged = a;
  merged.hz = std::max(a.hz, b.hz);
  for (size_t i = 0; i < merged.values.size(); ++i) {
    if (!MustAgree(spec.options[i])) merged.values[i] = std::max(a.values[i], b.values[i]);
  }
  return merged;
}

const CollectorOption* DifferingOption(const CollectorSpec& spec, const ChannelOptions& a,
                                       const ChannelOptions& b) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (MustAgree(spec.options[i]) && a.values[i] != b.values[i]) return &spec.options[i];
  }
  return nullptr;
}

double ValueOf(const CollectorSpec& spec, const CollectorOption& option,
               const ChannelOptions& options) {
  return options.values[PlaceOf(spec, option)];
}

}  // namespace profd
