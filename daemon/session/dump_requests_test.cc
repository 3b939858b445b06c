#include "daemon/session/dump_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_executor.h"
#include "daemon/session/testing/fake_node.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Session "s" of a user has the dump PROF_1; PROF_2 is its user's too, and is being written.
class DumpRequestsTest : public ::testing::Test {
 protected:
  DumpRequestsTest() {
    v1::Session session;
    session.set_session_id("s");
    session.mutable_owner()->set_uid(1000);
    (*session.mutable_spec()->mutable_metadata())["fleet_id"] = "0123456789abcdef";
    session.mutable_status()->set_state(v1::Session::STATE_DONE);
    session.mutable_status()->set_dump_path("/dumps/PROF_1");
    session.mutable_status()->set_dump_bytes(100);
    records_.AddEnded(session);
    retention_.Opened(NewDump("/dumps/PROF_2", "live", 1000, {}));
  }
  Result<uint64_t> Delete(const Peer& peer, const std::string& id, const std::string& dump = {}) {
    Result<uint64_t> answer = Internal("no answer");
    requests_.Delete(peer, id, dump, [&answer](Result<uint64_t> freed) { answer = std::move(freed); });
    return answer;
  }

  struct Remover final : DumpRemover {
    void Remove(const std::string& name, std::string_view, Removed done) override {
      removed.push_back(name);
      done(uint64_t{100});
    }
    std::vector<std::string> removed;
  };
  const Peer owner_{.uid = 1000};
  const Peer other_{.uid = 2000};
  const Peer viewer_{.viewer = true};
  TempDir tmp_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  DaemonConfig config_;
  StateStore store_{tmp_ / "state"};
  testing::FakeStates states_;
  DumpRetention retention_{DumpRetention::Deps{control_, clock_, store_, states_, tmp_ / "root"}, {}};
  SessionRecords records_{control_, clock_, config_, &retention_};
  Remover remover_;
  DumpRequests requests_{control_, records_, remover_, &retention_};
};

