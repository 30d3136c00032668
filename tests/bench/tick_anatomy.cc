// SPDX-License-Identifier: Apache-2.0
// tick_anatomy PID SECONDS: what each part of a tick takes, in a recording of the whole machine.
// Runs the sampling program with a clock in it, 99 times a second on each CPU, over the maps of
// the recorder PID, which must be at work. Prints a line for each part: its name, the nanoseconds
// that it took, how many times it was run; the marks themselves are among the parts.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "bpf/tick_parts.h"
#include "pyrometer/abi/sampler.h"
#include "tick_anatomy.skel.h"

namespace pyrometer {
namespace {

constexpr uint64_t kHertz = 99;
constexpr uint32_t kWindowEntries = 32768;
constexpr uint32_t kJournalBytes = 1 << 20;
// Maps that only the recorder fills: the process table, mappings and unwind tables.
constexpr std::array kShared = {"processes",   "mapping_pool", "object_tables",
                                "table_pages", "unwind_rules", "chunks"};
constexpr std::array<const char*, TICK_PARTS> kNames = {
    "-",    "entry", "kernel stack", "registers", "process", "mapping",
    "page", "rows",  "step",         "store",     "count",   "mark"};

struct CloseSkeleton {
  void operator()(tick_anatomy_bpf* skeleton) const { tick_anatomy_bpf__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<tick_anatomy_bpf, CloseSkeleton>;

[[noreturn]] void Die(std::string_view message) {
  fmt::print(stderr, "tick_anatomy: {}\n", message);
  std::exit(1);
}

// By name, the maps that the process has open.
std::map<std::string, UniqueFd> MapsOf(std::string_view pid) {
  std::map<std::string, UniqueFd> maps;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fdinfo", pid))) {
    std::ifstream file(entry.path());
    for (std::string field; file >> field;) {
      uint32_t id = 0;
      if (field != "map_id:" || !(file >> id)) continue;
      UniqueFd fd(bpf_map_get_fd_by_id(id));
      bpf_map_info info{};
      uint32_t size = sizeof(info);
      if (bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0) maps[info.name] = std::move(fd);
    }
  }
  return maps;
}

void MakeWindows(tick_anatomy_bpf& skeleton) {
  const auto cpus = static_cast<uint32_t>(libbpf_num_possible_cpus());
  bpf_map__set_value_size(skeleton.maps.journals, kJournalBytes);
  bpf_map__set_max_entries(skeleton.maps.journals, cpus * PYRO_PROGRAMS * 2);
  skeleton.rodata->journal_bytes = kJournalBytes;
  for (bpf_map* map : {skeleton.maps.counts_0, skeleton.maps.counts_1, skeleton.maps.small_0,
                       skeleton.maps.small_1, skeleton.maps.medium_0, skeleton.maps.medium_1}) {
    bpf_map__set_max_entries(map, kWindowEntries);
  }
  bpf_map__set_max_entries(skeleton.maps.large_0, 1024);
  bpf_map__set_max_entries(skeleton.maps.large_1, 1024);
}

Skeleton Load(std::string_view pid) {
  Skeleton skeleton(tick_anatomy_bpf__open());
  if (!skeleton) Die("the BPF object cannot be opened");
  const std::map<std::string, UniqueFd> maps = MapsOf(pid);
  for (const char* name : kShared) {
    const auto known = maps.find(name);
    if (known == maps.end()) Die(fmt::format("process {} has no map {}", pid, name));
    if (bpf_map__reuse_fd(bpf_object__find_map_by_name(skeleton->obj, name), known->second.get()))
      Die(fmt::format("map {} cannot be shared", name));
  }
  MakeWindows(*skeleton);
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton->obj) {
    bpf_program__set_autoload(program, program == skeleton->progs.pyro_tick);
  }
  if (tick_anatomy_bpf__load(skeleton.get())) Die("the BPF program cannot be loaded");
  return skeleton;
}

UniqueFd Attach(int program, int cpu) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = 1000000000 / kHertz;
  UniqueFd event(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, 0)));
  if (!event) Die("perf_event_open failed");
  if (::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program)) Die("the program cannot be attached");
  return event;
}

void Print(const tick_anatomy_bpf& skeleton, int cpus) {
  std::vector<tick_parts> by_cpu(static_cast<size_t>(cpus));
  const uint32_t zero = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(skeleton.maps.parts), &zero, by_cpu.data()))
    Die("the parts cannot be read");
  for (size_t part = 0; part < kNames.size(); ++part) {
    uint64_t ns = 0;
    uint64_t count = 0;
    for (const tick_parts& of_cpu : by_cpu) ns += of_cpu.ns[part], count += of_cpu.count[part];
    fmt::print("{}\t{}\t{}\n", kNames[part], ns, count);
  }
}

void Run(std::string_view pid, std::chrono::duration<double> time) {
  const Skeleton skeleton = Load(pid);
  const int cpus = libbpf_num_possible_cpus();
  std::vector<UniqueFd> events;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    events.push_back(Attach(bpf_program__fd(skeleton->progs.pyro_tick), cpu));
  }
  std::this_thread::sleep_for(time);
  events.clear();
  Print(*skeleton, cpus);
}

}  // namespace
}  // namespace pyrometer

int main(int argc, char** argv) {
  if (argc != 3) pyrometer::Die("usage: tick_anatomy PID SECONDS");
  pyrometer::Run(argv[1], std::chrono::duration<double>(std::stod(argv[2])));
}
