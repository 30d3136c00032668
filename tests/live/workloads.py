# SPDX-License-Identifier: Apache-2.0
"""Programs as people run them, under load. A workload is a context manager that is at work when it
is entered, and leaves no process and no file behind. All of them run until they are left."""

import contextlib
import dataclasses
import functools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import waiting  # noqa: E402
from packages import Missing, need  # noqa: E402

FOREVER = "86400"
BUSY_MOMENTS = 10  # at which a load is met before it counts as steady
HERE = os.path.dirname(os.path.abspath(__file__))


wait_for = functools.partial(waiting.wait_for, pause=0.05, failure=Missing)


def succeeds(command):
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode == 0  # fmt: skip


def is_running(comms):
    """Whether a thread of any process with one of these names has a CPU or waits for one."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        # Processes and threads may end while they are looked at.
        with contextlib.suppress(OSError):
            if first_line("/proc/%s/comm" % pid) not in comms:
                continue
            for tid in os.listdir("/proc/%s/task" % pid):
                state = first_line("/proc/%s/task/%s/stat" % (pid, tid)).rpartition(") ")[2]
                if state.startswith("R"):
                    return True
    return False


def first_line(path):
    with open(path, errors="replace") as file:
        return file.readline().rstrip("\n")


class Stage:
    """What a workload needs while it runs: a directory, and processes in groups of their own."""

    def __init__(self, directory, stack):
        self.directory = directory
        self._stack = stack

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def run(self, *command):
        """To its end, which must be a good one."""
        result = subprocess.run(command, cwd=self.directory, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
        if result.returncode != 0:
            raise Missing("%s: %s" % (command[0], result.stdout.strip()[-300:]))

    def start(self, *command, stdout=subprocess.DEVNULL):
        """Until the stage is left."""
        process = subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL,
                                   stdout=stdout, stderr=subprocess.DEVNULL,
                                   start_new_session=True)  # fmt: skip
        self._stack.callback(self._stop, process)
        return process

    @staticmethod
    def _stop(process):
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                if how == signal.SIGTERM and not succeeds(["pgrep", "-g", str(process.pid)]):
                    return


@dataclasses.dataclass
class Workload:
    name: str
    comms: tuple  # of the processes to judge
    begin: object  # takes the Stage; returns the pid of one process to judge, or None
    complete_percent: float = 99.5  # of the user stacks, at least; None: not judged

    @contextlib.contextmanager
    def at_work(self):
        """Raises Missing if the program cannot be had here."""
        with contextlib.ExitStack() as stack:
            # A terminated test leaves nothing behind either.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            directory = tempfile.mkdtemp(prefix="pyrometer-live-")
            os.chmod(directory, 0o755)
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            yield self.begin(Stage(directory, stack))

    def wait_until_busy(self):
        """Until its processes have been met running several times. Raises Missing."""
        met = 0

        def is_steady():
            nonlocal met
            met += is_running(self.comms)
            return met >= BUSY_MOMENTS

        if self.comms:
            wait_for(is_steady, "%s to run" % self.name)


# Servers.


def postgresql(stage):
    postgres = need("postgres", "postgresql")
    pgbench = need("pgbench", "postgresql")
    owner = ["runuser", "-u", "postgres", "--"]
    account = pwd.getpwnam("postgres")
    os.chown(stage.directory, account.pw_uid, account.pw_gid)
    data = stage.path("data")
    stage.run(*owner, need("initdb", "postgresql"), "-D", data, "--no-sync")
    stage.start(*owner, postgres, "-D", data, "-k", stage.directory, "-c", "listen_addresses=",
                "-c", "fsync=off")  # fmt: skip
    database = ["-h", stage.directory, "-U", "postgres"]
    wait_for(lambda: succeeds([need("pg_isready", "postgresql"), "-h", stage.directory]),
             "PostgreSQL to start")  # fmt: skip
    stage.run(pgbench, *database, "-i", "-q", "-s", "5", "postgres")
    stage.start(pgbench, *database, "-c", "4", "-T", FOREVER, "postgres")
    backend = ["pgrep", "-f", "^postgres: .*postgres postgres"]
    wait_for(lambda: succeeds(backend), "a client of PostgreSQL")
    return first_below(stage.directory, backend)


def first_below(directory, pgrep):
    """The first process that pgrep finds and that works below `directory`."""
    for pid in subprocess.run(pgrep, stdout=subprocess.PIPE, text=True).stdout.split():
        with contextlib.suppress(OSError):
            if os.readlink("/proc/%s/cwd" % pid).startswith(directory):
                return int(pid)
    raise Missing("no process of %s in %s" % (" ".join(pgrep), directory))


def redis(stage):
    server = need("redis-server", "redis-server")
    benchmark = need("redis-benchmark", "redis-tools")
    socket = stage.path("redis.sock")
    process = stage.start(server, "--port", "0", "--unixsocket", socket, "--save", "",
                          "--dir", stage.directory)  # fmt: skip
    wait_for(lambda: os.path.exists(socket), "Redis to start")
    stage.start(benchmark, "-s", socket, "-n", "2000000000", "-c", "20", "-P", "4", "-r", "100000",
                "-t", "set,get,lpush,zadd", "-l")  # fmt: skip
    return process.pid


NGINX_CONFIGURATION = """
daemon off; worker_processes 2; pid {0}/nginx.pid; error_log {0}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log {0}/access.log;
  client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fastcgi;
  uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
  gzip on; gzip_types *; gzip_min_length 100;
  server {{ listen 127.0.0.1:18099; root {0}; }}
}}
"""


def nginx(stage):
    server = need("nginx", "nginx-light")
    wrk = need("wrk", "wrk")
    stage.write("page.txt", "all work and no play\n" * 500)
    configuration = stage.write("nginx.conf", NGINX_CONFIGURATION.format(stage.directory))
    os.chmod(stage.directory, 0o777)
    process = stage.start(server, "-c", configuration, "-e", stage.path("error.log"))
    wait_for(lambda: os.path.exists(stage.path("nginx.pid")), "nginx to start")
    stage.start(wrk, "-t1", "-c32", "-d", FOREVER, "-H", "Accept-Encoding: gzip",
                "http://127.0.0.1:18099/page.txt")  # fmt: skip
    return process.pid


def mariadb(stage):
    server = need("mariadbd", "mariadb-server")
    slap = need("mariadb-slap", "mariadb-client")
    data, socket = stage.path("data"), stage.path("mariadb.sock")
    stage.run(need("mariadb-install-db", "mariadb-server"), "--no-defaults", "--datadir=" + data,
              "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
    process = stage.start(server, "--no-defaults", "--datadir=" + data, "--socket=" + socket,
                          "--user=root", "--skip-networking", "--skip-grant-tables",
                          "--innodb-flush-log-at-trx-commit=0",
                          "--pid-file=" + stage.path("mariadb.pid"))  # fmt: skip
    wait_for(lambda: os.path.exists(socket), "MariaDB to start")
    stage.start(slap, "--no-defaults", "--socket=" + socket, "--auto-generate-sql",
                "--auto-generate-sql-load-type=mixed", "--concurrency=4", "--iterations=1000000",
                "--number-of-queries=20000")  # fmt: skip
    return process.pid


# Programs that compute.


def openssl(*words):
    def begin(stage):
        return stage.start(need("openssl", "openssl"), "speed", "-seconds", "600", *words).pid

    return begin


def ffmpeg(stage):
    return stage.start(need("ffmpeg", "ffmpeg"), "-loglevel", "error", "-f", "lavfi", "-i",
                       "testsrc2=size=640x360:rate=30", "-c:v", "libx265", "-f", "null", "-").pid  # fmt: skip


PYTHON = """
import hashlib, json, re
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    text = json.dumps({str(i): [i, i * 0.5] for i in range(2000)})
    json.loads(text); re.findall(r"\\d+(?=,)", text); sorted(text); hashlib.sha256(text.encode())
    fib(15)