TEST_F(DumpRequestsTest, ADumpIsNamedOrItsSessionIs) {
  EXPECT_THAT(requests_.DumpsOf(owner_, "s", "").value_or({}), ElementsAre("PROF_1"));
  EXPECT_THAT(requests_.DumpsOf(owner_, "", "PROF_1").value_or({}), ElementsAre("PROF_1"));
  EXPECT_EQ(requests_.DumpsOf(owner_, "", "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(requests_.DumpsOf(owner_, "s", "PROF_1").status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(requests_.DumpsOf(owner_, "", "PROF_2").status().message(), HasSubstr("is being written by session live"));
}

TEST_F(DumpRequestsTest, DumpsOfOthersDoNotExist) {
  EXPECT_EQ(requests_.DumpsOf(other_, "s", "").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(requests_.DumpsOf(other_, "", "PROF_1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(requests_.List(other_).dumps_size(), 0);
  // A viewer sees them and takes none.
  EXPECT_EQ(requests_.DumpsOf(viewer_, "s", "").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(requests_.DumpsOf(viewer_, "", "PROF_1").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(requests_.List(viewer_).dumps_size(), 2);
}

// Root keeps and pins what it likes, another administrator pins it.
TEST_F(DumpRequestsTest, LimitsAreThoseOfTheCaller) {
  retention_.SetLimits({.total = 300, .per_uid = 200, .pinned_per_uid = 100});
  const v1::ListDumpsResponse user = requests_.List(owner_);
  EXPECT_EQ(user.max_total_bytes(), 300u);
  EXPECT_EQ(user.max_kept_bytes(), 200u);
  EXPECT_EQ(user.max_pinned_bytes(), 100u);
  const v1::ListDumpsResponse admin = requests_.List({.uid = 1000, .admin = true});
  EXPECT_EQ(admin.max_kept_bytes(), 200u);
  EXPECT_FALSE(admin.has_max_pinned_bytes());
  const v1::ListDumpsResponse root = requests_.List({.uid = 0, .admin = true});
  EXPECT_EQ(root.max_total_bytes(), 300u);
  EXPECT_FALSE(root.has_max_kept_bytes());
  EXPECT_FALSE(root.has_max_pinned_bytes());
}

TEST_F(DumpRequestsTest, ListsWhatThereIs) {
  const v1::ListDumpsResponse all = requests_.List(owner_);
  ASSERT_EQ(all.dumps_size(), 2);
  EXPECT_EQ(all.total_bytes(), 100u);
  EXPECT_FALSE(all.incomplete());
  const v1::Dump& complete = all.dumps(all.dumps(0).name() == "PROF_1" ? 0 : 1);
  EXPECT_EQ(complete.session_id(), "s");
  EXPECT_EQ(complete.state(), v1::Session::STATE_DONE);
  EXPECT_EQ(complete.bytes(), 100u);
  EXPECT_EQ(complete.fleet_id(), "0123456789abcdef") << "to be found by it when the session is forgotten";
}

TEST_F(DumpRequestsTest, WhatIsPinnedStays) {
  v1::PinDumpRequest pin;
  pin.set_session_id("s");
  v1::PinDumpResponse pinned;
  ASSERT_TRUE(requests_.Pin(owner_, pin, &pinned).ok());
  ASSERT_EQ(pinned.dumps_size(), 1);
  EXPECT_TRUE(pinned.dumps(0).pinned());
  EXPECT_TRUE(records_.Get(owner_, "s").value_or({}).status().pinned());
  EXPECT_EQ(Delete(owner_, "s").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Delete(owner_, "", "PROF_1").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(remover_.removed, IsEmpty());
  v1::UnpinDumpRequest unpin;
  unpin.set_dump("PROF_1");
  v1::UnpinDumpResponse unpinned;
  ASSERT_TRUE(requests_.Unpin(owner_, unpin, &unpinned).ok());
  EXPECT_FALSE(unpinned.dumps(0).pinned());
  EXPECT_EQ(Delete(owner_, "s").value_or(0), 100u);
  EXPECT_THAT(remover_.removed, ElementsAre("PROF_1"));
  EXPECT_FALSE(records_.Get(owner_, "s").ok());
}

TEST_F(DumpRequestsTest, ASessionWithoutADumpLeavesTheList) {
  v1::Session session;
  session.set_session_id("none");
  session.mutable_owner()->set_uid(1000);
  session.mutable_status()->set_state(v1::Session::STATE_DONE);
  records_.AddEnded(session);
  EXPECT_EQ(Delete(other_, "none").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(records_.Get(owner_, "none").ok());
  EXPECT_EQ(Delete(owner_, "none").value_or(1), 0u);
  EXPECT_FALSE(records_.Get(owner_, "none").ok());
  EXPECT_THAT(remover_.removed, IsEmpty());
}

TEST_F(DumpRequestsTest, WaitsForTheDatabase) {
  const v1::Session session = records_.Get(owner_, "s").value_or({});
  EXPECT_FALSE(requests_.IsWaiting(session));
  retention_.SetWaiting("PROF_1", true);
  EXPECT_TRUE(requests_.IsWaiting(session));
  EXPECT_TRUE(requests_.IsWaiting("/dumps/PROF_1"));
  EXPECT_FALSE(requests_.IsWaiting("PROF_2"));
}

// Those that are still there.
TEST_F(DumpRequestsTest, CompleteDumpsAreInTheOrderOfTheirNames) {
  const auto names = [this] {
    std::vector<std::string> found;
    const auto wanted = [](const KeptDump& dump) { return dump.recorder && dump.uid == 0 && dump.label != "mine"; };
    for (const KeptDump& dump : requests_.CompleteDumps(wanted)) found.push_back(dump.name);
    return found;
  };
  const auto add = [this](const std::string& name, uint32_t uid, const std::string& label, int64_t started_ns) {
    v1::Session session;
    session.set_session_id(name);
    session.mutable_owner()->set_uid(uid);
    session.mutable_spec()->set_label(label);
    session.mutable_status()->set_dump_path("/dumps/" + name);
    session.mutable_status()->set_started_ns(started_ns);
    records_.AddEnded(session);
  };
  add("PROF_000003", 0, "trigger: crash", 20);
  add("PROF_000004", 0, "trigger: threshold", 10);  // the clock was set back
  add("PROF_000005", 1000, "trigger: crash", 30);
  add("PROF_000006", 0, "mine", 40);
  v1::SessionSpec spec;
  spec.set_label("trigger: no dump of the recorder");
  retention_.Opened(NewDump("/dumps/PROF_000007", "session", 0, spec));
  retention_.Closed("PROF_000007", DumpState::kDone, 1);
  EXPECT_THAT(names(), ElementsAre("PROF_000003", "PROF_000004"));
  retention_.Remove("PROF_000003", kReasonRequest, {});
  EXPECT_THAT(names(), ElementsAre("PROF_000004"));
}

TEST_F(DumpRequestsTest, WithoutDumpsThereIsNothingToPin) {
  DumpRequests none(control_, records_, remover_, nullptr);
  v1::PinDumpResponse pinned;
  EXPECT_EQ(none.Pin(owner_, {}, &pinned).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(none.List(owner_).dumps_size(), 0);
}

}  // namespace
}  // namespace profd
