#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "client/cli_app.h"
#include "export/engine.h"
#include "proto/options/options.h"
#include "proto/options/presets.h"

namespace profd::client {
namespace {

// What may follow a flag: words, what a function of the script prints, or files.
struct FlagValues {
  std::string flag;
  std::string words;
  std::string function = {};
  bool files = false;
};

// The words an option of the table takes; empty when it takes no words.
std::string WordsOf(const options::Option& option) {
  switch (option.type) {
    case options::Type::kSwitch:
      return "on off";
    case options::Type::kLevel:
      return "on off l0 l1";
    case options::Type::kList:
      return "cpu mem cpu,mem";
    case options::Type::kChoice:
    case options::Type::kMetrics: {
      std::string words(option.choices);
      std::replace(words.begin(), words.end(), ',', ' ');
      return words;
    }
    default:
      return "";
  }
}

constexpr std::string_view kShells = "bash zsh fish";
// Flags that say where profd is.
constexpr std::string_view kConnect =
    "--socket|--address|--tls-dir|--tls-ca|--tls-cert|--tls-key|--tls-server-name";

// Commands whose arguments are directories.
constexpr std::array<std::string_view, 2> kTakesDirectories = {"export", "verify"};
// Commands whose arguments are session ids; `active`: those that have not ended.
struct IdTaker {
  std::string_view command;
  bool active = false;
};
constexpr std::array<IdTaker, 7> kTakesIds = {{{"stop", true},
                                               {"watch", true},
                                               {"show"},
                                               {"fetch"},
                                               {"rm"},
                                               {"pin"},
                                               {"unpin"}}};

const IdTaker* FindIdTaker(std::string_view command) {
  auto found = std::ranges::find(kTakesIds, command, &IdTaker::command);
  return found == kTakesIds.end() ? nullptr : &*found;
}

bool TakesDirectories(std::string_view command) {
  return std::ranges::find(kTakesDirectories, command) != kTakesDirectories.end();
}

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

// `of_commands` leaves out what the application alone has, or every command has too.
std::string Flags(const CLI::App& app, bool of_commands = false) {
  std::string flags;
  for (const CLI::Option* option : app.get_options()) {
    bool own = option == app.get_help_ptr() || option->check_lname("version");
    if (of_commands && own) continue;
    for (const std::string& name : option->get_lnames()) {
      flags += (flags.empty() ? "--" : " --") + name;
    }
  }
  return flags;
}

// Flags that take a value, "--a|--b".
std::string ValueFlags(const CLI::App& app) {
  std::string flags;
  auto add = [&flags](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options()) {
      if (option->get_items_expected_max() == 0 || option->get_lnames().empty()) continue;
      std::string name = "--" + option->get_lnames().front();
      if (("|" + flags + "|").find("|" + name + "|") == std::string::npos) {
        flags += (flags.empty() ? "" : "|") + name;
      }
    }
  };
  add(app);
  for (const CLI::App* command : Commands(app)) {
    add(*command);
    for (const CLI::App* part : Commands(*command)) add(*part);
  }
  return flags;
}

// Shared by bash and zsh: what names come from the daemon the line is about. Only characters that are
// safe unquoted.
constexpr std::string_view kDynamic = R"sh(_profctl_ask() {
  profctl "${connect[@]}" "$@" --json --timeout 1s 2>/dev/null
}
_profctl_ids() {
  _profctl_ask list "$@" | sed -n 's@^ *"session_id": *"\([A-Za-z0-9._-]*\)".*$@\1@p'
}
_profctl_jobs() {
  _profctl_ask jobs | sed -n 's@^ *"job_id": *"\([A-Za-z0-9._:/-]*\)".*$@\1@p'
}
_profctl_devices() {
  _profctl_ask devices | sed -n 's@^      "id": *\([0-9]*\).*$@\1@p'
}
_profctl_collectors() {
  _profctl_ask collectors | sed -n 's@^      "name": *"\([A-Za-z0-9._-]*\)".*$@\1@p'
}
)sh";

// case "$command" in ... : the words that can stand here. Ids come first: flags are offered once a
// dash is typed.
std::string CommandCases(const CLI::App& app) {
  std::string text;
  std::string globals = Flags(app, /*of_commands=*/true);
  for (const CLI::App* command : Commands(app)) {
    std::string words = fmt::format("{} {}", Flags(*command), globals);
    if (command->get_name() == "completion") words += fmt::format(" {}", kShells);
    for (const CLI::App* part : Commands(*command)) {
      words += fmt::format(" {} {}", part->get_name(), Flags(*part, /*of_commands=*/true));
    }
    std::string rest;
    if (TakesDirectories(command->get_name())) rest = "; [[ \"$current\" == -* ]] || files=1";
    if (const IdTaker* taker = FindIdTaker(command->get_name())) {
      rest = fmt::format("\n      [[ \"$current\" == -* ]] || candidates=\"$(_profctl_ids{})\"",
                         taker->active ? " --active" : "");
      if (taker->command == "show") rest += "\n      [[ \"$current\" != */* ]] || files=1";
    }
    text += fmt::format("    {}) candidates=\"{}\"{} ;;\n", command->get_name(), words, rest);
  }
  return text;
}

