// What info.json has of the host, read from /proc and /sys.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "dump/control_files.h"
#include "dump/dump_io.h"

namespace profd {
namespace {

constexpr size_t kMaxProcFile = 4u << 20;
// Taken where the kernel names no speed (virtual machines).
constexpr int64_t kAssumedMbps = 10'000;

std::string ReadOr(const HostFactSources& sources, std::string_view path) {
  return sources.read(path).value_or("");
}

// "key<blanks>: value" of /proc/cpuinfo and /proc/meminfo.
bool SplitField(std::string_view line, std::string_view* key, std::string_view* value) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  *key = Trim(line.substr(0, colon));
  *value = Trim(line.substr(colon + 1));
  return true;
}

void ReadCpus(const HostFactSources& sources, NodeFacts* facts) {
  std::string text = ReadOr(sources, "/proc/cpuinfo");
  std::string_view rest = text;
  std::string_view line;
  std::map<int, HostCpu> sockets;
  std::set<std::pair<int, int>> cores;
  int socket = 0;
  int core = 0;
  std::string name;
  bool open = false;  // inside the block of one logical CPU
  auto end_block = [&] {
    if (!open) return;
    HostCpu& cpu = sockets[socket];
    cpu.id = socket;
    cpu.name = name;
    cpu.type = sources.machine;
    ++cpu.logical_cpus;
    ++facts->logical_cpus;
    cores.emplace(socket, core);
    open = false;
  };
  while (NextLine(&rest, &line)) {
    std::string_view key;
    std::string_view value;
    if (!SplitField(line, &key, &value)) continue;
    if (key == "processor") {
      end_block();
      open = true;
      socket = 0;
      core = facts->logical_cpus;  // arm64 names no cores: each logical CPU is one
    } else if (key == "physical id") {
      if (!ParseNumber(value, &socket)) socket = 0;
    } else if (key == "core id") {
      if (!ParseNumber(value, &core)) core = 0;
    } else if (key == "model name") {
      name = value;
    }
  }
  end_block();
  facts->cpu_cores = static_cast<int>(cores.size());
  for (auto& [id, cpu] : sockets) facts->cpus.push_back(std::move(cpu));
}

void ReadMemory(const HostFactSources& sources, NodeFacts* facts) {
  std::string text = ReadOr(sources, "/proc/meminfo");
  std::string_view rest = text;
  std::string_view line;
  while (NextLine(&rest, &line)) {
    std::string_view key;
    std::string_view value;
    if (!SplitField(line, &key, &value) || key != "MemTotal") continue;
    if (!ParseNumber(NextToken(&value), &facts->memory_total_kb)) facts->memory_total_kb = 0;
    return;
  }
}

void ReadNetCards(const HostFactSources& sources, NodeFacts* facts) {
  std::vector<NetCard> virtual_cards;
  for (const std::string& name : sources.list("/sys/class/net")) {
    if (name == "lo") continue;
    std::string dir = fmt::format("/sys/class/net/{}", name);
    int64_t speed = 0;
    std::string text = ReadOr(sources, dir + "/speed");
    if (!ParseNumber(Trim(text), &speed) || speed <= 0) speed = 0;
    bool hardware = !sources.list(dir + "/device").empty();
    if (speed == 0 && !hardware) {
      virtual_cards.push_back({name, kAssumedMbps});
      continue;
    }
    if (speed == 0) facts->net_speed_assumed = true;
    facts->net_cards.push_back({name, speed > 0 ? speed : kAssumedMbps});
  }
  if (facts->net_cards.empty() && !virtual_cards.empty()) {
    facts->net_cards = std::move(virtual_cards);
    facts->net_speed_assumed = true;
  }
}

}  // namespace

HostFactSources SystemFactSources(std::string proc, std::string sys) {
  auto map = [proc = std::move(proc), sys = std::move(sys)](std::string_view path) {
    return (path.starts_with("/proc") ? proc : sys) + std::string(path.substr(path.find('/', 1)));
  };
  HostFactSources sources;
  sources.read = [map](std::string_view path) -> Result<std::string> {
    UniqueFd fd(::open(map(path).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return Status::FromErrno(errno, path);
    return ReadWhole(fd.get(), kMaxProcFile);
  };
  sources.list = [map](std::string_view path) {
    UniqueFd dir(::open(map(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir.valid()) return std::vector<std::string>();
    std::vector<std::string> names = ListNames(dir.get()).value_or({});
    std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
    return names;
  };
  utsname name{};
  if (::uname(&name) == 0) sources.machine = name.machine;
  sources.clock_ticks_hz = ::sysconf(_SC_CLK_TCK);
  return sources;
}

NodeFacts CollectHostFacts(const HostFactSources& sources) {
  NodeFacts facts{.hostname = std::string(Trim(ReadOr(sources, "/proc/sys/kernel/hostname"))),
                  .machine = sources.machine,
                  .clock_ticks_hz = sources.clock_ticks_hz > 0 ? sources.clock_ticks_hz : 100};
  std::string type = ReadOr(sources, "/proc/sys/kernel/ostype");
  std::string release = ReadOr(sources, "/proc/sys/kernel/osrelease");
  facts.os = fmt::format("{}-{}", Trim(type), Trim(release));
  facts.uptime = Trim(ReadOr(sources, "/proc/uptime"));
  ReadCpus(sources, &facts);
  ReadMemory(sources, &facts);
  ReadNetCards(sources, &facts);
  return facts;
}

}  // namespace profd