"""
PERL = """
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
while (1) {
  my %h = map { $_ => $_ * 2 } 1 .. 2000; my $t = join ',', sort { $h{$a} <=> $h{$b} } keys %h;
  my $n = () = $t =~ /(\\d+)(?=,)/g; fib(12);
}
"""
RUBY = """
require 'json'
def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
loop do
  text = JSON.generate((0..2000).to_h { |i| [i.to_s, [i, i * 0.5]] })
  JSON.parse(text); text.scan(/\\d+(?=,)/).sort_by { |s| -s.to_i }; fib(15)
end
"""
NODE = """
const zlib = require('zlib');
const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2);
for (;;) {
  const text = JSON.stringify(Array.from({length: 2000}, (_, i) => ({id: i, half: i * 0.5})));
  JSON.parse(text); text.match(/\\d+(?=,)/g).sort(); zlib.gzipSync(text); fib(20);
}
"""
JAVA = """
import java.util.*;
public class Load {
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] args) {
    for (long round = 0; ; ++round) {
      Map<String, Integer> map = new TreeMap<>();
      for (int i = 0; i < 2000; ++i) map.put("key" + i * 31, i);
      if (map.toString().hashCode() + fib(15) == round) System.out.println(round);
    }
  }
}
"""
PAGE = """<!doctype html><canvas id=c width=600 height=400></canvas><div id=d></div><script>
let n = 0;
function frame() {
  const g = document.getElementById('c').getContext('2d');
  for (let i = 0; i < 300; ++i) {
    g.fillStyle = `hsl(${(n + i) % 360} 80% 50%)`;
    g.beginPath(); g.arc(Math.random() * 600, Math.random() * 400, 20, 0, 7); g.fill();
  }
  document.getElementById('d').innerHTML =
      Array.from({length: 300}, (_, i) => `<p>line ${n + i}</p>`).join('');
  ++n; setTimeout(frame, 0);
}
frame();
</script>
"""


def interpreter(command, package, file, text):
    def begin(stage):
        return stage.start(need(command, package), stage.write(file, text)).pid

    return begin


def chromium(stage):
    page = stage.write("page.html", PAGE)
    browser = need("chromium", "chromium")
    process = stage.start(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                          "--disable-dev-shm-usage", "--remote-debugging-port=0",
                          "--user-data-dir=" + stage.path("profile"), "file://" + page)  # fmt: skip
    wait_for(lambda: os.path.exists(stage.path("profile/DevToolsActivePort")), "Chromium to start")
    return process.pid


# Processes that come and go.


def c_source(number):
    """A file that a compiler is busy with for some 100 ms."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", "#include <math.h>"]
    for i in range(60):
        lines.append(
            "double f{0}_{1}(double *a, int n) {{ double s = {1}; for (int i = 0; i < n; ++i) {{"
            " s += a[i] * {0}; if (s > {1}) s = sqrt(s) - a[n - i - 1]; else memmove(a, a + 1, 8 * n);"
            " switch ((int)s % 7) {{ case 0: s++; break; case 1: s *= 2; break; case 3: puts(\"x\");"
            " break; default: s -= i; }} }} return s; }}".format(number, i)
        )
    lines.append("double f%d(double *a, int n) { return f%d_1(a, n) + f%d_2(a, n); }"
                 % (number, number, number))  # fmt: skip
    return "\n".join(lines) + "\n"


