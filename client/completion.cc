#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "client/cli_app.h"
#include "export/engine.h"
#include "proto/options/options.h"

namespace profd::client {
namespace {

struct FlagValues {
  std::string_view flag;
  std::string_view words;
};
// Values that are fixed words, beside those of the option table.
constexpr std::array<FlagValues, 2> kFlagValues = {
    {{"--devices", ""}, {"--sort", "id util hbm power temp freq hccs roce pcie bw hbm-temp"}}};

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

// Commands whose arguments are directories.
constexpr std::array<std::string_view, 2> kTakesDirectories = {"export", "verify"};
// Commands whose arguments are session ids.
constexpr std::array<std::string_view, 5> kTakesIds = {"stop", "show", "watch", "fetch", "rm"};

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

// Shared by both shells: what names come from the daemon. Only characters that are safe unquoted.
constexpr std::string_view kDynamic = R"sh(_profctl_ids() {
  profctl list --json --timeout 1s 2>/dev/null |
    sed -n 's/^ *"session_id": *"\([A-Za-z0-9._-]*\)".*$/\1/p'
}
_profctl_collectors() {
  profctl collectors --json --timeout 1s 2>/dev/null |
    sed -n 's/^      "name": *"\([A-Za-z0-9._-]*\)".*$/\1/p'
}
)sh";

// case "$command" in ... : the words that can stand here.
std::string CommandCases(const CLI::App& app) {
  std::string text;
  std::string globals = Flags(app, /*of_commands=*/true);
  for (const CLI::App* command : Commands(app)) {
    std::string words = fmt::format("{} {}", Flags(*command), globals);
    for (std::string_view id_taker : kTakesIds) {
      if (command->get_name() == id_taker) words += " $(_profctl_ids)";
    }
    if (command->get_name() == "completion") words += " bash zsh";
    for (const CLI::App* part : Commands(*command)) {
      words += fmt::format(" {} {}", part->get_name(), Flags(*part, /*of_commands=*/true));
    }
    bool directories = std::ranges::find(kTakesDirectories, command->get_name()) !=
                       kTakesDirectories.end();
    text += fmt::format("    {}) candidates=\"{}\"{} ;;\n", command->get_name(), words,
                        directories ? "; [[ \"$current\" == -* ]] || files=1" : "");
  }
  return text;
}

std::string ValueCases() {
  std::string text;
  for (const FlagValues& values : kFlagValues) {
    text += fmt::format("    {}) candidates=\"{}\" ;;\n", values.flag, values.words);
  }
  text += fmt::format(
      "    --format) candidates=\"text json csv\"\n"
      "      if [[ \"$command\" == export ]]; then candidates=\"{}\"; fi ;;\n",
      fmt::join(exporting::FormatNames(), " "));
  text += "    --channels) candidates=\"";
  for (const exporting::TableSpec& table : exporting::Tables()) {
    text += fmt::format("{} ", table.name);
  }
  text += fmt::format("{}\" ;;\n", exporting::kEventsChannel);
  for (const options::Option& option : options::Table()) {
    std::string words = WordsOf(option);
    if (words.empty()) continue;
    std::string flag(option.key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    text += fmt::format("    --{}) candidates=\"{}\" ;;\n", flag, words);
  }
  text += fmt::format("    --chip) candidates=\"{}\" ;;\n", fmt::join(options::ChipNames(), " "));
  text += "    --acl) candidates=\"";
  for (const options::AclSwitch& known : options::AclSwitches()) {
    text += fmt::format("{}= ", known.name);
  }
  text += "\" ;;\n";
  return text +
         "    --collector|--collectors) candidates=\"$(_profctl_collectors)\" ;;\n"
         "    --socket|--tls-dir|--tls-ca|--tls-cert|--tls-key|--out|--output|--options-json) "
         "files=1 ;;\n";
}

std::string CommandNames(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : Commands(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
  }
  return names;
}

// Finds command and previous word in `all` (the words before the current one), sets `candidates`,
// `files` and `rest` (a command of the user's own begins). Plain enough for both shells.
std::string Body(const CLI::App& app) {
  return fmt::format(
      R"sh(  local command="" previous="" word="" candidates="" files="" rest="" skip=""
  for word in "${{all[@]}}"; do
    previous="$word"
    if [[ -n "$skip" ]]; then skip=""; continue; fi
    case "$word" in
    --) rest=1; break ;;
    {}) skip=1 ;;
    -*) ;;
    *) if [[ -z "$command" ]]; then command="$word"; fi ;;
    esac
  done
  if [[ -n "$skip" ]]; then
    case "$previous" in
{}    esac
  elif [[ -z "$rest" ]]; then
    case "$command" in
    "") candidates="{} {}" ;;
{}    esac
  fi
)sh",
      ValueFlags(app), ValueCases(), CommandNames(app), Flags(app), CommandCases(app));
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

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  return shell == "zsh" ? ZshScript(app) : BashScript(app);
}

}  // namespace profd::client
