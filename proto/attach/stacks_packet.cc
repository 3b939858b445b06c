#include "proto/attach/stacks_packet.h"

#include <limits>
#include <utility>

namespace profd::attach {
namespace {

using nlohmann::json;

// ["f.py", "main", 12]
Status ReadFrame(const json& item, StacksReport::Frame* m) {
  const auto text = [](const json& value) { return value.is_string() && value.get_ref<const std::string&>().size() <= kMaxStackNameBytes; };
  if (!item.is_array() || item.size() != 3 || !text(item[0]) || !text(item[1]) || !IntegerWithin(item[2], 0, std::numeric_limits<int>::max(), &m->line)) {
    return InvalidArgument("stacks: a frame is [file, function, line]");
  }
  m->file = item[0].get<std::string>();
  m->function = item[1].get<std::string>();
  return Status::Ok();
}

Status ReadStackThread(const json& item, StacksReport::Thread* m) {
  if (!item.is_object()) return InvalidArgument("stacks: threads must be a list of objects");
  PacketReader in(item, "stacks.threads");
  in.Must().Number("thread", 0, std::numeric_limits<int>::max(), &m->thread);
  in.Text("name", kMaxStackNameBytes, &m->name);
  in.Flag("trains", &m->trains);
  if (const json* frames = in.Array("frames", kMaxStackFrames)) {
    for (const json& frame : *frames) in.Adopt(ReadFrame(frame, &m->frames.emplace_back()));
  }
  return in.status();
}

}  // namespace

void Read(PacketReader& in, StacksReport* m) {
  in.Must().Number("seq", uint64_t{1}, std::numeric_limits<uint64_t>::max(), &m->seq);
  in.Flag("has_python", &m->has_python);
  in.Flag("left_out", &m->left_out);
  if (const json* threads = in.Array("threads", kMaxStackThreads)) {
    for (const json& thread : *threads) in.Adopt(ReadStackThread(thread, &m->threads.emplace_back()));
  }
}

nlohmann::json ToJson(const StacksReport& m) {
  json out{{"type", "stacks"}, {"seq", m.seq}, {"has_python", m.has_python}};
  if (m.left_out) out["left_out"] = true;
  for (const StacksReport::Thread& thread : m.threads) {
    json frames = json::array();
    for (const StacksReport::Frame& frame : thread.frames) frames.push_back({frame.file, frame.function, frame.line});
    json& one = out["threads"].emplace_back(json{{"thread", thread.thread}, {"frames", std::move(frames)}});
    if (!thread.name.empty()) one["name"] = thread.name;
    if (thread.trains) one["trains"] = true;
  }
  return out;
}

Result<std::vector<StacksReport::Thread>> ParseStackThreads(std::string_view json_untrusted) {
  const json object{{"threads", json::parse(json_untrusted.begin(), json_untrusted.end(), nullptr, /*allow_exceptions=*/false)},
                    {"seq", 1}};
  PacketReader in(object, "stacks");
  StacksReport report;
  Read(in, &report);
  if (!in.ok()) return in.status();
  return std::move(report.threads);
}

}  // namespace profd::attach