MAKEFILE = """
objects = $(patsubst %.c,%.o,$(wildcard *.c))
all: program
program: $(objects)
\tgcc -o $@ $^ -lm
%.o: %.c
\tgcc -O2 -g -c -o $@ $<
clean:
\trm -f *.o program
"""


def compiling(stage):
    gcc = need("gcc", "gcc")
    stage.write("one.c", c_source(1))
    stage.start("sh", "-c", "while %s -O2 -c one.c; do :; done" % gcc)


def building(jobs):
    """A build that starts again whenever it is done."""
    return functools.partial(_building, jobs)


def _building(jobs, stage):
    need("gcc", "gcc")
    make = need("make", "make")
    for number in range(40):
        stage.write("file%d.c" % number, c_source(number))
    stage.write("main.c", "int main(void) { return 0; }\n")
    stage.write("Makefile", MAKEFILE)
    stage.start("sh", "-c", "while {0} -s clean && {0} -s -j{1}; do :; done".format(make, jobs))


BURST_NAMES = 20


def bursts(stage):
    """200 processes a second that live 1 to 30 ms, of twenty executables."""
    gcc = need("gcc", "gcc")
    flags = ["-D_GNU_SOURCE", "-O2", "-fomit-frame-pointer", "-o"]
    stage.run(gcc, *flags, stage.path("burst"), os.path.join(HERE, "burst.c"))
    stage.run(gcc, *flags, stage.path("burst_spawner"), os.path.join(HERE, "burst_spawner.c"))
    for number in range(BURST_NAMES):
        # Copies, not links: every one is a file of its own to learn.
        shutil.copy(stage.path("burst"), stage.path("burst_%d" % number))
    stage.start(stage.path("burst_spawner"), stage.path("burst_"), str(BURST_NAMES))


def idle(_):
    return None


POSTGRESQL = Workload("PostgreSQL", ("postgres",), postgresql)
REDIS = Workload("Redis", ("redis-server",), redis)
NGINX = Workload("nginx", ("nginx",), nginx)
PYTHON3 = Workload("python3", ("python3",), interpreter("python3", "python3", "load.py", PYTHON))
PERL5 = Workload("perl", ("perl",), interpreter("perl", "perl", "load.pl", PERL))
NODE_JS = Workload("node", ("node",), interpreter("node", "nodejs", "load.js", NODE), 99.0)
GCC = Workload("gcc", ("cc1", "as", "gcc"), compiling)
PROGRAMS = [
    POSTGRESQL,
    REDIS,
    NGINX,
    Workload("MariaDB", ("mariadbd",), mariadb),
    Workload("openssl-rsa2048", ("openssl",), openssl("rsa2048")),
    Workload("openssl-aes-128-gcm", ("openssl",), openssl("-bytes", "16384", "-evp", "aes-128-gcm")),
    Workload("openssl-sha256", ("openssl",), openssl("-bytes", "16384", "-evp", "sha256")),
    Workload("ffmpeg-x265", ("ffmpeg",), ffmpeg, 99.0),
    PYTHON3,
    PERL5,
    Workload("ruby", ("ruby",), interpreter("ruby", "ruby", "load.rb", RUBY)),
    NODE_JS,
    GCC,
    Workload("Chromium", ("chromium",), chromium, 99.0),
    Workload("Java", ("java",), interpreter("java", "openjdk-17-jdk-headless", "Load.java", JAVA),
             None),
]  # fmt: skip
IDLE = Workload("idle", (), idle)
COMPILERS = ("cc1", "as", "gcc", "collect2", "ld", "make")
BUILD = Workload("make -j4", COMPILERS, building(4), 99.0)
SMALL_BUILD = Workload("make -j2", COMPILERS, building(2), 99.0)
BURSTS = Workload("short-lived", tuple("burst_%d" % n for n in range(BURST_NAMES)), bursts, 99.0)
