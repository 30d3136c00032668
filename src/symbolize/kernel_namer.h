// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/procfs.h"
#include "pyrometer/ids.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names kernel addresses: by symbol, in the object [kernel.kallsyms], [nf_tables] (a module) or
// [bpf]; without a symbol, as "[kernel]+0xffffffff81000000". The vsyscall page lies at a kernel
// address but is user code, and is named [vsyscall]. Not thread-safe.
//
// Modules come and go without an event, so their list (0.1 ms to read) is compared at the start of
// each window. If it has changed and a frame to be named may lie in a module, all symbols are read
// again (50 to 100 ms).
class KernelNamer : public FrameNamer {
 public:
  // Symbols that could not be read are tried again after this many windows.
  static constexpr uint32_t kRetryWindows = 30;

  // Symbols are read again from `procfs`; nothing: never. `counts` must outlive this.
  KernelNamer(KernelSymbols symbols, std::optional<Procfs> procfs, SymbolizerCounts& counts);

  // REQUIRES: events in order of time.
  void Apply(const KernelSymbolEvent& event);

  std::vector<FrameRange> BeginWindow(uint32_t window, MonotonicTime end) override;
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;
  void EndWindow(uint32_t unused_since) override;

 private:
  bool MayBeOutdated() const;
  void ReadAgain(uint32_t window);
  std::optional<KernelSymbol> Find(KernelAddress address, uint32_t window);
  std::shared_ptr<const CodeObject> ObjectOf(std::string_view module);

  KernelSymbols symbols_;
  std::optional<Procfs> procfs_;
  SymbolizerCounts& counts_;
  std::shared_ptr<const CodeObject> kernel_;
  std::shared_ptr<const CodeObject> vsyscall_;
  absl::flat_hash_map<std::string, std::shared_ptr<const CodeObject>> modules_;
  std::vector<FrameRange> changed_;  // since BeginWindow
  bool is_outdated_ = false;         // symbols_ lacks something, or has too much
  uint32_t next_check_ = 0;          // the first window in which to look
};

}  // namespace pyrometer
