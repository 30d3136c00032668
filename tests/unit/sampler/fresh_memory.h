// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace pyrometer {

// Pages that nobody has touched: the first write to each is one page fault. Not huge pages, of
// which one fault brings many.
class FreshMemory {
 public:
  explicit FreshMemory(size_t pages) : pages_(pages) {
    memory_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED || madvise(memory_, bytes(), MADV_NOHUGEPAGE) != 0) std::abort();
  }
  ~FreshMemory() { munmap(memory_, bytes()); }
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;

  // REQUIRES: called at most `pages` times.
  void TouchNext() { static_cast<volatile char*>(memory_)[page_bytes_ * touched_++] = 1; }
  void TouchAll() { Touch(static_cast<char*>(memory_), pages_, page_bytes_); }

  // Where TouchAll() has its faults.
  [[gnu::noinline]] static void Touch(volatile char* memory, size_t pages, size_t page_bytes) {
    for (size_t i = 0; i < pages; ++i) memory[i * page_bytes] = 1;
  }

 private:
  size_t bytes() const { return pages_ * page_bytes_; }

  const size_t pages_;
  const size_t page_bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory_;
  size_t touched_ = 0;
};

}  // namespace pyrometer
