# SPDX-License-Identifier: Apache-2.0
"""The agent of the Debian package, as its unit has it run, and against a server. Needs root, dpkg,
and a machine on which Pyrometer is not installed."""

import http.server
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading

import pprof_reader
import service_unit
from debian_package import CACHE, STATE, UNIT, PackageTestCase, environment, read
from pyrometer_harness import Running, main, program, skip_or_fail
from waiting import read_line, wait_for

ENOUGH_SAMPLES = 50  # of one program


def service_of(series):
    """The label service_name of a RawProfileSeries: the agent has it from the program's name."""
    for pair in pprof_reader.submessages(series, 1):
        name, value = (pprof_reader.submessages(pair, number)[0] for number in (1, 2))
        if name == b"service_name":
            return value.decode()
    return ""  # a process that was gone before anything was known of it


class PushReceiver(http.server.ThreadingHTTPServer):
    """Keeps the profiles that Pyroscope's clients push: PushRequest of proto/pyroscope_push.proto."""

    class Request(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            # The port may have been that of a receiver whose agent goes on trying.
            ours = self.headers.get("X-Scope-OrgID") == self.server.tenant
            if ours:
                self.server.take(body)
            self.send_response(200 if ours else 403)
            self.send_header("Content-Type", "application/proto")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Request)
        self.tenant = "test-%d" % os.getpid()
        self.url = "http://127.0.0.1:%d" % self.server_port
        self._lock = threading.Lock()
        self._samples = {}  # by service
        self._last = {}  # those of the last request
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, body):
        for series in pprof_reader.submessages(body, 1):
            samples = [
                sample
                for raw_sample in pprof_reader.submessages(series, 2)
                for profile in pprof_reader.submessages(raw_sample, 1)
                for sample in pprof_reader.parse(profile).samples
            ]
            with self._lock:
                self._samples.setdefault(service_of(series), []).extend(samples)
                self._last[service_of(series)] = samples

    def forget(self):
        with self._lock:
            self._samples, self._last = {}, {}

    def samples_of(self, service):
        with self._lock:
            return list(self._samples.get(service, []))

    def last_of(self, service):
        with self._lock:
            return self._last.get(service, [])

    def count_of(self, service):
        return sum(sample.values[0] for sample in self.samples_of(service))

    def all_samples(self):
        with self._lock:
            return [sample for samples in self._samples.values() for sample in samples]


