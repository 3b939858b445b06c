#include "collectors/proc/text_file.h"

#include <gtest/gtest.h>

#include <string>

#include "collectors/proc/device_table.h"
#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

using testing::FakeHost;
using testing::FakeRegistry;

TEST(TextFile, ReadsTheCompleteFileWithASmallBuffer) {
  FakeHost fake;
  std::string long_text;
  for (int i = 0; i < 20000; ++i) long_text += std::to_string(i) + "\n";
  fake.proc.Write("long", long_text);
  for (TextFile::Kind kind : {TextFile::Kind::kOnePiece, TextFile::Kind::kRecords}) {
    TextBuffer buffer(16);
    TextFile file(fake.proc_fs, "long", kind);
    Result<std::string_view> text = file.Read(buffer);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, long_text);
  }
}

TEST(TextFile, CutsAFileThatIsTooLarge) {
  FakeHost fake;
  fake.proc.Write("huge", std::string(TextBuffer::kMaxBytes + 100000, 'x'));
  TextBuffer buffer(1000);
  TextFile file(fake.proc_fs, "huge");
  Result<std::string_view> text = file.Read(buffer);
  ASSERT_TRUE(text.ok());
  EXPECT_GE(text->size(), TextBuffer::kMaxBytes);
  EXPECT_LE(text->size(), 2 * TextBuffer::kMaxBytes);
}

TEST(TextFile, SeesNewContentsAndRecoversAfterAnError) {
  FakeHost fake;
  TextBuffer buffer;
  TextFile file(fake.proc_fs, "a");
  EXPECT_EQ(file.Read(buffer).status().code(), StatusCode::kNotFound);
  fake.proc.Write("a", "one");
  EXPECT_EQ(file.Read(buffer).value_or(""), "one");
  fake.proc.Write("a", "three");
  EXPECT_EQ(file.Read(buffer).value_or(""), "three");
  fake.proc.Write("a", "");
  EXPECT_EQ(file.Read(buffer).value_or("x"), "");
}

TEST(ProbeFile, NamesThePathThatIsMissing) {
  FakeHost fake;
  fake.proc.Write("here", "x");
  EXPECT_TRUE(ProbeFile(fake.proc_fs, "here", "/proc/here").ok());
  Status missing = ProbeFile(fake.proc_fs, "stat", "/proc/stat");
  EXPECT_EQ(missing.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(missing.message(), "/proc/stat is missing");
}

TEST(SlowPace, IsDueAtOnceAndThenOncePerPeriod) {
  SlowPace pace(kNsPerSecond);
  EXPECT_TRUE(pace.Due(5));
  EXPECT_FALSE(pace.Due(5 + kNsPerSecond - 1));
  EXPECT_TRUE(pace.Due(5 + kNsPerSecond));
  EXPECT_FALSE(pace.Due(6 + kNsPerSecond));
}

TEST(Allocations, AreCounted) {
  const uint64_t before = testing::Allocations();
  std::string text(100, 'x');
  EXPECT_EQ(testing::Allocations(), before + 1) << text;
}

struct Row {
  OwnedSeries series;
};

TEST(DeviceTable, KeepsWhatIsSeenAndReleasesTheRest) {
  FakeRegistry registry;
  DeviceTable<Row> table(3);
  auto pass = [&](std::initializer_list<std::string_view> names) {
    table.BeginPass();
    for (std::string_view name : names) {
      table.Find(name, [&](std::string_view n) {
        return Row{OwnedSeries(registry, MetricByName("atlas_host_network_link_up"), {n})};
      });
    }
    table.EndPass();
  };
  pass({"a", "b"});
  EXPECT_EQ(registry.live(), 2u);
  pass({"b", "a", "c", "d"});
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(table.Refused("rows").message(), "1 rows beyond the first 3 are not measured");
  EXPECT_TRUE(table.Refused("rows").ok()) << "reported once";
  EXPECT_EQ(registry.total(), 3u);
  pass({"c"});
  EXPECT_EQ(registry.live(), 1u);
  pass({});
  EXPECT_EQ(registry.live(), 0u);
}

}  // namespace
}  // namespace profd
