// SPDX-License-Identifier: Apache-2.0
// Linked so that its first segment is executable, as an executable and as a library. The executable
// waits to be killed; with an argument it stops itself.
#include <signal.h>
#include <unistd.h>

extern "C" int pyro_text_first() {
  return 1;
}

int main(int argc, char** /*argv*/) {
  if (argc > 1) raise(SIGSTOP);
  while (true) pause();
}
