// SPDX-License-Identifier: Apache-2.0
#include "sampler/process_mappings.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/unique_fd.h"
#include "sampler/grace_period.h"

namespace pyrometer {

Result<std::unique_ptr<ProcessMappings>> ProcessMappings::Open(sampler_bpf& skeleton,
                                                               KernelTables& tables,
                                                               const Clock& clock) {
  using Pool = MappedArray<pyro_mapping>;
  bpf_map* const map = skeleton.maps.mapping_pool;
  ASSIGN_OR_RETURN(Pool pool, Pool::Map(map, size_t{PYRO_POOL_PART} * bpf_map__max_entries(map)));
  return std::unique_ptr<ProcessMappings>(
      new ProcessMappings(skeleton, std::move(pool), tables, clock));
}

ProcessMappings::ProcessMappings(sampler_bpf& skeleton, MappedArray<pyro_mapping> pool,
                                 KernelTables& tables, const Clock& clock)
    : skeleton_(skeleton),
      tables_(tables),
      pool_(std::move(pool)),
      upload_(pool_.entries(), bpf_map__fd(skeleton.maps.processes), tables.upload(),
              [&skeleton] { return WaitForRunningPrograms(skeleton); }),
      clock_(clock) {}

bool ProcessMappings::Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
                              std::span<const PublishedMapping> mappings) {
  const bool is_known = upload_.Publish(process, exec, exec_pages, mappings, clock_.Now());
  if (tables_.upload().HasNew()) tables_.Wake();
  return is_known;
}

void ProcessMappings::Withdraw(Pid pid) {
  upload_.Withdraw(pid, clock_.Now());
}

void ProcessMappings::ReleaseWithdrawn() {
  upload_.ReleaseWithdrawn(clock_.Now());
}

std::vector<Pid> ProcessMappings::TakeMissed() {
  return upload_.TakeMissed(clock_.Now());
}

Result<std::vector<pyro_task_record>> ProcessMappings::ListTasks() const {
  ASSIGN_OR_RETURN(const UniqueLink link, Attach(skeleton_.progs.pyro_list_tasks));
  const UniqueFd fd(bpf_iter_create(bpf_link__fd(link.get())));
  if (!fd) return SystemError(errno, "creating the task iterator");
  ASSIGN_OR_RETURN(const std::string bytes, ReadAll(fd.get(), size_t{256} << 20));
  std::vector<pyro_task_record> tasks(bytes.size() / sizeof(pyro_task_record));
  std::memcpy(tasks.data(), bytes.data(), tasks.size() * sizeof(pyro_task_record));
  return tasks;
}

}  // namespace pyrometer
