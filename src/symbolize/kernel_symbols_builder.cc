// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_symbols_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "symbolize/better_name.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxSymbols = size_t{2} << 20;
constexpr size_t kMaxModules = 60000;
constexpr uint64_t kPage = 4096;
// kallsyms does not say how long a BPF program is. Few are longer, and programs lie side by side.
constexpr uint64_t kLongestBpfProgram = uint64_t{64} << 10;

constexpr std::string_view kBpf = "bpf";
constexpr std::string_view kTrampolines =
    "__builtin__";  // "__builtin__ftrace", "__builtin__kprobes"

// Global before weak before local; all of them before what is no code.
int Rank(char type) {
  switch (type) {
    case 'T':
      return 0;
    case 'W':
    case 'w':
      return 1;
    case 't':
      return 2;
    default:
      return 3;
  }
}

uint64_t EndOfPage(uint64_t address) {
  return (address | (kPage - 1)) + 1;
}

bool ComesAndGoes(std::string_view module) {
  return module == kBpf || module.starts_with(kTrampolines);
}

}  // namespace

Result<void> KernelSymbolsBuilder::Add(const KallsymsLine& line) {
  if (symbols_.size() >= kMaxSymbols || module_names_.size() >= kMaxModules) {
    return Fail(ErrorCode::kExhausted, "more than {} symbols or {} modules", kMaxSymbols,
                kMaxModules);
  }
  const auto [module, added] = module_indices_.try_emplace(
      std::string(line.module), static_cast<uint16_t>(module_names_.size()));
  if (added) module_names_.emplace_back(line.module);
  symbols_.push_back({.address = line.address,
                      .name = static_cast<uint32_t>(names_.size()),
                      .module = module->second,
                      .type = line.type});
  names_.append(line.name).push_back('\0');
  zeros_ = zeros_ && line.address == 0;
  return {};
}

// By address, at equal addresses the best name first, chosen as in SymbolTableBuilder.
bool KernelSymbolsBuilder::Before(const Candidate& a, const Candidate& b) const {
  if (a.address != b.address) return a.address < b.address;
  if (Rank(a.type) != Rank(b.type)) return Rank(a.type) < Rank(b.type);
  return BetterName(NameOf(a), NameOf(b));
}

uint64_t KernelSymbolsBuilder::AddressOf(std::string_view marker) const {
  const auto found = std::ranges::find_if(
      symbols_, [&](const Candidate& c) { return c.module == 0 && NameOf(c) == marker; });
  return found == symbols_.end() ? 0 : found->address;
}

KernelSymbols KernelSymbolsBuilder::Build(std::vector<KernelModule> modules) && {
  ModuleEnds module_ends;
  for (const KernelModule& module : modules) module_ends[module.name] = module.end;
  text_ = {AddressOf("_stext"), AddressOf("_etext")};
  init_text_ = {AddressOf("_sinittext"), AddressOf("_einittext")};
  std::ranges::sort(symbols_,
                    [this](const Candidate& a, const Candidate& b) { return Before(a, b); });
  KernelSymbols result;
  if (text_.start < text_.end) {
    result.text_start_ = KernelAddress(text_.start);
    result.text_end_ = KernelAddress(text_.end);
  }
  result.modules_ = std::move(modules);
  result.module_names_ = module_names_;
  for (size_t i = 0; i < symbols_.size();) {
    const Candidate& best = symbols_[i];
    while (i < symbols_.size() && symbols_[i].address == best.address) ++i;
    if (!IsText(best.type)) continue;
    uint64_t end = EndOf(best, module_ends);
    if (i < symbols_.size()) end = std::min(end, symbols_[i].address);
    if (end > best.address) Keep(best, end, result);
  }
  result.functions_.shrink_to_fit();
  result.module_of_.shrink_to_fit();
  result.names_.shrink_to_fit();
  return result;
}

// Where `c` ends if no other symbol follows. At most `c.address` if it is no code that can run.
uint64_t KernelSymbolsBuilder::EndOf(const Candidate& c, const ModuleEnds& module_ends) const {
  const std::string& module = module_names_[c.module];
  const uint64_t page_end = EndOfPage(c.address);  // 0 at the very top: then nothing is known
  if (module.empty()) {
    if (text_.start >= text_.end) return page_end;
    if (text_.Contains(c.address)) return text_.end;
    return init_text_.Contains(c.address) ? init_text_.end : 0;
  }
  if (module == kBpf) {
    return c.address > std::numeric_limits<uint64_t>::max() - kLongestBpfProgram
               ? page_end
               : c.address + kLongestBpfProgram;
  }
  const auto known = module_ends.find(module);
  return known == module_ends.end() ? page_end : known->second;
}

void KernelSymbolsBuilder::Keep(const Candidate& c, uint64_t end, KernelSymbols& result) const {
  const std::string& module = module_names_[c.module];
  if (ComesAndGoes(module)) {
    result.live_[c.address] = {.size = end - c.address,
                               .removed = false,
                               .name = std::string(NameOf(c)),
                               .module = module};
    return;
  }
  constexpr uint64_t kLongest = std::numeric_limits<uint32_t>::max();
  result.functions_.push_back({.start = c.address,
                               .size = static_cast<uint32_t>(std::min(end - c.address, kLongest)),
                               .name = static_cast<uint32_t>(result.names_.size())});
  result.module_of_.push_back(c.module);
  result.names_.append(NameOf(c)).push_back('\0');
}

}  // namespace pyrometer
