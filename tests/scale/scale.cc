// SPDX-License-Identifier: Apache-2.0
// scale [--NAME NUMBER]...: runs the engine's user space on a large machine that is made up, with a
// clock that runs fast, and prints for each day the most that it held. Exit status 1 if anything
// grows from the second day to the last, if a name is wrong, or if too few are right; 77 if it
// cannot run here. Names and their values if not given: see Scale.
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/abi/sampler.h"
#include "tests/scale/life.h"

namespace pyrometer::scale {
namespace {

constexpr int kSkipped = 77;

// After a window; or the most of a day, since what happens to be held at its end says little.
struct Held {
  uint64_t heap = 0;      // bytes
  uint64_t resident = 0;  // bytes
  uint64_t descriptors = 0;
  uint64_t objects = 0;
  uint64_t processes = 0;
  uint64_t remembered = 0;  // bytes, of processes and what they have mapped
  uint64_t pool = 0;        // mappings in the kernel
  uint64_t kernel_tables = 0;
  uint64_t rows = 0;
  uint64_t chunks = 0;   // that hold them
  uint64_t tables = 0;   // in user space
  uint64_t symbols = 0;  // bytes
};

uint64_t Resident() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t Descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<uint64_t>(std::distance(begin(open), end(open)));
}

uint64_t Heap() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// `empty`: the heap before anything happened.
Held Measure(const Engine& engine, uint64_t empty) {
  const Engine::Held held = engine.held();
  return {.heap = Heap() - empty,
          .resident = Resident(),
          .descriptors = Descriptors(),
          .objects = held.processes.objects,
          .processes = held.living,
          .remembered = held.processes.remembered_bytes,
          .pool = held.mappings.mappings,
          .kernel_tables = held.kernel_tables.tables,
          .rows = held.kernel_tables.rows,
          .chunks = held.kernel_tables.chunks,
          .tables = held.store.tables_kept,
          .symbols = held.names.symbol_table_bytes};
}

struct Limit {
  std::string_view what;
  uint64_t Held::*value;
  uint64_t slack;  // it may exceed what it was by this, and by a tenth
};
constexpr auto kLimits = std::to_array<Limit>({
    {"heap", &Held::heap, 1 << 20},
    {"resident memory", &Held::resident, 8 << 20},
    {"descriptors", &Held::descriptors, 16},
    {"processes", &Held::processes, 16},
    {"memory for processes", &Held::remembered, 64 << 10},
    {"objects", &Held::objects, 64},
    {"mappings in the kernel", &Held::pool, 1024},
    {"tables in the kernel", &Held::kernel_tables, 64},
    {"rows in the kernel", &Held::rows, 4096},
    {"chunks in the kernel", &Held::chunks, 1},
    {"tables in user space", &Held::tables, 64},
    {"symbols", &Held::symbols, 1 << 20},
});

void KeepMost(const Held& now, Held& most) {
  for (const Limit& limit : kLimits) {
    most.*limit.value = std::max(most.*limit.value, now.*limit.value);
  }
}

// Says what is more on the last day than it was on the second; false if anything is.
bool IsSteady(const Held& then, const Held& now) {
  bool steady = true;
  for (const auto& [what, value, slack] : kLimits) {
    if (now.*value <= then.*value + then.*value / 10 + slack) continue;
    fmt::print("GREW: {}, from {} to {}\n", what, then.*value, now.*value);
    steady = false;
  }
  return steady;
}

bool IsNamed(const Tally& tally, const SymbolizerCounts& names) {
  if (tally.wrong == 0 && tally.right > 9 * tally.unnamed) return true;
  fmt::print("MISNAMED: {} frames right, {} unnamed, {} wrong\n", tally.right, tally.unnamed,
             tally.wrong);
  for (size_t i = 0; i < kUnresolvedReasons; ++i) {
    if (names.unresolved[i] == 0) continue;
    fmt::print("{} locations: {}\n", names.unresolved[i], Name(static_cast<Unresolved>(i)));
  }
  return false;
}

constexpr std::string_view kHeader =
    "| day | events | us each | ms a window | heap MB | RSS MB | fds | objects | living "
    "| processes KB | mappings | kernel tables | rows | chunks | tables | symbols KB |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

double Megabytes(uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

void Print(uint32_t day, const Held& held, const Engine::Spent& spent) {
  fmt::print(
      "| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {} | {} | {} | {} | {} | {} | {} | {} | {} "
      "| {} |\n",
      day, spent.events, 1e6 * spent.on_events / static_cast<double>(spent.events),
      1e3 * spent.on_windows / static_cast<double>(spent.windows), Megabytes(held.heap),
      Megabytes(held.resident), held.descriptors, held.objects, held.processes,
      held.remembered / 1000, held.pool, held.kernel_tables, held.rows, held.chunks, held.tables,
      held.symbols / 1000);
  std::fflush(stdout);
}

bool Run(const Scale& scale) {
  Fleet fleet(scale);
  SimulatedClock clock;
  Engine engine(fleet.procfs(), clock, 1 << 18);
  const uint64_t empty = Heap();
  Life life(scale, fleet, engine, clock);
  life.Begin();
  fmt::print(kHeader);
  engine.TakeSpent();
  Held second;
  Held last;
  for (uint32_t day = 1; day <= scale.days; ++day) {
    last = {};
    life.RunDay([&] {
      engine.AwaitFiles();
      KeepMost(Measure(engine, empty), last);
    });
    if (day <= 2) second = last;
    Print(day, last, engine.TakeSpent());
  }
  const Tally& tally = life.tally();
  fmt::print("{} processes, {} containers; {} frames right, {} unnamed\n", tally.processes,
             tally.containers, tally.right, tally.unnamed);
  const bool steady = IsSteady(second, last);
  return IsNamed(tally, engine.held().names) && steady;
}

uint32_t* FieldOf(Scale& scale, std::string_view name) {
  if (name == "--cpus") return &scale.cpus;
  if (name == "--threads") return &scale.threads;
  if (name == "--containers") return &scale.containers;
  if (name == "--files") return &scale.files;
  if (name == "--processes") return &scale.processes_per_day;
  if (name == "--days") return &scale.days;
  if (name == "--window") return &scale.window_seconds;
  return nullptr;
}

bool Parse(int argc, char** argv, Scale& scale) {
  for (int i = 1; i < argc; i += 2) {
    uint32_t* const field = FieldOf(scale, argv[i]);
    if (field == nullptr || i + 1 == argc) return false;
    const char* const end = argv[i + 1] + std::strlen(argv[i + 1]);
    const auto [next, error] = std::from_chars(argv[i + 1], end, *field);
    if (error != std::errc() || next != end || *field == 0) return false;
  }
  return true;
}

}  // namespace
}  // namespace pyrometer::scale

int main(int argc, char** argv) {
  using namespace pyrometer;
  scale::Scale chosen;
  if (!scale::Parse(argc, argv, chosen)) return 2;
  const UniqueFd map(bpf_map_create(BPF_MAP_TYPE_HASH, "scale_probe", sizeof(uint32_t),
                                    sizeof(pyro_process), 1, nullptr));
  if (!map) {
    std::fputs("skipped: no right to make BPF maps\n", stderr);
    return scale::kSkipped;
  }
  return scale::Run(chosen) ? 0 : 1;
}
