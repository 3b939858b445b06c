#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dump/mark_files.h"
#include "export/decode/text_test_support.h"

namespace profd::exporting {
namespace {

constexpr auto kOwn = Place::Kind::kOwn;

using Texts = std::vector<std::string>;

// Each with its begin since kWall and its length, its process and thread, and what else it has.
Texts EventTexts(const DecodeRun& run) {
  constexpr std::array<std::string_view, kEventKinds> kKinds = {"mark", "range", "step", "iteration", "loss", "step of a device", "frame"};
  Texts texts;
  for (const Event& event : run.events) {
    std::string text = fmt::format("{} {}: {}+{} of {}:{}", kKinds[static_cast<size_t>(event.kind)], event.name, event.t_ns - DecodeRun::kWall,
                                   event.dur_ns, event.pid, event.tid);
    if (event.rank) text += fmt::format(", rank {}", *event.rank);
    if (event.device >= 0) text += fmt::format(", device {}", event.device);
    if (!event.domain.empty()) text += fmt::format(", domain {}", event.domain);
    if (event.lane) text += fmt::format(", lane {}", *event.lane);
    for (const Event::Arg& arg : event.args) text += fmt::format(", {} {}", arg.name, arg.value);
    EXPECT_EQ(event.partial, event.name.ends_with(" (partial)"));
    texts.push_back(std::move(text));
  }
  return texts;
}

Texts EventNames(const DecodeRun& run) {
  Texts names;
  for (const Event& event : run.events) names.push_back(event.name);
  return names;
}

TEST(Samples, OfEveryDevice) {
  DecodeRun run("samples.tsv", kOwn);
  run.Feed({std::string(kOwnSamplesHeading) +
            "100\tatlas_x\t-1\t\t1.5\n200\tatlas_x\t7\tmode=user,cpu=1\t-2\nnonsense\n"
            "300\t\t0\t\t1\n300\tatlas_x\t-2\t\t1\n300\tatlas_x\t0\t\tnan\n"});
  Texts rows;
  for (const SeenRow& row : run.rows) {
    rows.push_back(fmt::format("{} {} {}({}) {}", row.device, row.t_ns - DecodeRun::kWall, run.strings.Text(row.Int(0)),
                               run.strings.Text(row.Int(1)), row.Real(2)));
  }
  EXPECT_EQ(rows, (Texts{"-1 100 atlas_x() 1.5", "7 200 atlas_x(mode=user,cpu=1) -2"}));
  EXPECT_EQ(run.stats.bad_records, 4u);
}

// A record of additional.msproftx (operator-data a.2).
struct TxRecord {
  uint16_t kind = 0;
  uint16_t segment = 0;
  uint32_t thread = 7;
  uint32_t category = 0;
  uint32_t type = 0;
  uint64_t payload = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t mark = 0;
  uint64_t domain = 0;
  std::string message = {};

