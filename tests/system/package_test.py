# SPDX-License-Identifier: Apache-2.0
"""The Debian package: what it installs, how the installed agent runs as its unit has it, and what
is left when it is gone. Needs root, dpkg, and a machine on which Pyrometer is not installed."""

import grp
import http.server
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import unittest

import pprof_reader
import service_unit
from pyrometer_harness import (
    BpfTestCase, Running, main, program, skip_or_fail, wait_for,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = "/usr/lib/systemd/system/pyrometer.service"
CONFIGURATION = "/etc/pyrometer/pyrometer.yaml"
STATE, CACHE = "/var/lib/pyrometer", "/var/cache/pyrometer"
BUILD_SECONDS = 1800
ENOUGH_SAMPLES = 50  # of one program

environment = dict(
    os.environ, DEBIAN_FRONTEND="noninteractive",
    PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
)


def run(*command, **options):
    """The output of a command that succeeds."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment, timeout=120, **options,
    )
    if result.returncode != 0:
        raise AssertionError("%s: %s" % (" ".join(command), result.stdout))
    return result.stdout


def status():
    """dpkg's word for the package: "ii", "rc", or "" """
    result = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "pyrometer"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
    )
    return result.stdout.strip()


def why_not_here():
    if os.geteuid() != 0:
        return "not root"
    if not shutil.which("dpkg"):
        return "no dpkg: this is no Debian"
    if status() or os.path.exists(STATE) or os.path.exists("/etc/pyrometer"):
        return "Pyrometer is, or was, installed on this machine"
    return None


