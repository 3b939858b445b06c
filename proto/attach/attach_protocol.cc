#include "proto/attach/attach_protocol.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "proto/attach/collect_packet.h"
#include "proto/attach/packet_json.h"
#include "proto/attach/stacks_packet.h"

namespace profd::attach {
namespace {

using nlohmann::json;

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxStep = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMaxCount = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxSwitches = 64;
constexpr size_t kMaxOptionsServed = 128;
constexpr size_t kMaxOptionValueBytes = 4096;
constexpr size_t kMaxOutcomes = 4096;
constexpr size_t kMaxWarnings = 1024;
// What is left of a text that made a packet too large; even if all of it needs six bytes a
// character, three of them fit.
constexpr size_t kKeptTextBytes = 6 * 1024;

template <class T>
void PutIfSet(json& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}
// Empty strings, lists and maps are omitted: that is what they are when missing.
template <class T>
void PutUnlessEmpty(json& out, const char* key, const T& value) {
  if (!value.empty()) out[key] = value;
}

std::string Dump(const json& object) {
  // A text that is not UTF-8 must not throw: what is wrong in it becomes U+FFFD.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

json ToJson(const Hello& m) {
  json out{{"type", "hello"}, {"version", m.version}};
  PutUnlessEmpty(out, "library", m.made_by);
  PutUnlessEmpty(out, "job_id", m.job_id);
  PutIfSet(out, "rank", m.rank);
  PutIfSet(out, "local_rank", m.local_rank);
  PutIfSet(out, "world_size", m.world_size);
  PutUnlessEmpty(out, "devices", m.devices);
  PutUnlessEmpty(out, "framework", m.framework);
  PutUnlessEmpty(out, "options_json", m.options_json);
  PutUnlessEmpty(out, "metadata", m.metadata);
  out["has_ring"] = m.has_ring;
  if (m.answers_stacks) out["answers_stacks"] = true;
  return out;
}

json ToJson(const StartCall& m) {
  json out{{"type", "start"}, {"seq", m.seq}};
  PutUnlessEmpty(out, "options_json", m.options_json);
  PutUnlessEmpty(out, "acl_switches", m.acl_switches);
  PutUnlessEmpty(out, "label", m.label);
  if (m.duration_ms > 0) out["duration_ms"] = m.duration_ms;
  PutIfSet(out, "start_step", m.start_step);
  if (m.steps > 0) out["steps"] = m.steps;
  if (m.no_dump) out["no_dump"] = true;
  if (m.best_effort) out["best_effort"] = true;
  PutUnlessEmpty(out, "collectors", m.collectors);
  return out;
}

json SessionCall(const char* type, uint64_t seq, const std::string& session_id) {
  json out{{"type", type}, {"seq", seq}};
  PutUnlessEmpty(out, "session_id", session_id);
  return out;
}
json ToJson(const StopCall& m) { return SessionCall("stop", m.seq, m.session_id); }
json ToJson(const StatusCall& m) { return SessionCall("status", m.seq, m.session_id); }

json ToJson(const MetadataCall& m) {
  return json{{"type", "metadata"}, {"key", m.key}, {"value", m.value}};
}
json ToJson(const StepReport& m) {
  return json{{"type", "step"}, {"session_id", m.session_id}, {"step", m.step}, {"begin", m.begin}};
}
json ToJson(const Bye&) { return json{{"type", "bye"}}; }

json ToJson(const Welcome& m) {
  json out{{"type", "welcome"}, {"version", m.version}, {"attach_id", m.attach_id}};
  PutUnlessEmpty(out, "daemon", m.daemon);
  PutUnlessEmpty(out, "job_id", m.job_id);
  PutIfSet(out, "rank", m.rank);
  PutUnlessEmpty(out, "devices", m.devices);
  if (m.takes_collector) out["takes_collector"] = true;
  return out;
}

json ToJson(const Refused& m) {
  return json{{"type", "refused"}, {"code", m.code}, {"message", m.message}};
}

json ToJson(const SessionSummary::Outcome& m) {
  json out{{"collector", m.collector}, {"result", m.result}};
  PutUnlessEmpty(out, "detail", m.detail);
  if (m.device >= 0) out["device"] = m.device;
  if (m.hz > 0) out["hz"] = m.hz;
  if (m.records > 0) out["records"] = m.records;
  return out;
}

json ToJson(const SessionSummary& m) {
  json out{
      {"session_id", m.session_id},           {"state", m.state},           {"records", m.records},
      {"dropped_records", m.dropped_records}, {"dump_bytes", m.dump_bytes}, {"marks", m.marks},
      {"dropped_marks", m.dropped_marks}};
  PutUnlessEmpty(out, "reason", m.reason);
  PutUnlessEmpty(out, "dump_path", m.dump_path);
  PutUnlessEmpty(out, "warnings", m.warnings);
  PutUnlessEmpty(out, "effective_options", m.effective_options);
  for (const SessionSummary::Outcome& outcome : m.outcomes) {
    out["outcomes"].push_back(ToJson(outcome));
  }
  return out;
}

json ToJson(const Reply& m) {
  json out{{"type", "reply"}, {"seq", m.seq}, {"code", m.code}};
  PutUnlessEmpty(out, "message", m.message);
  if (m.session) out["session"] = ToJson(*m.session);
  return out;
}

json ToJson(const FilesTaken& m) {
  json out{{"type", "files_taken"}, {"session_id", m.session_id}, {"code", m.code}};
  PutUnlessEmpty(out, "message", m.message);
  return out;
}

json ToJson(const StacksCall& m) { return json{{"type", "stacks"}, {"seq", m.seq}}; }

json ToJson(const SessionNotice& m) {
  json out{{"type", "session"}, {"session_id", m.session_id}, {"state", m.state}};
  PutIfSet(out, "start_step", m.start_step);
  if (m.steps > 0) out["steps"] = m.steps;
  PutUnlessEmpty(out, "options", m.options);
  if (m.collect) out["collect"] = ToJson(*m.collect);
  if (!m.marks) out["marks"] = false;
  return out;
}

// Cut at a character boundary.
void Shorten(std::string* text, size_t max_bytes) {
  if (text->size() > max_bytes) text->resize(BytesOfWholeCharacters(*text, max_bytes));
}

// What a reply must keep is small; the rest is cut, beginning with what can be requested elsewhere.
std::string EncodeToFit(Reply reply) {
  const char* const kCut = "this reply was too long and was shortened; the session's status over gRPC is complete";
  if (reply.session) {
    SessionSummary& session = *reply.session;
    session.warnings.resize(std::min<size_t>(session.warnings.size(), 16));
    for (std::string& warning : session.warnings) Shorten(&warning, 512);
    session.warnings.emplace_back(kCut);
    for (auto& outcome : session.outcomes) Shorten(&outcome.detail, 256);
    Shorten(&session.reason, kKeptTextBytes);
    Shorten(&session.dump_path, kKeptTextBytes);
  }
  Shorten(&reply.message, kKeptTextBytes);
  std::string packet = Dump(ToJson(reply));
  if (packet.size() > kMaxPacket && reply.session) {
    reply.session->outcomes.clear();
    packet = Dump(ToJson(reply));
  }
  if (packet.size() > kMaxPacket && reply.session) {
    reply.session->effective_options.clear();
    packet = Dump(ToJson(reply));
  }
  return packet;
}

void Read(PacketReader& in, Hello* m) {
  in.Must().Number("version", 1, kMaxInt, &m->version);
  in.Text("library", kMaxAttachNameBytes, &m->made_by);
  in.Text("job_id", kMaxAttachNameBytes, &m->job_id);
  in.Number("rank", 0, kMaxInt, &m->rank);
  in.Number("local_rank", 0, kMaxInt, &m->local_rank);
  in.Number("world_size", 1, kMaxInt, &m->world_size);
  in.Numbers("devices", kMaxAttachDevices, &m->devices);
  in.Text("framework", kMaxAttachNameBytes, &m->framework);
  in.Text("options_json", kMaxOptionsBytes, &m->options_json);
  in.TextMap("metadata", kMaxMetadataKeys, kMaxMetadataKeyBytes, kMaxMetadataValueBytes,
             &m->metadata);
  in.Flag("has_ring", &m->has_ring);
  in.Flag("answers_stacks", &m->answers_stacks);
}

void ReadSeq(PacketReader& in, uint64_t* seq) {
  in.Must().Number("seq", uint64_t{1}, kMaxCount, seq);
}

void Read(PacketReader& in, StartCall* m) {
  ReadSeq(in, &m->seq);
  in.Text("options_json", kMaxOptionsBytes, &m->options_json);
  in.TextMap("acl_switches", kMaxSwitches, kMaxAttachNameBytes, kMaxOptionValueBytes,
             &m->acl_switches);
  in.Text("label", kMaxAttachNameBytes, &m->label);
  in.Number("duration_ms", uint64_t{0}, kMaxCount, &m->duration_ms);
  in.Number("start_step", int64_t{0}, kMaxStep, &m->start_step);
  in.Number("steps", 0U, std::numeric_limits<uint32_t>::max(), &m->steps);
  in.Flag("no_dump", &m->no_dump);
  in.Flag("best_effort", &m->best_effort);
  in.Texts("collectors", kMaxAttachCollectors, kMaxAttachNameBytes, &m->collectors);
}

template <class Call>
void ReadSessionCall(PacketReader& in, Call* m) {
  ReadSeq(in, &m->seq);
  in.Text("session_id", kMaxAttachNameBytes, &m->session_id);
}
void Read(PacketReader& in, StopCall* m) { ReadSessionCall(in, m); }
void Read(PacketReader& in, StatusCall* m) { ReadSessionCall(in, m); }

void Read(PacketReader& in, MetadataCall* m) {
  in.Must().Text("key", kMaxMetadataKeyBytes, &m->key);
  in.Text("value", kMaxMetadataValueBytes, &m->value);
  if (in.ok() && m->key.empty()) in.Fail("key", "is empty");
}

void Read(PacketReader& in, StepReport* m) {
  in.Must().Text("session_id", kMaxAttachNameBytes, &m->session_id);
  in.Must().Number("step", std::numeric_limits<int64_t>::min(), kMaxStep, &m->step);
  in.Must().Flag("begin", &m->begin);
}

void Read(PacketReader& in, Welcome* m) {
  in.Must().Number("version", 1, kMaxInt, &m->version);
  in.Text("daemon", kMaxAttachNameBytes, &m->daemon);
  in.Must().Number("attach_id", uint64_t{1}, kMaxCount, &m->attach_id);
  in.Text("job_id", kMaxAttachNameBytes, &m->job_id);
  in.Number("rank", 0, kMaxInt, &m->rank);
  in.Numbers("devices", kMaxAttachDevices, &m->devices);
  in.Flag("takes_collector", &m->takes_collector);
}

void Read(PacketReader& in, Refused* m) {
  in.Must().Number("code", 1, 255, &m->code);
  in.Text("message", kMaxPacket, &m->message);
}

Status ReadOutcome(const json& item, SessionSummary::Outcome* m) {
  if (!item.is_object()) return InvalidArgument("reply: outcomes must be a list of objects");
  PacketReader in(item, "reply.session.outcomes");
  in.Text("collector", kMaxAttachNameBytes, &m->collector);
  in.Text("result", kMaxAttachNameBytes, &m->result);
  in.Text("detail", kMaxPacket, &m->detail);
  in.Number("device", -1, kMaxInt, &m->device);
  in.Real("hz", &m->hz);
  in.Number("records", uint64_t{0}, kMaxCount, &m->records);
  return in.status();
}

Status ReadSummary(const json& object, SessionSummary* m) {
  PacketReader in(object, "reply.session");
  in.Text("session_id", kMaxAttachNameBytes, &m->session_id);
  in.Text("state", kMaxAttachNameBytes, &m->state);
  in.Text("reason", kMaxPacket, &m->reason);
  in.Text("dump_path", kMaxPacket, &m->dump_path);
  in.Number("records", uint64_t{0}, kMaxCount, &m->records);
  in.Number("dropped_records", uint64_t{0}, kMaxCount, &m->dropped_records);
  in.Number("dump_bytes", uint64_t{0}, kMaxCount, &m->dump_bytes);
  in.Number("marks", uint64_t{0}, kMaxCount, &m->marks);
  in.Number("dropped_marks", uint64_t{0}, kMaxCount, &m->dropped_marks);
  in.Texts("warnings", kMaxWarnings, kMaxPacket, &m->warnings);
  in.TextMap("effective_options", kMaxOptionsServed, kMaxAttachNameBytes, kMaxOptionsBytes,
             &m->effective_options);
  if (const json* outcomes = in.Array("outcomes", kMaxOutcomes)) {
    for (const json& item : *outcomes) in.Adopt(ReadOutcome(item, &m->outcomes.emplace_back()));
  }
  return in.status();
}

void Read(PacketReader& in, Reply* m) {
  in.Must().Number("seq", uint64_t{0}, kMaxCount, &m->seq);
  in.Must().Number("code", 0, 255, &m->code);
  in.Text("message", kMaxPacket, &m->message);
  if (const json* session = in.Object("session")) {
    in.Adopt(ReadSummary(*session, &m->session.emplace()));
  }
}

void Read(PacketReader& in, FilesTaken* m) {
  in.Must().Text("session_id", kMaxAttachNameBytes, &m->session_id);
  in.Number("code", 0, 255, &m->code);
  in.Text("message", kMaxPacket, &m->message);
}

void Read(PacketReader& in, StacksCall* m) { ReadSeq(in, &m->seq); }

void Read(PacketReader& in, SessionNotice* m) {
  in.Must().Text("session_id", kMaxAttachNameBytes, &m->session_id);
  in.Must().Text("state", kMaxAttachNameBytes, &m->state);
  in.Number("start_step", int64_t{0}, kMaxStep, &m->start_step);
  in.Number("steps", 0U, std::numeric_limits<uint32_t>::max(), &m->steps);
  in.TextMap("options", kMaxOptionsServed, kMaxAttachNameBytes, kMaxOptionsBytes, &m->options);
  if (const json* collect = in.Object("collect")) {
    in.Adopt(ReadCollect(*collect, &m->collect.emplace()));
  }
  in.Flag("marks", &m->marks);
  if (in.ok() && m->session_id.empty()) in.Fail("session_id", "is empty");
}

template <class Message, class Any>
Result<Any> ReadAs(const json& object, const std::string& type) {
  PacketReader in(object, type);
  Any message{std::in_place_type<Message>};
  Read(in, &std::get<Message>(message));
  if (!in.ok()) return in.status();
  return message;
}

// The object and its type.
Result<std::pair<json, std::string>> Open(std::string_view packet) {
  if (packet.size() > kMaxPacket) {
    return InvalidArgument("a packet has at most " + std::to_string(kMaxPacket) + " bytes");
  }
  json object = json::parse(packet.begin(), packet.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return InvalidArgument("a packet is one JSON object");
  PacketReader in(object, "packet");
  std::string type;
  in.Must().Text("type", 32, &type);
  if (!in.ok()) return in.status();
  return std::pair(std::move(object), std::move(type));
}

}  // namespace

std::string Encode(const ToDaemon& message) {
  return std::visit([](const auto& m) { return Dump(ToJson(m)); }, message);
}

std::string Encode(const ToProcess& message) {
  std::string packet = std::visit([](const auto& m) { return Dump(ToJson(m)); }, message);
  if (packet.size() <= kMaxPacket) return packet;
  if (const auto* reply = std::get_if<Reply>(&message)) return EncodeToFit(*reply);
  ToProcess shorter = message;
  if (auto* refused = std::get_if<Refused>(&shorter)) Shorten(&refused->message, kKeptTextBytes);
  if (auto* notice = std::get_if<SessionNotice>(&shorter)) notice->options.clear();
  if (auto* taken = std::get_if<FilesTaken>(&shorter)) Shorten(&taken->message, kKeptTextBytes);
  return std::visit([](const auto& m) { return Dump(ToJson(m)); }, shorter);
}

std::string EncodeSummary(const SessionSummary& session) { return Dump(ToJson(session)); }

Result<ToDaemon> ParseToDaemon(std::string_view packet_untrusted) {
  auto opened = Open(packet_untrusted);
  if (!opened.ok()) return opened.status();
  const auto& [object, type] = *opened;
  if (type == "hello") return ReadAs<Hello, ToDaemon>(object, type);
  if (type == "start") return ReadAs<StartCall, ToDaemon>(object, type);
  if (type == "stop") return ReadAs<StopCall, ToDaemon>(object, type);
  if (type == "status") return ReadAs<StatusCall, ToDaemon>(object, type);
  if (type == "metadata") return ReadAs<MetadataCall, ToDaemon>(object, type);
  if (type == "step") return ReadAs<StepReport, ToDaemon>(object, type);
  if (type == "collector") return ReadAs<CollectorReport, ToDaemon>(object, type);
  if (type == "stacks") return ReadAs<StacksReport, ToDaemon>(object, type);
  if (type == "bye") return ToDaemon(Bye{});
  return InvalidArgument("packet: unknown type \"" + type + "\"");
}

Result<ToProcess> ParseToProcess(std::string_view packet_untrusted) {
  auto opened = Open(packet_untrusted);
  if (!opened.ok()) return opened.status();
  const auto& [object, type] = *opened;
  if (type == "welcome") return ReadAs<Welcome, ToProcess>(object, type);
  if (type == "refused") return ReadAs<Refused, ToProcess>(object, type);
  if (type == "reply") return ReadAs<Reply, ToProcess>(object, type);
  if (type == "session") return ReadAs<SessionNotice, ToProcess>(object, type);
  if (type == "files_taken") return ReadAs<FilesTaken, ToProcess>(object, type);
  if (type == "stacks") return ReadAs<StacksCall, ToProcess>(object, type);
  return InvalidArgument("packet: unknown type \"" + type + "\"");
}

}  // namespace profd::attach