  std::string Bytes() const {
    std::string bytes(256, '\0');
    const auto put = [&bytes](size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
    put(0, uint16_t{0x5A5A});
    put(24, kind);
    put(26, segment);
    put(36, uint32_t{42});
    put(40, thread);
    put(44, category);
    put(48, type);
    put(52, uint32_t{3});
    put(56, payload);
    put(64, start);
    put(72, end);
    put(80, mark);
    put(88, domain);
    put(96, uint32_t{1});
    bytes.replace(100, message.size(), message);
    return bytes;
  }
};

TEST(TxRecords, MarksAndRanges) {
  DecodeRun run("aging.additional.msproftx", Place::Kind::kHost);
  run.Feed({TxRecord{.category = 5, .type = 0, .payload = 9, .start = 5100, .end = 5100, .message = "here"}.Bytes() +
            TxRecord{.type = 1, .start = 5200, .end = 5300, .message = "inner"}.Bytes() +
            TxRecord{.type = 4, .start = 5200, .end = 5300}.Bytes() +
            TxRecord{.type = 1, .start = 5300, .end = 5200}.Bytes()});
  ASSERT_EQ(EventTexts(run), (Texts{"mark here: 5100+0 of 42:7", "range inner: 5200+100 of 42:7"}));
  const Event::Recorded& mark = *run.events[0].recorded;
  EXPECT_EQ(mark.category, 5u);
  EXPECT_EQ(mark.payload, 9u);
  EXPECT_EQ(mark.payload_type, 3u);
  EXPECT_EQ(run.stats.records, 2u);
  EXPECT_EQ(run.stats.bad_records, 2u);
}

TEST(TxRecords, RangesThatOverlapHaveLanesOfTheirOwn) {
  DecodeRun run("unaging.additional.msproftx", Place::Kind::kHost);
  run.Feed({TxRecord{.type = 2, .start = 5200, .end = 5300, .message = "b"}.Bytes() +
            TxRecord{.type = 2, .start = 5100, .end = 5250, .message = "a"}.Bytes() +
            TxRecord{.type = 2, .start = 5260, .end = 5400, .message = "c"}.Bytes()});
  EXPECT_EQ(EventTexts(run), (Texts{"range a: 5100+150 of 42:7, lane 0", "range b: 5200+100 of 42:7, lane 1",
                                    "range c: 5260+140 of 42:7, lane 0"}));
}

TEST(TxRecords, LongTextsContinueInOtherRecords) {
  const std::string full(156, 'x');
  DecodeRun run("aging.additional.msproftx", Place::Kind::kHost);
  run.Feed({TxRecord{.kind = 1, .segment = 0, .type = 3, .start = 5100, .end = 5100, .mark = 8, .message = full}.Bytes() +
            TxRecord{.kind = 1, .type = 3, .start = 5150, .end = 5150, .mark = 9, .message = "other"}.Bytes() +
            TxRecord{.kind = 1, .segment = 1, .type = 3, .start = 5100, .end = 5100, .mark = 8, .message = "yz"}.Bytes() +
            TxRecord{.kind = 1, .segment = 0, .type = 3, .start = 5200, .end = 5200, .mark = 10, .message = full}.Bytes()});
  ASSERT_EQ(EventNames(run), (Texts{full + "yz", "other", full})) << "of the last one nothing more came";
  EXPECT_EQ(run.events[0].recorded->mark, 8u);
}

// Writers that end each part with a NUL (operator-data a.2 joins by the mark id and the segment index alone).
TEST(TxRecords, PartsOfATextNeedNotFillTheirRecords) {
  const std::string part(155, 'x');
  const auto text = [](uint16_t segment, uint64_t mark, uint32_t thread, const std::string& message) {
    const TxRecord record{.kind = 1, .segment = segment, .thread = thread, .type = 3, .start = 5100, .end = 5100,
                          .mark = mark, .message = message};
    return record.Bytes();
  };
  DecodeRun run("aging.additional.msproftx", Place::Kind::kHost);
  run.Feed({text(0, 8, 1, part) + text(0, 9, 2, "of another thread") + text(2, 8, 1, "z") + text(1, 8, 1, "y") +
            text(0, 0, 1, "without") + text(0, 0, 1, "numbers") + text(0, 0, 1, part)});
  EXPECT_EQ(EventNames(run), (Texts{"without", "numbers", part + "yz", "of another thread", part}));
}

TEST(Marks, RangesNestPerThread) {
  DecodeRun run("marks.tsv", kOwn);
  run.Feed({std::string(kMarksHeading) + "100\t42\t5\t1\tpush\touter\t0\n"
                                         "110\t42\t5\t2\tpush\tother\t0\n"
                                         "120\t42\t5\t1\tpush\tinner\t0\n"
                                         "130\t42\t5\t1\tpop\t\t0\n"
                                         "140\t42\t\t1\tmark\there\t0\n"
                                         "150\t42\t5\t1\tpop\t\t0\n"
                                         "160\t42\t5\t1\tpop\t\t0\n"
                                         "170\t42\t5\t1\tshove\tx\t0\n"});
  EXPECT_EQ(EventTexts(run),
            (Texts{"range inner: 120+10 of 42:1, rank 5", "mark here: 140+0 of 42:1", "range outer: 100+50 of 42:1, rank 5",
                   "range range from before the session (partial): 2000+0 of 42:1, rank 5",
                   // Never popped; until the last mark, for the session's end is not known.
                   "range other (partial): 110+60 of 42:2, rank 5"}));
  EXPECT_EQ(run.stats.bad_records, 1u);
  EXPECT_EQ(run.stats.clipped, 2u);
}

// 2 calls 3 calls 4; 5 is another function of 2.
TEST(Stacks, FramesAreSlicesFromTheirFirstSampleToTheFirstWithoutThem) {
  DecodeRun run("stacks.tsv", kOwn);
  const std::string frames =
      "1\t42\t3\t7\tframe\t2\t0\ttrain.py:main:1\n1\t42\t3\t7\tframe\t3\t2\tm.py:forward:2\n"
      "1\t42\t3\t7\tframe\t4\t3\tm.py:matmul:3\n1\t42\t3\t7\tframe\t5\t2\tm.py:step:4\n";
  run.Feed({std::string(kStacksHeading) + frames +
            "100\t42\t3\t7\tstack\t4\t0\t\n120\t42\t3\t7\tstack\t4\t0\t\n"
            "140\t42\t3\t7\tstack\t5\t0\t\n150\t42\t3\t8\tstack\t2\t0\t\n"
            "160\t42\t3\t7\tstack\t9\t0\t\n9000000000\t42\t3\t7\tstack\t2\t0\t\n"});
  Texts texts;
  for (const Event& event : run.events) {
    EXPECT_EQ(event.kind, EventKind::kFrame);
    EXPECT_EQ(event.rank, 3);
    texts.push_back(fmt::format("{} {} {} {}+{} of {}: {}", event.tid, event.name, event.value,
                                event.t_ns - DecodeRun::kWall, event.dur_ns, event.caller,
                                event.args.at(0).value));
  }
  EXPECT_EQ(texts, (Texts{
                       "7 m.py:matmul:3 4 100+40 of 3: 2", "7 m.py:forward:2 3 100+40 of 2: 0",
                       // The thread was not looked at for 9 s.
                       "7 m.py:step:4 5 140+0 of 2: 1", "7 train.py:main:1 2 100+40 of 0: 0",
                       "7 train.py:main:1 2 9000000000+0 of 0: 1", "8 train.py:main:1 2 150+0 of 0: 1"}));
  EXPECT_EQ(run.stats.bad_records, 1u) << "of a frame that was not sent";
}

TEST(Stacks, AnotherProgramOfTheProcessHasFramesOfItsOwn) {
  DecodeRun run("stacks.tsv", kOwn);
  run.Feed({"1\t42\t\t7\tframe\t2\t0\tlaunch.py:main:1\n1\t42\t\t7\tframe\t3\t2\tos.py:wait:2\n"
            "2100\t42\t\t7\tstack\t3\t0\t\n2120\t42\t\t7\tstack\t3\t0\t\n"
            // After exec. The second is called by another one now.
            "2200\t42\t\t7\tframe\t2\t0\ttrain.py:main:1\n2200\t42\t\t7\tframe\t3\t2\tos.py:wait:2\n"
            "2210\t42\t\t7\tstack\t3\t0\t\n"
            // A session that begins later has them again.
            "2220\t42\t\t7\tframe\t2\t0\ttrain.py:main:1\n2220\t42\t\t7\tframe\t3\t2\tos.py:wait:2\n"
            "2230\t42\t\t7\tstack\t3\t0\t\n"});
  Texts texts;
  for (const Event& event : run.events) {
    texts.push_back(fmt::format("{} {}+{} of {}: {}", event.name, event.value, event.dur_ns, event.caller, event.args.at(0).value));
  }
  EXPECT_EQ(texts, (Texts{"os.py:wait:2 3+110 of 2: 2", "launch.py:main:1 2+110 of 0: 0",
                          "os.py:wait:2 2147483649+20 of 2147483648: 2", "train.py:main:1 2147483648+20 of 0: 0"}));
  EXPECT_EQ(run.stats.bad_records, 0u);
}

TEST(Stacks, FramesThatMakeNoTreeAreCounted) {
  DecodeRun run("stacks.tsv", kOwn);
  run.Feed({"1\t42\t\t7\tframe\t2\t2\tcalls itself\n1\t42\t\t7\tframe\t3\t4\ta\n"
            "1\t42\t\t7\tframe\t4\t3\tb\n5\t42\t\t7\tstack\t4\t0\t\n6\t42\t\t7\tstack\t0\t0\t\n"
            "6\t42\t\t7\tstack\tx\t0\t\n6\t42\t\t7\theap\t3\t0\t\n"});
  EXPECT_TRUE(run.events.empty());
  EXPECT_EQ(run.stats.records, 2u);
  EXPECT_EQ(run.stats.bad_records, 5u);
}

// Started and ended by their ids: in any order, on any thread; each in the lowest lane that is free.
TEST(Marks, RangesWithIdsNeedNotNest) {
  DecodeRun run("marks.tsv", kOwn);
  run.Feed({"2100\t42\t5\t1\trange_start\tfirst\t7\tcomm\n"
            "2110\t42\t5\t1\trange_start\tsecond\t8\tcomm\n"
            "2120\t42\t5\t1\trange_start\telsewhere\t9\t\n"
            "2120\t43\t\t1\trange_start\tof another process\t7\tcomm\n"
            "2130\t42\t5\t2\trange_end\t\t7\t\n"
            "2140\t42\t5\t1\trange_start\tthird\t10\tcomm\n"
            "2150\t42\t5\t1\trange_start\tof the next program\t10\tcomm\n"
            "2160\t42\t5\t1\trange_end\t\t8\t\n"
            "2160\t42\t5\t1\trange_end\t\t11\t\n"
            "2170\t42\t5\t1\tmark\there\t0\tcomm\n"});
  EXPECT_EQ(EventTexts(run),
            (Texts{"range first: 2100+30 of 42:1, rank 5, domain comm, lane 0",
                   // The first has ended. Its id begins again after exec.
                   "range third (partial): 2140+10 of 42:1, rank 5, domain comm, lane 0",
                   "range second: 2110+50 of 42:1, rank 5, domain comm, lane 1",
                   "mark here: 2170+0 of 42:1, rank 5, domain comm", "range elsewhere (partial): 2120+50 of 42:1, rank 5, lane 0",
                   "range of the next program (partial): 2150+20 of 42:1, rank 5, domain comm, lane 0",
                   "range of another process (partial): 2120+50 of 43:1, domain comm, lane 0"}));
  EXPECT_EQ(run.stats.unpaired, 1u);
  EXPECT_EQ(run.stats.bad_records, 0u);
}

// As many at a time as a hostile file likes: each start and end finds its lane without looking at the others.
TEST(Marks, ManyOpenRangesHaveALaneEach) {
  DecodeRun run("marks.tsv", kOwn);
  constexpr int kRanges = 60000;
  std::string text;
  for (int i = 1; i <= kRanges; ++i) text += fmt::format("2100\t42\t\t1\trange_start\tr\t{}\t\n", i);
  for (int i = 1; i <= kRanges; ++i) text += fmt::format("2200\t42\t\t1\trange_end\t\t{}\t\n", i);
  text += "2300\t42\t\t1\trange_start\tr\t1\t\n";
  run.Feed({text});
  ASSERT_EQ(run.events.size(), kRanges + 1u);
  EXPECT_EQ(run.events[0].lane, 0);
  EXPECT_EQ(run.events[kRanges - 1].lane, kRanges - 1);
  EXPECT_EQ(run.events[kRanges].lane, 0) << "all have ended";
  EXPECT_EQ(run.stats.bad_records, 0u);
}

TEST(Marks, StepsHaveBothEnds) {
  DecodeRun run("marks.tsv", kOwn);
  run.Feed(
      {"2100\t42\t0\t1\tstep_begin\t\t7\n2200\t42\t0\t1\tstep_end\t\t7\n"
       "2200\t42\t0\t1\tstep_begin\t\t8\n2210\t42\t0\t1\tstep_begin\t\t9\n"
       "2220\t42\t0\t1\tstep_end\t\t8\n2230\t42\t0\t1\tstep_end\t\t9\n"});
  ASSERT_EQ(EventTexts(run), (Texts{"step Step 7: 2100+100 of 42:1, rank 0", "step Step 9: 2210+20 of 42:1, rank 0"}));
  EXPECT_EQ(run.events[0].value, 7);
  EXPECT_EQ(run.stats.unpaired, 2u);  // 8 begins, is not ended by what comes, and ends as no step
  EXPECT_EQ(run.stats.bad_records, 0u);
  EXPECT_EQ(run.stats.clipped, 0u);
}

// docs/api.md: loops need not call profd_step_end.
TEST(Marks, StepsWithoutAnyEndLastUntilTheNext) {
  DecodeRun run("marks.tsv", kOwn);
  run.Feed(
      {"2100\t42\t0\t1\tstep_begin\t\t7\n2200\t42\t0\t1\tstep_begin\t\t8\n"
       "2230\t42\t0\t1\tstep_begin\t\t10\n2300\t42\t0\t1\tmark\tlast\t0\n"});
  EXPECT_EQ(EventTexts(run), (Texts{"step Step 7: 2100+100 of 42:1, rank 0", "step Step 8: 2200+30 of 42:1, rank 0",
                                    "mark last: 2300+0 of 42:1, rank 0", "step Step 10 (partial): 2230+70 of 42:1, rank 0"}));
  EXPECT_EQ(run.stats.unpaired, 0u);
}

TEST(Marks, AStepThatIsReportedTwiceCountsOnce) {
  const std::string step = "step Step 7: 2100+100 of 42:1, rank 0";
  const std::pair<const char*, Texts> cases[] = {
      // By several threads.
      {"2100\t42\t0\t1\tstep_begin\t\t7\n2110\t42\t0\t2\tstep_begin\t\t7\n"
       "2200\t42\t0\t2\tstep_end\t\t7\n2220\t42\t0\t1\tstep_end\t\t7\n",
       {step}},
      // By the script and its framework, for example. The step trace of its device begins with the first, too.
      {"2100\t42\t0\t1\tstep_begin\t\t7\n2110\t42\t0\t1\tstep_begin\t\t7\n"
       "2200\t42\t0\t1\tstep_end\t\t7\n2220\t42\t0\t1\tstep_end\t\t7\n",
       {step}},
      // Also one after the other. A thread of its own may well count from the same number again.
      {"2100\t42\t0\t1\tstep_begin\t\t7\n2200\t42\t0\t1\tstep_end\t\t7\n"
       "2210\t42\t0\t2\tstep_begin\t\t7\n2220\t42\t0\t2\tstep_end\t\t7\n"
       "2300\t42\t0\t1\tstep_begin\t\t7\n2350\t42\t0\t1\tstep_end\t\t7\n",
       {step, "step Step 7: 2300+50 of 42:1, rank 0"}},
  };
  for (const auto& [marks, steps] : cases) {
    DecodeRun run("marks.tsv", kOwn);
    run.Feed({marks});
    EXPECT_EQ(EventTexts(run), steps) << marks;
    EXPECT_EQ(run.stats.unpaired, 0u) << marks;
  }
}

TEST(Marks, RangesAcrossTheSessionsBorderAreClipped) {
  DecodeRun run("marks.tsv", kOwn);
  run.place().clock.end_us = DecodeRun::kWall / 1000 + 10;
  run.place().clock.end_raw_ns = 10000;
  run.Feed(
      {"2500\t42\t0\t1\tpop\t\t0\n"
       "3000\t42\t0\t1\tstep_end\t\t6\n"
       "3000\t42\t0\t1\tstep_begin\t\t7\n"
       "4000\t42\t0\t1\tpush\tforward\t0\n"});
  EXPECT_EQ(EventTexts(run), (Texts{"range range from before the session (partial): 2000+500 of 42:1, rank 0",
                                    "step Step 6 (partial): 2000+1000 of 42:1, rank 0",
                                    "range forward (partial): 4000+6000 of 42:1, rank 0",
                                    "step Step 7 (partial): 3000+7000 of 42:1, rank 0"}));
  EXPECT_EQ(run.stats.clipped, 4u);
  EXPECT_EQ(run.stats.bad_records + run.stats.unpaired, 0u);
}

// A session waits for its processes up to 100 s (docs/jobs.md); nothing is marked any more then.
TEST(Marks, RangesEndWhereTheRecordingDoes) {
  DecodeRun run("marks.tsv", kOwn);
  run.place().clock.end_us = DecodeRun::kWall / 1000 + 100'000'000;
  run.place().clock.end_raw_ns = 100'000'000'000;
  run.place().clock.stop_raw_ns = 10000;
  run.Feed({"3000\t42\t0\t1\tstep_begin\t\t7\n4000\t42\t0\t1\tpush\tforward\t0\n"});
  EXPECT_EQ(EventTexts(run), (Texts{"range forward (partial): 4000+6000 of 42:1, rank 0", "step Step 7 (partial): 3000+7000 of 42:1, rank 0"}));
}

// docs/jobs.md: processes may attach while a session runs; nothing of theirs is from before it.
TEST(Marks, WhatWasOpenWhenAProcessJoinedBeginsThere) {
  DecodeRun run("marks.tsv", kOwn);
  ManifestProcess joined;
  joined.pid = 42;
  joined.joined_raw_ns = 7000;
  ManifestProcess again = joined;  // its marks show that it was there before
  again.pid = 43;
  run.dump().manifest.emplace().processes = {joined, again};
  run.Feed(
      {"7500\t42\t0\t1\tpop\t\t0\n8000\t42\t0\t1\tstep_end\t\t6\n"
       "2500\t43\t1\t1\tpop\t\t0\n"
       "2600\t44\t2\t1\tpop\t\t0\n"});
  EXPECT_EQ(EventTexts(run), (Texts{"range range from before the process attached (partial): 7000+500 of 42:1, rank 0",
                                    "step Step 6 (partial): 7000+1000 of 42:1, rank 0",
                                    "range range from before the session (partial): 2000+500 of 43:1, rank 1",
                                    "range range from before the session (partial): 2000+600 of 44:1, rank 2"}));
}

TEST(Marks, OnlyWhatReachesIntoTheWindow) {
  DecodeRun run("marks.tsv", kOwn);
  run.window = {DecodeRun::kWall + 150, DecodeRun::kWall + 250};
  run.Feed(
      {"100\t1\t\t1\tmark\tearly\t0\n120\t1\t\t1\tpush\tlong\t0\n200\t1\t\t1\tmark\tin\t0\n"
       "300\t1\t\t1\tpop\t\t0\n310\t1\t\t1\tmark\tlate\t0\n"});
  EXPECT_EQ(EventTexts(run), (Texts{"mark in: 200+0 of 1:1", "range long: 120+180 of 1:1"}));
}

std::string Record(uint64_t cycles, uint64_t model, uint16_t tag, int chip) {
  std::array<std::byte, 40> bytes{};
  bytes[1] = std::byte{10};
  StoreUnchecked<uint64_t>(bytes, 8, cycles);
  StoreUnchecked<uint64_t>(bytes, 24, model);
  StoreUnchecked<uint16_t>(bytes, IsV6(chip) ? 32 : 36, tag);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TsTrack : public testing::TestWithParam<int> {};

TEST_P(TsTrack, BecomesEvents) {
  int chip = GetParam();
  DecodeRun run("ts_track.data", Place::Kind::kDevice, chip);
  std::string other(40, '\0');
  other[1] = 12;
  run.Feed({Record(1000, 1, 0, chip) + other + Record(1050, 1, 2, chip) + Record(1100, 1, 3, chip) +
            Record(1150, 1, 4, chip) + Record(1200, 1, 2, chip) + Record(1250, 1, 4, chip) +
            "cut"});
  // 50 MHz: 20 ns a cycle.
  EXPECT_EQ(EventTexts(run), (Texts{"iteration Iteration 1: 5000+3000 of 0:1, device 3, FP Start 1000, BP End 2000",
                                    "iteration Iteration 2: 8000+2000 of 0:1, device 3, FP Start 1000, Data Aug Bound 1000"}));
  EXPECT_EQ(run.stats.records, 6u);
  EXPECT_EQ(run.stats.skipped, 1u);
  EXPECT_EQ(run.stats.bad_records, 0u);
  EXPECT_EQ(run.stats.bad_bytes, 3u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, TsTrack, testing::Values(5, 15));

// What the dump writes. The counter was 1000 at wall + 5000 and counts 20 ns: the session begins at 850, ends at 3500.
TEST(TsTrackOfOurs, StepsThatCrossTheSessionsBorderAreClipped) {
  DecodeRun run("ts_track.data");
  run.place().clock.end_us = DecodeRun::kWall / 1000 + 55;
  run.place().clock.end_raw_ns = 55000;
  std::string bytes;
  auto add = [&bytes](uint64_t count, int64_t step, bool begin) {
    auto record = StepRecord(5, count, step, begin);
    bytes.append(reinterpret_cast<const char*>(record.data()), record.size());
  };
  add(850, 1, true);  // written so for a step that was running
  add(1000, 1, false);
  add(1000, 2, true);
  add(2000, 2, false);
  add(2000, 3, true);
  run.Feed({bytes});
  EXPECT_EQ(EventTexts(run), (Texts{"step of a device Step 1 (partial): 2000+3000 of 0:4294967295, device 3",
                                    "step of a device Step 2: 5000+20000 of 0:4294967295, device 3",
                                    "step of a device Step 3 (partial): 25000+30000 of 0:4294967295, device 3"}));
  EXPECT_EQ(run.stats.clipped, 2u);
  EXPECT_EQ(run.stats.bad_bytes, 0u);
}

TEST(TsTrackOfOurs, AStepEndsWhereTheRecordingDoes) {
  DecodeRun run("ts_track.data");
  run.place().clock.end_us = DecodeRun::kWall / 1000 + 100'000'000;
  run.place().clock.end_raw_ns = 100'000'000'000;
  run.place().clock.stop_raw_ns = 55000;
  const auto record = StepRecord(5, 2000, 3, true);
  run.Feed({std::string(reinterpret_cast<const char*>(record.data()), record.size())});
  EXPECT_EQ(EventTexts(run), (Texts{"step of a device Step 3 (partial): 25000+30000 of 0:4294967295, device 3"}));
}

// docs/internals.md: the dump of a session that starts at a step starts some time after that step has begun.
TEST(TsTrackOfOurs, TheStepASessionWaitedForIsComplete) {
  DecodeRun run("ts_track.data");
  std::string bytes;
  for (const auto& [count, begin] : {std::pair(790, true), std::pair(1000, false)}) {
    auto record = StepRecord(5, count, 7, begin);
    bytes.append(reinterpret_cast<const char*>(record.data()), record.size());
  }
  run.Feed({bytes});
  EXPECT_EQ(EventTexts(run), (Texts{"step of a device Step 7: 800+4200 of 0:4294967295, device 3"}));
  EXPECT_EQ(run.stats.clipped, 0u);
}

}  // namespace
}  // namespace profd::exporting
