#include "daemon/data/host_file_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <random>
#include <vector>

#include "daemon/data/testing/test_dump.h"

namespace profd {
namespace {

class HostFileBufferTest : public OneDumpTest {
 protected:
  HostFileBufferTest() : OneDumpTest(64 << 20) {
    FeedOptions feed;
    feed.collector = "host_cpu";
    feed_ = session_->AddFeed(std::move(feed));
  }

  DumpFeed* FeedOfRecords(size_t bytes) {
    FeedOptions options{.collector = "records", .record_bytes = bytes};
    return session_->AddFeed(std::move(options));
  }
  Status Finish() {
    std::promise<Status> done;
    session_->Finish(
        {}, [](Manifest&) {}, [&](const Status& status) { done.set_value(status); });
    return done.get_future().get();
  }
  std::string Written(const std::string& file) { return ReadText(path_ + "/" + file); }

  DumpFeed* feed_ = nullptr;
};

// 120 records of 4 bytes are in a block of 512 bytes when they have one head; 50 were if each had its own.
TEST_F(HostFileBufferTest, RecordsHaveOneHead) {
  DumpFeed* const feed = FeedOfRecords(4);
  HostFileBuffer buffer(session_, feed);
  ASSERT_NE(buffer.Reserve("a", 4), nullptr);
  const size_t one_block = pool_.stats().in_use_bytes;
  for (int i = 1; i < 120; ++i) ASSERT_NE(buffer.Reserve("a", 4), nullptr);
  EXPECT_EQ(pool_.stats().in_use_bytes, one_block);
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(feed->counters().records.load(), 120u);
}

// Whatever pieces they came in; another file's begin a text of their own.
TEST_F(HostFileBufferTest, RecordsOfFilesInTurn) {
  DumpFeed* const feed = FeedOfRecords(4);
  HostFileBuffer buffer(session_, feed);
  std::map<std::string, std::string> want;
  uint64_t records = 0;
  const auto add = [&](const std::string& file, size_t count) {
    std::string data;
    for (size_t i = 0; i < count; ++i) data += std::to_string(1000 + (records + i) % 9000);
    char* const place = buffer.Reserve(file, data.size(), count);
    ASSERT_NE(place, nullptr);
    std::memcpy(place, data.data(), data.size());
    want[file] += data;
    records += count;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 40; ++i) add("a", 1 + random() % 5000);  // blocks of every size
    add("b", 3);
    add("a", 1);
    buffer.Flush();
  }
  ASSERT_TRUE(Finish().ok());
  for (const auto& [file, data] : want) {
    std::string got;
    for (int slice = 0; std::filesystem::exists(path_ + "/host/data/" + file + ".slice_" + std::to_string(slice)); ++slice) {
      got += Written("host/data/" + file + ".slice_" + std::to_string(slice));
    }
    EXPECT_TRUE(got == data) << file << " " << got.size() << " of " << data.size();
  }
  EXPECT_EQ(feed->counters().records.load(), records);
}

TEST_F(HostFileBufferTest, EveryTextReachesItsFileInOrder) {
  HostFileBuffer buffer(session_, feed_);
  buffer.Add("1-CpuUsage.data", "a\n");
  buffer.Add("2-CpuUsage.data", "b\n");
  buffer.Add({}, "1\tm\t-1\t\t2\n");
  buffer.Flush();
  buffer.Add("1-CpuUsage.data", "c\n");
  buffer.Flush();
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(Written("host/data/1-CpuUsage.data.slice_0"), "a\nc\n");
  EXPECT_EQ(Written("host/data/2-CpuUsage.data.slice_0"), "b\n");
  EXPECT_THAT(Written("host/profd/samples.tsv"), testing::EndsWith("1\tm\t-1\t\t2\n"));
  EXPECT_EQ(feed_->counters().records.load(), 4u);
}

TEST_F(HostFileBufferTest, TextRecordsLargerThanABlockAreCutAtLineEnds) {
  std::string lines;
  while (lines.size() < 3 * BlockPool::kMaxBlockBytes) lines += "some line of a long text\n";
  HostFileBuffer buffer(session_, feed_);
  buffer.Add("before.data", "x\n");
  buffer.Add("host_cpu.data", lines);
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(Written("host/data/host_cpu.data.slice_0"), lines);
  EXPECT_EQ(Written("host/data/before.data.slice_0"), "x\n");
  EXPECT_EQ(feed_->losses().Total().records, 0u);
}

TEST_F(HostFileBufferTest, ATextThatCannotBeWrittenDoesNotTakeTheOthersWithIt) {
  HostFileBuffer buffer(session_, feed_);
  buffer.Add("not/a/name", "a\n");
  buffer.Add("good.data", "b\n");
  buffer.Flush();
  EXPECT_FALSE(Finish().ok());
  EXPECT_EQ(Written("host/data/good.data.slice_0"), "b\n");
  EXPECT_EQ(feed_->counters().records.load(), 1u);
  EXPECT_EQ(feed_->losses().Total().records, 1u);
}

TEST_F(HostFileBufferTest, TextRecordsPutInPlaceAndAddedOnesKeepTheirOrder) {
  HostFileBuffer buffer(session_, feed_);
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string lines = "line " + std::to_string(i) + "\n";
    expected += lines;
    if (i % 3 == 0) {
      buffer.Add("7-CpuUsage.data", lines);
    } else {
      char* place = buffer.Reserve("7-CpuUsage.data", lines.size());
      ASSERT_NE(place, nullptr);
      std::memcpy(place, lines.data(), lines.size());
    }
    if (i % 700 == 0) buffer.Flush();
  }
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(Written("host/data/7-CpuUsage.data.slice_0"), expected);
  EXPECT_EQ(feed_->counters().records.load(), 5000u);
  EXPECT_EQ(feed_->counters().bytes.load(), expected.size());
}

