// profctl(1), from the application's own table of commands.
#include "base/man_page.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "client/cli_app.h"

namespace profd::client {
namespace {

constexpr std::string_view kProfilingGroup = "Profiling options";

std::string NamesOf(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) {
    names += (names.empty() ? "--" : ", --") + name;
  }
  return names.empty() ? option.get_single_name() : names;
}

std::string ValueOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  std::string type = option.get_type_name();
  return type == " " ? std::string() : type;
}

bool IsShown(const CLI::Option& option, const CLI::App& app) {
  // --help, which every command has, stands with the options of all commands.
  return !option.get_group().empty() &&
         (app.get_parent() == nullptr || &option != app.get_help_ptr());
}

// `with_profiling` = also the vendor's options, of which there are many.
void AddOptions(const CLI::App& app, bool with_profiling, ManPage* page) {
  for (const std::string& name : app.get_groups()) {
    bool profiling = name.starts_with(kProfilingGroup);
    if (profiling && !with_profiling) continue;
    std::vector<const CLI::Option*> options = app.get_options(
        [&](const CLI::Option* option) { return option->get_group() == name && IsShown(*option, app); });
    if (options.empty()) continue;
    if (name != "Options" && name != "Positionals") page->Paragraph(name + ":");
    for (const CLI::Option* option : options) {
      page->Entry(NamesOf(*option), ValueOf(*option), option->get_description());
    }
  }
}

// "profctl stop [OPTIONS] [ID...]"
std::string UsageOf(const CLI::App& command, const std::string& path) {
  std::string usage = path + " [OPTIONS]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    std::string name = option->get_single_name();
    if (option->get_items_expected_max() > 1) name += "...";
    usage += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  return command.get_name() == "run" ? usage + " COMMAND..." : usage;
}

// What stands below "Examples:" in the help; what follows it is said once for all commands.
std::string ExamplesOf(const CLI::App& command) {
  std::string footer = command.get_footer();
  size_t begin = footer.find("Examples:\n");
  if (begin == std::string::npos) return {};
  footer.erase(0, begin + std::string_view("Examples:\n").size());
  size_t end = footer.find("\nGlobal options:");
  return end == std::string::npos ? footer : footer.substr(0, end);
}

void AddCommand(const CLI::App& command, const std::string& parent, ManPage* page) {
  std::string path = parent + " " + command.get_name();
  std::vector<const CLI::App*> parts =
      command.get_subcommands([](const CLI::App* part) { return !part->get_group().empty(); });
  if (!parts.empty()) {
    for (const CLI::App* part : parts) AddCommand(*part, path, page);
    return;
  }
  page->Subsection(UsageOf(command, path));
  page->Paragraph(command.get_description() + ".");
  bool is_start = command.get_name() == "start";
  AddOptions(command, is_start, page);
  bool has_profiling = false;
  for (const std::string& name : command.get_groups()) {
    has_profiling = has_profiling || name.starts_with(kProfilingGroup);
  }
  if (has_profiling && !is_start) {
    page->Paragraph("It also takes the profiling options of \"profctl start\".");
  }
  if (std::string examples = ExamplesOf(command); !examples.empty()) page->Example(examples);
}

void AddExitStatus(ManPage* page) {
  page->Section("EXIT STATUS");
  page->Entry("0", "", "Done.");
  page->Entry("1", "", "Internal error.");
  page->Entry("2", "", "Usage: nothing was sent.");
  page->Entry("3", "", "Refused; the reason is on stderr.");
  page->Entry("4", "", "No such session, job or dump.");
  page->Entry("5", "", "Partial: part of the request does not run, or a dump or an export is incomplete.");
  page->Entry("6", "", "The daemon cannot be reached.");
  page->Paragraph("\"profctl run\" answers with the command's own code.");
}

void AddSurroundings(ManPage* page) {
  page->Section("ENVIRONMENT");
  page->Entry("PROFD_SOCKET", "", std::string("Where the daemon listens, instead of ") + kDefaultSocket + ".");
  page->Entry("PROFD_ADDRESS", "", "Another machine's daemon, HOST:PORT.");
  page->Entry("PROFD_TLS_DIR", "", "Where ca.crt, client.crt and client.key are.");
  page->Entry("PROFILING_OPTIONS", "", "The vendor's options, taken with --options-env.");
  page->Entry("ASCEND_WORK_PATH", "", "Dumps are written below its profiling_data where no output is given.");
  page->Entry("NO_COLOR", "", "Set and not empty: no colours.");
  page->Section("FILES");
  page->Entry(kDefaultSocket, "", "The daemon's socket. Members of its group may use it.");
  page->Entry("~/.config/profd/tls, /etc/profd/tls", "", "Certificates for other machines.");
  page->Section("SEE ALSO");
  page->Paragraph("profd(8), profd.toml(5)");
}

}  // namespace

std::string ManualOf(const CLI::App& app) {
  ManPage page("profctl", 1, app.version(), "profile this node's NPUs through profd");
  page.Section("SYNOPSIS");
  page.Paragraph("profctl [OPTIONS] COMMAND ...");
  page.Section("DESCRIPTION");
  page.Paragraph(
      "profctl starts and stops profiling sessions on this node or on others, shows the state of "
      "NPUs and jobs, and reads dumps.");
  page.Paragraph(
      "DURATION is a number with ms, s, m or h, as in 30s; LIST of devices or ranks is as in 0,1,4-7.");
  page.Section("OPTIONS OF ALL COMMANDS");
  AddOptions(app, false, &page);
  page.Section("COMMANDS");
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    AddCommand(*command, "profctl", &page);
  }
  AddExitStatus(&page);
  AddSurroundings(&page);
  return page.text();
}

}  // namespace profd::client
