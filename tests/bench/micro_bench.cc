// SPDX-License-Identifier: Apache-2.0
// What the steps between the kernel's maps and a written profile cost, each alone.
#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <random>
#include <utility>

#include "base/unique_fd.h"
#include "foreign/in_process_indexer.h"
#include "process/window_resolver.h"
#include "profile/folded.h"
#include "profile/html.h"
#include "profile/pprof.h"
#include "profile/profile_builder.h"
#include "symbolize/demangle.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/symbolizer.h"
#include "tests/bench/made_up_window.h"

namespace pyrometer::bench {
namespace {

// As many as a window of 5 s on 8 busy CPUs at 99 Hz has ticks.
constexpr size_t kWindowStacks = 4'000;
constexpr size_t kProfileStacks = 50'000;
constexpr int64_t kWindowFrames = int64_t{kWindowStacks} * MadeUp::kUserFrames;

class MadeUpObjects : public ObjectSource {
 public:
  std::optional<ObjectDescription> Describe(ObjectId) override {
    return ObjectDescription{.path = "/usr/lib/libshop.so", .build_id = {}, .segments = {}};
  }
  SymbolAnswer Symbols(ObjectId object, DebugInfo /*debug_info*/) override {
    return {.table = std::make_shared<const SymbolTable>(MakeSymbolTable(object))};
  }
};

class NoPerfMaps : public PerfMapSource {
 public:
  Result<UniqueFd> Open(ProcessKey) override { return Fail(ErrorCode::kNotFound, "none"); }
  Result<std::optional<PerfMapFunction>> Read(int, const PerfMapPart&, PerfMapSink) override {
    return Fail(ErrorCode::kNotFound, "none");
  }
};

class NoJitDumps : public JitDumpSource {
 public:
  std::vector<Use> DumpsOf(ProcessKey) override { return {}; }
  Result<UniqueFd> OpenDump(File) override { return Fail(ErrorCode::kNotFound, "none"); }
  Result<bool> Read(int, const JitDumpPart&, JitDumpSink) override {
    return Fail(ErrorCode::kNotFound, "none");
  }
};

void FindSymbol(benchmark::State& state) {
  const SymbolTable table = MakeSymbolTable(ObjectId(1));
  std::mt19937 random(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.Find(ElfAddress(0x1000 + random() % (MadeUp::kFunctions * 64))));
  }
}
BENCHMARK(FindSymbol);

void DemangleName(benchmark::State& state) {
  const std::string name = MangledName(1, 1234);
  for (auto _ : state) benchmark::DoNotOptimize(Demangle(name));
}
BENCHMARK(DemangleName);

void ReadSymbolsOf(benchmark::State& state, const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  InProcessIndexer indexer;
  const Result<Made<SymbolTable>> made = indexer.Symbols({.own = file.get()}, {});
  if (!made) state.SkipWithError("there is no such file here");
  for (auto _ : state) benchmark::DoNotOptimize(indexer.Symbols({.own = file.get()}, {}));
  state.counters["functions"] = made ? static_cast<double>(made->value.size()) : 0;
}
// Some tens of thousands of functions.
BENCHMARK_CAPTURE(ReadSymbolsOf, this_program, "/proc/self/exe")->Unit(benchmark::kMillisecond);
// Stripped: the names of exported functions, and the bounds of all.
BENCHMARK_CAPTURE(ReadSymbolsOf, libLLVM, "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1")
    ->Unit(benchmark::kMillisecond);

void CompileUnwindTableOf(benchmark::State& state, const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  InProcessIndexer indexer;
  const FilesToRead files{.own = file.get()};
  const Result<Made<UnwindTable>> made = indexer.Unwind(files, {});
  const size_t rows = made ? made->value.row_count() : 0;
  if (rows == 0) state.SkipWithError("there is no such file here");
  for (auto _ : state) benchmark::DoNotOptimize(indexer.Unwind(files, {}));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(rows));
  state.counters["rows"] = static_cast<double>(rows);
}
BENCHMARK_CAPTURE(CompileUnwindTableOf, this_program, "/proc/self/exe")
    ->Unit(benchmark::kMillisecond);

// What it costs to find out that a file has the content of another.
void CompareContentOf(benchmark::State& state, const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  InProcessIndexer indexer;
  const FilesToRead files{.own = file.get()};
  const Result<Made<UnwindTable>> made = indexer.Unwind(files, {});
  if (!made) state.SkipWithError("there is no such file here");
  for (auto _ : state) benchmark::DoNotOptimize(made && *indexer.Repeats(files, made->reading));
}
BENCHMARK_CAPTURE(CompareContentOf, libc, "/lib/x86_64-linux-gnu/libc.so.6");
BENCHMARK_CAPTURE(CompareContentOf, libLLVM, "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1");