def build_package():
    result = subprocess.run(
        [os.path.join(ROOT, "scripts", "package"), "deb"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=BUILD_SECONDS,
        check=False,
    )
    if result.returncode != 0:
        raise AssertionError("scripts/package deb: " + result.stderr)
    return result.stdout.strip()


def repack(package, directory, version, line):
    """The same package as another version, whose configuration file ends in `line`."""
    tree = os.path.join(directory, "tree-" + version)
    run("dpkg-deb", "--raw-extract", package, tree)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = re.sub(r"(?m)^Version: .*$", "Version: " + version, file.read())
    with open(control, "w", encoding="utf-8") as file:
        file.write(text)
    with open(tree + CONFIGURATION, "a", encoding="utf-8") as file:
        file.write(line)
    result = os.path.join(directory, version + ".deb")
    run("dpkg-deb", "--root-owner-group", "--build", tree, result)
    return result


def description_of(path):
    """ "drwxr-x--- user group" """
    found = os.stat(path)
    return "%s %s %s" % (
        stat.filemode(found.st_mode), pwd.getpwuid(found.st_uid).pw_name,
        grp.getgrgid(found.st_gid).gr_name,
    )


def user_exists():
    try:
        pwd.getpwnam("pyrometer")
    except KeyError:
        return False
    return True


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def service_of(series):
    """The label service_name of a RawProfileSeries: the agent has it from the program's name."""
    for pair in pprof_reader.submessages(series, 1):
        name, value = (pprof_reader.submessages(pair, number)[0] for number in (1, 2))
        if name == b"service_name":
            return value.decode()
    raise AssertionError("a series without service_name")


class PushReceiver(http.server.ThreadingHTTPServer):
    """Keeps the profiles that Pyroscope's clients push: PushRequest of proto/pyroscope_push.proto."""

    class Request(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.take(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/proto")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Request)
        self.url = "http://127.0.0.1:%d" % self.server_port
        self._lock = threading.Lock()
        self._samples = {}  # by service
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

    def samples_of(self, service):
        with self._lock:
            return list(self._samples.get(service, []))

    def count_of(self, service):
        return sum(sample.values[0] for sample in self.samples_of(service))

    def all_samples(self):
        with self._lock:
            return [sample for samples in self._samples.values() for sample in samples]


class PackageTestCase(BpfTestCase):
    """Every test begins with the package installed and ends with it purged."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = why_not_here()
        if reason:
            skip_or_fail(reason)
        cls.package = build_package()

    def setUp(self):
        self.addCleanup(subprocess.run, ["dpkg", "--purge", "pyrometer"], check=False,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        run("dpkg", "--install", self.package)

    def append_to_configuration(self, text):
        with open(CONFIGURATION, "a", encoding="utf-8") as file:
            file.write(text)


class Package(PackageTestCase):
    def test_installs_files_directories_and_a_user_without_a_login(self):
        expected = {
            "/usr/bin/pyrometer": "-rwxr-xr-x root root",
            UNIT: "-rw-r--r-- root root",
            "/usr/share/doc/pyrometer/copyright": "-rw-r--r-- root root",
            "/etc/pyrometer": "drwxr-xr-x root root",
            CONFIGURATION: "-rw-r----- root pyrometer",
            STATE: "drwxr-x--- pyrometer pyrometer",
            STATE + "/spool": "drwxr-x--- pyrometer pyrometer",
            STATE + "/profiles": "drwxr-x--- pyrometer pyrometer",
            STATE + "/store": "drwxr-x--- pyrometer pyrometer",
            CACHE: "drwx------ pyrometer pyrometer",
        }
        self.assertEqual({path: description_of(path) for path in expected}, expected)
        user = pwd.getpwnam("pyrometer")
        self.assertEqual((user.pw_dir, user.pw_shell), (STATE, "/usr/sbin/nologin"))
        self.assertLess(user.pw_uid, 1000)
        self.assertIn(": ok\n", run("/usr/bin/pyrometer", "agent", "--check-config"))

    def test_names_the_libraries_that_the_program_needs(self):
        depends = run("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libc6", "libbpf1", "libgrpc++", "libcurl4", "adduser"):
            self.assertIn(library, depends)

    def test_is_built_without_debug_information(self):
        self.assertNotIn(".debug_info", run("readelf", "--wide", "--sections", "/usr/bin/pyrometer"))

    def test_the_unit_is_one_that_systemd_accepts(self):
        if not shutil.which("systemd-analyze"):
            skip_or_fail("no systemd-analyze (Debian package systemd)")
        self.assertEqual(run("systemd-analyze", "verify", UNIT), "")

    def test_an_upgrade_keeps_a_changed_configuration(self):
        changed = read(CONFIGURATION) + "# mine\n"
        self.append_to_configuration("# mine\n")
        os.chmod(CONFIGURATION, 0o600)
        higher = repack(self.package, self.directory, "98.0", "")
        run("dpkg", "--install", higher)
        self.assertEqual(read(CONFIGURATION), changed)
        # Also when the new version brings another; dpkg would ask, apt without a terminal does not.
        highest = repack(self.package, self.directory, "99.0", "# new\n")
        run("dpkg", "--force-confdef", "--force-confold", "--install", highest)
        self.assertEqual(read(CONFIGURATION), changed)
        self.assertTrue(read(CONFIGURATION + ".dpkg-dist").endswith("# new\n"))
        self.assertEqual(description_of(CONFIGURATION), "-rw------- root pyrometer")

    def test_an_upgrade_brings_a_new_configuration_where_the_old_was_not_changed(self):
        run("dpkg", "--install", repack(self.package, self.directory, "98.1", "# new\n"))
        self.assertTrue(read(CONFIGURATION).endswith("# new\n"))
        self.assertEqual(description_of(CONFIGURATION), "-rw-r----- root pyrometer")

    def test_removing_keeps_configuration_and_profiles_and_purging_nothing(self):
        packaged = run("dpkg", "--listfiles", "pyrometer").splitlines()
        kept = os.path.join(STATE, "profiles", "kept")
        self.append_to_configuration("# mine\n")
        with open(kept, "w", encoding="utf-8"):
            pass
        run("dpkg", "--remove", "pyrometer")
        self.assertFalse(os.path.exists("/usr/bin/pyrometer"))
        self.assertTrue(os.path.exists(kept))
        self.assertTrue(read(CONFIGURATION).endswith("# mine\n"))
        run("dpkg", "--purge", "pyrometer")
        left = [path for path in [*packaged, STATE, CACHE, "/etc/pyrometer"]
                if "pyrometer" in path and os.path.lexists(path)]
        self.assertEqual(left, [])
        self.assertEqual(links_of_systemd(), [])
        self.assertFalse(user_exists())
        self.assertNotIn("pyrometer", [group.gr_name for group in grp.getgrall()])
        self.assertEqual(status(), "")


def links_of_systemd():
    """What names the unit in systemd's own directories, and in those of Debian's helpers."""
    return [
        os.path.join(directory, name)
        for top in ("/etc/systemd", "/var/lib/systemd")
        for directory, directories, names in os.walk(top)
        for name in [*directories, *names]
        if name.startswith("pyrometer.service")
    ]


class WhereSystemdRuns(PackageTestCase):
    """With a stand-in for systemctl that writes down what it is asked, and knows only whether the
    service was started; and with what says that systemd is process 1."""

    SYSTEMCTL = """#!/bin/sh
echo "$*" >>"{0}/log"
case " $* " in
  *" --root="*) exec "{0}/real-systemctl" "$@" ;;
  *" is-enabled "*) echo enabled ;;
  *" start "*) : >"{0}/started" ;;
  *" is-active "*) [ -e "{0}/started" ] ;;
