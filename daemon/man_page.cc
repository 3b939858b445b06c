#include "daemon/man_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "base/man_page.h"
#include "daemon/config/daemon_config.h"

namespace profd {
namespace {

std::vector<const CLI::Option*> ShownOptions(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::string NamesOf(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) {
    names += (names.empty() ? "--" : ", --") + name;
  }
  return names;
}

std::string ValueOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  std::string name = option.get_lnames().front();
  if (name == "simulate") return "[SCENARIO]";
  if (name == "metrics-listen") return "ADDRESS:PORT";
  return name == "log-level" ? "LEVEL" : "PATH";
}

void AddRunning(ManPage* page) {
  page->Section("A NODE WITHOUT AN NPU");
  page->Paragraph(
      "Without the driver's libraries, or without a device, profd runs all the same: it serves the "
      "collectors of the host (processors, memory, disks, network, processes) and reports \"host-only mode\" in "
      "its log, to systemd and in \"profctl status\". After a driver has been installed: systemctl "
      "restart profd.");
  page->Section("SIGNALS");
  page->Entry("SIGTERM, SIGINT", "", "End: every session is stopped and its dump completed.");
  page->Entry("SIGUSR2", "",
              "End for a restart (systemctl restart, an upgrade): sessions are left as they are, and go "
              "on as a further segment when profd is started again (dump.resume).");
  page->Entry("SIGHUP", "", "Read the configuration again (systemctl reload).");
  page->Section("EXIT STATUS");
  page->Entry("0", "", "Served and ended cleanly, or the check passed.");
  page->Entry("1", "", "Could not serve.");
  page->Entry("2", "", "Usage or configuration.");
}

void AddFiles(ManPage* page) {
  page->Section("FILES");
  page->Entry("/etc/profd/profd.toml", "", "Configuration, see profd.toml(5).");
  page->Entry("/run/profd/profd.sock", "",
              "Where profctl connects. Members of the group HwHiAiUser may start sessions and see "
              "their own; members of profd-admin see and stop all sessions.");
  page->Entry("/run/profd/attach.sock", "", "Where training processes attach.");
  page->Entry("/var/lib/profd", "", "Dumps, a PROF_* directory each, and the daemon's own state (.state).");
  page->Entry("/usr/lib/profd/sim, /usr/share/profd/scenarios", "",
              "The simulated node (package profd-sim).");
  page->Section("SEE ALSO");
  page->Paragraph("profctl(1), profd.toml(5), systemctl(1)");
}

}  // namespace

std::string ManualOfDaemon(const CLI::App& app) {
  ManPage page("profd", 8, app.version(), "node profiler daemon for Ascend/Atlas NPUs");
  page.Section("SYNOPSIS");
  page.Paragraph("profd [OPTIONS]");
  page.Section("DESCRIPTION");
  page.Paragraph(
      "profd takes exclusive ownership of a node's profiling channels and shares them among all users. It "
      "reads the driver's sampling channels, DCMI, /proc and /sys, and delivers the data to dumps of "
      "profiling sessions, to Prometheus (/metrics) and to live streams, each at its own rate. Sessions "
      "are started with profctl(1). It is started by systemd; by hand it runs in the foreground and "
      "logs to stderr. Flags win over the configuration file.");
  page.Section("OPTIONS");
  for (const CLI::Option* option : ShownOptions(app)) {
    page.Entry(NamesOf(*option), ValueOf(*option), option->get_description());
  }
  AddRunning(&page);
  page.Section("EXAMPLES");
  page.Paragraph("Check the configuration:");
  page.Example("profd --check-config\n");
  page.Paragraph("Try it without an NPU, as any user:");
  page.Example(
      "profd --simulate --socket /tmp/p.sock --dump-root /tmp/dumps\n"
      "profctl --socket /tmp/p.sock devices\n");
  AddFiles(&page);
  return page.text();
}

std::string ManualOfConfig(const std::string& version) {
  ManPage page("profd.toml", 5, version, "configuration of profd");
  page.Section("SYNOPSIS");
  page.Paragraph("/etc/profd/profd.toml");
  page.Section("DESCRIPTION");
  page.Paragraph(
      "A TOML file with the sections below, read when profd starts. Every key is optional. Unknown "
      "keys and values out of range are errors: \"profd --check-config\" lists all of them. Keys marked "
      "with \"reload\" follow \"systemctl reload profd\", the others a restart.");
  std::string_view section;
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.section != section) {
      section = key.section;
      page.Section(fmt::format("[{}]", section));
    }
    page.Entry(key.name, fmt::format("= {}", key.default_text),
               fmt::format("{}.\n{}{}", key.help, key.range, key.reloadable ? "; reload" : ""));
  }
  page.Section("EXAMPLE");
  page.Example(
      "[recorder]\n"
      "enabled = true\n"
      "triggers = [\"atlas_npu_temperature_celsius > 90 for 10s\"]\n\n"
      "[dump]\n"
      "root = \"/data/profd\"\n"
      "max_total_mb = 800000\n");
  page.Paragraph("Another dump.root needs ReadWritePaths= in a drop-in of the unit.");
  page.Section("SEE ALSO");
  page.Paragraph("profd(8), profctl(1)");
  return page.text();
}

std::string CompletionOfDaemon(const CLI::App& app) {
  std::string flags;
  std::string with_files;
  for (const CLI::Option* option : ShownOptions(app)) {
    for (const std::string& name : option->get_lnames()) {
      flags += (flags.empty() ? "--" : " --") + name;
      if (ValueOf(*option) == "PATH" || ValueOf(*option) == "[SCENARIO]") {
        with_files += (with_files.empty() ? "--" : "|--") + name;
      }
    }
  }
  return fmt::format(
      "# bash completion for profd; printed by \"profd --print-completion\".\n"
      "_profd() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  case \"$previous\" in\n"
      "  {}) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
      "  --log-level) COMPREPLY=($(compgen -W \"debug info warning error\" -- \"$current\")) ;;\n"
      "  *) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _profd profd\n",
      with_files, flags);
}

}  // namespace profd