// The largest of Debian 12's libraries, and a dependency of clang.
BENCHMARK_CAPTURE(CompileUnwindTableOf, libLLVM, "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1")
    ->Unit(benchmark::kMillisecond);

void ReadKernelSymbols(benchmark::State& state) {
  for (auto _ : state) {
    const Result<KernelSymbols> symbols = KernelSymbols::Load(Procfs{});
    if (!symbols) state.SkipWithError("the kernel hides its symbols");
  }
}
BENCHMARK(ReadKernelSymbols)->Unit(benchmark::kMillisecond);

// Every user frame an address that the kernel side could not place: the worst case.
void ResolveAddressesOfAWindow(benchmark::State& state) {
  const ProcessTable processes = MakeProcesses();
  const Window window = MakeWindow(kWindowStacks, UserFrames::kAddresses, 1);
  ResolveTally tally;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ResolveWindow(window, processes, tally));
  }
  state.SetItemsProcessed(state.iterations() * kWindowFrames);
}
BENCHMARK(ResolveAddressesOfAWindow)->Unit(benchmark::kMillisecond);

// The usual case: the kernel side has placed every frame.
void ResolveNormalizedWindow(benchmark::State& state) {
  const ProcessTable processes = MakeProcesses();
  const Window window = MakeWindow(kWindowStacks, UserFrames::kNormalized, 1);
  ResolveTally tally;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ResolveWindow(window, processes, tally));
  }
  state.SetItemsProcessed(state.iterations() * kWindowFrames);
}
BENCHMARK(ResolveNormalizedWindow)->Unit(benchmark::kMillisecond);

// Windows whose functions have been seen before, as nearly all have after the first.
void NameAWindow(benchmark::State& state) {
  MadeUpObjects objects;
  NoPerfMaps perf_maps;
  NoJitDumps dumps;
  Symbolizer symbolizer({objects, perf_maps, dumps}, KernelSymbols(), Symbolizer::Options{});
  const Window window = MakeWindow(kWindowStacks, UserFrames::kNormalized, 1);
  benchmark::DoNotOptimize(symbolizer.Name(window));
  for (auto _ : state) benchmark::DoNotOptimize(symbolizer.Name(window));
  state.SetItemsProcessed(state.iterations() * kWindowFrames);
}
BENCHMARK(NameAWindow)->Unit(benchmark::kMillisecond);

void NameTheFirstWindow(benchmark::State& state) {
  MadeUpObjects objects;
  NoPerfMaps perf_maps;
  NoJitDumps dumps;
  const Window window = MakeWindow(kWindowStacks, UserFrames::kNormalized, 1);
  for (auto _ : state) {
    Symbolizer symbolizer({objects, perf_maps, dumps}, KernelSymbols(), Symbolizer::Options{});
    benchmark::DoNotOptimize(symbolizer.Name(window));
  }
  state.counters["functions"] = MadeUp::kFunctions;
}
BENCHMARK(NameTheFirstWindow)->Unit(benchmark::kMillisecond);

void AddAWindowToAProfile(benchmark::State& state) {
  const NamedWindow window = MakeNamedWindow(kWindowStacks, MakeLocations(), 1);
  ProfileBuilder builder({.labels = {}});
  for (auto _ : state) builder.Add(window);
  state.SetItemsProcessed(state.iterations() * int64_t{kWindowStacks});
}
BENCHMARK(AddAWindowToAProfile)->Unit(benchmark::kMillisecond);

Profile MakeProfile() {
  ProfileBuilder builder({.labels = {}});
  const std::vector<LocationRef> locations = MakeLocations();
  builder.Add(MakeNamedWindow(kProfileStacks, locations, 1));
  return std::move(builder).Finish();
}

template <auto kEncode>
void Encode(benchmark::State& state) {
  const Profile profile = MakeProfile();
  size_t bytes = 0;
  for (auto _ : state) bytes = kEncode(profile).size();
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["stacks"] = static_cast<double>(profile.samples.size());
}
std::string EncodePage(const Profile& profile) {
  return EncodeHtml(profile);
}
BENCHMARK(Encode<EncodePprof>)->Name("Encode50kStacks/pprof")->Unit(benchmark::kMillisecond);
BENCHMARK(Encode<EncodeFolded>)->Name("Encode50kStacks/folded")->Unit(benchmark::kMillisecond);
BENCHMARK(Encode<EncodePage>)->Name("Encode50kStacks/html")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pyrometer::bench

BENCHMARK_MAIN();