esac
"""

    SCRIPT = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/system
for stand_in in "$1"/systemctl:/usr/bin/systemctl "$1"/allow:/usr/sbin/policy-rc.d; do
  if [ -e "${stand_in#*:}" ]; then mount --bind "${stand_in%%:*}" "${stand_in#*:}"; fi
done
shift
exec "$@"
"""

    def dpkg(self, *arguments):
        """What systemctl was asked for meanwhile."""
        log = os.path.join(self.directory, "log")
        real = os.path.join(self.directory, "real-systemctl")
        shutil.copy(shutil.which("systemctl"), real)
        for name, text in (
            ("systemctl", self.SYSTEMCTL.format(self.directory)),
            ("allow", "#!/bin/sh\nexit 0\n"),
        ):
            path = os.path.join(self.directory, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        with open(log, "w", encoding="utf-8"):
            pass
        run("unshare", "--mount", "sh", "-c", self.SCRIPT, "sh", self.directory, "dpkg", *arguments)
        return [line for line in read(log).splitlines() if "pyrometer" in line]

    def test_installing_starts_upgrading_restarts_and_removing_stops(self):
        run("dpkg", "--purge", "pyrometer")
        asked = self.dpkg("--install", self.package)
        self.assertTrue(any(" start " in " %s " % line for line in asked), asked)
        wanted = "/etc/systemd/system/multi-user.target.wants/pyrometer.service"
        self.assertEqual(os.readlink(wanted).removeprefix("/usr"), UNIT.removeprefix("/usr"))
        asked = self.dpkg("--install", repack(self.package, self.directory, "98.2", ""))
        self.assertTrue(any("try-restart" in line for line in asked), asked)
        self.assertFalse(any("stop" in line.split() for line in asked), asked)
        asked = self.dpkg("--remove", "pyrometer")
        self.assertTrue(any("stop" in line.split() for line in asked), asked)
        self.dpkg("--purge", "pyrometer")
        self.assertEqual(links_of_systemd(), [])


class InstalledAgent(PackageTestCase):
    """As the unit would run it, and against a server."""

    def setUp(self):
        super().setUp()
        self.settings = service_unit.parse(UNIT)
        self.receiver = PushReceiver()
        self.addCleanup(self.receiver.server_close)
        self.addCleanup(self.receiver.shutdown)
        self.append_to_configuration(
            "frequency: 499\nwindow: 1s\nlimits: {cpu: 100%%}\nserver: {listen: \"127.0.0.1:0\"}\n"
            "sinks:\n  - {type: pyroscope, url: \"%s\"}\n" % self.receiver.url
        )

    def start_agent(self, command):
        log = open(os.path.join(self.directory, "agent.log"), "w+", encoding="utf-8")
        self.addCleanup(log.close)
        agent = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)

        def says_where():
            if agent.poll() is not None:
                raise AssertionError("the agent ended: " + read(log.name))
            return "sampling at" in read(log.name)

        wait_for(says_where, "the agent to sample")
        return agent

    def wait_for_samples(self, names):
        def missing():
            return [name for name in names if self.receiver.count_of(name) < ENOUGH_SAMPLES]

        try:
            wait_for(lambda: not missing(), "enough profiles")
        except AssertionError as error:
            raise AssertionError("of %s: %s" % (missing(), error)) from error

    def assert_named_and_whole(self, name):
        """Nearly all stacks go from the program's entry to one of its functions."""
        samples = self.receiver.samples_of(name)
        total = sum(sample.values[0] for sample in samples)
        whole = sum(
            sample.values[0]
            for sample in samples
            if is_chain(["from_root", "shares::Loop"],
                        [frame.function for frame in sample.frames])
        )
        self.assertGreaterEqual(whole, 0.95 * total, [name] + [
            [frame.function for frame in sample.frames[:6]] for sample in samples[:5]])

    def finish(self, agent):
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(timeout=20), 0)
        log = read(os.path.join(self.directory, "agent.log"))
        self.assertRegex(log, r"sink pyroscope: offered=\d+ delivered=\d+ spooled=0 dropped=0")

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
        return path

    def start_programs(self, when):
        """The names of some that start `when`, from where the service itself may not look."""
        os.makedirs("/home", exist_ok=True)
        names = {what: "%s-%s" % (what, when) for what in ("root", "home", "tmp", "deleted")}
        self.start_program(names["root"], "/root", "root")
        self.start_program(names["home"], "/home", "nobody")
        self.start_program(names["tmp"], "/tmp", "nobody")
        os.unlink(self.start_program(names["deleted"], "/tmp", "nobody"))
        return list(names.values())

    def check(self, command):
        before = self.start_programs("before")
        agent = self.start_agent(command)
        names = [*before, *self.start_programs("after")]
        self.wait_for_samples(names)
        for name in names:
            self.assert_named_and_whole(name)
        kernel = [frame.function for sample in self.receiver.all_samples()
                  for frame in sample.frames if "kernel.kallsyms" in frame.mapping]
        self.assertGreater(len(kernel), 0)
        unnamed = [name for name in kernel if "+0x" in name or name.startswith("0x")]
        self.assertLess(len(unnamed), 0.05 * len(kernel), unnamed[:5])
        self.finish(agent)

    def test_names_processes_of_all_users_with_the_capabilities_of_the_unit(self):
        self.check(service_unit.command(self.settings))

    def test_names_them_with_the_file_system_as_the_unit_shows_it(self):
        self.check(service_unit.confined(self.settings, service_unit.command(self.settings)))


def is_chain(wanted, names):
    """Whether `wanted` is in `names`, in this order, whatever lies between."""
    rest = iter(names)
    return all(any(name.startswith(want) for name in rest) for want in wanted)


if __name__ == "__main__":
    main()
