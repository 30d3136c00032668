// SPDX-License-Identifier: Apache-2.0
// Built twice, as plugin_a.so with plugin_a_work() and as plugin_b.so with plugin_b_work(): the
// same code at the same offsets under another name.
#include "work.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

// Symbols do not count for the build id; without this, both would have the same one.
__attribute__((used)) static const char plugin_name[] = TEXT(PLUGIN);

static WORK_NOINLINE void JOIN(PLUGIN, _work)(void) {
  spin(10 * WORK_SLICE);
}

void plugin_entry(void) {
  JOIN(PLUGIN, _work)();
  WORK_NO_TAIL_CALL();
}
