#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace profd::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void Setup(Level level, bool to_journal) {
  if (spdlog::get("profd") == nullptr) {
    spdlog::sink_ptr sink;
    if (to_journal) {
      sink = std::make_shared<spdlog::sinks::systemd_sink_mt>("profd");
    } else {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    }
    auto logger = std::make_shared<spdlog::logger>("profd", std::move(sink));
    if (!to_journal) logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  spdlog::default_logger_raw()->set_level(ToSpdlog(level));
  spdlog::default_logger_raw()->flush_on(spdlog::level::debug);
}

std::string Quote(std::string_view text) {
  bool plain = !text.empty();
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '=') plain = false;
  }
  if (plain) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

void Write(Level level, std::string_view event, std::span<const Field> fields) {
  auto logger = spdlog::default_logger_raw();
  if (!logger->should_log(ToSpdlog(level))) return;
  std::string line(event);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    line += Quote(field.value);
  }
  logger->log(ToSpdlog(level), "{}", line);
}

}  // namespace profd::log
