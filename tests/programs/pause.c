// SPDX-License-Identifier: Apache-2.0
// pause: does nothing until SIGTERM or SIGINT, also as the first process of a pid namespace, which
// no signal ends that it does not handle.
#include <signal.h>
#include <unistd.h>

static void end(int signal) {
  (void)signal;
  _exit(0);
}

int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  while (1) pause();
}
