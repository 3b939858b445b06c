// One receiver of pushed metrics and the thread that feeds it: takes what /metrics would show at every
// interval, keeps it in a bounded queue and sends it in order, with deadlines. What fails is tried again
// with growing pauses; beyond the queue's bytes the oldest messages are dropped and counted. Nothing else
// in the daemon waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/push/http_post.h"
#include "daemon/push/push_messages.h"

namespace profd {

// Pauses between attempts: doubled from the first to the longest, unless the receiver wants a longer one.
inline constexpr int64_t kPushFirstPauseNs = 1'000'000'000;
inline constexpr int64_t kPushLongestPauseNs = 60'000'000'000;
inline constexpr int64_t kPushLongestWishNs = 300'000'000'000;

inline constexpr std::string_view kOtlpSink = "otlp";
inline constexpr std::string_view kRemoteWriteSink = "remote_write";

struct PushSinkOptions {
  std::string_view name = {};  // kOtlpSink or kRemoteWriteSink; the label of metrics
  PushUrl url = {};
  std::string headers = {};    // as HttpPoster wants them
  PushTls tls = {};
  int64_t interval_ns = 0;
  int64_t timeout_ns = 0;
  uint64_t queue_bytes = 0;
  int64_t first_pause_ns = kPushFirstPauseNs;
};

struct PushStats {
  uint64_t messages = 0;      // taken by the receiver, perhaps without some of their samples
  uint64_t samples = 0;
  uint64_t queued_bytes = 0;
  int64_t last_success_s = 0;  // since the epoch; 0 = never
  std::map<std::string, uint64_t, std::less<>> failures;         // attempts, by reason
  std::map<std::string, uint64_t, std::less<>> dropped_samples;  // by reason: queue_full, rejected, not_packed
};

// Whether a message may be sent again after this answer, by the sink's protocol. Others are dropped: they would never
// be taken. Remote write 1.0 retries all of 5xx, OTLP/HTTP those that a gateway answers.
bool PushMayRetry(std::string_view sink, const PostResult& result);

class PushSink {
 public:
  // `take` makes the messages of now; on the sink's thread, never after Stop.
  using Take = std::function<std::vector<PushMessage>()>;
  PushSink(PushSinkOptions options, Take take);
  // Ends the thread. One that hangs in the resolver is left alone.
  ~PushSink();

  void Start();
  PushStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace profd
