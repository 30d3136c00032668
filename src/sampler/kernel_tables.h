// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "sampler/chunk_maps.h"
#include "sampler/faces.h"
#include "sampler/mapped_array.h"
#include "sampler/skeleton.h"
#include "sampler/table_upload.h"
#include "sampler/wakeup.h"

namespace pyrometer {

// The unwind tables in the kernel and all they need. Threads as for TableTarget; for upload() as
// for TableUpload.
class KernelTables : public TableTarget {
 public:
  // `budget` limits the kernel memory for rows, in bytes. `clock` must outlive this.
  static Result<std::unique_ptr<KernelTables>> Open(const sampler_bpf& skeleton, size_t budget,
                                                    const Clock& clock);

  std::vector<ObjectId> TakeWanted() override;
  bool Load(ObjectId object, const UnwindTable& table) override;
  void Need(ObjectId object, ElfAddress address) override {
    if (upload_.Need(object, address)) wakeup_.Wake();
  }
  void Wait(std::chrono::milliseconds most) override { wakeup_.Wait(most); }
  void Wake() override { wakeup_.Wake(); }

  TableUpload& upload() { return upload_; }

 private:
  struct Memory {
    MappedArray<pyro_object_table> tables;
    MappedArray<pyro_table_page> pages;
    MappedArray<pyro_unwind_rule> rules;
  };
  KernelTables(Memory memory, const sampler_bpf& skeleton, size_t budget, Wakeup wakeup,
               const Clock& clock);

  Memory memory_;
  ChunkMaps chunks_;
  TableUpload upload_;
  Wakeup wakeup_;
  const Clock& clock_;
};

}  // namespace pyrometer
