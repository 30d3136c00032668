# SPDX-License-Identifier: Apache-2.0
"""Running `pyrometer agent` against strict receivers of each protocol; see receivers/receive.py.

Environment: as pyrometer_harness.py, and PYROMETER_SYSTEM_PYTHON, a Python that has grpc.
"""

import dataclasses
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pyrometer_harness as harness
from waiting import read_line, wait_for

SYSTEM_PYTHON = os.environ.get("PYROMETER_SYSTEM_PYTHON", "/usr/bin/python3")
RECEIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "receivers", "receive.py")
BECAME = r"delivered=(\d+) spooled=(\d+) dropped=(\d+)(?: \((.*)\))?$"
SINK = re.compile(r"^sink (\S+): offered=(\d+) " + BECAME, re.MULTILINE)
FOUND = re.compile(r"^sink (\S+): found=(\d+) " + BECAME, re.MULTILINE)


def promtool(directory):
    """The path of promtool: the machine's, or the one in Debian's package prometheus, which is taken out
    of it and not installed, since that would start a Prometheus."""
    if found := shutil.which("promtool"):
        return found
    if not shutil.which("apt-get"):
        harness.skip_or_fail("no promtool")
    download = ["apt-get", "-q", "download", "prometheus"]
    for command in (download, ["apt-get", "-q", "update"], download):
        said = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        if packages := glob.glob(os.path.join(directory, "prometheus_*.deb")):
            break
    else:
        harness.skip_or_fail("no promtool: " + said.stderr)
    subprocess.run(["dpkg", "-x", packages[0], directory], check=True)
    return os.path.join(directory, "usr", "bin", "promtool")


