// SPDX-License-Identifier: Apache-2.0
// C, whose names are not mangled, and whose inlined functions have no linkage names.
#include <stdint.h>

static inline uint64_t fold(uint64_t sum, unsigned char byte) {
  return (sum ^ byte) * 1099511628211u;
}

static inline uint64_t fold_all(uint64_t sum, const unsigned char* bytes, uint64_t size) {
  for (uint64_t i = 0; i < size; ++i) sum = fold(sum, bytes[i]);
  return sum;
}

// Calls that are inlined into calls of themselves.
static uint64_t tree(const unsigned char* bytes, uint64_t size, int depth) {
  if (depth == 0 || size < 2) return fold_all(14695981039346656037u, bytes, size);
  return fold(tree(bytes, size / 2, depth - 1),
              (unsigned char)tree(bytes + size / 2, size / 2, depth - 1));
}

uint64_t plain_c(const unsigned char* bytes, uint64_t size) {
  return tree(bytes, size, 4);
}
