// SPDX-License-Identifier: Apache-2.0
#include "sampler/chunk_maps.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {

Result<void> ChunkMaps::Make(uint16_t slot) {
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "pyro_rows", sizeof(uint32_t),
                              sizeof(pyro_unwind_chunk), 1, &options));
  if (!map) return SystemError(errno, "making a map of unwind rows");
  const uint32_t key = slot;
  const int fd = map.get();
  if (bpf_map_update_elem(outer_fd_, &key, &fd, BPF_ANY) != 0) {
    return SystemError(errno, "adding a map of unwind rows");
  }
  maps_.insert_or_assign(slot, std::move(map));
  return {};
}

void ChunkMaps::Remove(uint16_t slot) {
  const uint32_t key = slot;
  bpf_map_delete_elem(outer_fd_, &key);
  maps_.erase(slot);
}

Result<void> ChunkMaps::Write(uint16_t slot, uint16_t first,
                              std::span<const pyro_unwind_row> rows) {
  // Of the chunk, only the pages that are written.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = first * sizeof(pyro_unwind_row) / page * page;
  const size_t end = (first + rows.size()) * sizeof(pyro_unwind_row);
  void* const at = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED,
                          maps_.at(slot).get(), static_cast<off_t>(begin));
  if (at == MAP_FAILED) return SystemError(errno, "mapping unwind rows");
  auto* const bytes = static_cast<std::byte*>(at) + (first * sizeof(pyro_unwind_row) - begin);
  std::ranges::copy(std::as_bytes(rows), bytes);
  ::munmap(at, end - begin);
  return {};
}

}  // namespace pyrometer