TEST_F(HostFileBufferTest, NoPlaceForWhatFitsNoBlock) {
  HostFileBuffer buffer(session_, feed_);
  EXPECT_EQ(buffer.Reserve("a.data", BlockPool::kMaxBlockBytes), nullptr);
  EXPECT_EQ(buffer.Reserve(std::string(256, 'a'), 1), nullptr);
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(feed_->counters().records.load(), 0u);
}

TEST_F(HostFileBufferTest, CountsRecordsWithoutABlock) {
  std::vector<BlockBuilder> all;
  for (size_t size : {size_t{256} * 1024, size_t{32} * 1024, size_t{4096}, size_t{512}}) {
    for (BlockBuilder one = pool_.Get(size); one; one = pool_.Get(size)) {
      all.push_back(std::move(one));
    }
  }
  HostFileBuffer buffer(session_, feed_);
  buffer.Add("a.data", "1234\n");
  EXPECT_EQ(buffer.Reserve("a.data", 5), nullptr);
  all.clear();
  buffer.Add("a.data", "kept\n");
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(Written("host/data/a.data.slice_0"), "kept\n");
  EXPECT_EQ(feed_->losses().Total().records, 1u);
  EXPECT_EQ(feed_->losses().Total().bytes, 5u);
}

TEST_F(HostFileBufferTest, LeavesAQuarterOfTheBlocksToTheDriver) {
  std::vector<BlockBuilder> blocks;
  while (pool_.stats().in_use_bytes < pool_.max_bytes() / 4 * 3) blocks.push_back(pool_.Get(BlockPool::kMaxBlockBytes));
  HostFileBuffer buffer(session_, feed_);
  buffer.Add("a.data", "1234\n");
  EXPECT_TRUE(pool_.Get(512));
  blocks.clear();
  buffer.Add("a.data", "kept\n");
  buffer.Flush();
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(Written("host/data/a.data.slice_0"), "kept\n");
  EXPECT_EQ(feed_->losses().Total().records, 1u);
}

// Files come and go, and come in another order: each text goes to its own all the same.
TEST_F(HostFileBufferTest, EveryTextRecordFindsItsFileInAnyOrder) {
  HostFileBuffer buffer(session_, feed_);
  std::map<std::string, std::string> expected;
  std::mt19937 random(3);
  for (int reading = 0; reading < 200; ++reading) {
    for (unsigned pid = 1; pid < 20; ++pid) {
      if (random() % 8 == 0) continue;
      const std::string file = std::to_string(random() % 16 == 0 ? 20 - pid : pid) + "-Memory.data";
      const std::string lines = std::to_string(reading) + " " + file + "\n";
      buffer.Add(file, lines);
      expected[file] += lines;
    }
    buffer.Add({}, "1\tm\t-1\t\t2\n");
    buffer.Flush();
  }
  ASSERT_TRUE(Finish().ok());
  for (const auto& [file, text] : expected) {
    EXPECT_EQ(Written("host/data/" + file + ".slice_0"), text) << file;
  }
}

TEST(NextHostText, RefusesWhatIsCutOff) {
  std::string_view file;
  std::string_view lines;
  const std::string one(
      "\x02\0\0\0\x01"
      "fab",
      8);
  std::string_view rest = one;
  ASSERT_TRUE(NextHostText(&rest, &file, &lines));
  EXPECT_EQ(file, "f");
  EXPECT_EQ(lines, "ab");
  EXPECT_FALSE(NextHostText(&rest, &file, &lines));
  for (size_t size = 0; size < one.size(); ++size) {
    rest = std::string_view(one).substr(0, size);
    EXPECT_FALSE(NextHostText(&rest, &file, &lines)) << size;
  }
}

}  // namespace
}  // namespace profd
