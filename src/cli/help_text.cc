// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.h"

namespace pyrometer {

const char* const kProgramFooter = R"(
Examples:
  pyrometer record -d 10s                       the whole machine: print its hottest functions
  pyrometer record -d 30s -o cpu.pb.gz -o cpu.html
  pyrometer record --pid 4711 -d 30s -o cpu.html
  pyrometer record -o build.html -- make -j8
  pyrometer doctor                              what works here, and what is missing

'pyrometer SUBCOMMAND --help' tells more.)";

const char* const kRecordFooter = R"(
Which processes:
  Without a target, every process of the machine, and the kernel. Targets add up: a sample is taken
  if any of them matches. A COMMAND is recorded with all its descendants; it cannot be combined
  with other targets. Everything from the first word that is no option on, or after --, belongs to
  it.

When it ends:
  After --duration, at Ctrl-C (or SIGTERM), when the COMMAND ends, or when all processes given by
  --pid are gone, whatever comes first. What was sampled until then is written. A COMMAND that
  still runs is sent SIGTERM at Ctrl-C; after --duration it runs on, and its end is waited for.

Outputs:
  NAME.pb.gz   pprof, for 'go tool pprof', Pyroscope, Parca and others
  NAME.folded  collapsed stacks, one a line, for flamegraph.pl and others
  NAME.html    a flame graph: one page that needs nothing else
  NAME.txt     the functions that took most time
  -            standard output: text, or what --format says
  Without --output: text on standard output. A file is replaced by a whole one or not at all;
  symbolic links, devices and pipes are written in place.

On standard error, at the end:
  samples=N idle=N filtered=N lost=N (reason=N ...) undelivered=N processes=N stacks=N truncated=N (reason=N ...)
  Every tick of the clock is in one of the first four; 'undelivered' are those that the kernel or
  a hypervisor never delivered. --stats adds every counter of the profiler, one a line, each with
  what it means.

Exit status:
  0            the recording is written
  1            it failed while running; also: no such process, cgroup or container
  2            wrong usage
  3            the kernel or the privileges refuse; 'pyrometer doctor' tells what to do
  With a COMMAND: its exit status, 128+N if signal N killed it; 127 if it was not found, 126 if it
  cannot be executed.

Examples:
  pyrometer record -d 10s                               print the machine's hottest functions
  pyrometer record -d 1m30s -o cpu.pb.gz -o cpu.html    two formats of one recording
  pyrometer record -p 4711,4712 -F 499 -d 10s -o db.html
  pyrometer record --comm nginx --comm php-fpm -d 30s -o web.folded
  pyrometer record --container 3f4c5d6e7f80 --label service=checkout -d 30s -o checkout.pb.gz
  pyrometer record --cgroup system.slice/postgresql.service -d 30s -o pg.html
  pyrometer record -o sort.html -- sort -R /usr/share/dict/words
  pyrometer record -d 10s --format folded | flamegraph.pl > cpu.svg)";

const char* const kDoctorFooter = R"(
Tries out what recording needs, and says of each part whether it is there (ok), missing with a loss
(warn) or missing and indispensable (fail), and what to do about it. Changes nothing.

Exit status: 0 if recording works here, 3 if not.)";

}  // namespace pyrometer
