// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "process/address_ranges.h"
#include "process/span_map.h"
#include "process/user_share.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// The time in which all ticks of a sample were taken.
struct Period {
  MonotonicTime first;
  MonotonicTime last;  // inclusive; not before `first`
};

// What was at an address in a period of time.
struct AddressContent {
  Address address;
  // True if the content was the same throughout the period. If not, nobody can tell what each tick
  // found.
  bool is_sure = false;
  std::optional<ObjectMapping> mapping;  // that content, if sure; nothing: unmapped
};

// The executable mappings of one program at every moment that samples may still ask about. The
// kernel reports what is mapped, never what is unmapped: a mapping lasts until another one takes
// its place, or until all mappings are read again. Thread-compatible.
class AddressSpace {
 public:
  // What it remembers is charged to `share`, if there is one.
  explicit AddressSpace(std::shared_ptr<UserShare> share);
  AddressSpace() : AddressSpace(nullptr) {}

  // Charges `share` instead, but not for what is shared with forked children and parents.
  void ChargeTo(const std::shared_ptr<UserShare>& share);

  // `mapping` replaced whatever lay in its range at `when`; older mappings keep what lies outside
  // of it. A `when` before an earlier call's counts as that call's. Empty mappings are ignored.
  // False if it changed nothing.
  bool Map(const CodeMapping& mapping, MonotonicTime when);

  // At `when` there were exactly these mappings. REQUIRES: ascending, not overlapping.
  // False if it changed nothing.
  bool Replace(const std::vector<CodeMapping>& mappings, MonotonicTime when);

  // The parts of `mappings` that are among the present ones. REQUIRES: ascending, not overlapping.
  std::vector<CodeMapping> KnownPartsOf(const std::vector<CodeMapping>& mappings) const;

  // Since `when` nobody knows what is at [start, end): all mappings that reach into it end. False
  // if there were none.
  bool Forget(Address start, Address end, MonotonicTime when);

  // What is meant by a mapping; nothing: itself.
  using Meaning = std::function<std::optional<std::vector<ObjectMapping>>(const ObjectMapping&)>;
  // What forked children share is replaced once and stays shared.
  class Replaced;

  // It is known by now what some mappings, present and past, have been all the time. `meaning`
  // gives ascending parts of the mapping it is given. `replaced` is for all that this is told at
  // the same time. False if it changed nothing.
  bool Reinterpret(const Meaning& meaning, Replaced& replaced);

  // What covered `address` at `when`; nothing if it was unmapped then.
  std::optional<ObjectMapping> At(Address address, MonotonicTime when) const;

  // What covered `address` throughout `period`, if that can be told.
  AddressContent ContentIn(const Period& period, Address address) const;

  // From `now` on the kernel side uses the present content and nothing older.
  void NoteTold(MonotonicTime now);

  // True if, at some moment of `period`, the kernel side may have used mappings that had ended.
  // Nearly free.
  bool WasOutdated(const Period& period) const;

  // What really was at the place that the kernel side took for `address` of `object` in `period`,
  // if it may have used a mapping that had ended; nothing if it was right.
  std::optional<AddressContent> FindOutdated(ObjectId object, ElfAddress address,
                                             const Period& period) const;

  // All mappings at one moment.
  struct Picture {
    std::vector<ObjectMapping> mappings;  // ascending, not overlapping, equal neighbours made one
    uint64_t counted_bytes = 0;           // of those that are CodeMapping::counted
  };
  Picture At(MonotonicTime when) const;
  // As of the last change.
  Picture Current() const { return At(latest_); }

  // Where the content changed while the program ran: something else took the place of a mapping, or
  // a mapped file was found gone. Knowledge of such a range may be outdated again at any moment.
  // Anonymous memory that goes does not count: a JIT that keeps its code either writable or
  // executable does that all the time, and it comes back unchanged.
  const AddressRanges& shifting() const { return shifting_; }

  // Adds all objects that are mapped or, as far as remembered, were.
  void AddObjects(absl::flat_hash_set<ObjectId>& objects) const;

  // Forgets shifting(): what happened until now was another program's doing.
  void ForgetShifting() { shifting_.Clear(); }

  // What a child of the user of `share` gets at fork: the present mappings, and those past ones
  // whose end the kernel side had not been told of at `when`, which the child inherits as well.
  // Nearly free until one of the two changes.
  AddressSpace Fork(MonotonicTime when, std::shared_ptr<UserShare> share = nullptr) const;

  // Drops what no sample taken at or after `horizon` can need.
  void Forget(MonotonicTime horizon);

  size_t size() const { return current_.size(); }  // mappings at present
  bool empty() const { return current_.empty(); }

 private:
  static constexpr MonotonicTime kNotTold{UINT64_MAX};
  struct PastSpan {
    CodeMapping code;
    MonotonicTime since;
    MonotonicTime until;            // ascending in past_, as is the next
    MonotonicTime told = kNotTold;  // from then on no tick can have used it
  };
  using Past = std::vector<PastSpan, Charged<PastSpan>>;  // nearly always empty

  bool Unmap(Address start, Address end);
  void Cut(const MappedSpan& span, Address start, Address end);
  Past::const_iterator FirstOutdated(const Period& period) const;
  Past::const_iterator FirstAlive(MonotonicTime when) const;
  bool IsElsewhere(const ObjectMapping& mapping, ElfAddress address, MonotonicTime when) const;

  bool ReinterpretPast(const Meaning& meaning);

  SpanMap current_;  // shared with forked children; copied on write, in pieces
  Past past_;
  AddressRanges shifting_;
  MonotonicTime latest_;
};

class AddressSpace::Replaced {
  friend class AddressSpace;
  // By what they were.
  absl::flat_hash_map<SpanMap, SpanMap> spans_;
};

}  // namespace pyrometer
