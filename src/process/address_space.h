// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/btree_map.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// The executable mappings of one program, as they were at any moment still of interest.
// The kernel reports what is mapped and never what is unmapped: a mapping lasts until another
// one takes its place. Thread-compatible.
class AddressSpace {
 public:
  // `mapping` replaced whatever lay in its range at `when`; what older mappings have beyond it
  // stays. A `when` before an earlier call's counts as that call's. Empty mappings are ignored.
  // False if it changed nothing.
  bool Map(const ObjectMapping& mapping, MonotonicTime when);

  // At `when` there were exactly these mappings. REQUIRES: ascending, not overlapping.
  void Replace(const std::vector<ObjectMapping>& mappings, MonotonicTime when);

  // What covered `address` at `when`; nothing if it was unmapped then.
  std::optional<ObjectMapping> At(Address address, MonotonicTime when) const;

  // What is mapped after the last change: ascending, not overlapping, neighbours that mean the
  // same made one.
  std::vector<ObjectMapping> Current() const;

  // What a child gets at fork: the present without the past. Costs nothing until one of the two
  // changes.
  AddressSpace Fork() const;

  // Drops what no sample taken at or after `horizon` can ask for.
  void Forget(MonotonicTime horizon);

  bool empty() const { return !current_ || current_->empty(); }

 private:
  struct Span {
    Address end;
    ObjectId object;
    uint64_t bias = 0;
    MonotonicTime since;
  };
  struct PastSpan {
    ObjectMapping mapping;
    MonotonicTime since;
    MonotonicTime until;  // ascending in past_
  };
  using Spans = absl::btree_map<Address, Span>;  // by start; not overlapping

  static ObjectMapping MappingOf(const Spans::value_type& entry);
  Spans& Writable();
  // Makes [start, end) free, except where spans mean the same as `keep`; the rest of the range is
  // returned.
  std::vector<ObjectMapping> Clear(const ObjectMapping& keep, MonotonicTime when);
  void Retire(const ObjectMapping& mapping, MonotonicTime since, MonotonicTime until);

  std::shared_ptr<Spans> current_;  // shared with forked children until somebody writes
  std::deque<PastSpan> past_;
  MonotonicTime latest_;
};

}  // namespace pyrometer
