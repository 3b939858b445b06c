// What the options of a session mean to a channel collector, by the uses its spec declares.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "collectors/collector.h"

namespace profd {

// How the option of this key concerns the collector; null if it does not.
constexpr const CollectorOption* FindOption(const CollectorSpec& spec, std::string_view key) {
  for (const CollectorOption& option : spec.options) {
    if (!key.empty() && option.key == key) return &option;
  }
  return nullptr;
}
// The options that turn the collector on, "a,b".
std::string OptionKeys(const CollectorSpec& spec);

// The option was given this number; for choices there is SetChoices.
void SetOption(const CollectorSpec& spec, const CollectorOption& option, double number,
               ChannelOptions* options);
// `text_of` gives the text of an option.
void SetChoices(const CollectorSpec& spec,
                const std::function<std::string(std::string_view key)>& text_of,
                ChannelOptions* options);
// All parts, at this rate.
void SetEverything(const CollectorSpec& spec, double hz, ChannelOptions* options);

// By place of the option, rounded to whole milliseconds as the driver does; 0 for an option that is not part of it.
std::array<double, kCollectorOptions> PartRates(const CollectorSpec& spec,
                                                const ChannelOptions& options);

// What serves both sessions; numbers and choices are those of `a`.
ChannelOptions MergeOptions(const CollectorSpec& spec, const ChannelOptions& a,
                            const ChannelOptions& b);
// The first number or choice in which they differ; null: they can share a channel.
const CollectorOption* DifferingOption(const CollectorSpec& spec, const ChannelOptions& a,
                                       const ChannelOptions& b);
double ValueOf(const CollectorSpec& spec, const CollectorOption& option,
               const ChannelOptions& options);

}  // namespace profd