// Of all flags whose values are known, but --format, which depends on the command.
std::vector<FlagValues> Values() {
  std::vector<FlagValues> all = {
      {"sort", "id util hbm power temp freq hccs roce pcie bw hbm-temp"},
      {"devices", "", "_profctl_devices"},
      {"job", "", "_profctl_jobs"},
      {"collector", "", "_profctl_collectors"},
      {"collectors", "", "_profctl_collectors"},
      {"chip", fmt::format("{}", fmt::join(options::ChipNames(), " "))},
  };
  std::string presets;
  for (const options::Preset& preset : options::Presets()) {
    presets += fmt::format("{}{}", presets.empty() ? "" : " ", preset.name);
  }
  all.push_back({"preset", presets});
  std::string channels;
  for (const exporting::TableSpec& table : exporting::Tables()) {
    channels += fmt::format("{} ", table.name);
  }
  all.push_back({"channels", channels + std::string(exporting::kEventsChannel)});
  std::string switches;
  for (const options::AclSwitch& known : options::AclSwitches()) {
    switches += fmt::format("{}{}=", switches.empty() ? "" : " ", known.name);
  }
  all.push_back({"acl", switches});
  for (const options::Option& option : options::Table()) {
    std::string words = WordsOf(option);
    if (words.empty()) continue;
    std::string flag(option.key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    all.push_back({flag, words});
  }
  for (const char* flag : {"socket", "tls-dir", "tls-ca", "tls-cert", "tls-key", "out", "output",
                           "options-json", "nodes-file"}) {
    all.push_back({flag, "", "", /*files=*/true});
  }
  return all;
}

std::string FormatsOf(std::string_view command) {
  return command == "export" ? fmt::format("{}", fmt::join(exporting::FormatNames(), " "))
                             : "text json csv";
}

std::string ValueCases() {
  std::string text = fmt::format(
      "    --format) candidates=\"{}\"\n"
      "      if [[ \"$command\" == export ]]; then candidates=\"{}\"; fi ;;\n",
      FormatsOf("stream"), FormatsOf("export"));
  for (const FlagValues& values : Values()) {
    const std::string words =
        values.function.empty() ? values.words : fmt::format("$({})", values.function);
    text += fmt::format("    --{}) {} ;;\n", values.flag,
                        values.files ? "files=1" : fmt::format("candidates=\"{}\"", words));
  }
  return text;
}

std::string CommandNames(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : Commands(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
  }
  return names;
}

// Finds command and previous word in `all` (the words before the current one), sets `candidates`,
// `files` and `rest` (a command of the user's own begins), and keeps in `connect` where the line says
// profd is. Plain enough for both shells.
std::string Body(const CLI::App& app) {
  return fmt::format(
      R"sh(  local command="" previous="" word="" candidates="" files="" rest="" skip=""
  local -a connect
  connect=()
  for word in "${{all[@]}}"; do
    if [[ -n "$skip" ]]; then
      case "$previous" in
      {2}) connect+=("$previous" "$word") ;;
      esac
      skip=""; continue
    fi
    previous="$word"
    case "$word" in
    --) rest=1; break ;;
    {0}) skip=1 ;;
    --socket=*|--address=*|--tls-*=*) connect+=("$word") ;;
    -*) ;;
    *)
      if [[ -z "$command" ]]; then command="$word"
      elif [[ "$command" == run ]]; then rest=1; break
      fi ;;
    esac
  done
  if [[ -n "$skip" ]]; then
    case "$previous" in
{1}    esac
  elif [[ -z "$rest" ]]; then
    case "$command" in
    "") candidates="{3}"
      [[ "$current" != -* ]] || candidates="{4}" ;;
{5}    esac
  fi
)sh",
      ValueFlags(app), ValueCases(), kConnect, CommandNames(app), Flags(app), CommandCases(app));
}

std::string BashScript(const CLI::App& app) {
  return fmt::format(
      "# bash completion for profctl; printed by \"profctl completion bash\".\n"
      "{}"
      "_profctl() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  local -a all=(\"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\")\n"
      "{}"
      "  if [[ -n \"$rest\" || -n \"$files\" ]]; then\n"
      "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -W \"$candidates\" -- \"$current\"))\n"
      "  fi\n"
      "}}\n"
      "complete -F _profctl profctl\n",
      kDynamic, Body(app));
}

