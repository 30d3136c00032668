// SPDX-License-Identifier: Apache-2.0
#include "server/status_page.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <string_view>

#include "base/printable.h"
#include "base/text.h"
#include "server/page_assets.h"
#include "server/shown_numbers.h"
#include "server/status_warnings.h"

namespace pyrometer {
namespace {

std::string Escape(std::string_view text) {
  return EscapeHtml(Printable(text));
}

std::string Join(const std::vector<std::string>& texts, std::string_view between) {
  std::string joined;
  for (const std::string& text : texts) {
    if (!joined.empty()) joined += between;
    joined += text;
  }
  return joined;
}

// The counts that are not 0: "no_memory 3, internal 1".
std::string Reasons(const std::map<std::string, uint64_t>& counts) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts) {
    if (count > 0) reasons.push_back(fmt::format("{} {}", reason, ShownCount(count)));
  }
  return Join(reasons, ", ");
}

// `value` is HTML.
std::string Fact(std::string_view name, std::string_view value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

std::string Time(WallTime time) {
  return fmt::format("<time datetime=\"{}\">{} UTC</time>", MachineTime(time), ShownTime(time));
}

std::string Warnings(const AgentStatus& status) {
  const std::vector<std::string> warnings = WarningsOf(status);
  if (warnings.empty()) return "";
  std::string html =
      "<section class=\"warnings\" aria-label=\"Warnings\"><h2>Needs attention</h2><ul>\n";
  for (const std::string& warning : warnings) html += "<li>" + Escape(warning) + "</li>\n";
  return html + "</ul></section>\n";
}

std::string Sampling(const AgentStatus& status) {
  const SamplingStatus& sampling = status.sampling;
  std::string frequency = fmt::format("{} Hz", sampling.frequency.value);
  if (sampling.frequency.value < sampling.configured.value) {
    frequency += fmt::format(" (of {})", sampling.configured.value);
  }
  std::vector<std::string> labels;
  for (const auto& [name, value] : status.labels)
    labels.push_back(fmt::format("{}={}", name, value));
  std::string html = "<section><h2>What is sampled</h2><dl>\n";
  html += Fact("frequency", frequency) + Fact("CPUs", ShownCount(sampling.cpus)) +
          Fact("processes", ShownCount(sampling.processes)) + Fact("since", Time(sampling.since)) +
          Fact("windows", fmt::format("{} of {}", ShownCount(sampling.windows),
                                      ShownDuration(sampling.window)));
  html += Fact("last window", sampling.last_window ? Time(*sampling.last_window) : "none yet");
  html +=
      Fact("which", sampling.filters.empty() ? "everything" : Escape(Join(sampling.filters, "; ")));
  if (!labels.empty()) html += Fact("labels", Escape(Join(labels, ", ")));
  return html + "</dl></section>\n";
}

// The kinds of ticks as parts of one bar, in the order of `kinds`.
struct TickKind {
  std::string_view name;
  uint64_t count = 0;
};

std::string TickBar(const std::vector<TickKind>& kinds, uint64_t all) {
  std::string html = "<svg class=\"ticks\" role=\"img\" aria-label=\"Shares of all ticks\">";
  double at = 0;
  for (const TickKind& kind : kinds) {
    const double width = 100.0 * static_cast<double>(kind.count) / static_cast<double>(all);
    html += fmt::format("<rect class=\"{}\" x=\"{:.3f}%\" width=\"{:.3f}%\" height=\"100%\"/>",
                        kind.name, at, width);
    at += width;
  }
  return html + "</svg>\n";
}

std::string Ticks(const SamplingStatus& sampling) {
  const Accounting& ticks = sampling.ticks;
  const std::vector<TickKind> kinds = {{"exported", ticks.exported},
                                       {"idle", ticks.idle},
                                       {"filtered", ticks.filtered},
                                       {"lost", ticks.TotalLost()}};
  const uint64_t all = ticks.Ticks();
  std::string html = "<section><h2>What became of every tick</h2>\n";
  if (all > 0) html += TickBar(kinds, all);
  html += "<dl>\n";
  for (const TickKind& kind : kinds) {
    const double share = all == 0 ? 0 : static_cast<double>(kind.count) / static_cast<double>(all);
    html += Fact(fmt::format("<i class=\"{0}\"></i>{0}", kind.name),
                 fmt::format("{} ({})", ShownCount(kind.count), ShownShare(share)));
  }
  html += Fact("undelivered by the kernel", ShownCount(ticks.undelivered)) + "</dl>\n";
  std::map<std::string, uint64_t> lost;
  for (size_t i = 0; i < ticks.lost.size(); ++i) {
    lost[std::string(Name(static_cast<Accounting::Lost>(i)))] = ticks.lost[i];
  }
  if (ticks.TotalLost() > 0) html += "<p class=\"note\">Lost: " + Escape(Reasons(lost)) + "</p>\n";
  const std::string cuts = Reasons(sampling.cuts);
  html += cuts.empty() ? "<p class=\"note\">No stack was cut.</p>\n"
                       : "<p class=\"note\">Cut stacks: " + Escape(cuts) + "</p>\n";
  return html + "</section>\n";
}

// A cell that tells its column's name where the table has no room for a heading. `value` is HTML.
std::string Cell(std::string_view name, std::string_view value, bool number = true) {
  return fmt::format("<td{} data-name=\"{}\">{}</td>", number ? " class=\"number\"" : "", name,
                     value);
}

constexpr int kSinkColumns = 11;

// What a sink said and what it made us drop, in a row below its numbers.
std::string SaidBy(const SinkStatus& sink) {
  std::vector<std::string> said;
  if (!sink.last_error.empty()) {
    said.push_back("Last error" +
                   (sink.last_error_at ? " at " + Time(*sink.last_error_at) : std::string()) +
                   ": " + Escape(sink.last_error));
  }
  const std::string dropped = Reasons(sink.dropped_samples);
  if (!dropped.empty()) said.push_back("Samples dropped: " + Escape(dropped));
  if (said.empty()) return "";
  return fmt::format("<tr class=\"said\"><td colspan=\"{}\"><div>{}</div></td></tr>\n",
                     kSinkColumns, Join(said, "<br>"));
}

std::string SinkRow(const SinkStatus& sink) {
  const std::string_view state = Name(sink.state);
  std::string html = "<tr>";
  html += Cell("sink", Escape(sink.name), false) + Cell("type", Escape(sink.type), false) +
          Cell("address", Escape(sink.address), false) +
          Cell("state", fmt::format("<span class=\"state {0}\">{0}</span>", state), false) +
          Cell("behind", sink.behind ? ShownDuration(*sink.behind) : "–") +
          Cell("queued", ShownCount(sink.queued)) +
          Cell("spooled", sink.spooled == 0 ? "0"
                                            : fmt::format("{} ({})", ShownCount(sink.spooled),
                                                          ShownBytes(sink.spooled_bytes))) +
          Cell("sent", ShownCount(sink.sent)) + Cell("bytes", ShownBytes(sink.bytes)) +
          Cell("retried", ShownCount(sink.retried)) + Cell("rejected", ShownCount(sink.rejected));
  return html + "</tr>\n" + SaidBy(sink);
}

std::string Sinks(const std::vector<SinkStatus>& sinks) {
  std::string html = "<section><h2>What goes where</h2>\n";
  if (sinks.empty()) return html + "<p class=\"note\">Profiles go nowhere.</p></section>\n";
  html +=
      "<table><thead><tr><th>sink</th><th>type</th><th>address</th><th>state</th>"
      "<th class=\"number\">behind</th><th class=\"number\">queued</th>"
      "<th class=\"number\">spooled</th><th class=\"number\">sent</th>"
      "<th class=\"number\">bytes</th><th class=\"number\">retried</th>"
      "<th class=\"number\">rejected</th></tr></thead><tbody>\n";
  for (const SinkStatus& sink : sinks) html += SinkRow(sink);
  return html +
         "</tbody></table>\n<p class=\"note\">Queued in memory, spooled to disk, sent and rejected "
         "are "
         "numbers of profiles; retried, of attempts.</p></section>\n";
}

std::string Cost(const CostStatus& cost) {
  const auto cores = [](double share) { return ShownShare(share) + " of a core"; };
  std::string html = "<section><h2>What the agent costs</h2><dl>\n";
  html += Fact("CPU", cores(cost.cpu_cores));
  if (cost.cpu_limit > 0) html += Fact("CPU budget", cores(cost.cpu_limit));
  html += Fact("resident memory", ShownBytes(cost.resident_bytes)) +
          Fact("kernel memory", ShownBytes(cost.kernel_bytes));
  if (cost.memory_limit > 0) html += Fact("memory budget", ShownBytes(cost.memory_limit));
  return html + "</dl></section>\n";
}

constexpr size_t kShownValue = 60;  // bytes; whole ones may be wider than the page

std::string ChoiceOf(const LabelChoice& label) {
  const std::string name = Escape(label.name);
  std::string html = fmt::format(
      "<label data-name=\"{0}\">{0} <select name=\"label\"><option value=\"\">any</option>", name);
  for (const LabelChoice::Value& value : label.values) {
    html += fmt::format("<option value=\"{}={}\">{}</option>", name, Escape(value.value),
                        EscapeHtml(Printable(value.value, kShownValue)));
  }
  if (label.left_out > 0) {
    html += fmt::format("<option disabled>and {} more</option>", ShownCount(label.left_out));
  }
  return html + "</select></label>\n";
}

std::string Flames(const std::vector<LabelChoice>& labels) {
  std::string html =
      "<section><form id=\"which\" action=\"/flamegraph\" target=\"flames\" autocomplete=\"off\">"
      "<h2>Where the CPU time went</h2>\n"
      "<label>in the last <select name=\"seconds\"><option value=\"60\">minute</option>"
      "<option value=\"300\" selected>5 minutes</option><option value=\"900\">15 minutes</option>"
      "<option value=\"3600\">hour</option></select></label>\n";
  for (const LabelChoice& label : labels) html += ChoiceOf(label);
  return html +
         R"(<button>Show</button>
<a href="/flamegraph?seconds=300" id="alone" target="_blank" rel="noopener">open in a tab</a></form>
<iframe name="flames" src="/flamegraph?seconds=300" sandbox="allow-scripts" title="Flame graph of the last windows"></iframe>
</section>
)";
}

