// The page at "/": no scripts, nothing from elsewhere, every text escaped.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/web/http_text.h"
#include "daemon/web/status_board.h"

namespace profd {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --ink: #1c2430; --soft: #5b6675;
  --line: #dde2e8; --link: #0b5cad; --good: #1a7f47; --bad: #b3261e; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161c; --card: #1b212a; --ink: #e6eaf0;
  --soft: #9aa6b5; --line: #2c3541; --link: #7db7f5; --good: #5fd08f; --bad: #ff8a80; --warn: #f2c14e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2rem 1rem 3rem; }
h1 { margin: 0; font-size: 1.7rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
p { margin: .4rem 0; }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.2rem 0; }
nav a { padding: .35rem .8rem; border: 1px solid var(--line); border-radius: .5rem;
  background: var(--card); text-decoration: none; }
.soft { color: var(--soft); }
.note { padding: .6rem .9rem; border: 1px solid var(--warn); border-radius: .5rem; color: var(--warn); }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; background: var(--card); }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .45rem .8rem; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
td.text { white-space: normal; }
.more td { border-bottom: 0; }
.why td { padding-top: 0; }
.long { overflow-wrap: anywhere; }
.advice td.text { min-width: 13rem; overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--soft); font-size: .85rem; }
pre { margin: .5rem 0; padding: .8rem; overflow-x: auto; border: 1px solid var(--line);
  border-radius: .6rem; background: var(--card); font: .9rem/1.5 ui-monospace, Consolas, monospace; }
)";

constexpr std::string_view kUsage = R"(profctl health                     which NPUs are fit for work, and why not
profctl devices                    what is here and what it can do
profctl top                        a live view
profctl start --job J --duration 30s
profctl list                       your sessions
profctl fetch ID --out DIR         a session's dump
)";

std::string_view ClassOf(const std::string& verdict) {
  if (verdict == "ok") return "good";
  return verdict == "faulty" || verdict == "down" ? "bad" : "warn";
}

// The reasons are sentences with long words, for which no column beside the figures is wide enough.
std::string Row(const NodeView::Device& device, const PageFacts& facts) {
  const bool ok = device.reasons.empty();
  std::string row = fmt::format("<tr{}><td>{}</td><td>{}</td><td><span class=\"{}\">{}</span></td>",
                                ok ? "" : " class=\"more\"", EscapeHtml(device.npu), EscapeHtml(device.chip),
                                ClassOf(device.verdict), EscapeHtml(device.verdict));
  auto figures = facts.figures.find(device.npu);
  for (size_t i = 0; i < PageFacts::kFigures.size(); ++i) {
    const bool known = figures != facts.figures.end() && !figures->second[i].empty();
    row += "<td>" + (known ? EscapeHtml(figures->second[i]) : std::string("-")) + "</td>";
  }
  row += "</tr>\n";
  if (ok) return row;
  return row + fmt::format("<tr class=\"why\"><td></td><td class=\"text long\" colspan=\"{}\">{}</td></tr>\n",
                           2 + PageFacts::kFigures.size(), EscapeHtml(fmt::format("{}", fmt::join(device.reasons, "; "))));
}

std::string Devices(const NodeView& view, const PageFacts& facts) {
  if (view.devices.empty()) {
    return fmt::format("<p class=\"note\">Host only: no NPU can be used on this node ({}). Metrics and "
                       "sessions are the host's.</p>\n",
                       EscapeHtml(view.driver_problem));
  }
  std::string rows;
  for (const NodeView::Device& device : view.devices) rows += Row(device, facts);
  std::string heads = "<th>NPU</th><th>Model</th><th>Health</th>";
  for (std::string_view name : PageFacts::kFigures) heads += fmt::format("<th>{}</th>", name);
  return "<div class=\"wide\"><table><thead><tr>" + heads + "</tr></thead>\n<tbody>\n" +
         rows + "</tbody></table></div>\n";
}

std::string Jobs(const PageFacts& facts) {
  if (facts.jobs.empty()) return "";
  std::string rows;
  for (const PageFacts::Job& job : facts.jobs) {
    rows += fmt::format("<tr><td class=\"text long\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        EscapeHtml(job.name), EscapeHtml(job.user.empty() ? "-" : job.user),
                        EscapeHtml(fmt::format("{}", fmt::join(job.npus, ", "))),
                        job.step ? fmt::format("{:.0f}", *job.step) : "-");
  }
  return "<h2>Jobs</h2>\n<div class=\"wide\"><table><thead><tr><th>Job</th><th>User</th><th>NPUs</th>"
         "<th>Step</th></tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string Advice(const NodeView& view) {
  if (view.advice.empty()) return "";
  std::string rows;
  for (const NodeView::Advice& one : view.advice) {
    rows += fmt::format("<tr><td><span class=\"warn\">{}</span></td><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>\n",
                        EscapeHtml(one.check), EscapeHtml(one.where), EscapeHtml(one.what), EscapeHtml(one.advice));
  }
  return "<h2>Advice</h2>\n<div class=\"wide advice\"><table><thead><tr><th>Check</th><th>Where</th><th>What</th>"
         "<th>What to do</th></tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string Collectors(const NodeView& view) {
  size_t waiting = 0;
  std::string failing;
  for (const NodeView::Collector& one : view.collectors) {
    if (!one.has_run) ++waiting;
    if (one.has_run && !one.error.empty()) {
      failing += fmt::format("<li><strong>{}</strong>: {}</li>\n", EscapeHtml(one.name),
                             EscapeHtml(one.error));
    }
  }
  std::string text = fmt::format("<p>{} run without a session", view.collectors.size());
  if (waiting > 0) text += fmt::format(", {} of them have not begun", waiting);
  text += ".</p>\n";
  return failing.empty() ? text : text + "<ul class=\"warn\">\n" + failing + "</ul>\n";
}

}  // namespace

std::string RenderPage(const NodeView& view, const PageFacts& facts,
                       const std::vector<std::string>& metric_names) {
  std::string host = EscapeHtml(view.hostname);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"refresh\" content=\"10\">\n"
      "<title>profd on {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n", host, kStyle);
  page += fmt::format("<h1>profd on {}</h1>\n<p class=\"soft\">version {}, {} NPU{}, {} active "
                      "session{}, flight recorder {}</p>\n",
                      host, EscapeHtml(view.version), view.devices.size(),
                      view.devices.size() == 1 ? "" : "s", view.sessions,
                      view.sessions == 1 ? "" : "s", EscapeHtml(view.flight_recorder));
  if (view.simulated) {
    page += "<p class=\"note\">Simulated node: no value here was measured.</p>\n";
  }
  page += "<nav><a href=\"/metrics\">/metrics</a>";
  for (const std::string& name : metric_names) {
    page += fmt::format("<a href=\"/metrics?names={0}\">/metrics?names={0}</a>", EscapeHtml(name));
  }
  page += "<a href=\"/healthz\">/healthz</a><a href=\"/readyz\">/readyz</a></nav>\n";
  page += "<h2>NPUs</h2>\n" + Devices(view, facts) + Advice(view) + Jobs(facts);
  page += "<h2>Collectors</h2>\n" + Collectors(view);
  page += fmt::format("<h2>On this node</h2>\n<pre>{}</pre>\n", kUsage);
  page += "<h2>Documents</h2>\n<p class=\"soft\">In docs/ of the sources: metrics-guide.md (this port, dashboards), "
          "metrics.md (every metric), runbook.md (alerts), configuration.md, profctl.md, "
          "security-model.md.</p>\n</main>\n</body>\n</html>\n";
  return page;
}

}  // namespace profd
