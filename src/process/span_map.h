// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "process/user_share.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Executable memory, and whether the kernel counts its pages in mm->exec_vm (mm/internal.h,
// is_exec_mapping()): memory that is also writable, or a stack, is not counted.
struct CodeMapping {
  ObjectMapping mapping;
  bool counted = true;
  bool operator==(const CodeMapping&) const = default;
};

// What is mapped now, and since when.
struct MappedSpan {
  CodeMapping code;
  MonotonicTime since;

  Address start() const { return code.mapping.start; }
  Address end() const { return code.mapping.end; }
};

// Spans by address. REQUIRES: none overlaps another. A copy shares everything; what one of the two
// changes then is copied in pieces of up to 64 spans, so that children of a large program do not
// cost as much as it does. Thread-compatible.
class SpanMap {
 public:
  // What is added is charged to `share`, if there is one.
  explicit SpanMap(std::shared_ptr<UserShare> share) : share_(std::move(share)) {}
  SpanMap() = default;

  // What it does not share with another map is charged to `share` from now on.
  void ChargeTo(std::shared_ptr<UserShare> share);

  // True if the two share everything, and so have the same spans.
  bool operator==(const SpanMap& other) const { return chunks_ == other.chunks_; }
  template <typename H>
  friend H AbslHashValue(H h, const SpanMap& map) {
    return H::combine(std::move(h), map.chunks_);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The span that contains `address`; null if none does. Valid until the next change.
  const MappedSpan* At(Address address) const;

  // Those that reach into [start, end), ascending.
  std::vector<MappedSpan> Overlapping(Address start, Address end) const;

  void Add(const MappedSpan& span);

  // Takes out the span that starts there; does nothing if none does.
  void Erase(Address start);

  // Bytes of this map alone, without what it shares with others.
  size_t OwnBytes() const;

  // Ascending.
  void ForEach(const std::function<void(const MappedSpan&)>& visit) const;

 private:
  using Chunk = std::vector<MappedSpan, Charged<MappedSpan>>;  // ascending, never empty
  using Chunks = std::vector<std::shared_ptr<Chunk>, Charged<std::shared_ptr<Chunk>>>;  // ascending

  // The last chunk that begins at or before `address`; the first one if none does.
  size_t ChunkFor(Address address) const;
  // True if nobody else has it, and it is charged to our user.
  template <typename Vector>
  bool IsOwn(const std::shared_ptr<Vector>& vector) const;
  Chunks& WritableChunks();
  Chunk& Writable(size_t index);
  // A vector of such elements, charged to the user; made from `from` as vectors are.
  template <typename Vector, typename... From>
  std::shared_ptr<Vector> Make(From&&... from) const;
  void Split(size_t index);
  void MergeSmall(size_t index);

  std::shared_ptr<UserShare> share_;  // null: nobody's
  std::shared_ptr<Chunks> chunks_;    // null: there are none
  size_t size_ = 0;
};

}  // namespace pyrometer
