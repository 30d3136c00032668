// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Is told at once what every process has mapped: the kernel side of the sampler. It gets all
// executable mappings, anonymous ones included, because it unwinds stacks with the tables of every
// library. That alone would sometimes be wrong: the kernel does not report munmap, and reports mmap
// a few milliseconds late (two plugins that took turns at one address took each other's names in 11
// of 1,500 samples, 2026-11). There are two guards:
// - `exec_pages` is what mm->exec_vm, the kernel's own count of executable pages, is while the
//   published mappings are all there are. Where the two differ, the kernel side leaves the sample
//   to user space, which calls Recheck() to read /proc/PID/maps again. Like the kernel's, this
//   count includes memory that is executable, not writable and not a stack; an executable stack
//   counts nevertheless unless it is the first thread's. Loaders map an object's first segment with
//   the length of all, and only that is reported: if it is executable (6 % of Debian's ELF files:
//   LLVM, Go), what they unmap again is computed from the segments (WithoutReservation()).
//   Anonymous code that comes and goes without a report, by mprotect(2), changes the count as well.
//   A program that was seen to do so several times may differ by as many pages as it did before
//   (`slack`, 64 KiB at most). Libraries with mappings so small that their end would not show are
//   shifting then, and an address in no mapping is unknown.
// - Where the content has changed while the program ran, or a mapped file was found gone, the range
//   is shifting from then on: never trusted in the kernel again until the next exec. Anonymous
//   memory that goes makes no range shifting: a JIT that keeps code either writable or executable
//   does that all the time, and the kernel names nothing there.
//
// Called with the tracker's lock held, on its thread or a caller's, one call at a time, except for
// AwaitRoom(): it must not call the tracker back.
class AddressSpaceSink {
 public:
  virtual ~AddressSpaceSink() = default;

  // Program `exec` of `process` has these executable mappings: all that are known, ascending, not
  // overlapping. They are as of some milliseconds ago, and may include what has been unmapped: they
  // hold while mm->exec_vm is `exec_pages`, except for shifting ones. Replaces what was published
  // for the pid before. Returns false if there is no room: nothing is known of the process then,
  // see TakeMissed().
  virtual bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
                       std::span<const PublishedMapping> sorted) = 0;

  // Nothing is known any more of the process published under this pid: it is gone, or runs a
  // program that has nothing mapped yet.
  virtual void Withdraw(Pid pid) = 0;

  // Called from time to time, even if nothing is published: memory of withdrawn or replaced
  // programs may be released by now.
  virtual void ReleaseWithdrawn() = 0;

  // All processes that live, after it was found out: all else that the kernel side knows of others
  // is of processes whose ends went unnoticed.
  virtual void Sweep(std::span<const Pid> living) = 0;

  // Processes of which what was published had no room, or has no longer, and is missed: they should
  // be published again. Called about every second.
  virtual std::vector<Pid> TakeMissed() = 0;

  // Objects in whose mappings samples were for the first time since they are published; some others
  // with them.
  virtual std::vector<ObjectId> TakeUsed() { return {}; }

  // Called often, on the tracker's thread and without its lock: may wait until there is room for a
  // process that found none. True: TakeMissed() names it now.
  virtual bool AwaitRoom() { return false; }
};

}  // namespace pyrometer
