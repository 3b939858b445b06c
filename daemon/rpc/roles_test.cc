#include "daemon/rpc/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "profd/v1/profd.pb.h"

namespace profd::rpc {
namespace {

Peer WithRole(Role role) {
  Peer peer;
  peer.remote = true;
  peer.certificate = "CN=x";
  peer.viewer = role == Role::kViewer;
  peer.admin = role == Role::kAdmin;
  return peer;
}

const google::protobuf::ServiceDescriptor& Service() {
  return *v1::Node::descriptor()->file()->FindServiceByName("Profd");
}

const MethodRoles& Roles() {
  static const MethodRoles roles(Service());
  return roles;
}

// A new RPC must be given its role.
TEST(RolesTest, EveryMethodOfTheServiceHasARole) {
  ASSERT_GE(Service().method_count(), 19);
  for (int i = 0; i < Service().method_count(); ++i) {
    EXPECT_TRUE(Roles().LeastRole(Service().method(i)->name())) << Service().method(i)->name();
  }
}

// What a viewer may call, by name: nothing that starts, stops, fetches or deletes comes in unseen.
TEST(RolesTest, ViewersOnlyLook) {
  const std::set<std::string_view> looks = {"GetNode",      "ListOptions",   "CheckOptions",
                                            "ListJobs",     "ListSessions",  "GetSession",
                                            "WatchSession", "StreamSamples", "GetTime",
                                            "ListDumps",    "GetTopology"};
  for (int i = 0; i < Service().method_count(); ++i) {
    const std::string& method = Service().method(i)->name();
    EXPECT_EQ(Roles().MayCall(WithRole(Role::kViewer), method).ok(), looks.count(method) == 1)
        << method;
    EXPECT_TRUE(Roles().MayCall(WithRole(Role::kUser), method).ok()) << method;
    EXPECT_TRUE(Roles().MayCall(WithRole(Role::kAdmin), method).ok()) << method;
  }
}

TEST(RolesTest, TheRefusalNamesTheRole) {
  Status status = Roles().MayCall(WithRole(Role::kViewer), "StartSession");
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), ::testing::AllOf(::testing::HasSubstr("profd-viewer"),
                                                 ::testing::HasSubstr("OU=profd-user"),
                                                 ::testing::HasSubstr("StartSession")));
}

TEST(RolesTest, AMethodWithoutARoleCannotBeCalled) {
  EXPECT_EQ(Roles().MayCall(WithRole(Role::kAdmin), "Forgotten").code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(Roles().MayCall(Peer(), "Forgotten").code(), StatusCode::kPermissionDenied);
}

TEST(RolesTest, AViewerSeesEverythingAndOwnsNothing) {
  Peer viewer = WithRole(Role::kViewer);
  EXPECT_TRUE(viewer.Sees(1000));
  EXPECT_FALSE(viewer.Owns(1000));
  EXPECT_FALSE(viewer.Owns(viewer.uid));
}

}  // namespace
}  // namespace profd::rpc