class ReceiverProcess:
    """A strict receiver in a process of its own."""

    def __init__(self, protocol, *options):
        self.process = subprocess.Popen([SYSTEM_PYTHON, RECEIVE, protocol, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)  # fmt: skip
        facts = json.loads(read_line(self.process.stdout).decode().removeprefix("READY "))
        self.port = facts["port"]
        self.control = "http://127.0.0.1:%d" % facts["control"]

    def record(self):
        with urllib.request.urlopen(self.control + "/record", timeout=20) as answer:
            return json.load(answer)

    def ticks(self):
        return sum(self.record()["samples"].values())

    def set_mode(self, mode, **more):
        body = json.dumps({"mode": mode, **more}).encode()
        urllib.request.urlopen(self.control + "/mode", data=body, timeout=20).read()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclasses.dataclass
class SinkAccount:
    """What an agent says at its end about one of its sinks, in ticks; or of what it found in its spool."""

    offered: int
    delivered: int
    spooled: int
    dropped: int
    reasons: dict

    def balances(self):
        return self.offered == self.delivered + self.spooled + self.dropped and self.dropped == sum(self.reasons.values())


def accounts_in(text, line=SINK):
    """{sink: SinkAccount} of an agent's standard error."""
    accounts = {}
    for name, *numbers, reasons in line.findall(text):
        words = dict(word.split("=") for word in reasons.split()) if reasons else {}
        accounts[name] = SinkAccount(*map(int, numbers), {k: int(v) for k, v in words.items()})
    return accounts


class Agent:
    """A running `pyrometer agent`, whose configuration is a file that tests may change."""

    def __init__(self, directory, config, program=None):
        self.config_file = os.path.join(directory, "pyrometer.yaml")
        self.log = os.path.join(directory, "agent.log")
        self.write_config(config)
        with open(self.log, "ab") as log:
            self.start_of_log = log.tell()
            self.process = subprocess.Popen([program or harness.PYROMETER, "agent", "--config", self.config_file],
                                            stderr=log)  # fmt: skip
        wait_for(lambda: "sampling at" in self.said() or self.process.poll() is not None, "the agent", 60)
        assert self.process.poll() is None, self.said()
        match = re.search(r"see (https?://\S+)/$", self.said(), re.MULTILINE)
        self.url = match and match[1]

    def write_config(self, config):
        with open(self.config_file, "w") as file:
            # YAML is a superset of JSON.
            file.write(config if isinstance(config, str) else json.dumps(config))

    def said(self):
        with open(self.log) as log:
            log.seek(self.start_of_log)
            return log.read()

    def get(self, path):
        """(status, body) of its server."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def metrics(self):
        """{name with labels: value}"""
        _, body = self.get("/metrics")
        lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def dropped(self, sink, reason=""):
        """Ticks of this run that this sink will never get, so far; for this reason, or for any."""
        return sum(ticks for name, ticks in self.metrics().items()
                   if name.startswith("pyrometer_sink_samples_dropped_total{") and 'sink="%s"' % sink in name
                   and 'reason="%s' % reason in name)  # fmt: skip

    def reload(self, config):
        before = self.said().count("configuration")
        self.write_config(config)
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.said().count("configuration") > before, "the configuration to be read again")

    def stop(self):
        """Ends it as systemd would. Returns what it says of its sinks. What hangs would hang for ever."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(120)
        assert status == 0, "status %d: %s" % (status, self.said())
        return accounts_in(self.said())

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class AgentTestCase(harness.BpfTestCase):
    """Starts what it needs and ends it with the test."""

    def assert_delivered(self, account, receiver):
        """Something has arrived, and nothing was lost but what was under way two seconds after the agent's end, which may
        have arrived."""
        self.assertTrue(account.balances(), account)
        self.assertGreater(account.delivered, 0, account)
        in_doubt = account.reasons.get("maybe_arrived", 0)
        self.assertEqual(account.dropped, in_doubt, account)
        self.assert_between(receiver.ticks(), (account.delivered, account.delivered + in_doubt), account)

    def setUp(self):
        self.home = os.path.join(self.directory, self.id().rsplit(".", 1)[-1])
        os.makedirs(self.home)
        self.spool = os.path.join(self.home, "spool")

    def receiver(self, protocol, *options):
        receiver = ReceiverProcess(protocol, *options)
        self.addCleanup(receiver.end)
        return receiver

    def agent(self, sinks, **keys):
        agent = Agent(self.home, self.config(sinks, **keys))
        self.addCleanup(agent.kill)
        return agent

    def config(self, sinks, **keys):
        config = {"window": "1s", "frequency": 199, "server": {"listen": "127.0.0.1:0"},
                  "spool": {"directory": self.spool}, "sinks": sinks}  # fmt: skip
        return {**config, **keys}

    def cgroup(self, path):
        """The directory of a new cgroup, in the hierarchy where each process is in one."""
        mount = next((m for m in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                      if os.path.exists(os.path.join(m, "cgroup.controllers"))), None)  # fmt: skip
        if mount is None:
            harness.skip_or_fail("no cgroup2 is mounted")
        directory = mount
        for name in path.split("/"):
            directory = os.path.join(directory, name)
            if not os.path.exists(directory):
                os.mkdir(directory)
                self.addCleanup(os.rmdir, directory)
        return directory

    def busy(self, name="work", cgroup=None, seconds=3600, **environment):
        """A process under this name, in this cgroup and with these variables, that uses so much CPU time."""
        link = os.path.join(self.home, name)
        if not os.path.exists(link):
            os.symlink(sys.executable, link)
        work = "import time\nwhile time.process_time() < %g: sum(range(1000))" % seconds
        command = [link, "-S", "-c", work]
        if cgroup is not None:
            command = ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, *command]
        process = subprocess.Popen(command, env={**os.environ, **environment})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def await_ticks(self, receiver, more, seconds=60):
        before = receiver.ticks()
        wait_for(lambda: receiver.ticks() >= before + more, "%d more ticks" % more, seconds, pause=0.1)

    def stop_sending(self, agent, receivers):
        """Stops the agent when its sinks have nothing to send but the last window: there are only two seconds
        for what is left then, which a receiver that gets no CPU does not take in time. Returns what it says of its sinks."""
        waiting = ['pyrometer_sink_samples_%s{sink="%s"}' % (where, sink)
                   for where in ("in_memory", "spooled") for sink in receivers]  # fmt: skip

        def nothing_waits():
            metrics = agent.metrics()
            return all(metrics[name] == 0 for name in waiting)

        wait_for(nothing_waits, "everything to be sent", pause=0.01)
        return agent.stop()


def pyroscope(receiver, **more):
    return {"type": "pyroscope", "url": "http://127.0.0.1:%d" % receiver.port, **more}


def parca(receiver, **more):
    return {"type": "parca", "address": "127.0.0.1:%d" % receiver.port, "insecure": True, **more}


def otlp(receiver, protocol="http", **more):
    endpoint = "http://127.0.0.1:%d" % receiver.port
    return {"type": "otlp", "endpoint": endpoint, "protocol": protocol, **more}
