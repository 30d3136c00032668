// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stored_bytes.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// A function at an address, or a call inlined into one there.
struct SourceFrame {
  std::string name;   // raw; "" if only the line is known
  std::string path;   // of the source file; "" if unknown
  uint32_t line = 0;  // 0: unknown
};

// What compilers told of an object's code: which function an address lies in, which calls are
// inlined there, and which source line each is at. An immutable value made by SourceMapWriter; the
// format is in source_map_format.h. Any number of threads may use it.
//
// The bytes are not believed, which a sandboxed process has made of a hostile file: what
// contradicts itself gives wrong names or none, and costs no more than any other.
class SourceMap {
 public:
  SourceMap() = default;

  // Errors: kMalformed if the bytes are no such map.
  static Result<SourceMap> From(std::shared_ptr<const StoredBytes> bytes);

  // Innermost first: the first has the line of the instruction, each further one that of the call
  // inlined into it. Nothing if nothing is known of the address.
  std::vector<SourceFrame> Find(ElfAddress address) const;

  bool empty() const { return blocks_.empty(); }
  // True if there was no room for all that debug information tells.
  bool is_cut() const { return is_cut_; }
  // How much of it could not be read: units, functions, calls.
  uint32_t lost() const { return lost_; }

  // What it was made from; null if it is empty.
  const std::shared_ptr<const StoredBytes>& stored() const { return stored_; }

  // In memory, and in the spill file.
  size_t bytes() const {
    return blocks_.capacity() * sizeof(Block) + (stored_ ? stored_->in_memory() : 0);
  }
  uint64_t spilled_bytes() const { return stored_ ? stored_->spilled() : 0; }

 private:
  struct Block {
    uint32_t start = 0;  // relative to base_
    uint32_t at = 0;     // in the rows
  };
  struct Place {
    uint32_t scope = 0;
    uint32_t path = 0;
    uint32_t line = 0;
  };

  std::optional<Place> PlaceOf(uint32_t offset) const;
  std::string PathOf(uint32_t path) const;
  std::string TextAt(uint64_t offset) const;

  bool is_cut_ = false;
  uint32_t lost_ = 0;
  uint64_t base_ = 0;
  uint64_t rows_at_ = 0;
  uint64_t rows_size_ = 0;
  uint64_t scopes_at_ = 0;
  uint64_t scopes_ = 0;
  uint64_t paths_at_ = 0;
  uint64_t paths_ = 0;
  uint64_t texts_at_ = 0;
  uint64_t texts_size_ = 0;
  std::vector<Block> blocks_;
  std::shared_ptr<const StoredBytes> stored_;
};

}  // namespace pyrometer
