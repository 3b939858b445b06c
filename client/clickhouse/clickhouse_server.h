// ClickHouse over its HTTP interface. A connection per statement, none is kept; every wait ends at a deadline or when it is given
// up. A query is asked once more where the server ended the connection without an answer; rows are not sent again: it may have
// taken them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "analysis/store/server.h"
#include "client/clickhouse/url.h"
#include "client/endpoint.h"

namespace profd::client {

class ClickHouseServer : public analysis::StoreServer {
 public:
  static constexpr int kConnectSeconds = 10;
  static constexpr int kStatementSeconds = 600;
  static constexpr uint64_t kMaxAnswer = 512ULL << 20;
  // Statements that change tables run on this database, which need not exist yet.
  // `tls.ca`: authorities of its certificate (empty: the system's); `tls.certificate` and `key`: of the user, where it asks.
  ClickHouseServer(ClickHouseUrl url, TlsFiles tls, std::function<bool()> go_on);
  ~ClickHouseServer() override;

  Result<std::string> Send(std::string_view statement, std::string_view rows) override;
  Result<std::string> SendToCluster(std::string_view statement, int wait_s) override;
  const std::string& database() const override { return url_.database; }
  void Pause(int ms) override;

 private:
  struct Tls;
  Status PrepareTls();
  // `settings` of this statement, "&name=value"; `body`: the rest of it, or all. `tries`: where no answer begins.
  Result<std::string> Post(const std::string& settings, std::string_view body, int tries = 1);

  const ClickHouseUrl url_;
  const TlsFiles files_;
  const std::function<bool()> go_on_;  // asked about ten times a second
  std::unique_ptr<Tls> tls_;
};

// The server's own number of an error, 0 = not known: from the header X-ClickHouse-Exception-Code, which releases since
// 19 send (their text may be JSON), or else from the text of the answer.
int ServerErrorCode(std::string_view header, std::string_view body);
// What kind of an error that is; 0: of an answer that is not the server's own.
StatusCode StatusCodeOf(int server_code, int http_status);
// What is wrong in the words of the server, without its codes and stacks: of the text of an answer.
std::string ServerErrorText(std::string_view body);

}  // namespace profd::client
