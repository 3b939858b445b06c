// Where runs in ClickHouse are: clickhouse://[user[:password]@]host:port/database[/run], clickhouses:// over TLS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace profd::client {

struct ClickHouseUrl {
  bool tls = false;
  std::string user;
  std::string password;
  std::string host;
  uint16_t port = 0;
  std::string database;
  std::string run;  // empty: it names none

  // As messages show it, without the password.
  std::string Shown() const;
};

inline constexpr uint16_t kClickHousePort = 8123;
inline constexpr uint16_t kClickHouseTlsPort = 8443;
inline constexpr const char* kClickHouseUserVariable = "PROFCTL_CLICKHOUSE_USER";
inline constexpr const char* kClickHousePasswordVariable = "PROFCTL_CLICKHOUSE_PASSWORD";

bool IsClickHouseUrl(std::string_view text);
// User and password come from the variables where the URL has none.
Result<ClickHouseUrl> ParseClickHouseUrl(std::string_view text);
// A name that can be part of a statement as it is: letters, digits and '_'; of a database.
bool IsPlainName(std::string_view name);
// A name of a run: no control characters, UTF-8 or not, 1 to 200 bytes.
bool IsRunName(std::string_view name);
// A name of a cluster that can be quoted in a statement, or none.
bool IsClusterName(std::string_view name);

}  // namespace profd::client