class InstalledAgent(PackageTestCase):
    """As the unit would run it, and against a server."""

    def setUp(self):
        super().setUp()
        self.log = tempfile.mkstemp(prefix="agent-", dir=self.directory)[1]
        self.receiver = PushReceiver()
        self.addCleanup(self.receiver.server_close)
        self.addCleanup(self.receiver.shutdown)
        self.append_to_configuration(
            "frequency: 499\nwindow: 1s\nlimits: {cpu: 100%%}\nserver: {listen: \"127.0.0.1:0\"}\n"
            "sinks:\n  - {type: pyroscope, url: \"%s\", tenant: %s}\n"
            % (self.receiver.url, self.receiver.tenant)
        )

    def start_agent(self, command):
        with open(self.log, "a", encoding="utf-8") as log:
            agent = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)

        def says_where():
            if agent.poll() is not None:
                raise AssertionError("the agent ended: " + read(self.log))
            return "sampling at" in read(self.log)

        wait_for(says_where, "the agent to sample")
        return agent

    def wait_for_samples(self, names):
        def missing():
            return [name for name in names if self.receiver.count_of(name) < ENOUGH_SAMPLES]

        try:
            wait_for(lambda: not missing(), "enough profiles")
        except AssertionError as error:
            raise AssertionError("of %s: %s" % (missing(), error)) from error

    @staticmethod
    def named_and_whole(samples):
        """Those whose stacks go from the program's entry to one of its functions."""
        return [sample for sample in samples
                if is_chain(["from_root", "shares::Loop"], [frame.function for frame in sample.frames])]

    def assert_all_delivered(self):
        """But for what was under way at the end, which may have arrived."""
        self.assertRegex(read(self.log), r"sink pyroscope: offered=\d+ delivered=[1-9]\d* spooled=\d+ "
                                         r"dropped=(0|\d+ \(maybe_arrived=\d+\))\n")

    def start_program(self, name, directory, user):
        """As `name`, from a directory and a file that only its user may look into."""
        own = tempfile.mkdtemp(prefix="pyrometer-test-", dir=directory)
        self.addCleanup(shutil.rmtree, own, ignore_errors=True)
        path = os.path.join(own, name)
        shutil.copyfile(program("shares"), path)
        os.chmod(path, 0o500)
        for owned in (own, path):
            shutil.chown(owned, user, pwd.getpwnam(user).pw_gid)
        running = Running(path, "60", "0", user=user)
        self.addCleanup(running.__exit__)
        return running

    def start_programs(self, when):
        """The names of some that start `when`, from where the service itself may not look."""
        os.makedirs("/home", exist_ok=True)
        names = {what: "%s-%s" % (what, when) for what in ("root", "home", "tmp", "deleted")}
        self.start_program(names["root"], "/root", "root")
        self.start_program(names["home"], "/home", "nobody")
        self.start_program(names["tmp"], "/tmp", "nobody")
        deleted = self.start_program(names["deleted"], "/tmp", "nobody")
        os.unlink(os.readlink("/proc/%d/exe" % deleted.pid))
        return list(names.values())

    def check(self, command):
        before = self.start_programs("before")
        agent = self.start_agent(command)
        names = [*before, *self.start_programs("after")]
        self.wait_for_samples([*names, self.start_in_kernel()])
        self.assert_all_named(names)
        self.assert_sandboxed()
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(timeout=120), 0)
        self.assert_all_delivered()

    def assert_all_named(self, names):
        """All samples of a window, in the end: it does not wait for the names of what it was the first to see."""
        def not_named():
            last = {name: self.receiver.last_of(name) for name in names}
            return [name for name, samples in last.items()
                    if not samples or len(self.named_and_whole(samples)) < len(samples)]

        try:
            wait_for(lambda: not not_named(), "names")
        except AssertionError as error:
            raise AssertionError("%s; not all named: %s" % (error, not_named())) from error
        self.assertEqual([name for name in self.kernel_functions() if "+0x" in name], [])

    def assert_sandboxed(self):
        """With the walls that a service can have, which is not root."""
        self.assertIn("foreign files are read behind seccomp filter, no capabilities", read(self.log))

    def assert_not_named(self, name, capability):
        """None of the samples of a program, without this one."""
        samples = self.receiver.samples_of(name)
        self.assertTrue(samples, name)
        self.assertEqual(self.named_and_whole(samples), [], capability)

    def kernel_functions(self):
        """Those of each frame in the kernel, or a place in it that has no name. Without the filters of seccomp(2),
        under which services are: they have none, unlike other BPF programs."""
        kernel = [frame.function for sample in self.receiver.all_samples()
                  for caller, frame in zip([None, *sample.frames], sample.frames)
                  if "kernel.kallsyms" in frame.mapping
                  and not (caller is not None and caller.function.startswith("__seccomp_filter"))]
        self.assertGreater(len(kernel), 0)
        return kernel

    def test_names_processes_of_all_users_with_the_capabilities_of_the_unit(self):
        self.check(service_unit.command(service_unit.parse(UNIT)))

    def start_in_kernel(self):
        """The name of a program that is mostly in the kernel: on a quiet machine few others are."""
        running = subprocess.Popen(["/bin/dd", "if=/dev/zero", "of=/dev/null"], stderr=subprocess.DEVNULL)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return "dd"

    def profile_without(self, capability, *names):
        """What the receiver has is then of these and of this agent."""
        self.receiver.forget()
        agent = self.start_agent(
            service_unit.command(service_unit.parse(UNIT), without=[capability]))
        self.wait_for_samples(names)
        agent.terminate()
        self.assertEqual(agent.wait(timeout=120), 0)

    def test_does_not_start_without_the_capabilities_that_sample(self):
        for capability in ("bpf", "perfmon"):
            command = service_unit.command(service_unit.parse(UNIT), without=[capability])
            result = subprocess.run(
                command, env=environment, stderr=subprocess.PIPE, timeout=60, check=False)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(b"CAP_" + capability.upper().encode(), result.stderr)

    def test_loses_names_without_each_of_the_other_capabilities(self):
        # One after the other: names belong to a file's content, wherever else that can be read.
        with self.start_program("deleted", "/tmp", "nobody") as deleted:
            os.unlink(os.readlink("/proc/%d/exe" % deleted.pid))
            self.profile_without("checkpoint_restore", "deleted")
            self.assert_not_named("deleted", "checkpoint_restore")
        with self.start_program("private", "/tmp", "nobody"):
            for capability in ("sys_ptrace", "dac_read_search"):
                self.profile_without(capability, "private")
                self.assert_not_named("private", capability)
            self.profile_without("syslog", "private", self.start_in_kernel())
            # The names of BPF programs come with the events of their being loaded.
            named = [name for name in self.kernel_functions() if "+0x" not in name and not name.startswith("bpf_")]
            self.assertEqual(named, [])

    def test_names_them_where_systemd_runs_the_unit_with_all_it_forbids(self):
        if not os.path.exists("/usr/lib/systemd/systemd"):
            skip_or_fail("no systemd (Debian package systemd)")
        before = self.start_programs("before")
        self.start_systemd()
        names = [*before, *self.start_programs("after")]
        self.wait_for_samples([*names, self.start_in_kernel()])
        self.ask_systemd("reload")
        self.assertIn("the configuration was read again", read(self.log))
        self.assert_all_named(names)
        self.assert_sandboxed()
        self.ask_systemd("stop")
        self.assert_all_delivered()

    def start_systemd(self):
        """Which has started the unit, and been told by the agent that it is ready."""
        # What root's own manager would put elsewhere than that of the system does.
        drop_in = (
            "StateDirectory=\nCacheDirectory=\nReadWritePaths=%s %s\n"
            "StandardOutput=append:%s\nStandardError=append:%s\n"
            % (STATE, CACHE, self.log, self.log)
        )
        command, own_environment = service_unit.under_systemd(UNIT, self.directory, drop_in)
        self.systemd = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own_environment)
        self.addCleanup(self.end_systemd)
        answer = read_line(self.systemd.stdout)
        self.assertTrue(answer and answer.startswith(b"STARTED"), (answer, read(self.log)))

    def ask_systemd(self, verb):
        self.systemd.stdin.write(verb.encode() + b"\n")
        self.systemd.stdin.flush()
        self.assertEqual(read_line(self.systemd.stdout), b"DONE " + verb.encode())

    def end_systemd(self):
        self.systemd.stdin.close()
        self.systemd.wait(timeout=60)
        self.systemd.stdout.close()


def is_chain(wanted, names):
    """Whether `wanted` is in `names`, in this order, whatever lies between."""
    rest = iter(names)
    return all(any(name.startswith(want) for name in rest) for want in wanted)


if __name__ == "__main__":
    main()
