# SPDX-License-Identifier: Apache-2.0
"""Containers that come and go by the hundred: no sample has another one's labels.

Each container runs a program of its own, whose one busy function is named after it, with a build id of
its own. So a sample's stack says which container it was taken in, whatever its labels say.
"""

import concurrent.futures
import contextlib
import glob
import os
import re
import stat
import sys
import time

import pprof_reader
from container_runtime import ContainerRuntime
from containers_test import ContainersTestCase, labels_of, nameless_samples
from pyrometer_harness import main, program, samples_of
from waiting import wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import kernel  # noqa: E402

WAVES = (200, 30)  # the first within a minute, where the runtime keeps up
AT_ONCE = 6
LONG_MS, SHORT_MS = 1000, 100  # of CPU time; every tenth container is a long one
# Three windows for a listing to come, and the runtime has an ended container for so long.
REMOVED_AFTER = 3
FUNCTION = re.compile(r"^w_\d{8}$")
ORIGINAL = b"short_work"
IMAGE = "pyrometer.test/churn:1"
SETTLE = 4  # seconds, for windows under way
# That are neither programs or libraries nor BPF maps, whose tables are of those: of both any number may be, up
# to the limits, whatever else runs here.
FEW_FILES = 8
# What the page's windows may still take; on a quiet machine 30 more containers take 3 MB.
FEW_BYTES = 24e6
BUILD_ID_NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"


def named_program(original, name):
    """The program with its busy function under another name, and with another build id."""
    symbol = b"\0" + ORIGINAL + b"\0"
    note = original.find(BUILD_ID_NOTE)
    assert len(name) == len(ORIGINAL) and original.count(symbol) == 1 and note > 0
    made = bytearray(original.replace(symbol, b"\0" + name.encode() + b"\0"))
    start = note + len(BUILD_ID_NOTE)
    made[start : start + 20] = name.encode().ljust(20, b"\x5a")
    return bytes(made)


def identity_of(status):
    return status.st_dev, status.st_ino, status.st_size


def open_files(pid):
    """What each file that the process has open is called there, and its os.stat()."""
    directory = "/proc/%d/fd" % pid
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):  # it has just been closed, or its file system is gone
            yield os.readlink(path), os.stat(path)


def is_of_programs(link, status):
    """Whether a file of open_files() is kept for a program or library, or may be."""
    return stat.S_ISREG(status.st_mode) or link == "anon_inode:bpf-map"


