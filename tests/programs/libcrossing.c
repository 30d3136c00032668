// SPDX-License-Identifier: Apache-2.0
#include "crossing.h"

#include "work.h"

// Not exported: only the library's .symtab knows it.
static WORK_NOINLINE void library_hidden(void) {
  spin(WORK_SLICE);
}

void library_inner(void) {
  library_hidden();
  WORK_NO_TAIL_CALL();
}

void library_outer(void (*callback)(void)) {
  callback();
  WORK_NO_TAIL_CALL();
}
