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
  return std::move(builder).Build(ParseModuleEnds(modules));
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
  return KernelSymbol{names_.data() + function.name, module_names_[modules_[index]],
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

void KernelSymbols::ForgetRemoved() {
  absl::erase_if(live_, [](const auto& entry) { return entry.second.removed; });
}

}  // namespace pyrometer
