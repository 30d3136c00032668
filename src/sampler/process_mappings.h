// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "sampler/faces.h"
#include "sampler/kernel_tables.h"
#include "sampler/mapped_array.h"
#include "sampler/mapping_upload.h"
#include "sampler/skeleton.h"

namespace pyrometer {

// What the kernel side knows of processes. Threads as for MappingTarget; counters(): any thread.
class ProcessMappings : public MappingTarget {
 public:
  // All must outlive this.
  static Result<std::unique_ptr<ProcessMappings>> Open(sampler_bpf& skeleton, KernelTables& tables,
                                                       const Clock& clock);

  bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
               std::span<const PublishedMapping> mappings) override;
  void Withdraw(Pid pid) override;
  void ReleaseWithdrawn() override;
  void Sweep(std::span<const Pid> living) override { upload_.Sweep(living, clock_.Now()); }
  std::vector<Pid> TakeMissed() override;
  std::vector<ObjectId> TakeUsed() override { return upload_.TakeUsed(); }
  bool AwaitRoom() override { return upload_.AwaitRoom(clock_.Now()); }
  Result<std::vector<pyro_task_record>> ListTasks() const override;

  MappingUpload::Counters counters() const { return upload_.counters(); }

 private:
  ProcessMappings(sampler_bpf& skeleton, MappedArray<pyro_mapping> pool, KernelTables& tables,
                  const Clock& clock);

  sampler_bpf& skeleton_;
  KernelTables& tables_;
  MappedArray<pyro_mapping> pool_;
  MappingUpload upload_;
  const Clock& clock_;
};

}  // namespace pyrometer
