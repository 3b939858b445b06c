// Files of what training processes did, complete and damaged.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "dump/activity_files.h"
#include "export/decode/text_test_support.h"

namespace profd::exporting {
namespace {

template <class Record>
std::string Bytes(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

Status LoadNames(ActivityNames* names, const std::string& text) {
  FILE* file = std::tmpfile();
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
  ::lseek(::fileno(file), 0, SEEK_SET);
  Status status = names->Load(::fileno(file));
  std::fclose(file);
  return status;
}

std::string Names() {
  std::string text(kActivityNamesHeading);
  AppendActivityName(2, "KERNEL_AICORE", &text);
  AppendActivityName(1, "MatMul", &text);
  return text;
}

StoredKernel Kernel() {
  return {.start_ns = 1000, .duration_ns = 250, .correlation = 9, .stream = 5, .name = 1, .type = 2,
          .thread = 43, .process = 42, .device = 6, .logical_device = 0};
}

TEST(ActivityDecoders, AKernelIsARowOfItsDevice) {
  DecodeRun run("activity_kernel.data", Place::Kind::kHost);
  ASSERT_TRUE(LoadNames(&run.dump().activity_names, Names()).ok());
  Manifest& manifest = run.dump().manifest.emplace();
  ManifestDevice& device = manifest.devices.emplace_back();
  device.id = 1;
  device.physical_id = 6;
  ManifestProcess& process = manifest.processes.emplace_back();
  process.pid = 42;
  process.rank = 3;
  StoredKernel other = Kernel();
  other.device = 0xFFFF;
  other.stream = 0xFFFFFFFF;
  other.name = 123;
  other.type = 0;
  other.process = 44;
  const std::string bytes = Bytes(Kernel()) + Bytes(other);
  run.Feed({bytes.substr(0, 20), bytes.substr(20)});
  std::vector<std::string> rows;
  for (const SeenRow& row : run.rows) {
    EXPECT_EQ(row.table, TableId::kKernel);
    rows.push_back(fmt::format("of {} at {}: {}, {}, {} ns, stream {}, pid {}, rank {}, thread {}, correlation {}", row.device, row.t_ns - DecodeRun::kWall,
                               run.strings.Text(row.Int(0)), run.strings.Text(row.Int(1)), row.Int(2), row.Int(3), row.Int(4), row.Int(5), row.Int(6), row.Int(7)));
  }
  // Device 1 is physical 6.
  EXPECT_EQ(rows, (std::vector<std::string>{"of -1 at 1000: name 123, , 250 ns, stream -1, pid 44, rank -1, thread 43, correlation 9",
                                            "of 1 at 1000: MatMul, KERNEL_AICORE, 250 ns, stream 5, pid 42, rank 3, thread 43, correlation 9"}));
  EXPECT_EQ(run.stats.records, 2u);
}

TEST(ActivityDecoders, ProcessesOfOtherRanksAreLeftOut) {
  const auto pids = [](std::set<int> ranks) {
    DecodeRun run("activity_api.data", Place::Kind::kHost);
    run.ranks = std::move(ranks);
    Manifest& manifest = run.dump().manifest.emplace();
    for (const int rank : {3, 4}) {
      ManifestProcess& process = manifest.processes.emplace_back();
      process.pid = 40 + rank;
      process.rank = rank;
    }
    std::string bytes;
    for (const uint32_t pid : {43, 44, 45, 43}) bytes += Bytes(StoredApi{1000, 10, 9, 1, 1, pid, 3, 0});
    run.Feed({bytes});
    EXPECT_EQ(run.stats.records, 4u);
    EXPECT_EQ(run.stats.bad_records, 0u);
    std::vector<int64_t> found;
    for (const SeenRow& row : run.rows) found.push_back(row.Int(3));
    return found;
  };
  EXPECT_EQ(pids({}), (std::vector<int64_t>{43, 44, 45, 43}));
  // Pid 45 is of no rank that is known.
  EXPECT_EQ(pids({4}), (std::vector<int64_t>{44, 45}));
  EXPECT_EQ(pids({7}), (std::vector<int64_t>{45}));
}

TEST(ActivityDecoders, CountsInvalidRecords) {
  DecodeRun run("activity_kernel.data", Place::Kind::kHost);
  StoredKernel negative = Kernel();
  negative.start_ns = -1;
  StoredKernel late = Kernel();
  late.start_ns = INT64_MAX;
  StoredKernel long_one = Kernel();
  long_one.duration_ns = UINT64_MAX;
  StoredKernel device = Kernel();
  device.device = 60000;  // a number no node has; a row all the same
  run.Feed({Bytes(negative) + Bytes(late) + Bytes(long_one) + Bytes(device) + Bytes(Kernel()).substr(0, 47)});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].device, 60000);
  EXPECT_EQ(run.stats.bad_records, 3u);
  EXPECT_EQ(run.stats.bad_bytes, 3u * 48 + 47);
}

TEST(ActivityDecoders, DevicesAreBounded) {
  DecodeRun run("activity_kernel.data", Place::Kind::kHost);
  std::string bytes;
  for (uint16_t i = 0; i < 300; ++i) {
    StoredKernel kernel = Kernel();
    kernel.device = i;
    bytes += Bytes(kernel);
  }
  run.Feed({bytes});
  EXPECT_EQ(run.rows.size(), 256u);
  EXPECT_EQ(run.stats.bad_records, 44u);
}

TEST(ActivityDecoders, CommunicationApiAndMemory) {
  DecodeRun communication("activity_communication.data", Place::Kind::kHost);
  communication.Feed({Bytes(StoredCommunication{.start_ns = 1, .duration_ns = 8, .correlation = 3, .count = 1024,
                                                .stream = 4, .name = 1, .communicator = 2, .algorithm = 0,
                                                .process = 42, .bandwidth = 2.5F, .device = 2,
                                                .logical_device = 0, .data_type = 0xFFFF, .reserved = 0})});
  ASSERT_EQ(communication.rows.size(), 1u);
  EXPECT_EQ(communication.rows[0].device, 2);
  EXPECT_EQ(communication.rows[0].Int(3), 8);
  EXPECT_EQ(communication.rows[0].Int(8), 1024);
  EXPECT_EQ(communication.rows[0].Int(9), -1);
  EXPECT_EQ(communication.rows[0].Real(10), 2.5);

  DecodeRun api("activity_api.data", Place::Kind::kHost);
  api.Feed({Bytes(StoredApi{.start_ns = 1, .duration_ns = 8, .correlation = 3, .thread = 43, .name = 1,
                            .process = 42, .level = 3, .reserved = 0})});
  ASSERT_EQ(api.rows.size(), 1u);
  EXPECT_EQ(api.rows[0].device, -1);
  EXPECT_EQ(KeyText(TableOf(TableId::kApi).columns[1], api.rows[0].Int(1)), "runtime");

  DecodeRun memory("activity_memory.data", Place::Kind::kHost);
  memory.Feed({Bytes(StoredMemory{.start_ns = 1, .duration_ns = 8, .correlation = 3, .bytes = 4096,
                                  .address = 1, .stream = 4, .process = 42, .operation = 4, .is_async = 1,
                                  .detail = 2, .device = 2, .logical_device = 0})});
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(KeyText(TableOf(TableId::kMemory).columns[0], memory.rows[0].Int(0)), "copy");
  EXPECT_EQ(memory.rows[0].Int(2), 4096);
}

// Flags are 1, 2 and 4, or 8 times that with a device's half.
TEST(ActivityDecoders, MarkersOfHostAndDevice) {
  DecodeRun run("activity_marker.data", Place::Kind::kHost);
  StoredMarker marker = {.time_ns = 5, .id = 7, .name = 1, .domain = 0, .thread = 43, .stream = 4,
                         .process = 42, .flag = 16, .source = 1, .device = 2, .logical_device = 0,
                         .reserved = 0};
  StoredMarker host = marker;
  host.source = 0;
  host.flag = 4;
  StoredMarker bad = marker;
  bad.flag = 3;
  run.Feed({Bytes(marker) + Bytes(host) + Bytes(bad)});
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.rows[0].device, -1);
  EXPECT_EQ(run.rows[0].Int(3), 2) << "end";
  EXPECT_EQ(run.rows[0].Int(5), -1) << "no stream on the host";
  EXPECT_EQ(run.rows[0].Int(8), 43);
  EXPECT_EQ(run.rows[1].device, 2);
  EXPECT_EQ(run.rows[1].Int(3), 1) << "start";
  EXPECT_EQ(run.rows[1].Int(5), 4);
  EXPECT_EQ(run.stats.bad_records, 1u);
}

