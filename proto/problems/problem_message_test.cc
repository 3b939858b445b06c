#include "proto/problems/problem_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ProblemMessage, ProblemsArriveAsTheyWere) {
  const Problem sent = {.kind = Problem::Kind::kBusy,
                        .field = "llc_profiling",
                        .value = "write",
                        .text = "busy, {no_dump} is given",
                        .holder = "0123456789ab"};
  const std::string bytes =
      PackDetails(Status(StatusCode::kFailedPrecondition, std::vector<Problem>{sent, {.text = "and 2 more", .left_out = 2}}));
  const std::vector<Problem> received = UnpackDetails(bytes);
  ASSERT_THAT(received, SizeIs(2));
  EXPECT_EQ(received[0].kind, sent.kind);
  EXPECT_EQ(received[0].field, sent.field);
  EXPECT_EQ(received[0].value, sent.value);
  EXPECT_EQ(received[0].text, sent.text);
  EXPECT_EQ(received[0].holder, sent.holder);
  EXPECT_EQ(received[0].left_out, 0u);
  EXPECT_EQ(received[1].field, "");
  EXPECT_EQ(received[1].left_out, 2u);
}

// Field numbers of google/rpc/status.proto and error_details.proto.
TEST(ProblemMessage, ClientsOfGoogleRpcFindTheFields) {
  const Problem problem = {.field = "rank", .value = "-1", .text = "must not be negative"};
  v1::StatusDetails status;
  ASSERT_TRUE(status.ParseFromString(
      PackDetails(Status(StatusCode::kInvalidArgument, std::vector<Problem>{problem}))));
  EXPECT_EQ(status.code(), 3);
  ASSERT_EQ(status.details_size(), 2);
  EXPECT_EQ(status.details(1).type_url(), "type.googleapis.com/google.rpc.BadRequest");
  const std::string description = "rank = -1: must not be negative";
  const std::string violation =
      std::string("\x0a\x04rank\x12") + static_cast<char>(description.size()) + description;
  EXPECT_EQ(status.details(1).value(), std::string("\x0a") + static_cast<char>(violation.size()) + violation);
}

TEST(ProblemMessage, ProblemsThatDoNotFitIntoATrailerAreLeftOut) {
  std::vector<Problem> many(40, Problem{.field = "devices", .text = std::string(200, 'x')});
  EXPECT_THAT(PackDetails(Status(StatusCode::kInvalidArgument, many)), IsEmpty());
  EXPECT_THAT(PackDetails(InvalidArgument("no problems, only a sentence")), IsEmpty());
}

// In base64, beside the message, of which gRPC sends all but printable ASCII as "%XX".
size_t TrailerBytes(const Status& status) {
  size_t message = 0;
  for (char c : status.message()) message += c < 0x20 || c > 0x7e || c == '%' ? 3 : 1;
  return message + PackDetails(status).size() * 4 / 3 + 200;
}

// A full list of the daemon's fits, with the message beside it.
TEST(ProblemMessage, AFullListFitsIntoATrailer) {
  ProblemList list;
  for (int i = 0; i < 1000; ++i) list.Add({.field = "devices", .text = std::string(i % 400, 'x')});
  const Status status(StatusCode::kInvalidArgument, std::move(list).Take());
  EXPECT_FALSE(PackDetails(status).empty());
  EXPECT_LT(TrailerBytes(status), 8192u);
}

TEST(ProblemMessage, AFullListFitsWhateverTheClientSent) {
  std::string chinese;
  for (int i = 0; i < 1000; ++i) chinese += "\xe5\xb1\x82";
  for (size_t ascii : {0, 1000, 2400}) {
    ProblemList list;
    for (size_t used = 0; used < ascii; used += 100) list.Add({.field = "devices", .text = std::string(85, 'x')});
    for (int i = 0; i < 100; ++i) list.Add({.field = chinese, .value = chinese, .text = "unknown option"});
    EXPECT_LT(TrailerBytes(Status(StatusCode::kInvalidArgument, std::move(list).Take())), 8192u) << ascii;
  }
}

TEST(ProblemMessage, ForeignDetailsAreIgnored) {
  EXPECT_THAT(UnpackDetails("\xff\xff\xff"), IsEmpty());
  v1::StatusDetails status;
  status.add_details()->set_type_url("type.googleapis.com/google.rpc.Help");
  EXPECT_THAT(UnpackDetails(status.SerializeAsString()), IsEmpty());
}

}  // namespace
}  // namespace profd
