// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/procfs.h"
#include "pyrometer/ids.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/result.h"
#include "symbolize/kallsyms.h"

namespace pyrometer {

struct KernelSymbol {
  std::string_view name;
  std::string_view module;  // "" for the kernel itself; "bpf" for BPF programs
  KernelAddress start;
  uint64_t size = 0;
};

// The functions of the running kernel, its modules and its BPF programs. About 20 bytes each plus
// the names: 6 MB for 120,000 functions. Not thread-safe.
class KernelSymbols {
 public:
  // Has no functions.
  KernelSymbols() = default;

  // Reads /proc/kallsyms, /proc/modules and /sys/kernel/notes; 50 to 100 ms.
  // Errors: kPermission if the kernel hides its addresses (kptr_restrict); those of reading.
  static Result<KernelSymbols> Load(const Procfs& procfs);

  // The same from an open kallsyms file and the text of /proc/modules ("" if there is none).
  static Result<KernelSymbols> Read(int kallsyms, std::string_view modules);

  // The function that `address` lies in. A function ends at the next symbol of any kind, the last
  // one of a module at the module's end, and that of the kernel itself at _etext. The names are
  // valid until the next call of a non-const method.
  std::optional<KernelSymbol> Find(KernelAddress address) const;

  // Adds code that came. Code that went can still be found, since samples of it may be on their
  // way, until ForgetRemoved or something else takes its place. REQUIRES: events in order of time.
  void Apply(const KernelSymbolEvent& event);
  void ForgetRemoved();

  // Takes over the contents of `newer`, which was read later. Keeps functions of unloaded modules
  // where nothing else has come, since samples of them may be on their way. Code that was added or
  // removed by events stays as it is: the events are exact, and `newer` may be ahead of them.
  void Update(KernelSymbols newer);

  // The modules loaded when this was read. The next: those in /proc/modules now.
  const std::vector<KernelModule>& modules() const { return modules_; }
  static std::vector<KernelModule> ModulesNow(const Procfs& procfs);

  // False if the kernel's symbols have not been read, or are hidden.
  bool has_functions() const { return !functions_.empty(); }
  bool empty() const { return functions_.empty() && live_.empty(); }
  const BuildId& build_id() const { return build_id_; }

  // The range of the kernel's own code; 0, 0 if not known.
  KernelAddress text_start() const { return text_start_; }
  KernelAddress text_end() const { return text_end_; }

 private:
  friend class KernelSymbolsBuilder;

  struct Function {
    uint64_t start = 0;
    uint32_t size = 0;
    uint32_t name = 0;  // in names_, up to a NUL
  };
  // Code that events announce as it comes and goes.
  struct LiveFunction {
    uint64_t size = 0;
    bool removed = false;
    std::string name;
    std::string module;
  };

  bool Occupies(const Function& range) const;
  std::vector<size_t> GoneFrom(const KernelSymbols& newer) const;
  std::optional<uint16_t> ModuleIndex(const std::string& name);
  void TakeFunctionsOf(const KernelSymbols& older, const std::vector<size_t>& indices);
  void TakeLiveOf(KernelSymbols& older);

  std::vector<Function> functions_;  // by start, not overlapping
  std::vector<uint16_t> module_of_;  // functions_[i], in module_names_
  std::vector<std::string> module_names_;
  std::string names_;
  absl::btree_map<uint64_t, LiveFunction> live_;  // by start, not overlapping
  std::vector<KernelModule> modules_;
  BuildId build_id_;
  KernelAddress text_start_;
  KernelAddress text_end_;
};

}  // namespace pyrometer
