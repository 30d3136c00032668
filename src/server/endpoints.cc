// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints.h"

#include <optional>

#include "server/metrics_text.h"
#include "server/status_json.h"
#include "server/status_page.h"

namespace pyrometer {
namespace {

Reply Refusal(int status, std::string_view message) {
  return {.status = status, .body = std::string(message) + "\n"};
}

// One of a limited number, as long as it lives.
class Place {
 public:
  Place(std::atomic<uint32_t>& taken, uint32_t most)
      : taken_(taken), granted_(taken.fetch_add(1) < most) {}
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  bool granted() const { return granted_; }

 private:
  std::atomic<uint32_t>& taken_;
  const bool granted_;
};

// Go's own profiler marks its errors so, for tools to show the text.
Reply ProfileRefusal(int status, std::string_view message) {
  Reply reply = Refusal(status, message);
  reply.headers.emplace_back("X-Go-Pprof", "1");
  return reply;
}

constexpr std::string_view kProfileIndex =
    "Profiles of this machine, in pprof's format.\n"
    "\n"
    "profile?seconds=30   CPU time of the next 30 seconds (1 to 600)\n"
    "    &pid=N           of a process\n"
    "    &comm=NAME       of processes with this name\n"
    "    &label=NAME=VALUE  of processes with this label\n"
    "  These may be repeated: any of the pids, of the names, of the values of a label.\n"
    "\n"
    "go tool pprof http://ADDRESS/debug/pprof/profile?seconds=30\n";

}  // namespace

Endpoints::Endpoints(AgentView& agent, Options options)
    : agent_(agent), options_(std::move(options)), access_(options_.bearer_token_file) {}

Reply Endpoints::Answer(const Call& call) {
  if (call.loopback && !call.host.empty() && access_.MayBeForeign(call.host)) {
    return Refusal(403,
                   "This server answers on a loopback address only to names of this machine: "
                   "use localhost or the address.");
  }
  if (call.method != "GET" && call.method != "HEAD") {
    Reply reply = Refusal(405, "Only GET and HEAD.");
    reply.headers.emplace_back("Allow", "GET, HEAD");
    return reply;
  }
  // Kubernetes and load balancers have no token.
  if (call.path == "/healthz") return Health(agent_.WhyNotHealthy());
  if (call.path == "/readyz") return Health(agent_.WhyNotReady());
  if (!access_.MayAsk(call.authorization)) {
    Reply reply = Refusal(401, "This server wants its bearer token.");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"pyrometer\"");
    reply.headers.emplace_back("WWW-Authenticate",
                               "Basic realm=\"pyrometer: the token is the password\"");
    return reply;
  }
  return AnswerAdmitted(call);
}

Reply Endpoints::AnswerAdmitted(const Call& call) {
  if (call.path == "/") return Page();
  if (call.path == "/api/status") {
    return {.body = StatusJson(Status()), .type = "application/json"};
  }
  if (call.path == "/flamegraph") return FlameGraph(call);
  if (call.path == "/explain") return Explain(call);
  if (call.path == "/metrics") return Metrics();
  if (call.path == "/debug/pprof" || call.path == "/debug/pprof/") {
    return {.body = std::string(kProfileIndex)};
  }
  if (call.path == "/debug/pprof/profile") return Profile(call);
  return Refusal(404, "There is no such page.");
}

Reply Endpoints::Health(const std::vector<std::string>& reasons) const {
  if (reasons.empty()) return {.body = "ok\n"};
  Reply reply{.status = 503};
  for (const std::string& reason : reasons) reply.body += reason + "\n";
  return reply;
}

Reply Endpoints::Metrics() {
  return {.body = MetricsText(agent_.Metrics()),
          .type = "text/plain; version=0.0.4; charset=utf-8"};
}

Reply Endpoints::Page() {
  return {.body = StatusPage(Status()),
          .type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy", StatusPagePolicy()}}};
}

AgentStatus Endpoints::Status() {
  AgentStatus status = agent_.Status();
  for (std::string& trouble : options_.troubles()) status.warnings.push_back(std::move(trouble));
  return status;
}

Reply Endpoints::FlameGraph(const Call& call) {
  const Result<ProfileQuery> query = ParseFlameGraphQuery(call.parameters);
  if (!query) return Refusal(400, query.error().message());
  // Making one takes a CPU for up to a second, which is not to be multiplied by impatient reloads.
  constexpr uint32_t kAtOnce = 2;
  const Place place(flame_graphs_, kAtOnce);
  if (!place.granted()) return Refusal(503, "Other flame graphs are being made; try again.");
  Result<std::string> page = agent_.FlameGraph(*query);
  if (!page) return Refusal(500, page.error().message());
  // Names of profiled programs are in it, so it is a stranger to the status page, wherever it is
  // opened. What else it may do, its own policy says.
  return {.body = *std::move(page),
          .type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy",
                       "sandbox allow-scripts; connect-src 'none'; form-action 'none'; "
                       "frame-ancestors 'self'"}}};
}

Reply Endpoints::Explain(const Call& call) {
  const Result<Pid> pid = ParsePid(call.parameters);
  if (!pid) return Refusal(400, pid.error().message());
  const Result<std::string> told = agent_.Explain(*pid, call.client_gone());
  if (!told && told.error().code() == ErrorCode::kNotFound) {
    return Refusal(404, told.error().message());
  }
  if (!told && told.error().code() == ErrorCode::kExhausted) {
    return Refusal(503, told.error().message());
  }
  if (!told) return Refusal(500, told.error().message());
  return {.body = ExplanationPage(*pid, *told),
          .type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy", StatusPagePolicy()}}};
}

Reply Endpoints::Profile(const Call& call) {
  const Result<ProfileQuery> query = ParseProfileQuery(call.parameters);
  if (!query) return ProfileRefusal(400, query.error().message());
  Reply reply{.type = "application/octet-stream"};
  reply.headers.emplace_back("Content-Disposition", "attachment; filename=\"profile\"");
  if (call.method == "HEAD") return reply;
  const Place place(profiles_, options_.max_profiles);
  if (!place.granted()) {
    Reply refusal = ProfileRefusal(
        503, fmt::format("{} profiles are being collected already, and no more at once; try again "
                         "when one has ended.",
                         options_.max_profiles));
    refusal.headers.emplace_back("Retry-After", std::to_string(query->duration.count()));
    return refusal;
  }
  Result<std::string> profile = agent_.CollectProfile(*query, call.client_gone());
  if (!profile) return ProfileRefusal(500, profile.error().message());
  reply.body = *std::move(profile);
  return reply;
}

}  // namespace pyrometer
