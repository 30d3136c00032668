// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_workers.h"
#include "base/log.h"
#include "base/spill_file.h"
#include "process/address_space_sink.h"
#include "process/process_tracker.h"
#include "profiler/indexed_headers.h"
#include "profiler/profiler.h"
#include "sampler/sampler.h"

namespace pyrometer {

// The parts of a profiler for the machine that this program runs on: the sampler and the process
// tracker. Implements the interfaces through which these use each other and the indexer.
class KernelMachine {
 public:
  // Loads the kernel side and scans all processes; ticks have not begun.
  static Result<std::unique_ptr<KernelMachine>> Open(const Profiler::Options& options);

  Profiler::Machine parts();

 private:
  // Passes mapping arrays on to the kernel side.
  class Mappings : public AddressSpaceSink {
   public:
    explicit Mappings(MappingTarget& target) : target_(target) {}
    bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
                 std::span<const PublishedMapping> sorted) override {
      return target_.Publish(process, exec, exec_pages, sorted);
    }
    void Withdraw(Pid pid) override { target_.Withdraw(pid); }
    void ReleaseWithdrawn() override { target_.ReleaseWithdrawn(); }
    void Sweep(std::span<const Pid> living) override { target_.Sweep(living); }
    std::vector<Pid> TakeMissed() override { return target_.TakeMissed(); }
    bool AwaitRoom() override { return target_.AwaitRoom(); }

   private:
    MappingTarget& target_;
  };

  KernelMachine(Procfs procfs, FileReaders readers, std::unique_ptr<Sampler> sampler)
      : procfs_(std::move(procfs)),
        log_(clock_),
        sampler_(std::move(sampler)),
        readers_(std::move(readers)),
        mappings_(sampler_->mappings()) {}

  void OpenCache(const Profiler::CacheOptions& options);

  Procfs procfs_;
  Clock clock_;
  Log log_;
  std::unique_ptr<Sampler> sampler_;
  const FileReaders readers_;
  FileWorkers file_workers_;
  std::shared_ptr<SpillFile> spill_;      // null: none could be made
  std::shared_ptr<ArtifactCache> cache_;  // null: there is none
  Mappings mappings_;
  std::unique_ptr<ProcessTracker> tracker_;
};

}  // namespace pyrometer
