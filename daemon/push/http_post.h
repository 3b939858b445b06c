// One HTTP/1.1 POST on a connection of its own, over TLS for https URLs. Every wait ends at the
// deadline, or when `wake` becomes readable; only the name's lookup takes as long as the resolver does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "daemon/push/push_url.h"

namespace profd {

// Files of TLS, all of them optional: authorities (empty = the system's), and a certificate with its key
// for receivers that ask for one.
struct PushTls {
  std::string ca;
  std::string certificate;
  std::string key;
};

// Answers of a receiver, in the words of the metric's label `reason`.
inline constexpr std::string_view kPushConnect = "connect";
inline constexpr std::string_view kPushTls = "tls";
inline constexpr std::string_view kPushTimeout = "timeout";
inline constexpr std::string_view kPushBroken = "broken";  // ended or answered no HTTP
inline constexpr std::string_view kPushStopped = "stopped";
inline constexpr std::string_view kPushAnswer = "answer";  // it was, with `status`

struct PostResult {
  std::string_view reason = {};
  int status = 0;
  int64_t retry_after_s = 0;  // as the receiver wants it; 0 = not set
  std::string detail = {};         // for people
  std::string protobuf = {};       // the answer's body, where it is of this type
};

class HttpPoster {
 public:
  explicit HttpPoster(PushTls tls);
  ~HttpPoster();

  // The files are read, and fit together.
  static Status Check(const PushTls& tls);

  // `headers`: lines that end with CRLF, beside Host, Content-Length and Connection.
  PostResult Post(const PushUrl& url, std::string_view headers, std::string_view body,
                  int64_t deadline_steady_ns, int wake);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
