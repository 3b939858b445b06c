#include "daemon/push/push_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/rpc/tls_pem.h"

namespace profd {
namespace {

constexpr std::string_view kOtlpPath = "/v1/metrics";
constexpr std::string_view kOtlpHeaders =
    "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n";
constexpr std::string_view kRemoteWriteHeaders =
    "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n"
    "X-Prometheus-Remote-Write-Version: 0.1.0\r\n";
constexpr size_t kMaxHeaderLine = 8192;

bool IsNameOf(std::string_view text, std::string_view more) {
  return !text.empty() && !IsDigit(text.front()) &&
         std::ranges::all_of(text, [more](char c) { return IsLetterOrDigit(c) || more.find(c) != std::string_view::npos; });
}

void ReadLabels(const std::vector<std::string>& entries, PushLabels* labels,
                std::vector<std::string>* problems) {
  for (const std::string& entry : entries) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string name = entry.substr(0, equals);
    if (equals == entry.size() || equals + 1 == entry.size() || !IsNameOf(name, "_") ||
        name.starts_with("__")) {
      problems->push_back(fmt::format("push.labels: {} must be NAME=VALUE, as in \"cluster=a\"",
                                      log::Quote(entry)));
      continue;
    }
    if (std::ranges::any_of(*labels, [&](const auto& label) { return label.first == name; })) {
      problems->push_back(fmt::format("push.labels: {}: this name was given a value before", log::Quote(entry)));
      continue;
    }
    labels->emplace_back(name, entry.substr(equals + 1));
  }
}

// "Authorization: Bearer x", a line each; # begins a comment. As lines of a request.
std::string ReadHeaders(const std::string& path, std::vector<std::string>* problems) {
  if (path.empty()) return {};
  auto wrong = [&](std::string_view why) {
    problems->push_back(fmt::format("push.headers_file = \"{}\": {}", path, why));
    return std::string();
  };
  Result<std::string> text = ReadTrustedFile(path, true);
  if (!text.ok()) return wrong(text.status().message());
  std::string headers;
  int number = 0;
  std::string_view rest = *text;
  for (std::string_view line; NextLine(&rest, &line);) {
    ++number;
    line = Trim(line);
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = std::min(line.find(':'), line.size());
    // A value is never shown: it may be a password.
    const bool is_plain = std::ranges::all_of(line, [](char c) { return c >= ' ' && c < 0x7f; });
    if (colon == line.size() || !IsNameOf(line.substr(0, colon), "-_") || !is_plain ||
        line.size() > kMaxHeaderLine) {
      return wrong(fmt::format("line {} must be \"Name: value\"", number));
    }
    headers += fmt::format("{}\r\n", line);
  }
  return headers;
}

}  // namespace

PushConfig MakePushConfig(const DaemonConfig& config, std::vector<std::string>* problems) {
  PushConfig made;
  if (config.push_otlp_url.empty() && config.push_remote_write_url.empty()) return made;
  ReadLabels(config.push_labels, &made.labels, problems);
  const std::string own = ReadHeaders(config.push_headers_file, problems);
  const PushTls tls{config.push_ca, config.push_certificate, config.push_key};
  const auto add = [&](std::string_view name, std::string_view key, const std::string& text,
                       std::string_view headers) {
    if (text.empty()) return;
    Result<PushUrl> url = ParsePushUrl(text, key);
    if (!url.ok()) {
      problems->push_back(url.status().message());
      return;
    }
    PushSinkOptions sink{.name = name, .url = std::move(url).value()};
    if (name == kOtlpSink && sink.url.target == "/") sink.url.target = kOtlpPath;
    sink.headers = fmt::format("User-Agent: profd\r\n{}{}", headers, own);
    sink.tls = tls;
    sink.interval_ns = config.push_interval_s * kNsPerSecond;
    sink.timeout_ns = config.push_timeout_ms * kNsPerMs;
    sink.queue_bytes = static_cast<uint64_t>(config.push_queue_mb) << 20;
    made.sinks.push_back(std::move(sink));
  };
  add(kOtlpSink, "push.otlp_url", config.push_otlp_url, kOtlpHeaders);
  add(kRemoteWriteSink, "push.remote_write_url", config.push_remote_write_url, kRemoteWriteHeaders);
  const bool uses_tls = std::ranges::any_of(made.sinks, [](const PushSinkOptions& sink) { return sink.url.tls; });
  if (!uses_tls) return made;
  if (!tls.key.empty()) {
    if (Status key = ReadTrustedFile(tls.key, true).status(); !key.ok()) {
      problems->push_back(fmt::format("push.key = \"{}\": {}", tls.key, key.message()));
      return made;
    }
  }
  if (Status usable = HttpPoster::Check(tls); !usable.ok()) problems->push_back(usable.message());
  return made;
}

}  // namespace profd
