// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/spill_file.h"
#include "foreign/foreign_files.h"
#include "foreign/indexer.h"
#include "foreign/question_threads.h"
#include "foreign/reader_pool.h"
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
  static std::shared_ptr<Indexer> IndexerOf(const std::shared_ptr<ReaderPool>& readers);

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
    std::vector<ObjectId> TakeUsed() override { return target_.TakeUsed(); }
    bool AwaitRoom() override { return target_.AwaitRoom(); }

   private:
    MappingTarget& target_;
  };

  KernelMachine(const Profiler::Options& options, std::shared_ptr<ForeignFiles> files,
                std::unique_ptr<Sampler> sampler)
      : procfs_(options.procfs),
        clock_(options.clock),
        log_(clock_),
        sampler_(std::move(sampler)),
        readers_(options.readers),
        indexer_(IndexerOf(readers_)),
        files_(std::move(files)),
        mappings_(sampler_->mappings()) {}

  Procfs procfs_;
  const Clock& clock_;
  Log log_;
  std::unique_ptr<Sampler> sampler_;
  const std::shared_ptr<ReaderPool> readers_;
  const std::shared_ptr<Indexer> indexer_;
  const std::shared_ptr<ForeignFiles> files_;
  QuestionThreads question_threads_{clock_};
  std::shared_ptr<SpillFile> spill_;  // null: none could be made
  Mappings mappings_;
  std::unique_ptr<ProcessTracker> tracker_;
};

}  // namespace pyrometer
