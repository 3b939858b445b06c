#include "daemon/web/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/web/credentials.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kHash = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

std::vector<std::string> Problems(std::string_view text) {
  std::vector<std::string> problems;
  (void)ParseWebConfig(text, "/etc/profd/web.yml", &problems);
  return problems;
}

WebConfig Good(std::string_view text) {
  std::vector<std::string> problems;
  WebConfig config = ParseWebConfig(text, "/etc/profd/web.yml", &problems);
  EXPECT_THAT(problems, IsEmpty()) << text;
  return config;
}

TEST(WebConfig, NothingIsPlainHttp) {
  for (const char* text : {"", "# only a comment\n", "---\n", "tls_server_config:\n",
                           "tls_server_config: {}\nbasic_auth_users:\nhttp_server_config:\n"}) {
    WebConfig config = Good(text);
    EXPECT_FALSE(config.tls) << text;
    EXPECT_THAT(config.users, IsEmpty()) << text;
  }
}

TEST(WebConfig, Everything) {
  WebConfig config = Good(
      "tls_server_config:\n"
      "  cert_file: server.crt\n"
      "  key_file: /keys/server.key\n"
      "  client_ca_file: tls/ca.crt\n"
      "  client_auth_type: RequireAndVerifyClientCert\n"
      "  min_version: TLS13\n"
      "  max_version: TLS13\n"
      "http_server_config:\n"
      "  http2: false\n"
      "  headers:\n"
      "    X-Frame-Options: deny\n"
      "    Content-Security-Policy:\n"
      "basic_auth_users:\n"
      "  prometheus: " + std::string(kHash) + "\n");
  EXPECT_TRUE(config.tls);
  EXPECT_EQ(config.files.certificate, "/etc/profd/server.crt");
  EXPECT_EQ(config.files.key, "/keys/server.key");
  EXPECT_EQ(config.files.client_ca, "/etc/profd/tls/ca.crt");
  EXPECT_EQ(config.client_auth, ClientAuth::kRequireAndVerify);
  EXPECT_EQ(config.min_version, TlsVersion::k13);
  EXPECT_THAT(config.users, ElementsAre(Pair("prometheus", std::string(kHash))));
  EXPECT_THAT(config.headers, ElementsAre(Pair("X-Frame-Options", "deny"),
                                          Pair("Content-Security-Policy", "")));
}

TEST(WebConfig, AllProblemsAtOnceWithTheirLines) {
  std::vector<std::string> problems = Problems(
      "tls_server_config:\n"
      "  cert_file: server.crt\n"
      "  cipher_suites: [TLS_AES_128_GCM_SHA256]\n"
      "  min_version: TLS10\n"
      "  client_auth_type: Sometimes\n"
      "basic_auth_users:\n"
      "  a: secret\n"
      "  \"b:c\": " + std::string(kHash) + "\n"
      "http_server_config:\n"
      "  headers:\n"
      "    X-Powered-By: profd\n"
      "rate_limit: {burst: 1}\n"
      "basic_auth: {}\n");
  std::string all;
  for (const std::string& problem : problems) all += problem + "\n";
  for (const char* part :
       {"/etc/profd/web.yml:3: cipher_suites is not supported", ":4: min_version = \"TLS10\" is too old",
        ":5: client_auth_type = \"Sometimes\"", "needs key_file", ":7: the password of \"a\"",
        ":8: a user's name", ":11: unknown key http_server_config.headers.X-Powered-By",
        ":12: rate_limit is not supported", ":13: unknown key basic_auth"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
  EXPECT_EQ(problems.size(), 9U) << all;
}

TEST(WebConfig, RefusesConfigurationsThatCannotWork) {
  const std::string files = "tls_server_config: {cert_file: c, key_file: k, ";
  EXPECT_EQ(Problems(files + "client_ca_file: a}").size(), 1U);
  EXPECT_EQ(Problems(files + "client_auth_type: RequireAndVerifyClientCert}").size(), 1U);
  EXPECT_EQ(Problems(files + "min_version: TLS13, max_version: TLS12}").size(), 1U);
  EXPECT_EQ(Problems(files + "cert_file: d}").size(), 1U);  // twice
  EXPECT_EQ(Problems("basic_auth_users: [a, b]").size(), 1U);
  EXPECT_EQ(Problems("basic_auth_users: {[a]: b}").size(), 1U);
  EXPECT_EQ(Problems("tls_server_config: {cert_file: [c], key_file: k}").size(), 2U);
  EXPECT_EQ(Problems("http_server_config: {http2: perhaps}").size(), 1U);
  EXPECT_EQ(Problems("http_server_config: {headers: {X-Frame-Options: \"a\\r\\nb\"}}").size(), 1U);
  EXPECT_EQ(Problems("just a text").size(), 1U);
}

TEST(WebConfig, BrokenYamlHasItsPlace) {
  EXPECT_THAT(Problems("a: b\n c: [d\n"), ElementsAre(HasSubstr("/etc/profd/web.yml:")));
  EXPECT_THAT(Problems(std::string(100'000, '[')), ElementsAre(HasSubstr("web.yml")));
  EXPECT_THAT(Problems(std::string(300'000, ' ')), ElementsAre(HasSubstr("larger than")));
}

TEST(WebConfig, DearHashesAreRefused) {
  std::string hash(kHash);
  hash.replace(4, 2, "15");
  EXPECT_THAT(Problems("basic_auth_users: {a: " + hash + "}"),
              ElementsAre(HasSubstr("has cost 15")));
}

TEST(WebConfig, MissingFileNamesTheKey) {
  std::vector<std::string> problems;
  TlsMaterial material;
  (void)ReadWebConfig("/nonexistent/web.yml", &material, &problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("metrics.web_config = \"/nonexistent/web.yml\"")));
}

}  // namespace
}  // namespace profd
