// SPDX-License-Identifier: Apache-2.0
// made_up_agent FLAMEGRAPH.html: the agent's server with an agent that is made up. Prints its
// address, and lives until standard input ends. Each line of input is the state it is in from then
// on, "well" or "ill"; the answer is which flame graph was asked for last: "60 pod=web-0".
#include <atomic>
#include <iostream>
#include <mutex>
#include <string>

#include "base/file.h"
#include "server/http_server.h"

namespace pyrometer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr WallTime kNow = std::chrono::sys_days{std::chrono::year{2026} / 11 / 22} + hours(20);

SinkStatus Working() {
  return {.name = "pyroscope",
          .type = "pyroscope",
          .address = "https://pyroscope.monitoring.example:4040",
          .sent = 184'203,
          .rejected = 0,
          .retried = 12,
          .bytes = uint64_t{731} << 20,
          .last_error = "HTTP 503: the ring has no healthy ingester",
          .last_error_at = kNow - hours(9)};
}

SinkStatus Failing() {
  return {.name = "parca <b>west</b>",
          .type = "parca",
          .address = "parca.west.example:7070",
          .state = SinkStatus::State::kFailing,
          .behind = minutes(187),
          .queued = 64,
          .spooled = 3120,
          .spooled_bytes = uint64_t{212} << 20,
          .sent = 90'210,
          .rejected = 3,
          .retried = 411,
          .bytes = uint64_t{301} << 20,
          .dropped_samples = {{"spool_full", 12'345}, {"rejected", 77}},
          .last_error = "UNAVAILABLE: <img src=x onerror=\"document.title='injected'\">",
          .last_error_at = kNow - seconds(4)};
}

SinkStatus Files() {
  return {.name = "files",
          .type = "file",
          .address = "/var/lib/pyrometer/profiles",
          .sent = 92'110,
          .bytes = uint64_t{402} << 20};
}

AgentStatus Well() {
  AgentStatus status;
  status.host = "node-7.<i>example</i>";
  status.version = "0.1.0";
  status.labels = {{"cluster", "blue"}, {"zone", "a&b"}};
  status.sampling = {.frequency = {99},
                     .configured = {99},
                     .cpus = 64,
                     .since = kNow - hours(60),
                     .window = seconds(10),
                     .filters = {},
                     .windows = 21'600,
                     .last_window = kNow,
                     .processes = 412,
                     .ticks = {.exported = 412'345'678,
                               .idle = 937'001'002,
                               .filtered = 0,
                               .lost = {},
                               .undelivered = 3021},
                     .cuts = {{"truncated", 1200}, {"no unwind information", 80'012}}};
  status.sampling.ticks.lost[Accounting::kStackMapFull] = 912;
  status.sinks = {Working(), Files()};
  status.choices = {
      {.name = "namespace", .values = {{"shop", 900}, {"kube-system", 120}}, .left_out = 0},
      {.name = "pod",
       .values = {{"web-7c5b8d9f6-x2x4z", 700}, {"db-0", 200}, {"\"><b>pod</b>", 12}},
       .left_out = 1234}};
  status.cost = {.cpu_cores = 0.0043,
                 .cpu_limit = 0.64,
                 .resident_bytes = uint64_t{61} << 20,
                 .kernel_bytes = uint64_t{38} << 20,
                 .memory_limit = uint64_t{256} << 20};
  return status;
}

AgentStatus Ill() {
  AgentStatus status = Well();
  status.sampling.frequency = {49};
  status.sampling.filters = {
      "only processes named </section><script>document.title='injected'</script>",
      "not /system.slice/backup.service"};
  status.sampling.ticks.filtered = 61'002'003;
  status.sampling.ticks.lost[Accounting::kWindowDropped] = 30'000'000;
  status.sinks.push_back(Failing());
  status.sinks[0].state = SinkStatus::State::kBehind;
  status.sinks[0].behind = milliseconds(72'400);
  status.warnings = {"The spool's disk is full; the oldest profiles are being dropped."};
  return status;
}

class MadeUpAgent : public AgentView {
 public:
  explicit MadeUpAgent(std::string page) : page_(std::move(page)) {}

  std::vector<Metric> Metrics() override { return {}; }
  AgentStatus Status() override { return is_ill ? Ill() : Well(); }
  std::vector<std::string> WhyNotHealthy() override { return {}; }
  std::vector<std::string> WhyNotReady() override { return {}; }
  Result<std::string> FlameGraph(const ProfileQuery& query) override {
    const std::lock_guard lock(mutex_);
    last_query_ = std::to_string(query.duration.count()) + " " + InWords(query);
    return page_;
  }
  Result<std::string> Explain(Pid pid) override {
    return "process " + std::to_string(pid.value()) + "\nlabels of its samples:\n  pod \"<b>\"\n";
  }
  Result<std::string> CollectProfile(const ProfileQuery& /*query*/,
                                     const std::stop_token& /*stop*/) override {
    return std::string("profile");
  }

  std::atomic<bool> is_ill = false;

  std::string last_query() {
    const std::lock_guard lock(mutex_);
    return last_query_;
  }

 private:
  const std::string page_;
  std::mutex mutex_;
  std::string last_query_;
};

int Run(const std::string& page_file) {
  const Result<std::string> page = ReadFile(page_file);
  if (!page) {
    std::cerr << page.error().message() << "\n";
    return 1;
  }
  const Clock clock;
  MadeUpAgent agent(*page);
  const auto server = HttpServer::Start(agent, {.clock = clock, .listen = "127.0.0.1:0"});
  if (!server) {
    std::cerr << server.error().message() << "\n";
    return 1;
  }
  std::cout << (*server)->address() << std::endl;
  for (std::string state; std::getline(std::cin, state);) {
    agent.is_ill = state == "ill";
    std::cout << agent.last_query() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace pyrometer

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: made_up_agent FLAMEGRAPH.html\n";
    return 2;
  }
  return pyrometer::Run(argv[1]);
}
