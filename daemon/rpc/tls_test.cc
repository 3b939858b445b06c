// Certificates as peers may bring them, and the files of [tls] as operators may leave them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "daemon/rpc/tcp_listener.h"
#include "daemon/rpc/tls_files.h"
#include "daemon/rpc/tls_identity.h"
#include "daemon/rpc/tls_test_support.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TlsIdentityTest : public ::testing::Test {
 protected:
  TlsIdentityTest() : ca_(MakeTestPair({.subject = {{"CN", "ca"}}, .authority = true})) {
    authorities_ = TlsAuthorities::Make(CertificatePem(ca_)).value();
    users_["alice"] = {1000, 100, {100, 7}};
  }
  std::string Leaf(std::vector<std::pair<std::string, std::string>> subject) {
    return CertificatePem(MakeTestPair({.subject = std::move(subject), .issuer = &ca_}));
  }
  Result<Peer> Identify(const std::string& leaf) {
    return authorities_->Identify(leaf, "", users_);
  }
  StatusCode CodeOf(std::vector<std::pair<std::string, std::string>> subject) {
    return Identify(Leaf(std::move(subject))).status().code();
  }

  TestPair ca_;
  std::shared_ptr<const TlsAuthorities> authorities_;
  LocalUsers users_;
};

TEST_F(TlsIdentityTest, RolesAndUsers) {
  Result<Peer> user = Identify(Leaf({{"OU", "profd-user"}, {"CN", "alice"}}));
  ASSERT_TRUE(user.ok()) << user.status().ToString();
  EXPECT_EQ(user->uid, 1000u);
  EXPECT_EQ(user->gid, 100u);
  EXPECT_TRUE(user->InGroup(7));
  EXPECT_EQ(user->pid, 0);
  EXPECT_TRUE(user->remote);
  EXPECT_FALSE(user->admin || user->viewer);
  EXPECT_EQ(user->certificate, "OU=profd-user,CN=alice");

  Result<Peer> viewer = Identify(Leaf({{"OU", "profd-viewer"}, {"CN", "alice"}}));
  ASSERT_TRUE(viewer.ok());
  EXPECT_TRUE(viewer->viewer);
  EXPECT_EQ(viewer->uid, UINT32_MAX);

  Result<Peer> admin = Identify(Leaf({{"OU", "profd-admin"}, {"CN", "ops"}}));
  ASSERT_TRUE(admin.ok());
  EXPECT_TRUE(admin->admin);
  EXPECT_EQ(admin->uid, ::geteuid());
}

TEST_F(TlsIdentityTest, OtherUnitsDoNotMatterButTwoRolesDo) {
  EXPECT_EQ(CodeOf({{"OU", "Research"}, {"OU", "profd-user"}, {"CN", "alice"}}), StatusCode::kOk);
  EXPECT_EQ(CodeOf({{"OU", "profd-viewer"}, {"OU", "profd-admin"}, {"CN", "alice"}}),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf({{"OU", "profd-admin"}, {"OU", "profd-admin"}, {"CN", "alice"}}),
            StatusCode::kPermissionDenied);
}

TEST_F(TlsIdentityTest, NoRole) {
  for (const char* unit : {"profd-root", "Profd-admin", "profd-admin ", "profd-", "admin", "x"}) {
    Result<Peer> peer = Identify(Leaf({{"OU", unit}, {"CN", "alice"}}));
    EXPECT_EQ(peer.status().code(), StatusCode::kPermissionDenied) << unit;
    EXPECT_THAT(peer.status().message(), HasSubstr("OU=profd-viewer"));
  }
  EXPECT_EQ(CodeOf({{"CN", "alice"}}), StatusCode::kPermissionDenied);
  // A role in the wrong field is none.
  EXPECT_EQ(CodeOf({{"O", "profd-admin"}, {"CN", "alice"}}), StatusCode::kPermissionDenied);
}

