// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "indexer/in_process_indexer.h"
#include "process/address_space_sink.h"
#include "process/object_inspector.h"
#include "process/process_tracker.h"
#include "profiler/profiler.h"
#include "sampler/sampler.h"

namespace pyrometer {

// The machine that this program runs on: the sampler in its kernel, and what is known of its
// processes. Joins what knows of each other through interfaces only.
class KernelMachine {
 public:
  // Loads the kernel side and learns of all processes; no ticks yet.
  static Result<std::unique_ptr<KernelMachine>> Open(const Profiler::Options& options);

  Profiler::Machine parts();

 private:
  // Headers of newly mapped files, read by the indexer.
  class Headers : public ObjectInspector {
   public:
    explicit Headers(Indexer& indexer) : indexer_(indexer) {}
    Result<ObjectFacts> Inspect(int fd) override { return indexer_.Inspect(fd); }

   private:
    Indexer& indexer_;
  };

  // Mapping arrays on their way into the kernel.
  class Mappings : public AddressSpaceSink {
   public:
    explicit Mappings(MappingTarget& target) : target_(target) {}
    void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
                 std::span<const PublishedMapping> sorted) override {
      target_.Publish(process, exec, exec_pages, sorted);
    }
    void Withdraw(Pid pid) override { target_.Withdraw(pid); }
    void ReleaseWithdrawn() override { target_.ReleaseWithdrawn(); }

   private:
    MappingTarget& target_;
  };

  KernelMachine(Procfs procfs, std::unique_ptr<Sampler> sampler)
      : procfs_(std::move(procfs)),
        log_(clock_),
        sampler_(std::move(sampler)),
        headers_(indexer_),
        mappings_(sampler_->mappings()) {}

  Procfs procfs_;
  Clock clock_;
  Log log_;
  std::unique_ptr<Sampler> sampler_;
  InProcessIndexer indexer_;
  Headers headers_;
  Mappings mappings_;
  std::unique_ptr<ProcessTracker> tracker_;
};

}  // namespace pyrometer