constexpr std::string_view kExplain =
    R"(<section><form action="/explain"><h2>Why a process has its labels</h2>
<label>process id <input name="pid" inputmode="numeric" pattern="[0-9]+" required size="8"></label>
<button>Explain</button></form></section>
)";

constexpr std::string_view kFooter =
    R"(<footer>For machines: <a href="/metrics">metrics</a>, <a href="/api/status">this page as JSON</a>,
<a href="/debug/pprof/">profiles</a>, <a href="/healthz">health</a>, <a href="/readyz">readiness</a>.</footer>
)";

// `title` is HTML.
std::string PageBegin(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<header><h1>{0}</h1></header>\n"
      "<main>\n",
      title, kPageStyle);
}

std::string HashSource(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, SHA256_DIGEST_LENGTH * 2> base64{};
  EVP_EncodeBlock(base64.data(), digest.data(), SHA256_DIGEST_LENGTH);
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64.data()));
}

}  // namespace

std::string StatusPage(const AgentStatus& status) {
  std::string html = PageBegin("Pyrometer on " + Escape(status.host));
  html += "<section id=\"silence\" class=\"warnings\" role=\"alert\" hidden></section>\n";
  html += "<div id=\"live\">\n" + Warnings(status) + "<div class=\"pair\">\n" + Sampling(status) +
          Ticks(status.sampling) + "</div>\n" + Sinks(status.sinks) + Cost(status.cost) +
          "</div>\n";
  html += Flames(status.choices);
  html += kExplain;
  html += "</main>\n";
  html += kFooter;
  html += "<script>" + std::string(kPageScript) + "</script>\n</body>\n</html>\n";
  return html;
}

std::string ExplanationPage(Pid pid, std::string_view told) {
  std::string html = PageBegin(fmt::format("Labels of process {}", pid.value()));
  html += "<section><pre>";
  for (const std::string_view line : Split(Trim(told), '\n')) html += Escape(line) + "\n";
  return html + "</pre></section>\n</main>\n<footer><a href=\"/\">The agent's page</a></footer>\n" +
         "</body>\n</html>\n";
}

std::string StatusPagePolicy() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; frame-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      HashSource(kPageScript), HashSource(kPageStyle));
}

}  // namespace pyrometer
