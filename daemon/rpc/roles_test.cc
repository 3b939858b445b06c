#include "daemon/rpc/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "profd/v1/profd.pb.h"

namespace profd::rpc {
namespace {

Peer WithRole(v1::Role role) { return {.admin = role == v1::ROLE_ADMIN, .viewer = role == v1::ROLE_VIEWER, .remote = true, .certificate = "CN=x"}; }

// Calls see(roles, method) for each method of each service.
template <class See>
void ForEachMethod(See see) {
  const google::protobuf::FileDescriptor& file = *v1::Node::descriptor()->file();
  for (int i = 0; i < file.service_count(); ++i) {
    const MethodRoles roles(*file.service(i));
    for (int j = 0; j < file.service(i)->method_count(); ++j) see(roles, file.service(i)->method(j)->name());
  }
}

const MethodRoles& Roles() {
  static const MethodRoles roles(*v1::Node::descriptor()->file()->FindServiceByName("SessionService"));
  return roles;
}

// A new RPC must be given its role.
TEST(RolesTest, EveryMethodHasARole) {
  int methods = 0;
  ForEachMethod([&methods](const MethodRoles& roles, const std::string& method) {
    EXPECT_TRUE(roles.LeastRole(method)) << method;
    ++methods;
  });
  EXPECT_GE(methods, 19);
}

// What a viewer may call, by name: nothing that starts, stops, fetches or deletes comes in unseen.
TEST(RolesTest, ViewersOnlyLook) {
  const std::set<std::string_view> looks = {"GetNode",      "ListOptions",   "CheckOptions",
                                            "ListJobs",     "ListSessions",  "GetSession",
                                            "WatchSession", "StreamSamples", "GetTime",
                                            "ListDumps",    "GetTopology",   "ListTuningLeases",
                                            "GetAdvice",    "WatchAdvice"};
  ForEachMethod([&looks](const MethodRoles& roles, const std::string& method) {
    EXPECT_EQ(roles.MayCall(WithRole(v1::ROLE_VIEWER), method).ok(), looks.count(method) == 1) << method;
    const bool archives = method == "ClaimArchiveUpload" || method == "ReportArchive";
    EXPECT_EQ(roles.MayCall(WithRole(v1::ROLE_USER), method).ok(), !archives) << method;
    EXPECT_TRUE(roles.MayCall(WithRole(v1::ROLE_ADMIN), method).ok()) << method;
  });
}

// The user that archives fetches and reports; what it may fetch is decided elsewhere.
TEST(RolesTest, TheArchivesUserDoesNothingElse) {
  const std::set<std::string_view> its = {"FetchDump", "ClaimArchiveUpload", "ReportArchive"};
  const Peer archiver{.uid = 990, .archiver = true};
  ForEachMethod([&](const MethodRoles& roles, const std::string& method) {
    EXPECT_EQ(roles.MayCall(archiver, method).ok(), its.count(method) == 1) << method;
  });
  EXPECT_THAT(Roles().MayCall(archiver, "StartSession").message(), ::testing::HasSubstr("archive.user"));
  const Peer user{.uid = 1000};
  const MethodRoles dumps(*v1::Node::descriptor()->file()->FindServiceByName("DumpService"));
  EXPECT_EQ(dumps.MayCall(user, "ClaimArchiveUpload").code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(dumps.MayCall(user, "ReportArchive").message(), ::testing::HasSubstr("administrators"));
}

TEST(RolesTest, TheRefusalNamesTheRole) {
  Status status = Roles().MayCall(WithRole(v1::ROLE_VIEWER), "StartSession");
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), ::testing::AllOf(::testing::HasSubstr("profd-viewer"),
                                                 ::testing::HasSubstr("OU=profd-user"),
                                                 ::testing::HasSubstr("StartSession")));
}

TEST(RolesTest, TheRefusalOfAUserDoesNotCallItAViewer) {
  const MethodRoles dumps(*v1::Node::descriptor()->file()->FindServiceByName("DumpService"));
  EXPECT_THAT(dumps.MayCall(WithRole(v1::ROLE_VIEWER), "FetchDump").message(),
              ::testing::HasSubstr("profd-viewer, which may look but not call FetchDump"));
  EXPECT_THAT(dumps.MayCall(WithRole(v1::ROLE_USER), "ReportArchive").message(),
              ::testing::HasSubstr("profd-user, which may not call ReportArchive: that takes one with OU=profd-admin"));
}

TEST(RolesTest, AMethodWithoutARoleCannotBeCalled) {
  EXPECT_EQ(Roles().MayCall(WithRole(v1::ROLE_ADMIN), "Forgotten").code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(Roles().MayCall(Peer(), "Forgotten").code(), StatusCode::kPermissionDenied);
}

TEST(RolesTest, AViewerSeesEverythingAndOwnsNothing) {
  Peer viewer = WithRole(v1::ROLE_VIEWER);
  EXPECT_TRUE(viewer.Sees(1000));
  EXPECT_FALSE(viewer.Owns(1000));
  EXPECT_FALSE(viewer.Owns(viewer.uid));
}

}  // namespace
}  // namespace profd::rpc
