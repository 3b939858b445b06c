// For tests only: a dump that a DumpWriter writes, from its begin to its end.
#pragma once

#include <gtest/gtest.h>

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

// Complete when this returns.
inline void FinishTestDump(WriterSession& session, std::function<void(Manifest&)> last_edit = [](Manifest&) {}) {
  const auto done = std::make_shared<std::promise<Status>>();
  session.Finish({}, std::move(last_edit), [done](const Status& status) { done->set_value(status); });
  EXPECT_TRUE(done->get_future().get().ok());
}

}  // namespace profd