TEST_F(TlsIdentityTest, UnmappedUsersReadWhatIsMissing) {
  Result<Peer> peer = Identify(Leaf({{"OU", "profd-user"}, {"CN", "mallory"}}));
  EXPECT_EQ(peer.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(peer.status().message(), HasSubstr("mallory=USER"));
  EXPECT_THAT(peer.status().message(), HasSubstr("tls.users"));
}

TEST_F(TlsIdentityTest, HostileNames) {
  users_[std::string("alice\0x", 7)] = {1001, 1001, {}};
  for (const std::string& name :
       {std::string("alice\0x", 7), std::string("alice\nx"), std::string("alice=1000"),
        std::string("\x1b[2J"), std::string("\xc3\xa9"), std::string(65, 'a')}) {
    CertificateSpec spec{.subject = {{"OU", "profd-user"}}, .issuer = &ca_};
    TestPair pair = MakeTestPair(spec);
    // Longer than OpenSSL itself would write; the signature is made anew.
    X509_NAME* subject = X509_get_subject_name(pair.certificate.get());
    ASN1_STRING* raw = ASN1_STRING_type_new(V_ASN1_UTF8STRING);
    ASN1_STRING_set(raw, name.data(), static_cast<int>(name.size()));
    X509_NAME_ENTRY* entry = X509_NAME_ENTRY_create_by_NID(
        nullptr, NID_commonName, V_ASN1_UTF8STRING, raw->data, raw->length);
    ASSERT_EQ(X509_NAME_add_entry(subject, entry, -1, 0), 1);
    X509_NAME_ENTRY_free(entry);
    ASN1_STRING_free(raw);
    ASSERT_GT(X509_sign(pair.certificate.get(), ca_.key.get(), EVP_sha256()), 0);
    Result<Peer> peer = Identify(CertificatePem(pair));
    EXPECT_EQ(peer.status().code(), StatusCode::kPermissionDenied) << name;
    const std::string text = peer.status().message();
    for (char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << int{c};
  }
  EXPECT_EQ(CodeOf({{"OU", "profd-user"}, {"CN", "alice"}, {"CN", "bob"}}),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf({{"OU", "profd-user"}}), StatusCode::kPermissionDenied);
}

TEST_F(TlsIdentityTest, LongSubjectsAreRefused) {
  std::vector<std::pair<std::string, std::string>> subject = {{"OU", "profd-user"},
                                                              {"CN", "alice"}};
  for (int i = 0; i < 100; ++i) subject.emplace_back("O", std::string(64, 'o'));
  EXPECT_EQ(CodeOf(subject), StatusCode::kPermissionDenied);
  subject.resize(20);
  Result<Peer> peer = Identify(Leaf(subject));
  ASSERT_TRUE(peer.ok());
  EXPECT_LE(peer->certificate.size(), 256u);
}

TEST_F(TlsIdentityTest, OnlyWhatAnAuthoritySignedForClientsAndIsValidNow) {
  TestPair other = MakeTestPair({.subject = {{"CN", "ca"}}, .authority = true});
  const std::vector<std::pair<std::string, std::string>> alice = {{"OU", "profd-user"},
                                                                  {"CN", "alice"}};
  auto code = [this](const CertificateSpec& spec) {
    return Identify(CertificatePem(MakeTestPair(spec))).status().code();
  };
  EXPECT_EQ(code({.subject = alice, .issuer = &ca_}), StatusCode::kOk);
  EXPECT_EQ(code({.subject = alice, .issuer = &other}), StatusCode::kUnauthenticated);
  EXPECT_EQ(code({.subject = alice}), StatusCode::kUnauthenticated);
  EXPECT_EQ(code({.subject = alice, .issuer = &ca_, .valid_s = -60}), StatusCode::kUnauthenticated);
  EXPECT_EQ(code({.subject = alice, .issuer = &ca_, .purpose = "serverAuth"}),
            StatusCode::kUnauthenticated);
  // An intermediate authority counts when the client brings it.
  TestPair between =
      MakeTestPair({.subject = {{"CN", "between"}}, .issuer = &ca_, .authority = true});
  std::string leaf = CertificatePem(MakeTestPair({.subject = alice, .issuer = &between}));
  EXPECT_FALSE(authorities_->Identify(leaf, "", users_).ok());
  EXPECT_TRUE(authorities_->Identify(leaf, CertificatePem(between), users_).ok());
}

TEST_F(TlsIdentityTest, NoCertificates) {
  std::string good = Leaf({{"OU", "profd-user"}, {"CN", "alice"}});
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(1 << 20, 'A'), good + good,
        good.substr(0, good.size() / 2),
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}) {
    EXPECT_EQ(Identify(text).status().code(), StatusCode::kUnauthenticated);
  }
}

TEST(TlsUsersTest, EntriesAreResolvedAtOnce) {
  std::vector<std::string> problems;
  LocalUsers users = ResolveLocalUsers({"alice=61001", "d=daemon"}, &problems);
  EXPECT_THAT(problems, IsEmpty());
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users["alice"].uid, 61001u);
  EXPECT_EQ(users["alice"].gid, 61001u);
  EXPECT_EQ(users["d"].uid, 1u);
}

