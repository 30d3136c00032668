// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_symbols.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "base/file.h"
#include "binary/notes.h"
#include "symbolize/kernel_symbols_builder.h"
#include "symbolize/line_reader.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMaxKallsymsBytes = uint64_t{256} << 20;
constexpr size_t kLongestLine = 1024;  // KSYM_NAME_LEN is 512 since 6.1
constexpr std::string_view kBpfPrefix = "bpf_";
// Of modules that have gone: those of ten large ones. With more, all are forgotten.
constexpr size_t kMaxGoneFunctions = 50'000;

Result<void> ReadLines(int fd, KernelSymbolsBuilder& builder) {
  LineReader lines(fd, 0, kMaxKallsymsBytes, kLongestLine);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines.Next());
    if (!line) return {};
    const std::optional<KallsymsLine> symbol = ParseKallsymsLine(*line);
    if (symbol) RETURN_IF_ERROR(builder.Add(*symbol));
  }
}

}  // namespace

Result<KernelSymbols> KernelSymbols::Load(const Procfs& procfs) {
  const std::string path = procfs.root + "/kallsyms";
  ASSIGN_OR_RETURN(const UniqueFd kallsyms, Open(path, O_RDONLY));
  // Neither file has to be there: a kernel may be without modules or build id.
  const std::string modules = ReadFile(procfs.root + "/modules").value_or(std::string());
  Result<KernelSymbols> symbols = Read(kallsyms.get(), modules);
  if (!symbols) return std::move(symbols).error().With(path);
  if (const Result<std::string> notes = ReadFile(procfs.sys + "/kernel/notes")) {
    symbols->build_id_ = FindBuildId(std::as_bytes(std::span(*notes)));
  }
  return symbols;
}

Result<KernelSymbols> KernelSymbols::Read(int kallsyms, std::string_view modules) {
  KernelSymbolsBuilder builder;
  RETURN_IF_ERROR(ReadLines(kallsyms, builder));
  if (builder.only_zeros()) {
    return Fail(
        ErrorCode::kPermission,
        "the kernel hides its addresses; run with CAP_SYSLOG or set kernel.kptr_restrict=0");
  }
  return std::move(builder).Build(ParseModules(modules));
}

std::optional<KernelSymbol> KernelSymbols::Find(KernelAddress address) const {
  const uint64_t a = address.value();
  if (auto next = live_.upper_bound(a); next != live_.begin()) {
    const auto& [start, function] = *std::prev(next);
    if (a - start < function.size) {
      return KernelSymbol{function.name, function.module, KernelAddress(start), function.size};
    }
  }
  const auto next = std::ranges::upper_bound(functions_, a, {}, &Function::start);
  if (next == functions_.begin()) return std::nullopt;
  const Function& function = *std::prev(next);
  if (a - function.start >= function.size) return std::nullopt;
  const auto index = static_cast<size_t>(std::prev(next) - functions_.begin());
  return KernelSymbol{names_.data() + function.name, module_names_[module_of_[index]],
                      KernelAddress(function.start), function.size};
}

void KernelSymbols::Apply(const KernelSymbolEvent& event) {
  const uint64_t start = event.address.value();
  if (event.removed) {
    if (const auto found = live_.find(start); found != live_.end()) found->second.removed = true;
    return;
  }
  if (event.size == 0 || event.name.empty()) return;
  const uint64_t size =
      std::min<uint64_t>(event.size, std::numeric_limits<uint64_t>::max() - start);
  auto first = live_.lower_bound(start);
  if (first != live_.begin()) {
    LiveFunction& before = std::prev(first)->second;
    before.size = std::min(before.size, start - std::prev(first)->first);
  }
  live_.erase(first, live_.lower_bound(start + size));
  live_[start] = {.size = size,
                  .removed = false,
                  .name = event.name,
                  .module = event.name.starts_with(kBpfPrefix) ? "bpf" : ""};
}

std::vector<KernelModule> KernelSymbols::ModulesNow(const Procfs& procfs) {
  return ParseModules(ReadFile(procfs.root + "/modules").value_or(std::string()));
}

void KernelSymbols::Update(KernelSymbols newer) {
  if (const std::vector<size_t> gone = GoneFrom(newer); gone.size() <= kMaxGoneFunctions) {
    newer.TakeFunctionsOf(*this, gone);
  }
  newer.TakeLiveOf(*this);
  *this = std::move(newer);
}

// True if a function or a module lies in some of `range`.
bool KernelSymbols::Occupies(const Function& range) const {
  const uint64_t end = range.start + range.size;
  const auto next = std::ranges::lower_bound(functions_, end, {}, &Function::start);
  if (next != functions_.begin() && range.start - std::prev(next)->start < std::prev(next)->size) {
    return true;
  }
  if (next != functions_.begin() && std::prev(next)->start >= range.start) return true;
  return std::ranges::any_of(
      modules_, [&](const KernelModule& m) { return m.start < end && range.start < m.end; });
}

// The functions of modules that are here and have nothing in their place in `newer`.
std::vector<size_t> KernelSymbols::GoneFrom(const KernelSymbols& newer) const {
  std::vector<size_t> gone;
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (module_names_[module_of_[i]].empty() || newer.Occupies(functions_[i])) continue;
    gone.push_back(i);
  }
  return gone;
}

std::optional<uint16_t> KernelSymbols::ModuleIndex(const std::string& name) {
  const auto known = std::ranges::find(module_names_, name);
  const auto index = static_cast<size_t>(known - module_names_.begin());
  if (index > std::numeric_limits<uint16_t>::max()) return std::nullopt;
  if (known == module_names_.end()) module_names_.push_back(name);
  return static_cast<uint16_t>(index);
}

// REQUIRES: they overlap nothing here, and are in order.
void KernelSymbols::TakeFunctionsOf(const KernelSymbols& older,
                                    const std::vector<size_t>& indices) {
  std::vector<Function> functions;
  std::vector<uint16_t> module_of;
  functions.reserve(functions_.size() + indices.size());
  module_of.reserve(functions.capacity());
  size_t here = 0;
  const auto take_until = [&](uint64_t address) {
    for (; here < functions_.size() && functions_[here].start < address; ++here) {
      functions.push_back(functions_[here]);
      module_of.push_back(module_of_[here]);
    }
  };
  for (const size_t i : indices) {
    Function function = older.functions_[i];
    const std::optional<uint16_t> module = ModuleIndex(older.module_names_[older.module_of_[i]]);
    if (!module) continue;
    take_until(function.start);
    const char* const name = older.names_.data() + function.name;
    function.name = static_cast<uint32_t>(names_.size());
    names_.append(name).push_back('\0');
    functions.push_back(function);
    module_of.push_back(*module);
  }
  take_until(std::numeric_limits<uint64_t>::max());
  functions_ = std::move(functions);
  module_of_ = std::move(module_of);
}

void KernelSymbols::TakeLiveOf(KernelSymbols& older) {
  absl::btree_map<uint64_t, LiveFunction> live = std::move(older.live_);
  for (auto& [start, function] : live_) {
    const auto next = live.lower_bound(start);
    const bool overlaps_next = next != live.end() && next->first - start < function.size;
    const bool overlaps_previous =
        next != live.begin() && start - std::prev(next)->first < std::prev(next)->second.size;
    if (!overlaps_next && !overlaps_previous) live.emplace_hint(next, start, std::move(function));
  }
  live_ = std::move(live);
}

void KernelSymbols::ForgetRemoved() {
  absl::erase_if(live_, [](const auto& entry) { return entry.second.removed; });
}

}  // namespace pyrometer
