// SPDX-License-Identifier: Apache-2.0
// denial_cost [SECONDS]: what the sampling program takes for a tick that it does not want, with and
// without denied cgroups, by how deep the task's cgroup is nested. Every other task is filtered,
// too, so that no stack is touched. As root; mounts cgroup2 for itself.
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "sampler/sampler.h"
#include "tests/shared/cgroup_directory.h"

namespace pyrometer {
namespace {

constexpr int kRounds = 5;

// One process that spins on each CPU.
class Load {
 public:
  Load() {
    for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu) {
      pids_.push_back(::fork());
      if (pids_.back() != 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ::sched_setaffinity(0, sizeof(one), &one);
      while (true) {
        asm volatile("");
      }
    }
  }
  ~Load() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  void MoveTo(const CgroupDirectory& cgroup) const {
    for (const pid_t pid : pids_) cgroup.Add(pid);
  }

 private:
  std::vector<pid_t> pids_;
};

struct Books {
  uint64_t runs = 0;
  uint64_t ns = 0;
};

Books BooksOf(const Sampler& sampler) {
  const UniqueFd fd(bpf_prog_get_fd_by_id(sampler.tick_program_id()));
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  bpf_obj_get_info_by_fd(fd.get(), &info, &size);
  return {.runs = info.run_cnt, .ns = info.run_time_ns};
}

// Nanoseconds a tick: the median of some rounds, as other work comes between.
double Measure(Sampler& sampler, std::chrono::milliseconds time) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const Books before = BooksOf(sampler);
    std::this_thread::sleep_for(time / kRounds);
    const Books after = BooksOf(sampler);
    rounds.push_back(static_cast<double>(after.ns - before.ns) /
                     static_cast<double>(std::max<uint64_t>(after.runs - before.runs, 1)));
  }
  std::ranges::sort(rounds);
  return rounds[kRounds / 2];
}

Result<void> Run(const std::string& mount, std::chrono::milliseconds time) {
  const UniqueFd statistics(bpf_enable_stats(BPF_STATS_RUN_TIME));
  const CgroupDirectory top(mount + "/pyrometer-denial-cost");
  const CgroupDirectory unrelated(mount + "/pyrometer-denial-cost-unrelated");
  std::vector<std::unique_ptr<CgroupDirectory>> nested;
  std::string path = top.path();
  for (int depth = 2; depth <= 8; ++depth) {
    path += "/x";
    nested.push_back(std::make_unique<CgroupDirectory>(path));
  }
  Sampler::Options options{.frequency = {1999}};
  options.filter.comms = {"nobody at all"};
  const Clock clock;
  ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler, Sampler::Load(options, clock));
  WindowSource& windows = sampler->windows();
  RETURN_IF_ERROR(windows.Start());
  fmt::print("{:>5} {:>14} {:>12} {:>16}\n", "depth", "none denied ns", "denied ns",
             "another's ns");
  for (const int depth : {1, 2, 4, 8}) {
    const Load load;
    load.MoveTo(depth == 1 ? top : *nested[static_cast<size_t>(depth) - 2]);
    const double none = Measure(*sampler, time);
    RETURN_IF_ERROR(windows.Deny(top.id()));
    const double denied = Measure(*sampler, time);
    windows.Allow(top.id());
    RETURN_IF_ERROR(windows.Deny(unrelated.id()));
    const double other = Measure(*sampler, time);
    windows.Allow(unrelated.id());
    fmt::print("{:>5} {:>14.0f} {:>12.0f} {:>16.0f}\n", depth, none, denied, other);
  }
  while (!nested.empty()) nested.pop_back();
  return {};
}

}  // namespace
}  // namespace pyrometer

int main(int argc, char** argv) {
  char directory[] = "/tmp/denial_cost.XXXXXX";
  if (::mkdtemp(directory) == nullptr || ::mount("none", directory, "cgroup2", 0, nullptr) != 0) {
    std::perror("mounting cgroup2");
    return 1;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const pyrometer::Result<void> result =
      pyrometer::Run(directory, std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
  ::umount2(directory, MNT_DETACH);
  ::rmdir(directory);
  if (result) return 0;
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  return 1;
}
