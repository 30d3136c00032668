// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "process/address_ranges.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Executable memory, and whether the kernel counts its pages in mm->exec_vm (mm/internal.h,
// is_exec_mapping()): what is writable too, or a stack, is not counted.
struct CodeMapping {
  ObjectMapping mapping;
  bool counted = true;
  bool operator==(const CodeMapping&) const = default;
};

// The time in which all ticks of a sample were taken.
struct Period {
  MonotonicTime first;
  MonotonicTime last;  // inclusive; not before `first`
};

// What was at an address in a period of time.
struct AddressContent {
  Address address;
  // The content was one and the same in the whole period. If not, no one can tell which tick
  // found what.
  bool is_sure = false;
  std::optional<ObjectMapping> mapping;  // that content, if it is sure; nothing: unmapped
};

// The executable mappings of one program, as they were at any moment still of interest.
// The kernel reports what is mapped and never what is unmapped: a mapping lasts until another
// one takes its place, or until all mappings are read anew. Thread-compatible.
class AddressSpace {
 public:
  // `mapping` replaced whatever lay in its range at `when`; what older mappings have beyond it
  // stays. A `when` before an earlier call's counts as that call's. Empty mappings are ignored.
  // False if it changed nothing.
  bool Map(const CodeMapping& mapping, MonotonicTime when);

  // At `when` there were exactly these mappings. REQUIRES: ascending, not overlapping.
  // False if it changed nothing.
  bool Replace(const std::vector<CodeMapping>& mappings, MonotonicTime when);

  // What covered `address` at `when`; nothing if it was unmapped then.
  std::optional<ObjectMapping> At(Address address, MonotonicTime when) const;

  // What covered `address` at every moment of `period`, if that can be told.
  AddressContent ContentIn(const Period& period, Address address) const;

  // The kernel side acts on the present content since `now`, and on nothing older.
  void NoteTold(MonotonicTime now);

  // True if the kernel side may have acted on mappings that had ended, at some moment of `period`.
  // Costs next to nothing.
  bool WasOutdated(const Period& period) const;

  // What the kernel side took for `address` of `object` in `period`, if it may have acted on a
  // mapping that had ended; nothing if it was right.
  std::optional<AddressContent> FindOutdated(ObjectId object, ElfAddress address,
                                             const Period& period) const;

  // All there was at one moment.
  struct Picture {
    std::vector<ObjectMapping> mappings;  // ascending, not overlapping, equal neighbours made one
    uint64_t counted_bytes = 0;           // of those that are CodeMapping::counted
  };
  Picture At(MonotonicTime when) const;
  // After the last change.
  Picture Current() const { return At(latest_); }

  // Where the content changed while the program ran: something else took the place of a mapping,
  // or a mapped file was found gone. Who acts on what was there a moment ago may be wrong again.
  // Anonymous memory that goes does not count: a JIT that keeps its code either writable or
  // executable does that all the time, and it comes back as what it was.
  const AddressRanges& shifting() const { return shifting_; }

  // Adds all objects that are or, as far as it is remembered, were mapped.
  void AddObjects(absl::flat_hash_set<ObjectId>& objects) const;

  // What happened until now was not this program's doing.
  void ForgetShifting() { shifting_.Clear(); }

  // What a child gets at fork: the present, and of the past what the kernel side had not been told
  // of at `when`, for the child has inherited that too. Costs next to nothing until one of the two
  // changes.
  AddressSpace Fork(MonotonicTime when) const;

  // Drops what no sample taken at or after `horizon` can ask for.
  void Forget(MonotonicTime horizon);

  bool empty() const { return !current_ || current_->empty(); }

 private:
  static constexpr MonotonicTime kNotTold{UINT64_MAX};
  struct Span {
    CodeMapping code;
    MonotonicTime since;
  };
  struct PastSpan {
    CodeMapping code;
    MonotonicTime since;
    MonotonicTime until;            // ascending in past_, as is the next
    MonotonicTime told = kNotTold;  // from then on no tick can have taken it for the present
  };
  using Past = std::vector<PastSpan>;            // nearly always empty
  using Spans = absl::btree_map<Address, Span>;  // by start; not overlapping

  Spans& Writable();
  std::vector<Span> Overlapping(Address start, Address end) const;
  // Null if nothing is there by now.
  const Span* CurrentAt(Address address) const;
  bool Unmap(Address start, Address end);
  void Cut(const Span& span, Address start, Address end);
  Past::const_iterator FirstOutdated(const Period& period) const;
  Past::const_iterator FirstAlive(MonotonicTime when) const;
  bool IsElsewhere(const ObjectMapping& mapping, ElfAddress address, MonotonicTime when) const;

  std::shared_ptr<Spans> current_;  // shared with forked children until somebody writes
  Past past_;
  AddressRanges shifting_;
  MonotonicTime latest_;
};

}  // namespace pyrometer
