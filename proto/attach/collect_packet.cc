#include "proto/attach/collect_packet.h"

#include <limits>

#include "base/utf8.h"

namespace profd::attach {
namespace {

using nlohmann::json;

json KindWords(CollectKinds kinds) {
  json out = json::array();
  kinds.ForEach([&out](CollectKind kind) { out.push_back(WordOf(kind)); });
  return out;
}

// Other words are kinds of a later version, and left out.
void ReadKinds(PacketReader& in, const char* key, CollectKinds* kinds) {
  std::vector<std::string> words;
  in.Texts(key, kMaxCollectKinds, kMaxAttachNameBytes, &words);
  for (const std::string& word : words) {
    if (const auto kind = FromWord<CollectKind>(kCollectKindWords, word)) *kinds |= *kind;
  }
}

void ReadProvider(PacketReader& in, CollectProvider* provider) {
  std::string word(WordOf(*provider));
  in.Text("provider", kMaxAttachNameBytes, &word);
  *provider = FromWord<CollectProvider>(kCollectProviderWords, word).value_or(CollectProvider::kUnknown);
}

void ReadState(PacketReader& in, CollectState* state) {
  std::string word;
  in.Must().Text("state", kMaxAttachNameBytes, &word);
  const auto known = FromWord<CollectState>(kCollectStateWords, word);
  if (known) *state = *known;
  if (!known && in.ok()) in.Fail("state", "must be a state of collecting");
}

json ToJson(const AclprofRequest& m) {
  json out{{"bits", m.bits}, {"metrics", m.metrics}};
  if (!m.config.empty()) out["config"] = m.config;
  return out;
}

Status ReadAclprof(const json& object, AclprofRequest* m) {
  PacketReader in(object, "session.collect.aclprof");
  in.Must().Number("bits", uint64_t{1}, std::numeric_limits<uint64_t>::max(), &m->bits);
  in.Number("metrics", 0U, 0xFFU, &m->metrics);
  in.TextMap("config", kMaxAclprofItems, kMaxAttachNameBytes, kMaxAclprofValueBytes, &m->config);
  return in.status();
}

}  // namespace

json ToJson(const CollectorReport& m) {
  json out{{"type", "collector"}, {"session_id", m.session_id}, {"provider", WordOf(m.provider)}, {"state", WordOf(m.state)}};
  if (m.code != 0) out["code"] = m.code;
  // What the loader reports has a path in it, which may be long.
  const bool is_long = m.detail.size() > kMaxCollectorDetailBytes;
  const size_t kept = is_long ? BytesOfWholeCharacters(m.detail, kMaxCollectorDetailBytes) : m.detail.size();
  if (kept > 0) out["detail"] = m.detail.substr(0, kept);
  if (!m.kinds.empty()) out["kinds"] = KindWords(m.kinds);
  if (!m.left_out.empty()) out["left_out"] = KindWords(m.left_out);
  if (!m.version.empty()) out["version"] = m.version;
  if (m.has_ring) out["has_ring"] = true;
  if (m.has_files) out["has_files"] = true;
  return out;
}

void Read(PacketReader& in, CollectorReport* m) {
  in.Must().Text("session_id", kMaxAttachNameBytes, &m->session_id);
  ReadState(in, &m->state);
  ReadProvider(in, &m->provider);
  in.Number("code", std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), &m->code);
  in.Text("detail", kMaxCollectorDetailBytes, &m->detail);
  ReadKinds(in, "kinds", &m->kinds);
  ReadKinds(in, "left_out", &m->left_out);
  in.Text("version", kMaxAttachNameBytes, &m->version);
  in.Flag("has_ring", &m->has_ring);
  in.Flag("has_files", &m->has_files);
  if (in.ok() && m->has_files && m->state != CollectState::kFiles) in.Fail("has_files", "goes with state \"files\"");
  if (in.ok() && m->has_files && m->has_ring) in.Fail("has_files", "excludes has_ring");
}

json ToJson(const CollectRequest& m) {
  json out{{"kinds", KindWords(m.kinds)}, {"provider", WordOf(m.provider)}};
  if (m.flush_ms > 0) out["flush_ms"] = m.flush_ms;
  if (m.ring_bytes > 0) out["ring_bytes"] = m.ring_bytes;
  if (m.max_permille > 0) out["max_permille"] = m.max_permille;
  if (m.aclprof) out["aclprof"] = ToJson(*m.aclprof);
  return out;
}

Status ReadCollect(const json& object, CollectRequest* m) {
  PacketReader in(object, "session.collect");
  ReadKinds(in.Must(), "kinds", &m->kinds);
  ReadProvider(in, &m->provider);
  in.Number("flush_ms", 0U, std::numeric_limits<uint32_t>::max(), &m->flush_ms);
  in.Number("ring_bytes", uint64_t{0}, std::numeric_limits<uint64_t>::max(), &m->ring_bytes);
  in.Number("max_permille", 0U, 1000U, &m->max_permille);
  if (const json* aclprof = in.Object("aclprof")) {
    in.Adopt(ReadAclprof(*aclprof, &m->aclprof.emplace()));
  }
  return in.status();
}

}  // namespace profd::attach
