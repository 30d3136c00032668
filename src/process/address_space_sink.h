// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Who wants to know at once what every process has mapped: the kernel side of the sampler. It is
// told all executable mappings, anonymous ones included, because stacks are unwound there with the
// tables of every library. That alone would be wrong now and then: munmap is not reported, and mmap
// comes some milliseconds late (two plugins that took turns at one address took each other's names
// in 11 of 1,500 samples, 2026-11). There are two guards:
// - `exec_pages` is what mm->exec_vm, the kernel's own count of executable pages, is while the
//   published mappings are all there are. Where the two differ, the kernel side keeps its hands off
//   (user space unwinds the sample later) and somebody calls Recheck(), which reads /proc/PID/maps
//   again. As the kernel does, it counts memory that is executable, not writable and not a stack;
//   a stack that may be executed counts all the same unless it is the first thread's. Loaders map
//   an object's first segment with the length of all, and only that is reported: if it is
//   executable (6 % of Debian's ELF files: LLVM, Go), what they take away again is computed from
//   the segments (WithoutReservation()).
// - Where the content has changed while the program ran, or a mapped file was found gone, the range
//   is shifting from then on: never trusted in the kernel again until the next exec. Anonymous
//   memory that goes makes no range shifting: a JIT that keeps code either writable or executable
//   does that all the time, and the kernel names nothing there.
//
// Called with the tracker's lock held, on its thread or on that of whoever asks it, one call at a
// time: never call it back.
class AddressSpaceSink {
 public:
  virtual ~AddressSpaceSink() = default;

  // Program `exec` of `process` has these executable mappings: ascending, not overlapping, all
  // that are known. They were there some milliseconds ago, and what is unmapped is not reported:
  // they are true while mm->exec_vm is `exec_pages`, where they are not shifting. Replaces what
  // was published for the pid before.
  virtual void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
                       std::span<const PublishedMapping> sorted) = 0;

  // Nothing is known any more of the process that was published under this pid: it is gone, or
  // runs a program of which nothing is mapped yet.
  virtual void Withdraw(Pid pid) = 0;

  // Time has passed: what was taken for programs that were withdrawn or replaced may be given back
  // by now, though nothing is published.
  virtual void ReleaseWithdrawn() = 0;
};

}  // namespace pyrometer
