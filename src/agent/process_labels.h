// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "process/process_observer.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// Labels each process with the name under which people look for it: `service_name` is the name of
// the program, "kernel" for the kernel's threads, which have hundreds of names, and for interrupts
// of idle CPUs. Each label set is a profile of its own for every server, so their number is
// bounded: beyond `most_names` the others are one, "other". Called with the tracker's lock held,
// like every ProcessObserver.
class ProcessLabels final : public ProcessObserver {
 public:
  static constexpr std::string_view kName = "service_name";
  static constexpr std::string_view kKernel = "kernel";
  static constexpr std::string_view kOther = "other";

  explicit ProcessLabels(size_t most_names = 1000) : most_names_(most_names) {}

  LabelSet OnProcess(const SeenProcess& process) override;
  LabelSet OfUnknown(Pid pid, std::string_view comm) override;
  void OnMapping(const ProcessKey& process, const ObjectMapping& mapping,
                 const ObjectInfo& object) override;

 private:
  LabelSet Of(std::string_view name);
  bool IsKernelThread(const SeenProcess& process) const;

  const size_t most_names_;
  const LabelSet kernel_ = Make(kKernel);
  const LabelSet other_ = Make(kOther);
  // Held as long as a process or sample has them; a name that nobody bears any more makes room.
  std::map<std::string, std::weak_ptr<const Labels>, std::less<>> known_;

  static LabelSet Make(std::string_view name);
};

}  // namespace pyrometer
