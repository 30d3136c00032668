// SPDX-License-Identifier: Apache-2.0
// plugins DIRECTORY SECONDS: opens plugin_a.so, works in it through call_plugin_a(), closes it, and
// the same with plugin_b.so, over and over. The two take turns at the same addresses.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

#define CALLS_PER_LOAD 40

static const char* directory;

static struct tally tallies[] = {{"plugin_a_work", 0}, {"plugin_b_work", 0}};

static WORK_NOINLINE void call_plugin_a(void (*entry)(void)) {
  for (int i = 0; i < CALLS_PER_LOAD; ++i) entry();
  tallies[0].iterations += CALLS_PER_LOAD * 10 * WORK_SLICE;
}

static WORK_NOINLINE void call_plugin_b(void (*entry)(void)) {
  for (int i = 0; i < CALLS_PER_LOAD; ++i) entry();
  tallies[1].iterations += CALLS_PER_LOAD * 10 * WORK_SLICE;
}

static void with_plugin(const char* file, void (*call)(void (*entry)(void))) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  void* const plugin = dlopen(path, RTLD_NOW);
  void* const entry = plugin ? dlsym(plugin, "plugin_entry") : NULL;
  if (!entry) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  call((void (*)(void))entry);
  dlclose(plugin);
}

static void loop(void* unused) {
  (void)unused;
  while (work_left()) {
    with_plugin("plugin_a.so", call_plugin_a);
    with_plugin("plugin_b.so", call_plugin_b);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  directory = argv[1];
  start_work(argv[2]);
  from_root(loop, NULL);
  report(tallies, 2);
  return 0;
}
