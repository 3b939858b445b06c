#include "daemon/jobs/attach_calls.h"

#include <gtest/gtest.h>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

TEST(AttachCalls, ARequestIsOfTheProcessItself) {
  TrainingProcess process{.pid = 4711, .job_id = "j", .rank = 3, .devices = {1, 2}};
  attach::StartCall call{.options_json = "{\"hbm\":1}", .acl_switches = {{"ACL_PROF_L2CACHE", "on"}}, .label = "first",
                         .duration_ms = 500, .start_step = 11, .steps = 2, .best_effort = true,
                         .collectors = {"hccs=50", "hbm", "pcie=x"}};
  v1::SessionSpec request = ToRequest(call, process, {{"epoch", "3"}, {"learning rate", "1"}});
  EXPECT_EQ(request.target().job_id(), "j");
  EXPECT_EQ(request.target().rank(), 3);
  EXPECT_EQ(request.schedule().end_with_pid(), 4711);
  ASSERT_EQ(request.target().pids_size(), 1);
  EXPECT_EQ(request.target().pids(0), 4711);
  EXPECT_EQ(request.target().devices_size(), 2);
  EXPECT_FALSE(request.target().all());
  EXPECT_EQ(request.options_json(), call.options_json);
  EXPECT_EQ(request.acl_switches().at("ACL_PROF_L2CACHE"), "on");
  EXPECT_EQ(request.label(), "first");
  EXPECT_EQ(request.schedule().duration_ms(), 500u);
  EXPECT_EQ(request.schedule().start_step(), 11);
  EXPECT_EQ(request.schedule().steps(), 2u);
  EXPECT_TRUE(request.best_effort());
  EXPECT_FALSE(request.no_dump());
  EXPECT_EQ(request.lease().lease_ms(), 0u);
  ASSERT_EQ(request.collectors_size(), 3);
  EXPECT_EQ(request.collectors(0).name(), "hccs");
  EXPECT_EQ(request.collectors(0).hz(), 50);
  EXPECT_EQ(request.collectors(1).name(), "hbm");
  EXPECT_EQ(request.collectors(2).name(), "pcie=x");
  EXPECT_EQ(request.metadata().at("epoch"), "3");
  EXPECT_EQ(request.metadata_size(), 1);
}

TEST(AttachCalls, WithoutKnownDevicesAllAreMeant) {
  v1::SessionSpec request = ToRequest({}, TrainingProcess{}, {});
  EXPECT_TRUE(request.target().all());
  EXPECT_FALSE(request.target().has_rank());
  EXPECT_FALSE(request.schedule().has_start_step());
}

TEST(AttachCalls, AnswersCarryTheSession) {
  v1::Session session;
  session.set_session_id("abc");
  session.mutable_status()->set_state(v1::Session::STATE_DONE);
  session.mutable_status()->set_reason("duration");
  session.mutable_status()->set_records(7);
  session.mutable_status()->set_marks(8);
  session.mutable_status()->add_warnings("w");
  v1::EffectiveOption& option = *session.mutable_status()->add_effective_options();
  option.set_key("hbm");
  option.set_value("50");
  v1::Outcome& outcome = *session.mutable_status()->add_outcomes();
  outcome.set_collector("hbm");
  outcome.set_device(2);
  outcome.set_result(v1::Outcome::RESULT_FINISHED);
  attach::Reply reply = ToReply(9, session);
  EXPECT_EQ(reply.seq, 9u);
  EXPECT_EQ(reply.code, 0);
  ASSERT_TRUE(reply.session.has_value());
  EXPECT_EQ(reply.session->session_id, "abc");
  EXPECT_EQ(reply.session->state, "done");
  EXPECT_EQ(reply.session->marks, 8u);
  EXPECT_EQ(reply.session->effective_options.at("hbm"), "50");
  ASSERT_EQ(reply.session->outcomes.size(), 1u);
  EXPECT_EQ(reply.session->outcomes[0].result, "finished");
  EXPECT_EQ(reply.session->outcomes[0].device, 2);
}

TEST(AttachCalls, RefusalsCarryTheReason) {
  attach::Reply reply = ToReply(2, InvalidArgument("no such option"));
  EXPECT_EQ(reply.code, 3);
  EXPECT_EQ(reply.message, "no such option");
  EXPECT_FALSE(reply.session.has_value());
  // A text cut inside a character is still a packet.
  std::string longer(4095, 'x');
  reply = ToReply(2, InvalidArgument(longer + "\u8bad"));
  EXPECT_FALSE(attach::Encode(attach::ToProcess(reply)).empty());
}

TEST(AttachCalls, AnswersFitIntoAPacket) {
  v1::Session session;
  session.set_session_id("abc");
  for (int i = 0; i < 4000; ++i) {
    v1::Outcome& outcome = *session.mutable_status()->add_outcomes();
    outcome.set_collector("hbm");
    outcome.set_detail(std::string(60, 'x'));
  }
  attach::Reply reply = ToReply(1, session);
  EXPECT_LE(attach::Encode(attach::ToProcess(reply)).size(), attach::kMaxPacket);
}

}  // namespace
}  // namespace profd
