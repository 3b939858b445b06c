// For tests only: a dump that a DumpWriter writes, from its begin to its end.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/data/dump_writer.h"
#include "dump/test_support.h"

namespace profd {

// Where it is, goes to `*path`.
inline std::shared_ptr<WriterSession> OpenTestDump(DumpWriter& writer, std::string* path, const std::vector<int>& devices = {}) {
  SessionDumpOptions options;
  options.session.session_id = "s";
  options.owner = Myself();
  for (const int id : devices) {
    options.devices.emplace_back();
    options.devices.back().facts.id = id;
  }
  const auto opened = std::make_shared<std::promise<Result<std::string>>>();
  auto session = writer.Open(std::move(options), 1, [opened](const Result<std::string>& made) { opened->set_value(made); });
  const Result<std::string> made = opened->get_future().get();
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  *path = made.value_or("");
  return session;
}

// Complete when this returns. The manifest after `last_edit`.
inline Manifest FinishTestDump(WriterSession& session, const std::function<void(Manifest&)>& last_edit = [](Manifest&) {},
                               const EndFacts& end = {}) {
  const auto edited = std::make_shared<Manifest>();
  const auto done = std::make_shared<std::promise<Status>>();
  session.Finish(
      end,
      [last_edit, edited](Manifest& manifest) {
        last_edit(manifest);
        *edited = manifest;
      },
      [done](const Status& status) { done->set_value(status); });
  EXPECT_TRUE(done->get_future().get().ok());
  return *edited;
}

// The writer has done all that was posted before.
inline void AwaitWriter(DumpWriter& writer) {
  std::promise<void> reached;
  writer.Post([&reached] { reached.set_value(); });
  reached.get_future().wait();
}

// The rows of a file of host/data, of all its slices.
template <class Row>
std::vector<Row> RowsOf(const std::string& dump, const std::string& name) {
  std::string bytes;
  for (int slice = 0;; ++slice) {
    const std::string path = dump + "/host/data/" + name + ".data.slice_" + std::to_string(slice);
    if (!std::filesystem::exists(path)) break;
    bytes += ReadText(path);
  }
  EXPECT_EQ(bytes.size() % sizeof(Row), 0u);
  std::vector<Row> rows(bytes.size() / sizeof(Row));
  if (!rows.empty()) std::memcpy(rows.data(), bytes.data(), rows.size() * sizeof(Row));
  return rows;
}

// Tests of what writes into one dump, which is open from the start.
class OneDumpTest : public ::testing::Test {
 protected:
  explicit OneDumpTest(size_t pool_bytes, const std::vector<int>& devices = {})
      : pool_(pool_bytes),
        writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {}),
        session_(OpenTestDump(writer_, &path_, devices)) {}
  Manifest ReadManifest() { return ParseManifest(ReadText(path_ + "/profd_manifest.json")).value(); }

  TempDir tmp_;
  SystemClock clock_;
  BlockPool pool_;
  DumpWriter writer_;
  std::string path_;
  std::shared_ptr<WriterSession> session_;
};

}  // namespace profd
