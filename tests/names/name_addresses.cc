// SPDX-License-Identifier: Apache-2.0
// Names addresses as the recorder does, with the same sandbox, symbol tables and source maps:
//
//   name_addresses [--debug DEBUGFILE] [--kernel] [--no-sandbox] [--cost] [--repeat N] FILE
//
// Standard input: addresses in the ELF's own space, or of the kernel, in hexadecimal, one a line.
// Standard output: for each, in the same order, a line of JSON: frames, innermost first, each with
// its function (demangled), name (as in the file), source file and line; an empty list if it has no
// name. With --cost a last line says what it took.
#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "indexer/in_process_indexer.h"
#include "indexer/sandboxed_indexer.h"
#include "symbolize/demangle.h"
#include "symbolize/symbolizer.h"
#include "tests/names/one_file.h"
#include "tests/names/process_cost.h"

namespace pyrometer {
namespace {

struct Options {
  std::string file;
  std::string debug;
  bool is_kernel = false;  // then there is no file
  bool sandbox = true;
  bool cost = false;
  int repeat = 1;  // times that the addresses are named, in as many windows
};

class NoPerfMaps : public JitSource {
 public:
  Result<UniqueFd> OpenPerfMap(ProcessKey /*process*/) override {
    return Fail(ErrorCode::kNotFound, "no perf map");
  }
};

// No file at all.
class NoObjects : public ObjectSource {
 public:
  std::optional<ObjectDescription> Describe(ObjectId /*object*/) override { return std::nullopt; }
  SymbolAnswer Symbols(ObjectId /*object*/) override { return {}; }
};

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

class Stopwatch {
 public:
  std::chrono::nanoseconds Elapsed() const { return Clock::now() - begin_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

std::vector<uint64_t> ReadAddresses() {
  std::vector<uint64_t> addresses;
  for (std::string line; std::getline(std::cin, line);) {
    addresses.push_back(std::stoull(line, nullptr, 16));
  }
  return addresses;
}

// Each address a stack of its own.
Window WindowOf(const std::vector<uint64_t>& addresses, bool is_kernel) {
  Window window;
  for (const uint64_t address : addresses) {
    window.stacks.push_back({.first_frame = static_cast<uint32_t>(window.frames.size()),
                             .kernel_frames = static_cast<uint16_t>(is_kernel ? 1 : 0),
                             .user_frames = static_cast<uint16_t>(is_kernel ? 0 : 1),
                             .end = StackEnd::kComplete});
    window.frames.push_back(is_kernel ? Frame::Kernel(KernelAddress(address))
                                      : Frame::Object(OneFile::kId, ElfAddress(address)));
  }
  return window;
}

nlohmann::json ToJson(const Location& location) {
  nlohmann::json frames = nlohmann::json::array();
  if (location.quality == NameQuality::kMadeUp) return frames;
  for (const Line& line : location.lines) {
    frames.push_back({{"function", line.function},
                      {"name", line.system_name},
                      {"file", line.file},
                      {"line", line.line}});
  }
  return frames;
}

Result<std::shared_ptr<Indexer>> StartIndexer(bool sandbox) {
  if (!sandbox) return std::shared_ptr<Indexer>(std::make_shared<InProcessIndexer>());
  ASSIGN_OR_RETURN(std::unique_ptr<SandboxedIndexer> indexer, SandboxedIndexer::Start({}));
  return std::shared_ptr<Indexer>(std::move(indexer));
}

// Names the addresses so often; the first time is that of a new window, later ones find what was
// remembered.
NamedWindow Name(Symbolizer& symbolizer, const std::vector<uint64_t>& addresses,
                 const Options& options, nlohmann::json& cost) {
  NamedWindow named;
  for (int i = 0; i < options.repeat; ++i) {
    Window window = WindowOf(addresses, options.is_kernel);
    const Stopwatch naming;
    named = symbolizer.Name(std::move(window));
    cost[i == 0 ? "first_naming_seconds" : "repeated_naming_seconds"] = Seconds(naming.Elapsed());
  }
  return named;
}

// What is left of naming where nothing but the map of source lines is asked.
double SecondsToFind(const SourceMap& sources, const std::vector<uint64_t>& addresses) {
  const Stopwatch finding;
  size_t frames = 0;
  for (const uint64_t address : addresses) frames += sources.Find(ElfAddress(address)).size();
  // Used, lest it be optimized away.
  return frames == 0 ? 0 : Seconds(finding.Elapsed());
}

// For a kernel's file with debug information, whose addresses are in no frame of an object.
nlohmann::json FindFrames(const OneFile& file, ElfAddress address) {
  std::vector<SourceFrame> found = file.sources().Find(address);
  if (std::optional<Symbol> symbol = file.symbols().Find(address);
      symbol && !symbol->name.empty()) {
    if (found.empty()) found.emplace_back();
    found.back().name = std::move(symbol->name);
  }
  nlohmann::json frames = nlohmann::json::array();
  if (found.empty() || found.back().name.empty()) return frames;
  for (const SourceFrame& frame : found) {
    frames.push_back({{"function", Demangle(frame.name)},
                      {"name", frame.name},
                      {"file", frame.path},
                      {"line", frame.line}});
  }
  return frames;
}

void AddCost(const OneFile& file, const ProcessCost& before, nlohmann::json& cost) {
  const ProcessCost own = CostOfThisProcess();
  const ProcessCost readers = CostOfReaders();
  cost["peak_growth"] = own.peak - std::min(own.peak, before.resident);
  cost["growth"] = own.resident - std::min(own.resident, before.resident);
  cost["peak"] = own.peak;
  cost["cpu_seconds"] = static_cast<double>(own.cpu - before.cpu) / 1e9;
  cost["reader_peak"] = readers.peak;
  cost["reader_cpu_seconds"] = static_cast<double>(readers.cpu) / 1e9;
  cost["symbols_in_memory"] = file.symbols().bytes();
  cost["symbols_spilled"] = file.symbols().spilled_bytes();
  cost["sources_in_memory"] = file.sources().bytes();
  cost["sources_spilled"] = file.sources().spilled_bytes();
}

void Print(const nlohmann::json& frames) {
  std::cout << frames.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void Print(const NamedWindow& named) {
  for (const LocationRef& location : named.locations) Print(ToJson(*location));
}

bool FitFrames(const std::vector<uint64_t>& addresses) {
  return std::ranges::all_of(addresses, [](uint64_t a) { return Frame::Fits(ElfAddress(a)); });
}

Result<void> NameKernel(const Options& options) {
  ASSIGN_OR_RETURN(KernelSymbols kernel, KernelSymbols::Load(Procfs{}));
  NoObjects objects;
  NoPerfMaps perf_maps;
  Symbolizer symbolizer(objects, perf_maps, std::move(kernel), {});
  nlohmann::json cost;
  Print(Name(symbolizer, ReadAddresses(), options, cost));
  if (options.cost) std::cout << cost << '\n';
  return {};
}

Result<void> NameFile(const Options& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Indexer> indexer, StartIndexer(options.sandbox));
  const std::vector<uint64_t> addresses = ReadAddresses();
  ForgetPeakOfThisProcess();
  const ProcessCost before = CostOfThisProcess();
  const Stopwatch reading;
  ASSIGN_OR_RETURN(const std::unique_ptr<OneFile> file,
                   OneFile::Open(indexer, options.file, options.debug));
  RETURN_IF_ERROR(file->ReadSymbols());
  nlohmann::json cost = {{"symbols_seconds", Seconds(reading.Elapsed())}};
  RETURN_IF_ERROR(file->ReadSources());
  cost["reading_seconds"] = Seconds(reading.Elapsed());
  AddCost(*file, before, cost);
  cost["first_finding_seconds"] = SecondsToFind(file->sources(), addresses);
  cost["repeated_finding_seconds"] = SecondsToFind(file->sources(), addresses);
  if (FitFrames(addresses)) {
    NoPerfMaps perf_maps;
    Symbolizer symbolizer(*file, perf_maps, {}, {});
    Print(Name(symbolizer, addresses, options, cost));
  } else {
    for (const uint64_t address : addresses) Print(FindFrames(*file, ElfAddress(address)));
  }
  if (options.cost) std::cout << cost << '\n';
  return {};
}

constexpr option kOptions[] = {
    {"debug", required_argument, nullptr, 'd'},  {"kernel", no_argument, nullptr, 'k'},
    {"no-sandbox", no_argument, nullptr, 'n'},   {"cost", no_argument, nullptr, 'c'},
    {"repeat", required_argument, nullptr, 'r'}, {}};

std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  for (int option = 0; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'd':
        options.debug = optarg;
        break;
      case 'k':
        options.is_kernel = true;
        break;
      case 'n':
        options.sandbox = false;
        break;
      case 'c':
        options.cost = true;
        break;
      case 'r':
        options.repeat = std::max(1, std::atoi(optarg));
        break;
      default:
        return std::nullopt;
    }
  }
  if (argc - optind != (options.is_kernel ? 0 : 1)) return std::nullopt;
  if (!options.is_kernel) options.file = argv[optind];
  return options;
}

}  // namespace
}  // namespace pyrometer

int main(int argc, char** argv) {
  using namespace pyrometer;
  const std::optional<Options> options = Parse(argc, argv);
  if (!options) {
    std::cerr << "usage: name_addresses [--debug DEBUGFILE] [--kernel] [--no-sandbox] [--cost] "
                 "[--repeat N] FILE\n";
    return 2;
  }
  const Result<void> done = options->is_kernel ? NameKernel(*options) : NameFile(*options);
  if (done) return 0;
  std::cerr << "name_addresses: " << done.error().message() << '\n';
  return 1;
}
