#include "collectors/channel_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CollectorSpec SpecWith(CollectorOption first, CollectorOption second = {}) {
  return {.name = "toy",
          .source = CollectorSource::kChannel,
          .summary = "",
          .options = {first, second},
          .default_hz = 1,
          .max_hz = 100};
}

const CollectorSpec kParts = SpecWith({.key = "memory", .use = OptionUse::kPart},
                                      {.key = "links", .use = OptionUse::kPart});
const CollectorSpec kChoice =
    SpecWith({.key = "rate"}, {.key = "what", .use = OptionUse::kChoice, .item = "write"});
const CollectorSpec kNumber = SpecWith({.key = "cycles", .use = OptionUse::kNumber});

TEST(ChannelOptions, AnOptionSetsItsPartAndTheRateOfTheChannel) {
  ChannelOptions options;
  SetOption(kParts, kParts.options[1], 20, &options);
  SetOption(kParts, kParts.options[0], 10, &options);
  EXPECT_THAT(options.values, ElementsAre(10, 20));
  EXPECT_EQ(options.hz, 20);
  EXPECT_EQ(ValueOf(kParts, kParts.options[1], options), 20);
  ChannelOptions number;
  SetOption(kNumber, kNumber.options[0], 30000, &number);
  EXPECT_THAT(number.values, ElementsAre(30000, 0));
  EXPECT_EQ(number.hz, 0);  // no rate
  ChannelOptions rate;
  SetOption(kChoice, kChoice.options[0], 50, &rate);
  EXPECT_THAT(rate.values, ElementsAre(0, 0));
  EXPECT_EQ(rate.hz, 50);
}

TEST(ChannelOptions, AChoiceCountsIfItIsTheItem) {
  ChannelOptions options;
  SetChoices(kChoice, [](std::string_view key) { return key == "what" ? "write" : ""; }, &options);
  EXPECT_THAT(options.values, ElementsAre(0, 1));
  SetChoices(kChoice, [](std::string_view) { return "read"; }, &options);
  EXPECT_THAT(options.values, ElementsAre(0, 0));
}

TEST(ChannelOptions, EverythingIsAllPartsAndNoChoice) {
  ChannelOptions options;
  SetEverything(kParts, 50, &options);
  EXPECT_EQ(options.hz, 50);
  EXPECT_THAT(options.values, ElementsAre(50, 50));
  ChannelOptions choice;
  SetEverything(kChoice, 50, &choice);
  EXPECT_THAT(choice.values, ElementsAre(0, 0));
}

// The driver's periods are whole milliseconds: 30 Hz is every 33 ms.
TEST(ChannelOptions, RatesOfPartsAreThoseOfTheDriver) {
  EXPECT_THAT(PartRates(kParts, {.hz = 30, .values = {30, 0}}), ElementsAre(1000.0 / 33, 0));
  EXPECT_THAT(PartRates(kChoice, {.hz = 30, .values = {0, 1}}), ElementsAre(0, 0));
}

TEST(ChannelOptions, SessionsShareTheFasterRatesAndKeepNumbersAndChoices) {
  const ChannelOptions merged =
      MergeOptions(kParts, {.hz = 10, .values = {10, 0}}, {.hz = 50, .values = {5, 50}});
  EXPECT_EQ(merged.hz, 50);
  EXPECT_THAT(merged.values, ElementsAre(10, 50));
  const ChannelOptions chosen =
      MergeOptions(kChoice, {.hz = 10, .values = {0, 0}}, {.hz = 50, .values = {0, 1}});
  EXPECT_EQ(chosen.hz, 50);
  EXPECT_THAT(chosen.values, ElementsAre(0, 0));
}

TEST(ChannelOptions, OnlyNumbersAndChoicesDiffer) {
  EXPECT_EQ(DifferingOption(kParts, {.hz = 1, .values = {1, 0}}, {.hz = 2, .values = {0, 2}}), nullptr);
  EXPECT_EQ(DifferingOption(kChoice, {.hz = 1}, {.hz = 2}), nullptr);
  EXPECT_EQ(DifferingOption(kChoice, {.values = {0, 1}}, {}), &kChoice.options[1]);
  EXPECT_EQ(DifferingOption(kNumber, {.values = {1000}}, {.values = {30000}}), &kNumber.options[0]);
}

TEST(ChannelOptions, ChoicesTurnNothingOn) {
  EXPECT_EQ(OptionKeys(kChoice), "rate");
  EXPECT_EQ(OptionKeys(kParts), "memory,links");
  EXPECT_EQ(FindOption(kChoice, "what"), &kChoice.options[1]);
  EXPECT_EQ(FindOption(kChoice, ""), nullptr);
}

// What keeps two sessions apart is described to the second; record parts refer to options.
TEST(ChannelOptions, TheSpecsOfTheTableAreUsable) {
  for (const CollectorEntry& entry : Collectors()) {
    SCOPED_TRACE(entry.spec->name);
    for (const CollectorOption& option : entry.spec->options) {
      const bool differs = option.use == OptionUse::kNumber || option.use == OptionUse::kChoice;
      EXPECT_EQ(option.busy != nullptr, differs) << option.key;
    }
    for (const RecordPart& part : entry.spec->record_parts) {
      ASSERT_LT(part.option, kCollectorOptions);
      EXPECT_EQ(entry.spec->options[part.option].use, OptionUse::kPart);
    }
    EXPECT_EQ(entry.check_settings != nullptr, !entry.spec->settings.empty());
  }
}

TEST(ChannelOptions, SettingsAreCheckedByTheirCollector) {
  EXPECT_THAT(CheckSettings({{"npu_extra", {"serdes", "sedres"}}, {"no_such", {"x"}}}),
              ElementsAre(HasSubstr("metrics.npu_extra: \"sedres\": unknown")));
}

}  // namespace
}  // namespace profd
