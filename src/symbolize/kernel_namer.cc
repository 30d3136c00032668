// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "symbolize/demangle.h"
#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

// VSYSCALL_ADDR, arch/x86/include/uapi/asm/vsyscall.h; no other architecture has code there.
constexpr uint64_t kVsyscallStart = 0xffffffffff600000;
constexpr uint64_t kVsyscallEnd = kVsyscallStart + 4096;

bool InVsyscallPage(KernelAddress a) {
  return a.value() >= kVsyscallStart && a.value() < kVsyscallEnd;
}

std::shared_ptr<const CodeObject> NamedObject(std::string path) {
  auto object = std::make_shared<CodeObject>();
  object->path = std::move(path);
  object->has_functions = true;
  return object;
}

std::shared_ptr<const CodeObject> KernelObject(const KernelSymbols& symbols) {
  auto object = std::make_shared<CodeObject>();
  object->path = "[kernel.kallsyms]";
  object->build_id = symbols.build_id();
  object->start = symbols.text_start().value();
  object->limit = symbols.text_end().value();
  object->has_functions = !symbols.empty();
  return object;
}

}  // namespace

KernelNamer::KernelNamer(KernelSymbols symbols, std::optional<Procfs> procfs,
                         SymbolizerCounts& counts)
    : symbols_(std::move(symbols)),
      procfs_(std::move(procfs)),
      counts_(counts),
      kernel_(KernelObject(symbols_)),
      vsyscall_(NamedObject("[vsyscall]")) {}

void KernelNamer::Apply(const KernelSymbolEvent& event) {
  symbols_.Apply(event);
  if (event.removed || event.size == 0) return;
  const uint64_t start = event.address.value();
  const uint64_t last = start + std::min<uint64_t>(event.size - 1, ~start);
  changed_.push_back({Frame(start), Frame(last)});
}

std::vector<FrameRange> KernelNamer::BeginWindow(uint32_t window, MonotonicTime /*end*/) {
  is_outdated_ = window >= next_check_ && MayBeOutdated();
  if (is_outdated_) {
    // All but the kernel's own code, where nothing comes and goes.
    const Frame begin = Frame(symbols_.text_start().value());
    const Frame end = Frame(symbols_.text_end().value());
    const Frame first = Frame(PYRO_FRAME_KERNEL << PYRO_FRAME_KIND_SHIFT);
    const Frame last = Frame(~uint64_t{0});
    changed_.push_back({first, std::max(first, begin)});
    changed_.push_back({std::max(first, end), last});
  }
  return std::exchange(changed_, {});
}

bool KernelNamer::MayBeOutdated() const {
  if (!procfs_) return false;
  return !symbols_.has_functions() || symbols_.modules() != KernelSymbols::ModulesNow(*procfs_);
}

void KernelNamer::ReadAgain(uint32_t window) {
  is_outdated_ = false;
  ++counts_.kernel_symbols_read;
  Result<KernelSymbols> now = KernelSymbols::Load(*procfs_);
  if (!now) {
    next_check_ = window + kRetryWindows;
    return;
  }
  const bool is_first = !symbols_.has_functions();
  symbols_.Update(*std::move(now));
  if (is_first) kernel_ = KernelObject(symbols_);
}

std::optional<KernelSymbol> KernelNamer::Find(KernelAddress address, uint32_t window) {
  const std::optional<KernelSymbol> symbol = symbols_.Find(address);
  if (!is_outdated_ || (symbol && symbol->module.empty())) return symbol;
  ReadAgain(window);
  return symbols_.Find(address);
}

LocationRef KernelNamer::Name(Frame frame, ProcessKey /*process*/, uint32_t window) {
  const KernelAddress address = frame.kernel_address();
  if (InVsyscallPage(address)) {
    return MakeLocation(CodeOrigin::kUser, vsyscall_, address.value(), SameName("[vsyscall]"));
  }
  const std::optional<KernelSymbol> symbol = Find(address, window);
  if (!symbol) {
    counts_.Add(Unresolved::kKernel);
    return MadeUpLocation(CodeOrigin::kKernel, kernel_, address.value(),
                          fmt::format("[kernel]+{:#x}", address.value()));
  }
  return MakeLocation(CodeOrigin::kKernel, ObjectOf(symbol->module), address.value(),
                      SameName(Printable(symbol->name, kMaxNameLength)));
}

void KernelNamer::EndWindow(uint32_t /*unused_since*/) {
  symbols_.ForgetRemoved();
}

std::shared_ptr<const CodeObject> KernelNamer::ObjectOf(std::string_view module) {
  if (module.empty()) return kernel_;
  std::shared_ptr<const CodeObject>& object = modules_[std::string(module)];
  if (object == nullptr) {
    object = NamedObject(fmt::format("[{}]", Printable(module, kMaxNameLength)));
  }
  return object;
}

}  // namespace pyrometer
