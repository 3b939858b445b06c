#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace profd {
namespace {

Status FailsWhen(bool fail) {
  RETURN_IF_ERROR(fail ? NotFound("no session 17") : Status::Ok());
  return Aborted("reached the end");
}

TEST(Status, MessageHasWhatAndWhere) {
  Status status = NotFound("no session 17").Annotate("stop");
  EXPECT_EQ(status.ToString(), "not found: stop: no session 17");
  EXPECT_TRUE(Status::Ok().Annotate("stop").ok());
}

TEST(Status, ErrnoKeepsDifferentReasonsApart) {
  EXPECT_EQ(Status::FromErrno(ENOENT, "open x").code(), StatusCode::kNotFound);
  EXPECT_EQ(Status::FromErrno(EACCES, "open x").code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Status::FromErrno(ENOSPC, "write x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Status::FromErrno(EROFS, "write x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Status::FromErrno(ECONNREFUSED, "connect").code(), StatusCode::kUnavailable);
  // No daemon that did not answer: profctl's exit code is not 6.
  EXPECT_EQ(Status::FromErrno(EISDIR, "write x").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Status::FromErrno(EADDRINUSE, "listen").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Status::FromErrno(EADDRNOTAVAIL, "listen").code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Status::FromErrno(ENOENT, "open x").message().find("open x"), std::string::npos);
}

// The code is that of what another holds, too: a full volume is not busy.
TEST(Status, AFullVolumeIsNotBusy) {
  EXPECT_EQ(Status::FromErrno(ENOSPC, "write x").ToString(), "write x: No space left on device");
  EXPECT_EQ(Status(StatusCode::kResourceExhausted, "the driver is busy").ToString(), "the driver is busy");
  EXPECT_EQ(Status(StatusCode::kResourceExhausted, "").ToString(), "limit reached");
}

TEST(Status, MacroReturnsTheFirstError) {
  EXPECT_EQ(FailsWhen(true).code(), StatusCode::kNotFound);
  EXPECT_EQ(FailsWhen(false).code(), StatusCode::kAborted);
}

TEST(Result, HoldsValueOrError) {
  Result<int> value = 7;
  Result<int> error = Unavailable("gone");
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(*value, 7);
  EXPECT_EQ(error.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(error.value_or(3), 3);
}

}  // namespace
}  // namespace profd
