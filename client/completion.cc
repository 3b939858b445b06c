// `profctl completion SHELL` prints a script that calls `profctl __complete WORD...` for what may follow on the
// command line being typed. The answers come from the application's own commands and flags, from the
// option tables, and from the daemon the line names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "client/cli_app.h"
#include "client/commands/analyze.h"
#include "client/selftest/selftest.h"
#include "export/engine.h"
#include "proto/options/options.h"
#include "proto/options/presets.h"

namespace profd::client {
namespace {

using WordList = std::vector<std::string>;

// The answer for which the shell completes file names.
constexpr const char* kFiles = "<files>";

constexpr std::string_view kBash = R"sh(# bash completion for profctl; printed by "profctl completion bash".
_profctl() {
  mapfile -t COMPREPLY < <(profctl __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ "${COMPREPLY[0]}" == "<files>" ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
  fi
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
}
complete -F _profctl profctl
)sh";

constexpr std::string_view kZsh = R"sh(#compdef profctl
# zsh completion for profctl; printed by "profctl completion zsh".
_profctl() {
  local -a found
  found=(${(f)"$(profctl __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if [[ "$found[1]" == "<files>" ]]; then
    _files
  else
    compadd -- "${(@)found%%$'\t'*}"
  fi
}
if [[ "$funcstack[1]" == _profctl ]]; then
  _profctl "$@"
else
  compdef _profctl profctl
fi
)sh";

constexpr std::string_view kFish = R"sh(# fish completion for profctl; printed by "profctl completion fish".
function __profctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found (profctl __complete $words[2..-1] "$current" 2>/dev/null)
    if test "$found" = "<files>"
        __fish_complete_path "$current"
    else
        printf '%s\n' $found
    end
end
complete -c profctl -f -a '(__profctl_complete)'
)sh";

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

// With what it does, which fish shows.
std::string Described(std::string_view word, std::string_view description) {
  return fmt::format("{}\t{}", word, description.substr(0, description.find('\n')));
}

// `outer`: `app` is around the command of the line, which has its own --help, and no version.
void AddFlags(const CLI::App& app, bool outer, WordList* words) {
  for (const CLI::Option* option : app.get_options()) {
    if (outer && (option == app.get_help_ptr() || option->check_lname("version"))) continue;
    for (const std::string& name : option->get_lnames()) {
      words->push_back(Described("--" + name, option->get_description()));
    }
  }
}

template <typename Items, typename Name>
WordList NamesOf(const Items& items, Name name) {
  WordList words;
  for (const auto& item : items) words.emplace_back(name(item));
  return words;
}

WordList Split(std::string_view text, char separator) {
  WordList words;
  for (std::string_view word; NextPart(&text, separator, &word);) words.emplace_back(word);
  return words;
}

WordList FormatNames() {
  return NamesOf(exporting::FormatNames(), [](std::string_view name) { return name; });
}

// The values of profiling options; none of one that takes no words.
WordList OptionValues(std::string key) {
  std::ranges::replace(key, '-', '_');
  const options::Option* option = options::Find(key);
  if (option == nullptr) return {};
  WordList words = Split(option->choices, ',');
  if (option->type == options::Type::kList) words.emplace_back(option->choices);
  return words;
}

// What can be typed as the value of `--name`, without asking the daemon.
WordList ValuesOf(const std::string& name, const std::string& type, std::string_view command) {
  if (type == "PATH" || type == "DIR" || type == "FILE" || type == "JSON") return {kFiles};
  if (type.find('|') != std::string::npos) return Split(type, '|');
  if (name == "export") return FormatNames();
  if (name == "only" && command == "selftest") {
    return NamesOf(selftest::Questions(), [](const selftest::Question& question) { return question.id; });
  }
  if (name == "only") return AnalysisNames();
  if (name == "baseline" || type == "RUN") return {kFiles};
  if (name == "format" && command == "advise") return {"text", "json", "sarif"};
  if (name == "format") return command == "export" ? FormatNames() : WordList{"text", "json", "csv"};
  if (name == "fail-on") return {"high", "medium", "low"};
  if (name == "language") return {"en", "zh"};
  if (name == "provider") return {"auto", "mspti", "aclprof", "off"};
  if (name == "clock") return {"all", "start"};
  if (name == "names") return {"legacy"};
  if (name == "compat") return {"msprof"};
  if (name == "sort") return Split("id util hbm power temp freq hccs roce pcie bw hbm-temp", ' ');
  if (name == "chip") return NamesOf(options::ChipNames(), [](std::string_view chip) { return chip; });
  if (name == "preset") {
    return NamesOf(options::Presets(), [](const options::Preset& preset) { return preset.name; });
  }
  if (name == "channels") {
    WordList words = NamesOf(exporting::Tables(), [](const auto& table) { return table.name; });
    words.emplace_back(exporting::kEventsChannel);
    return words;
  }
  if (name == "acl") {
    return NamesOf(options::AclSwitches(),
                   [](const options::AclSwitch& known) { return fmt::format("{}=", known.name); });
  }
  return OptionValues(name);
}

// The line before the word that is being typed.
struct Line {
  const CLI::App* command;            // the application itself before a command's name
  const CLI::Option* flag = nullptr;  // whose value is being typed
  WordList connect = {};                 // where profd is, as flags
  bool own_command = false;           // a command of the user's own has begun
};

const CLI::Option* FindFlag(const CLI::App* command, const std::string& word) {
  const CLI::Option* option = nullptr;
  for (; command != nullptr && option == nullptr; command = command->get_parent()) {
    option = command->get_option_no_throw(word);
  }
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

Line Read(const CLI::App& app, const WordList& words) {
  Line line{&app};
  for (size_t i = 0; i + 1 < words.size() && !line.own_command; ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) {
      const auto commands = Commands(*line.command);
      const auto found = std::ranges::find(commands, word, [](const CLI::App* one) { return one->get_name(); });
      if (found != commands.end()) {
        line.command = *found;
      } else {
        line.own_command = line.command->get_name() == "run";
      }
      continue;
    }
    line.own_command = word == "--";
    const size_t equals = word.find('=');
    const CLI::Option* flag = FindFlag(line.command, word.substr(0, equals));
    if (flag == nullptr) continue;
    if (equals == std::string::npos && ++i + 1 == words.size()) {
      line.flag = flag;
    } else if (const std::string name = flag->get_name(); name == "--socket" || name == "--address" ||
                                                          name.starts_with("--tls-")) {
      line.connect.push_back(equals == std::string::npos ? fmt::format("{}={}", name, words[i]) : word);
    }
  }
  return line;
}

// A word that bash makes of the signs between two others (COMP_WORDBREAKS).
bool IsSplit(std::string_view word) { return !word.empty() && word.find_first_not_of("=:") == std::string_view::npos; }

// What the daemon has of it; nothing when it does not answer.
WordList AskIds(ProfdApi& api, bool active) {
  v1::ListSessionsRequest request;
  request.set_active_only(active);
  const auto list = api.ListSessions(request);
  if (!list.ok()) return {};
  return NamesOf(list->sessions(), [](const v1::Session& session) { return session.session_id(); });
}

WordList AskDumps(ProfdApi& api) {
  const auto list = api.ListDumps();
  if (!list.ok()) return {};
  return NamesOf(list->dumps(), [](const v1::Dump& dump) { return dump.name(); });
}

WordList AskJobs(ProfdApi& api) {
  const auto list = api.ListJobs({});
  if (!list.ok()) return {};
  return NamesOf(list->jobs(), [](const v1::Job& job) { return job.job_id(); });
}

WordList AskNode(ProfdApi& api, bool devices) {
  const auto node = api.GetNode();
  if (!node.ok()) return {};
  if (devices) {
    return NamesOf(node->devices(), [](const v1::Device& device) { return std::to_string(device.id()); });
  }
  return NamesOf(node->collectors(), [](const v1::CollectorInfo& one) { return one.name(); });
}

// Only names that are safe unquoted.
WordList Ask(const Line& line, const ConnectForCompletion& connect, std::string_view what) {
  const std::unique_ptr<ProfdApi> api = connect(line.connect);
  if (api == nullptr) return {};
  const std::string& command = line.command->get_name();
  WordList names = what == "ID"    ? AskIds(*api, command == "stop" || command == "watch")
                : what == "job" ? AskJobs(*api)
                : what == "DUMPS" ? AskDumps(*api)
                                : AskNode(*api, what == "devices");
  std::erase_if(names, [](const std::string& name) {
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-") !=
           std::string::npos;
  });
  return names;
}

WordList Candidates(const Line& line, const CLI::App& app, const std::string& current,
                 const ConnectForCompletion& connect) {
  if (line.own_command) return {kFiles};
  const CLI::App& command = *line.command;
  if (line.flag != nullptr) {
    const std::string name = line.flag->get_lnames().front();
    if (name == "job" || name == "devices" || name == "collector" || name == "collectors") {
      return Ask(line, connect, name);
    }
    return ValuesOf(name, line.flag->get_type_name(), command.get_name());
  }
  // Its arguments are those of another program, profctl-tls-init.
  if (command.get_name() == "init") {
    return current.starts_with('-') ? Split("--help --hosts --users --admin --viewer --days --force --json", ' ') : WordList{kFiles};
  }
  WordList words;
  for (const CLI::Option* argument : command.get_options()) {
    if (!argument->get_positional() || current.starts_with('-')) continue;
    const std::string name = argument->get_single_name();
    if (name == "SHELL") words = {"bash", "zsh", "fish"};
    if (name == "DUMP" || name == "DIR" || name == "FILE" || name == "RUN" || name == "RESULT" || (command.get_name() == "show" && (current.find('/') != std::string::npos || current.starts_with("P")))) {
      return {kFiles};
    }
    // Ids come first: flags are offered once a dash is typed.
    // Dumps have ids as well: their names are offered to those who begin to type one.
    const std::string& of = command.get_name();
    const bool takes_dumps = of == "rm" || of == "pin" || of == "unpin" || of == "fetch";
    if (name == "ID") return Ask(line, connect, takes_dumps && current.starts_with("P") ? "DUMPS" : name);
  }
  for (const CLI::App* part : Commands(command)) {
    if (!current.starts_with('-')) words.push_back(Described(part->get_name(), part->get_description()));
  }
  if (&command == &app && !current.starts_with('-')) return words;
  // Of the commands around it only profctl itself: flags of `tune` mean nothing to `tune release`.
  AddFlags(command, false, &words);
  if (&command != &app) AddFlags(app, true, &words);
  return words;
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  return std::string(shell == "fish" ? kFish : shell == "zsh" ? kZsh : kBash);
}

std::string Completions(const CLI::App& app, const WordList& typed, const ConnectForCompletion& connect) {
  // bash gives "--flag=value" and "host:port" as three words, and completes the last one.
  WordList words;
  bool joins = false;
  for (const std::string& word : typed) {
    const bool splits = IsSplit(word);
    if ((splits || joins) && !words.empty()) {
      words.back() += word;
    } else {
      words.push_back(word);
    }
    joins = splits;
  }
  if (words.empty()) return {};
  const std::string& current = words.back();
  Line line = Read(app, words);
  const size_t equals = current.find('=');
  std::string flag;
  if (line.flag == nullptr && current.starts_with("--") && equals != std::string::npos) {
    line.flag = FindFlag(line.command, current.substr(0, equals));
    flag = current.substr(0, equals + 1);
  }
  const size_t kept = current.size() - (IsSplit(typed.back()) && current != typed.back() ? 0 : typed.back().size());
  // Of a list what follows the last comma.
  const size_t comma = current.rfind(',');
  const bool in_list = line.flag != nullptr && comma != std::string::npos;
  WordList typed_before;
  if (in_list) {
    typed_before = Split(std::string_view(current).substr(flag.size(), comma - flag.size()), ',');
    flag = current.substr(0, comma + 1);
  }
  std::string answer;
  for (const std::string& candidate : Candidates(line, app, current, connect)) {
    if (candidate == kFiles) return fmt::format("{}\n", kFiles);
    if (in_list && (candidate.find(',') != std::string::npos || std::ranges::find(typed_before, candidate) != typed_before.end())) continue;
    const std::string full = flag + candidate;
    if (full.starts_with(current)) answer += full.substr(kept) + "\n";
  }
  return answer;
}

}  // namespace profd::client
