// SPDX-License-Identifier: Apache-2.0
// from_memfd PROGRAM ARG...: copies PROGRAM into a memfd and executes it there: no path at all.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int program = open(argv[1], O_RDONLY | O_CLOEXEC);
  const int memory = memfd_create("in-memory", MFD_CLOEXEC);
  struct stat status;
  if (program < 0 || memory < 0 || fstat(program, &status) != 0) return 1;
  for (off_t copied = 0; copied < status.st_size;)
    if (sendfile(memory, program, &copied, (size_t)(status.st_size - copied)) <= 0) return 1;
  fexecve(memory, argv + 1, environ);
  perror(argv[1]);
  return 1;
}