TEST(TlsUsersTest, EveryProblemIsNamed) {
  std::vector<std::string> problems;
  ResolveLocalUsers({"alice", "=1", "a=", "a=b=c", "x=no-such-user-here", "r=0", "r=root", "b=-1",
                     "t=61001", "t=61002", "m=4294967295"},
                    &problems);
  EXPECT_EQ(problems.size(), 10u);
  EXPECT_THAT(problems, Contains(HasSubstr("no-such-user-here")));
  EXPECT_THAT(problems, Contains(HasSubstr("OU=profd-admin")));
}

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest()
      : ca_(MakeTestPair({.subject = {{"CN", "ca"}}, .authority = true})),
        node_(MakeTestPair({.subject = {{"CN", "node"}}, .issuer = &ca_, .purpose = "serverAuth"})),
        paths_{tmp_ / "crt", tmp_ / "key", tmp_ / "ca"} {
    Write(paths_.certificate, CertificatePem(node_), 0644);
    Write(paths_.key, KeyPem(node_), 0600);
    Write(paths_.client_ca, CertificatePem(ca_), 0644);
  }
  static void Write(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path, std::ios::binary) << text;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  std::vector<std::string> Problems() {
    std::vector<std::string> problems;
    (void)LoadTlsFiles(paths_, &problems);
    return problems;
  }

  TempDir tmp_;
  TestPair ca_;
  TestPair node_;
  TlsPaths paths_;
};

TEST_F(TlsFilesTest, Good) {
  EXPECT_THAT(Problems(), IsEmpty());
  ::chmod(paths_.key.c_str(), 0640);
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(TlsFilesTest, ModesThatLetOthersIn) {
  for (mode_t mode : {0644U, 0604U, 0602U, 0660U, 0601U}) {
    ::chmod(paths_.key.c_str(), mode);
    EXPECT_THAT(Problems(), ElementsAre(HasSubstr("tls.key"))) << mode;
  }
  ::chmod(paths_.key.c_str(), 0600);
  ::chmod(paths_.client_ca.c_str(), 0666);
  ::chmod(paths_.certificate.c_str(), 0664);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("tls.certificate"), HasSubstr("tls.client_ca")));
}

TEST_F(TlsFilesTest, EveryFileMissing) {
  paths_ = {tmp_ / "a", tmp_ / "b", "relative"};
  EXPECT_THAT(Problems(),
              ElementsAre(HasSubstr(tmp_ / "a"), HasSubstr(tmp_ / "b"), HasSubstr("absolute")));
  paths_.key = tmp_.path();
  EXPECT_THAT(Problems(), Contains(HasSubstr("regular file")));
}

TEST_F(TlsFilesTest, ContentsThatDoNotFit) {
  TestPair other = MakeTestPair({.subject = {{"CN", "x"}}});
  Write(paths_.key, KeyPem(other), 0600);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("not the key of the certificate")));
  Write(paths_.key, KeyPem(node_, "secret"), 0600);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("unencrypted")));
  Write(paths_.key, KeyPem(node_), 0600);
  Write(paths_.client_ca, CertificatePem(other), 0644);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("authority")));
  Write(paths_.client_ca, "", 0644);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("tls.client_ca")));
  Write(paths_.client_ca, CertificatePem(ca_), 0644);
  std::string half = CertificatePem(node_);
  Write(paths_.certificate, half.substr(0, half.size() / 2), 0644);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("tls.certificate")));
}

TEST_F(TlsFilesTest, TheTimestampFollowsEveryFile) {
  std::string before = TlsFilesStamp(paths_);
  EXPECT_EQ(before, TlsFilesStamp(paths_));
  ASSERT_EQ(::rename(paths_.key.c_str(), (paths_.key + ".old").c_str()), 0);
  std::string gone = TlsFilesStamp(paths_);
  EXPECT_NE(before, gone);
  Write(paths_.key, KeyPem(node_), 0600);
  EXPECT_NE(before, TlsFilesStamp(paths_));
}

TEST(TcpAddressTest, Addresses) {
  EXPECT_EQ(ParseTcpAddress("0.0.0.0:9465", "tls.listen")->port, 9465);
  EXPECT_EQ(ParseTcpAddress("[::]:0", "tls.listen")->host, "::");
  for (const char* bad : {"", ":1", "host", "host:", "host:x", "host:65536", "::1:5", "[]:1"}) {
    EXPECT_FALSE(ParseTcpAddress(bad, "tls.listen").ok()) << bad;
  }
}

}  // namespace
}  // namespace profd
