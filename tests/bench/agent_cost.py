# SPDX-License-Identifier: Apache-2.0
"""What `pyrometer agent` takes while it delivers to a server, and how soon its windows arrive."""

import dataclasses
import gzip
import http.server
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import kernel  # noqa: E402
import pprof_reader  # noqa: E402
import recorders  # noqa: E402
import tables  # noqa: E402
from waiting import wait_for  # noqa: E402

# (title, how many busy processes, each of another name)
LOADS = [("idle", 0), ("10 processes", 10), ("300 processes", 300)]
WINDOW = 10
BUSY = "a, b = 1, 2\nwhile True:\n    a, b = sorted((b * 3 % 1009, a + 1))\n"


@dataclasses.dataclass
class Request:
    latency: float  # seconds from the end of the window to the arrival
    samples: int
    wire_bytes: int


@dataclasses.dataclass
class AgentCost:
    requests: list
    cpu_percent: float  # of one CPU, children included, while it samples and delivers
    tick_percent: float  # of one CPU, what ticks took of the sampled programs meanwhile
    resident: int  # peak, children included
    kernel_memory: int


def profiles_of(push_request):
    """The pprof files in a push.v1.PushRequest."""
    for series in pprof_reader.submessages(push_request, 1):
        for sample in pprof_reader.submessages(series, 2):
            yield pprof_reader.submessages(sample, 1)[0]


class Receiver:
    """A Pyroscope that takes everything at once and remembers when it came."""

    def __enter__(self):
        receiver = self
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((time.time(), body, self.headers))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128  # the agent opens more connections at once than the default of 5

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def decoded(self):
        """Read only after the measurement: reading takes CPU time."""
        for arrived, body, headers in self.requests:
            message = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
            for raw in profiles_of(message):
                profile = pprof_reader.parse(raw)
                end = (profile.time_nanos + profile.duration_nanos) / 1e9
                yield Request(arrived - end, profile.total(), len(body))


def cpu_hierarchy():
    """Where cgroups that share CPUs are made; None if that cannot be done here."""
    for path in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
        if os.path.exists(os.path.join(path, "cgroup.procs")) and os.access(path, os.W_OK):
            return path
    return None


class BusyProcesses:
    """Python programs under names of their own, which share the CPUs. They are in a cgroup of their
    own, as a service's or a container's processes are: else the agent, too, would get its turn after
    each of 300 others, which no agent of a service manager does."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.processes = []
        hierarchy = cpu_hierarchy()
        self.cgroup = hierarchy and os.path.join(hierarchy, "pyrometer-bench-%d" % os.getpid())
        if self.cgroup:
            os.mkdir(self.cgroup)
        for i in range(self.count):
            link = os.path.join(self.directory.name, "busy-%d" % i)
            os.symlink(sys.executable, link)
            self.processes.append(subprocess.Popen([link, "-S", "-c", BUSY]))
            if self.cgroup:
                with open(os.path.join(self.cgroup, "cgroup.procs"), "w") as file:
                    file.write(str(self.processes[-1].pid))
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        if self.cgroup:
            os.rmdir(self.cgroup)
        self.directory.cleanup()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def tick_seconds(port):
    """What ticks have taken so far of the CPUs, as the agent counts it."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as answer:
        found = re.search(r"^pyrometer_tick_time_seconds_total (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(found[1])


def run_agent(program, receiver, seconds, directory):
    port = free_port()
    agent = subprocess.Popen(
        [program, "agent", "--pyroscope", receiver.url, "--listen", "127.0.0.1:%d" % port, "--window", "%ds" % WINDOW,
         "--spool-directory", directory],
        stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        wait_for(lambda: receiver.requests or agent.poll() is not None, "a first window", 60, failure=recorders.Failure)
        processes = [agent.pid, *kernel.processes_below(agent.pid)]
        before_ticks = tick_seconds(port)
        before = sum(map(kernel.cpu_seconds_of, processes)), time.monotonic()
        time.sleep(seconds)  # the measurement itself
        cpu = sum(map(kernel.cpu_seconds_of, processes)) - before[0]
        passed = time.monotonic() - before[1]
        ticks = tick_seconds(port) - before_ticks
        resident = sum(map(kernel.peak_resident_of, processes)) - kernel.mapped_kernel_memory_of(agent.pid)
        cost = AgentCost([], cpu / passed * 100, ticks / passed * 100, resident, kernel.kernel_memory_of(agent.pid))
        agent.send_signal(signal.SIGTERM)
        _, said = agent.communicate(timeout=20)
    except Exception:
        agent.kill()
        raise
    if agent.returncode != 0 or not re.search(r"offered=(\d+) delivered=\1 spooled=0 dropped=0", said):
        raise recorders.Failure("the agent lost something: " + said)
    return cost


def measure(program, seconds, say):
    """{title of the load: AgentCost}"""
    results = {}
    for title, processes in LOADS:
        say("agent: " + title)
        with tempfile.TemporaryDirectory() as directory, BusyProcesses(processes), Receiver() as receiver:
            cost = run_agent(program, receiver, max(seconds, 2 * WINDOW), directory)
            cost.requests = list(receiver.decoded())
        results[title] = cost
    return results


def worst_latency(cost):
    return max(request.latency for request in cost.requests)


def bytes_per_thousand_samples(cost):
    samples = sum(request.samples for request in cost.requests)
    return 1000 * sum(request.wire_bytes for request in cost.requests) / samples if samples else 0


def report(results):
    rows = [["load", "CPU % of a core", "ticks %", "resident MB", "kernel MB", "profiles", "delivered after s (median)", "worst",
             "B/1,000 samples"]]  # fmt: skip
    for title, cost in results.items():
        rows.append([
            title, "%.2f" % cost.cpu_percent, "%.2f" % cost.tick_percent, tables.megabytes(cost.resident), tables.megabytes(cost.kernel_memory),
            str(len(cost.requests)), "%.2f" % statistics.median(r.latency for r in cost.requests),
            "%.2f" % worst_latency(cost), "%.0f" % bytes_per_thousand_samples(cost),
        ])  # fmt: skip
    return tables.table(rows)
