// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.h"

namespace pyrometer {

const char* const kProgramFooter = R"(
Examples:
  pyrometer record -d 10s                       the whole machine: print its hottest functions
  pyrometer record -d 30s -o cpu.pb.gz -o cpu.html
  pyrometer record --pid 4711 -d 30s -o cpu.html
  pyrometer record -o build.html -- make -j8
  pyrometer agent --pyroscope http://pyroscope:4040
                                                profile all the time, deliver every 10 seconds
  pyrometer doctor                              what works here, and what is missing

'pyrometer SUBCOMMAND --help' explains each in full.)";

const char* const kRecordFooter = R"(
Which processes:
  Without a target: every process of the machine, and the kernel. With several targets, whatever
  matches any of them is sampled. A COMMAND is recorded with all its descendants; it cannot be
  combined with other targets. It begins at the first word that is not an option, or after --.
  --pod, --namespace and --container NAME narrow each other: what matches one of each is sampled,
  and so are containers that begin while it records (within 2 s). For names the container runtime
  is asked: by CRI at CONTAINER_RUNTIME_ENDPOINT, or where runtimes usually listen; where there is
  none, Docker or podman, at DOCKER_HOST or likewise. Samples of containers have the labels
  namespace, pod, container and service_name in pprof, or else container_id.

What a sample is:
  cpu-clock    a tick of each CPU's clock, --frequency times a second, if the CPU is not idle
  page-faults  a page fault, or with --period N each CPU's every N-th: where memory is touched for
               the first time, or mapped files are read. Each costs a few microseconds; --frequency
               does not go with it. N runs over all processes of a CPU: with a target, samples
               times N is an estimate.

When it ends:
  After --duration, at Ctrl-C (or SIGTERM), when the COMMAND ends, or when all processes given by
  --pid have exited, whichever comes first. What was sampled until then is written. Ctrl-C also
  sends SIGTERM to a COMMAND that still runs; after --duration it runs on, and record waits for it.

Outputs:
  NAME.pb.gz   pprof, for 'go tool pprof', Pyroscope, Parca and others
  NAME.folded  collapsed stacks, one per line, for flamegraph.pl and others
  NAME.html    a flame graph: one page that needs nothing else
  NAME.txt     the functions with the most samples
  -            standard output: text, or the format given by --format
  Without --output: text on standard output. Files are replaced atomically; symbolic links, devices
  and pipes are written in place.

On standard error, at the end:
  samples=N idle=N filtered=N lost=N (reason=N ...) undelivered=N processes=N stacks=N truncated=N (reason=N ...)
  Every tick counts in exactly one of the first four. 'undelivered' counts ticks of a clock that the
  kernel or a hypervisor never delivered, 'truncated' samples whose user stack stops early. --stats
  adds every counter of the profiler, one per line, with its meaning.

Exit status:
  0            the recording was written
  1            failed while running; also: no such process, cgroup or container
  2            wrong usage
  3            the kernel or missing privileges prevent it; see 'pyrometer doctor'
  With a COMMAND: its exit status, or 128+N if signal N killed it; 127 if it was not found, 126 if
  it cannot be executed.

Examples:
  pyrometer record -d 10s                               print the machine's hottest functions
  pyrometer record -d 1m30s -o cpu.pb.gz -o cpu.html    two formats of one recording
  pyrometer record -p 4711,4712 -F 499 -d 10s -o db.html
  pyrometer record --comm nginx --comm php-fpm -d 30s -o web.folded
  pyrometer record --container 3f4c5d6e7f80 --label service=checkout -d 30s -o checkout.pb.gz
  pyrometer record --namespace shop --pod web-0 -d 30s -o web.html
  pyrometer record --cgroup system.slice/postgresql.service -d 30s -o pg.html
  pyrometer record --event page-faults -p 4711 -d 10s -o faults.html
  pyrometer record -o sort.html -- sort -R /usr/share/dict/words
  pyrometer record -d 10s --format folded | flamegraph.pl > cpu.svg)";

const char* const kAgentFooter = R"(
Configuration:
  One YAML file, whose every key is explained in pyrometer.yaml as it is installed. Without a file
  everything has its default: the whole machine is profiled, profiles are kept as files in
  /var/lib/pyrometer/profiles (at most 1GiB, and a week), and the agent's page is at
  http://127.0.0.1:4041. Options of this command line come before the file.
  SIGHUP reads the file again; if it is wrong, the agent goes on with what it had.
  "${NAME}" in a value of the file is the environment variable NAME.
  relabel_configs are rules as in Prometheus; --explain PID shows what they do to a process.

When it ends:
  At SIGTERM or Ctrl-C, within 5 seconds; what was sampled until then is sent or spooled.

Exit status:
  0            ended as asked; with --check-config: the configuration can be used
  1            failed while running; with --explain: no such process
  2            wrong usage or configuration
  3            the kernel or missing privileges prevent it; see 'pyrometer doctor'

Examples:
  pyrometer agent                                       keep a week of profiles on this machine
  pyrometer agent --config pyrometer.yaml --check-config
  pyrometer agent --config pyrometer.yaml --explain 4711
  pyrometer agent --pyroscope http://pyroscope:4040 --label cluster=blue
  pyrometer agent --parca http://parca:7070 --window 30s
  pyrometer agent --otlp http://collector:4318 --exclude-cgroup /system.slice
  pyrometer agent --output-directory ./profiles --comm nginx --listen 127.0.0.1:4042)";

const char* const kDoctorFooter = R"(
Tests everything that recording needs and says what to do about what is missing. Changes nothing.
Each check is ok, a restriction (warn), fatal (fail), or unknown without more privileges (?).

Exit status: 0 if recording works here, 3 if not.)";

}  // namespace pyrometer
