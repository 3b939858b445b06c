// web.yml and its certificates as they are served with at one moment, and who notices that they have
// changed.
#pragma once

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/web/web_config.h"

namespace profd {

struct WebState {
  WebConfig config;
  int64_t expires_s = 0;  // the certificate, seconds since the epoch
  std::unique_ptr<boost::asio::ssl::context> tls;  // null: plain HTTP
};
using WebStatePtr = std::shared_ptr<const WebState>;

// Lives on the serving thread; the counters are for any.
class WebStateKeeper {
 public:
  // Every problem of web.yml is a line of the error; an empty path is plain HTTP without login.
  static Result<std::unique_ptr<WebStateKeeper>> Open(const std::string& path);

  const WebStatePtr& current() const { return state_; }
  // Looks at the files, at most once a second, and takes what changed. What is wrong is left alone
  // and, when it is still the same at the next look, counted and logged: files are replaced one
  // after the other.
  void Look(int64_t now_ns);

  std::atomic<uint64_t> reloads{0};
  std::atomic<uint64_t> errors{0};
  std::atomic<int64_t> expires_s{0};
  std::atomic<bool> tls{false};
  std::atomic<bool> authenticates{false};

 private:
  explicit WebStateKeeper(std::string path) : path_(std::move(path)) {}
  // Null when there are problems. Sets `*timestamp` to what the files were like before they were read.
  WebStatePtr Load(std::string* timestamp, std::vector<std::string>* problems);
  void Adopt(WebStatePtr state);

  std::string path_;
  TlsPaths named_;       // by web.yml when it was read last, good or not
  std::string timestamp_;    // of what is in use, or was refused and logged
  std::string doubted_;  // of what was wrong at the last look
  WebStatePtr state_;
  int64_t next_look_ns_ = 0;
};

}  // namespace profd