std::string ZshScript(const CLI::App& app) {
  return fmt::format(
      "#compdef profctl\n"
      "# zsh completion for profctl; printed by \"profctl completion zsh\".\n"
      "{}"
      "_profctl() {{\n"
      "  local current=\"${{words[CURRENT]}}\"\n"
      "  local -a all\n"
      "  all=(\"${{(@)words[2,CURRENT-1]}}\")\n"
      "{}"
      "  if [[ -n \"$rest\" || -n \"$files\" ]]; then\n"
      "    _files\n"
      "  else\n"
      "    compadd -- ${{=candidates}}\n"
      "  fi\n"
      "}}\n"
      "if [[ \"$funcstack[1]\" == _profctl ]]; then\n"
      "  _profctl \"$@\"\n"
      "else\n"
      "  compdef _profctl profctl\n"
      "fi\n",
      kDynamic, Body(app));
}

constexpr std::string_view kFishDynamic = R"sh(function __profctl_ask
    set -l connect
    set -l take 0
    for word in (commandline -opc)
        if test $take = 1
            set -a connect $word
            set take 0
            continue
        end
        switch $word
            case --socket --address --tls-dir --tls-ca --tls-cert --tls-key --tls-server-name
                set -a connect $word
                set take 1
            case '--socket=*' '--address=*' '--tls-*=*'
                set -a connect $word
        end
    end
    profctl $connect $argv --json --timeout 1s 2>/dev/null
end
function _profctl_ids
    __profctl_ask list $argv | string replace -rf '^ *"session_id": *"([A-Za-z0-9._-]*)".*$' '$1'
end
function _profctl_jobs
    __profctl_ask jobs | string replace -rf '^ *"job_id": *"([A-Za-z0-9._:/-]*)".*$' '$1'
end
function _profctl_devices
    __profctl_ask devices | string replace -rf '^      "id": *([0-9]*).*$' '$1'
end
function _profctl_collectors
    __profctl_ask collectors | string replace -rf '^      "name": *"([A-Za-z0-9._-]*)".*$' '$1'
end
)sh";

std::string FishQuoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, text.find('\n'))) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// A line for each flag of `app`; `where`: the condition under which it is one.
std::string FishFlags(const CLI::App& app, std::string_view command, std::string_view where) {
  const std::vector<FlagValues> known = Values();
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      std::string values;
      if (option->get_items_expected_max() > 0) {
        auto found = std::ranges::find(known, name, &FlagValues::flag);
        const bool is_format = name == "format";
        std::string words = is_format ? FormatsOf(command) : "";
        if (!is_format && found != known.end()) {
          words = found->function.empty() ? found->words : fmt::format("({})", found->function);
        }
        const bool files = !is_format && found != known.end() && found->files;
        values = files ? " -r -F" : fmt::format(" -x -a {}", FishQuoted(words));
      }
      text += fmt::format("complete -c profctl{} -l {}{} -d {}\n", where, name, values,
                          FishQuoted(option->get_description()));
    }
  }
  return text;
}

std::string FishScript(const CLI::App& app) {
  std::string text = fmt::format(
      "# fish completion for profctl; printed by \"profctl completion fish\".\n"
      "{}complete -c profctl -f\n",
      kFishDynamic);
  text += FishFlags(app, "", "");
  for (const CLI::App* command : Commands(app)) {
    const std::string& name = command->get_name();
    const std::string where = fmt::format(" -n '__fish_seen_subcommand_from {}'", name);
    text += fmt::format("complete -c profctl -n __fish_use_subcommand -a {} -d {}\n", name,
                        FishQuoted(command->get_description()));
    if (const IdTaker* taker = FindIdTaker(name)) {
      text += fmt::format("complete -c profctl{} -a '(_profctl_ids{})'\n", where,
                          taker->active ? " --active" : "");
    }
    if (TakesDirectories(name) || name == "show" || name == "run") {
      text += fmt::format("complete -c profctl{} -F\n", where);
    }
    if (name == "completion") text += fmt::format("complete -c profctl{} -a '{}'\n", where, kShells);
    text += FishFlags(*command, name, where);
    for (const CLI::App* part : Commands(*command)) {
      text += fmt::format("complete -c profctl{} -a {} -d {}\n", where, part->get_name(),
                          FishQuoted(part->get_description()));
      text += FishFlags(*part, name, where);
    }
  }
  return text;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  if (shell == "fish") return FishScript(app);
  return shell == "zsh" ? ZshScript(app) : BashScript(app);
}

}  // namespace profd::client