// Ends have no name (in-application 2.6): of what began before the session nothing is known.
TEST(ActivityDecoders, RangesThatCrossTheBorderOfTheSessionAreCounted) {
  DecodeRun run("activity_marker.data", Place::Kind::kHost);
  const auto half = [](int64_t time_ns, uint64_t id, uint16_t flag, uint16_t source) {
    return Bytes(StoredMarker{.time_ns = time_ns, .id = id, .name = 1, .domain = 0, .thread = 43, .stream = 4, .process = 42,
                              .flag = flag, .source = source, .device = 2, .logical_device = 0, .reserved = 0});
  };
  run.Feed({half(1, 7, 4, 0) + half(2, 8, 16, 0) + half(3, 8, 16, 1) + half(4, 8, 32, 0) + half(5, 9, 1, 0) +
            half(9, 10, 4, 0) + half(6, 10, 2, 0)});
  EXPECT_EQ(run.rows.size(), 7u) << "also the range 10, whose end was handed over first";
  EXPECT_EQ(run.stats.unpaired, 1u) << "7, that the host ended";
  EXPECT_EQ(run.stats.clipped, 1u) << "8 on the device";
}

TEST(ActivityNamesTest, BrokenLinesAndTooManyNames) {
  ActivityNames names;
  Status status = LoadNames(&names, "id\tname\n1\ta\n1\tb\n0\tc\nx\td\nnothing\n2\te");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("4 lines"), std::string::npos) << status.message();
  EXPECT_EQ(names.Text(1), "a");
  EXPECT_EQ(names.Text(2), "name 2") << "a line without an end";
  EXPECT_EQ(names.Text(0), "");

  ActivityNames foreign;
  ASSERT_TRUE(LoadNames(&foreign, "id\tname\n1\t\x1b[31m\xFF\xE2\x98\x83\n").ok());
  EXPECT_EQ(foreign.Text(1), " [31m\xEF\xBF\xBD\xE2\x98\x83") << "no control bytes, valid UTF-8";

  std::string many;
  for (uint32_t id = 1; id <= ActivityNames::kMaxNames + 1; ++id) AppendActivityName(id, "n", &many);
  ActivityNames full;
  EXPECT_FALSE(LoadNames(&full, many).ok());
  EXPECT_EQ(full.size(), ActivityNames::kMaxNames);
  EXPECT_EQ(full.Text(ActivityNames::kMaxNames), "n");
  EXPECT_EQ(full.Text(ActivityNames::kMaxNames + 1), "name 262145");
}

}  // namespace
}  // namespace profd::exporting