class ContainerChurn(ContainersTestCase):
    @classmethod
    def setUpClass(cls):
        super(ContainersTestCase, cls).setUpClass()
        cls.runtime = cls.enterClassContext(ContainerRuntime(os.path.join(cls.directory, "runtime")))
        cls.runtime.add_image(IMAGE, {"none": program("pause")}, ["/none"])
        with open(program("short_lived_static"), "rb") as file:
            cls.original = file.read()

    def live(self, pod, number):
        """One container from its making to its removal."""
        name = "w_%08d" % number
        path = os.path.join(self.home, name)
        with open(path, "wb") as file:
            file.write(named_program(self.original, name))
        os.chmod(path, 0o755)
        self.programs.add(identity_of(os.stat(path)))
        life = LONG_MS if number % 10 == 0 else SHORT_MS
        container = self.runtime.start_container(pod, {
            "metadata": {"name": name, "attempt": 0}, "image": {"image": IMAGE},
            "command": ["/work", str(life)], "log_path": name + ".log",
            "mounts": [{"container_path": "/work", "host_path": path, "readonly": True}],
            "linux": {"security_context": {"namespace_options": {"network": "NODE", "pid": "CONTAINER"}}},
        })  # fmt: skip
        self.started[name] = (container, pod.config["metadata"]["name"], life)
        self.await_exit(container)
        return container, path, time.monotonic()

    def programs_held(self, agent):
        """How many of the containers' programs the agent has open."""
        return len(self.programs.intersection(identity_of(file) for _, file in open_files(agent.process.pid)))

    def wave(self, agent, pods, count):
        """Seconds from the first start to the last end."""
        begin, first = time.monotonic(), len(self.started)
        ended = []

        def remove_old(age):
            while ended and time.monotonic() - ended[0][2] >= age:
                container, path, _ = ended.pop(0)
                self.remove(container)
                os.unlink(path)

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            lives = [pool.submit(self.live, pods[i % 2], first + i) for i in range(count)]
            for life in concurrent.futures.as_completed(lives):
                ended.append(life.result())
                self.most_held = max(self.most_held, self.programs_held(agent))
                remove_old(REMOVED_AFTER)
        seconds = time.monotonic() - begin
        wait_for(lambda: time.monotonic() - ended[-1][2] >= REMOVED_AFTER, "the last containers", pause=0.1)
        remove_old(REMOVED_AFTER)
        return seconds

    def look(self, agent):
        """(anonymous memory, fewest open files that are not of programs, {state: containers}) of the agent, once it
        has settled: when it has let go of the programs of all these containers."""
        wait_for(lambda: self.programs_held(agent) == 0, "the files of what has ended to be given back")
        files, end = [], time.monotonic() + SETTLE
        while time.monotonic() < end:
            files.append(sum(not is_of_programs(*file) for file in open_files(agent.process.pid)))
            time.sleep(0.25)
        metrics = agent.metrics()
        processes = [agent.process.pid, *kernel.processes_below(agent.process.pid)]
        return (sum(map(kernel.anonymous_memory_of, processes)), min(files),
                {state: metrics['pyrometer_containers{state="%s"}' % state]
                 for state in ("known", "awaited", "unknown")})  # fmt: skip

    def samples_by_function(self):
        """[(function, labels, samples)] of all samples in a container's own function."""
        found = []
        for path in glob.glob(self.profiles + "/*/*.pb.gz"):
            with open(path, "rb") as file:
                for sample in samples_of(pprof_reader.parse(file.read())):
                    names = set(filter(FUNCTION.match, sample.frames))
                    self.assertLessEqual(len(names), 1, sample.frames)
                    if names:
                        found.append((names.pop(), labels_of(path), sample.count))
        return found

    def assert_labels_of_all(self, found, nameless):
        """But for `nameless` samples, as many as the agent counted, which have their container's id."""
        labelled, total = {LONG_MS: 0, SHORT_MS: 0}, {LONG_MS: 0, SHORT_MS: 0}
        for name, labels, count in found:
            container, pod, life = self.started[name]
            total[life] += count
            if "container" in labels:
                self.assertEqual((labels["container"], labels.get("pod")), (name, pod))
                labelled[life] += count
            else:
                self.assertEqual(labels.get("container_id"), container, name)
        for life in total:
            print("containers of %d ms: %d of %d samples have labels" % (life, labelled[life], total[life]))
            self.assertGreater(labelled[life], 0)
        self.assertLessEqual(sum(total.values()) - sum(labelled.values()), nameless)
        expected = sum(life for _, _, life in self.started.values()) * 199 / 1000
        print("%d samples, %.0f expected" % (sum(total.values()), expected))

    def test_no_label_is_on_the_wrong_sample(self):
        self.started, self.programs, self.most_held = {}, set(), 0
        pods = [self.pod("churn-%d" % i, "shop") for i in range(2)]
        agent = self.start_agent(mode="cri")
        looks = []
        for count in WAVES:
            seconds = self.wave(agent, pods, count)
            wait_for(lambda: agent.metrics()['pyrometer_containers{state="awaited"}'] == 0, "names", pause=0.2)
            looks.append(self.look(agent))
            print("%d containers in %.1f s: %.1f MB anonymous, %d files, containers %s" % (
                count, seconds, looks[-1][0] / 1e6, *looks[-1][1:]), flush=True)  # fmt: skip
        nameless = nameless_samples(agent)
        account = agent.stop()["file"]
        self.assertTrue(account.balances())
        self.assertEqual(account.dropped, 0)
        self.assert_labels_of_all(self.samples_by_function(), nameless)
        print("%d programs held at most" % self.most_held)
        self.assertGreater(self.most_held, 0)
        self.assertLess(looks[1][0], 1.1 * looks[0][0] + FEW_BYTES)
        self.assertLess(looks[1][1], looks[0][1] + FEW_FILES)
        for (_, _, containers), ever in zip(looks, (WAVES[0], sum(WAVES))):
            self.assertLessEqual(containers["known"], ever + len(pods))


if __name__ == "__main__":
    main()
