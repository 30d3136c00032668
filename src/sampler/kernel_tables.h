// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/system_error.h"
#include "pyrometer/abi/unwind.h"
#include "pyrometer/result.h"
#include "sampler.skel.h"
#include "sampler/chunk_maps.h"
#include "sampler/table_upload.h"

namespace pyrometer {

// The one value of an array map, as user space sees it.
template <typename Entry>
class MappedArray {
 public:
  static Result<MappedArray> Map(const bpf_map* map, size_t count) {
    const size_t bytes = sizeof(Entry) * count;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (at == MAP_FAILED) {
      return SystemError(errno, fmt::format("mapping {}", bpf_map__name(map)));
    }
    return MappedArray(static_cast<Entry*>(at), count);
  }

  std::span<Entry> entries() const { return {memory_.get(), memory_.get_deleter().count}; }

 private:
  struct Unmap {
    size_t count = 0;
    void operator()(Entry* at) const { munmap(at, sizeof(Entry) * count); }
  };
  MappedArray(Entry* at, size_t count) : memory_(at, Unmap{count}) {}
  std::unique_ptr<Entry, Unmap> memory_;
};

// All that belongs to unwind tables in the kernel.
class KernelTables {
 public:
  static Result<std::unique_ptr<KernelTables>> Open(const sampler_bpf& skeleton, size_t budget) {
    const auto& maps = skeleton.maps;
    using Tables = MappedArray<pyro_object_table>;
    ASSIGN_OR_RETURN(Tables tables, Tables::Map(maps.object_tables, PYRO_MAX_TABLES));
    using Pages = MappedArray<pyro_table_page>;
    ASSIGN_OR_RETURN(Pages pages, Pages::Map(maps.table_pages, PYRO_MAX_TABLE_PAGES));
    using Rules = MappedArray<pyro_unwind_rule>;
    ASSIGN_OR_RETURN(Rules rules, Rules::Map(maps.unwind_rules, PYRO_MAX_RULES));
    return std::unique_ptr<KernelTables>(new KernelTables(
        std::move(tables), std::move(pages), std::move(rules), bpf_map__fd(maps.chunks), budget));
  }

  TableUpload& upload() { return upload_; }

 private:
  KernelTables(MappedArray<pyro_object_table> tables, MappedArray<pyro_table_page> pages,
               MappedArray<pyro_unwind_rule> rules, int chunks_fd, size_t budget)
      : tables_(std::move(tables)),
        pages_(std::move(pages)),
        rules_(std::move(rules)),
        chunks_(chunks_fd),
        upload_({tables_.entries(), pages_.entries(), rules_.entries()}, chunks_,
                budget / sizeof(pyro_unwind_chunk)) {}

  MappedArray<pyro_object_table> tables_;
  MappedArray<pyro_table_page> pages_;
  MappedArray<pyro_unwind_rule> rules_;
  ChunkMaps chunks_;
  TableUpload upload_;
};

}  // namespace pyrometer
