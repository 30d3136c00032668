// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/ids.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names kernel addresses: by symbol, in the object [kernel.kallsyms], [nf_tables] (a module) or
// [bpf]; without one as "[kernel]+0xffffffff81000000". The vsyscall page, which is at a kernel
// address, is user code and named [vsyscall]. Not thread-safe.
class KernelNamer : public FrameNamer {
 public:
  // `counts` outlives this.
  KernelNamer(KernelSymbols symbols, SymbolizerCounts& counts);

  // REQUIRES: events in the order of time.
  void Apply(const KernelSymbolEvent& event);

  std::vector<FrameRange> BeginWindow(uint32_t window) override;
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;
  void EndWindow(uint32_t unused_since) override;

 private:
  std::shared_ptr<const CodeObject> ObjectOf(std::string_view module);

  KernelSymbols symbols_;
  SymbolizerCounts& counts_;
  std::shared_ptr<const CodeObject> kernel_;
  std::shared_ptr<const CodeObject> vsyscall_;
  absl::flat_hash_map<std::string, std::shared_ptr<const CodeObject>> modules_;
  std::vector<FrameRange> changed_;  // since BeginWindow
};

}  // namespace pyrometer
