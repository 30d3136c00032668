# SPDX-License-Identifier: Apache-2.0
"""Pods of a real containerd, profiled by an agent that learns of them from the runtime alone."""

import collections
import contextlib
import glob
import os
import signal
import socket
import subprocess
import threading
import unittest.mock

import pprof_reader
import pyrometer_harness as harness
from agent_harness import AgentTestCase, pyroscope
from container_runtime import ContainerRuntime
from pyrometer_harness import count_where, cpu_ns_of, describe, main, program, samples_of
from waiting import wait_for

PROGRAMS = {"before", "own", "label", "annotation", "again", "brief"}
IMAGE = "pyrometer.test/work:1"
EXITED = 2
PAGES = 200
BY_PAGES = 7  # the attempt of containers that work so, which have logs of their own by it


def labels_of(path):
    """Of a profile by its directory, "container=a,pod=b.HASH"; none of ours has a comma in it."""
    series, _, _ = os.path.basename(os.path.dirname(path)).rpartition(".")
    return dict(pair.split("=") for pair in series.split(","))


def said(log):
    """A container's output by its log, without the time and stream before each whole line."""
    if not os.path.exists(log):
        return ""
    with open(log) as file:
        lines = [line for line in file.read().splitlines(keepends=True) if line.endswith("\n")]
    return "".join(line.split(" ", 3)[3] for line in lines)


def program_of(sample):
    """Whose a sample is: the name of the file of one of its frames."""
    return next((os.path.basename(m) for m in sample.mappings if m and m.startswith("/")), "")


def nameless_samples(agent):
    """How many samples of containers the agent says to have sent without their names, once none waits for them."""
    wait_for(lambda: agent.metrics()["pyrometer_waiting_samples"] == 0, "the samples that wait", pause=0.2)
    metrics = agent.metrics()
    return metrics["pyrometer_late_unknown_samples_total"] + metrics["pyrometer_container_unknown_samples_total"]


class Relay:
    """A socket before a runtime's. Each connection gets what the next of `answers` says: None is silence,
    an event all that the runtime says, once it is set; the last for ever."""

    def __init__(self, path, runtime, answers):
        self._runtime, self._answers, self._open = runtime, list(answers), []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                self._open.append(client)
                if answer:
                    answer.wait()
                    server = socket.socket(socket.AF_UNIX)
                    server.connect(self._runtime)
                    self._open.append(server)
                    for ends in ((client, server), (server, client)):
                        threading.Thread(target=self._pump, args=ends, daemon=True).start()

    @staticmethod
    def _pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def end(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for one in (self._listener, *self._open):
            one.close()


class ContainersTestCase(AgentTestCase):
    """A container runtime, and an agent that writes its profiles to files."""

    # Each container's program has a name of its own, by which the tests know whose a sample is.
    work = {**dict.fromkeys(PROGRAMS, "plain_static"), "brief": "short_lived_static"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runtime = cls.enterClassContext(ContainerRuntime(os.path.join(cls.directory, "runtime")))
        files = {name: program(built) for name, built in cls.work.items()}
        cls.runtime.add_image(IMAGE, files, ["/" + next(iter(files))])

    def start(self, pod, name, *arguments, **more):
        """A container of this name that runs the program of this name."""
        container = self.runtime.run_container(pod, name + "-c", IMAGE, ["/" + name, *arguments], **more)
        self.addCleanup(self.remove, container)
        return container

    def remove(self, container):
        self.runtime.cri.StopContainer(container_id=container)
        self.runtime.cri.RemoveContainer(container_id=container)

    def pod(self, name, namespace, **more):
        pod = self.runtime.run_pod(name, namespace, **more)
        self.addCleanup(self.runtime.cri.RemovePodSandbox, pod_sandbox_id=pod.id)
        self.addCleanup(self.runtime.cri.StopPodSandbox, pod_sandbox_id=pod.id)
        return pod

    def start_agent(self, sinks=(), rules=(), window="1s", **kubernetes):
        self.profiles = os.path.join(self.home, "profiles")
        file = {"type": "file", "directory": self.profiles}
        return self.agent([file, *sinks], relabel_configs=list(rules), window=window,
                          kubernetes={"cri_socket": self.runtime.socket, **kubernetes})  # fmt: skip

    def relay(self, *answers):
        path = os.path.join(self.home, "relay.sock")
        relay = Relay(path, self.runtime.socket, answers)
        self.addCleanup(relay.end)
        return path

    def await_work(self, container, seconds=1):
        pid = self.runtime.pid(container)
        goal = cpu_ns_of(pid) + seconds * 1e9
        wait_for(lambda: cpu_ns_of(pid) >= goal, "CPU time of a container")

    def await_exit(self, container):
        wait_for(lambda: self.runtime.status(container).status.state == EXITED, "a container's end", pause=0.05)

    def delivered(self):
        """{program: [(labels, sample)]} of all that the agent has written."""
        by_program = {}
        for path in glob.glob(self.profiles + "/*/*.pb.gz"):
            with open(path, "rb") as file:
                for sample in samples_of(pprof_reader.parse(file.read())):
                    by_program.setdefault(program_of(sample), []).append((labels_of(path), sample))
        return by_program

    def assert_labels(self, delivered, labels, functions, least, nameless=0):
        """All of these samples have exactly these labels, but for `nameless` that have their container's id;
        and some are in these functions."""
        samples = [sample for _, sample in delivered]
        self.assertGreaterEqual(count_where(samples, lambda s: True), least)
        others = [(found, sample) for found, sample in delivered if found != labels]
        self.assertEqual([found for found, _ in others if "container_id" not in found], [], labels)
        self.assertLessEqual(sum(sample.count for _, sample in others), nameless, others[:3])
        self.assertTrue([s for s in samples if any(map(s.calls, functions))], describe(samples))


class Containers(ContainersTestCase):
    def test_samples_have_the_labels_of_their_pods(self):
        web = self.pod("web-7c5b8d9f6-x2x4z", "shop", labels={"pod-template-hash": "7c5b8d9f6"})
        containers = [self.start(web, "before", "0")]
        receiver = self.receiver("pyroscope")
        agent = self.start_agent([pyroscope(receiver)], mode="cri", node_name="node-1")
        own = self.pod("db-0", "shop", labels={"statefulset.kubernetes.io/pod-name": "db-0"},
                       handler="own-cgroups")  # fmt: skip
        labelled = self.pod("labelled", "infra", labels={"app.kubernetes.io/name": "collector"})
        annotated = self.pod("annotated", "infra", labels={"app.kubernetes.io/name": "other"},
                             annotations={"pyrometer.io/service-name": "chosen"})  # fmt: skip
        containers += [self.start(own, "own", "0"), self.start(labelled, "label", "0"),
                       self.start(annotated, "annotation", "0")]  # fmt: skip
        brief = self.start(labelled, "brief", "300")
        for attempt in range(2):
            again = self.start(annotated, "again", "1", attempt=attempt)
            self.await_exit(again)
        self.await_exit(brief)
        for container in containers:
            self.await_work(container)
        wait_for(lambda: agent.metrics()['pyrometer_containers{state="known"}'] >= 11, "the last one", pause=0.1)
        metrics = agent.metrics()
        nameless = nameless_samples(agent)
        account = agent.stop()

        work = ("seventy", "thirty", "outer")
        samples = self.delivered()
        for name, least, functions, labels in (
            ("before", 50, work, {"namespace": "shop", "pod": "web-7c5b8d9f6-x2x4z", "service_name": "web",
                                  "workload_kind": "Deployment", "workload_name": "web"}),
            ("own", 50, work, {"namespace": "shop", "pod": "db-0", "service_name": "db",
                               "workload_kind": "StatefulSet", "workload_name": "db"}),
            ("label", 50, work, {"namespace": "infra", "pod": "labelled", "service_name": "collector"}),
            ("annotation", 50, work, {"namespace": "infra", "pod": "annotated", "service_name": "chosen"}),
            ("again", 200, work, {"namespace": "infra", "pod": "annotated", "service_name": "chosen"}),
            ("brief", 20, ("short_work",), {"namespace": "infra", "pod": "labelled",
                                            "service_name": "collector"}),
        ):  # fmt: skip
            with self.subTest(name):
                labels = {**labels, "container": name + "-c", "node": "node-1"}
                self.assert_labels(samples[name], labels, functions, least, nameless)
        # runc is in a container's cgroup until it becomes the program, and alone uses shared libraries there.
        others = {name for name in samples if ".so" not in name} - PROGRAMS - {"pause", "runc", ""}
        self.assertIn("containerd", others)
        for name in others:
            self.assertFalse([labels for labels, _ in samples[name] if "pod" in labels], name)
        for sink in ("file", "pyroscope"):
            self.assertTrue(account[sink].balances())
            self.assertEqual(account[sink].dropped, account[sink].reasons.get("maybe_arrived", 0))
        self.assertEqual(receiver.record()["rejected"], {})
        self.assertEqual(metrics['pyrometer_containers{state="known"}'], 11)  # 7 and 4 sandboxes
        self.assertEqual(metrics["pyrometer_container_listing_failures_total"], 0)
        # One for each that it did not have, until the runtime tells of it, which takes two more at most.
        self.assertLessEqual(metrics["pyrometer_container_listings_total"], 3 * 11)

    def test_without_the_runtime_containers_have_their_ids(self):
        container = self.start(self.pod("lone", "shop"), "before", "0")
        self.start_agent(mode="off")
        self.await_work(container)
        wait_for(lambda: "before" in self.delivered(), "a profile", pause=0.2)
        labels, _ = self.delivered()["before"][0]
        self.assertEqual(labels, {"container_id": container, "service_name": "before"})

    def test_samples_wait_for_a_runtime_that_answers_late(self):
        container = self.start(self.pod("late", "shop"), "before", "0")
        # The first listing gives up after 5 s; the second, 2 s later, is answered as soon as samples wait,
        # which they do for 9 s.
        samples_wait = threading.Event()
        agent = self.start_agent(mode="cri", cri_socket=self.relay(None, samples_wait), window="3s")
        wait_for(lambda: agent.metrics()["pyrometer_waiting_samples"] > 0, "samples that wait", pause=0.2)
        samples_wait.set()
        wait_for(lambda: agent.metrics()["pyrometer_late_samples_total"] > 0, "late samples", pause=0.2)
        self.await_work(container)
        metrics = agent.metrics()
        account = agent.stop()["file"]
        labels = {"namespace": "shop", "pod": "late", "container": "before-c", "service_name": "before-c"}
        self.assert_labels(self.delivered()["before"], labels, ("outer",), least=200)
        self.assertEqual(metrics["pyrometer_late_unknown_samples_total"], 0)
        self.assertEqual(metrics["pyrometer_container_listing_failures_total"], 1)
        self.assertTrue(account.balances())
        self.assertEqual(account.dropped, 0)
        self.assertIn("listing containers: ", agent.said())

    def test_a_runtime_that_never_answers_costs_no_more_than_names(self):
        container = self.start(self.pod("silent", "shop"), "before", "0")
        agent = self.start_agent(mode="cri", cri_socket=self.relay(None))
        wait_for(lambda: agent.metrics()["pyrometer_late_unknown_samples_total"] > 0, "samples", pause=0.2)
        account = agent.stop()["file"]
        labels = {"container_id": container, "service_name": "before"}
        self.assert_labels(self.delivered()["before"], labels, ("outer",), least=100)
        self.assertTrue(account.balances())
        self.assertEqual(account.dropped, 0)

    def test_rules_see_pods_and_drop_them_in_the_kernel(self):
        annotations = {"pyrometer.io/profile": "false"}
        containers = {
            "own": self.start(self.pod("own", "shop", labels={"team": "blue"}), "own", "0"),
            "label": self.start(self.pod("label", "noise"), "label", "0"),
            "annotation": self.start(self.pod("out", "shop", annotations=annotations), "annotation", "0"),
        }
        receiver = self.receiver("pyroscope")
        rules = [
            {"source_labels": ["__meta_kubernetes_pod_label_team"], "target_label": "team"},
            {"source_labels": ["namespace", "service_name"], "separator": "-", "target_label": "service_name"},
            {"source_labels": ["namespace"], "regex": "noise", "action": "drop"},
        ]
        agent = self.start_agent([pyroscope(receiver)], mode="cri", rules=rules)
        # The kernel takes no samples of the pods that are dropped: one by a rule, one by its annotation.
        denied = self.settled_filtered(agent)
        self.await_work(containers["label"], 0.5)
        self.await_work(containers["annotation"], 0.5)
        filtered = 'pyrometer_ticks_total{outcome="filtered"}'
        wait_for(lambda: agent.metrics()[filtered] >= denied + 80, "ticks that are dropped", pause=0.1)
        explained = subprocess.run(
            [harness.PYROMETER, "agent", "--config", agent.config_file, "--explain",
             str(self.runtime.pid(containers["own"]))], capture_output=True, text=True)  # fmt: skip
        account = agent.stop()
        samples = self.delivered()
        labels = {"namespace": "shop", "pod": "own", "container": "own-c", "service_name": "shop-own-c",
                  "team": "blue"}  # fmt: skip
        self.assert_labels(samples["own"], labels, ("outer",), least=50)
        self.assertFalse({"label", "annotation"} & set(samples))
        self.assertTrue(account["pyroscope"].balances())
        for line in ('  __meta_kubernetes_pod_label_team', 'changes service_name from "own-c" to "shop-own-c"',
                     'labels of its samples:\n  container                  "own-c"\n'):  # fmt: skip
            self.assertIn(line, explained.stdout)

    def settled_filtered(self, agent):
        """Filtered ticks, once no more samples are taken out after they were taken."""
        def unwanted():
            metrics = agent.metrics()
            return metrics["pyrometer_samples_unwanted_total"] + metrics["pyrometer_late_dropped_samples_total"]

        last = [-1]
        def is_settled():
            before, last[0] = last[0], unwanted()
            return before == last[0] > 0

        wait_for(is_settled, "a window in which nothing is unwanted", pause=2.5)
        return agent.metrics()['pyrometer_ticks_total{outcome="filtered"}']

    def test_a_scrape_asks_for_pods_by_name(self):
        containers = [self.start(self.pod(name, "shop"), name, "0") for name in ("own", "label")]
        agent = self.start_agent(mode="cri")
        for container in containers:
            self.await_work(container, 0.1)
        _, profile = agent.get("/debug/pprof/profile?seconds=2&label=pod=own")
        samples = samples_of(pprof_reader.parse(profile))
        self.assertGreater(count_where(samples, lambda s: True), 50)
        self.assertEqual({sample.comm for sample in samples}, {"own"})
        self.assertEqual({sample.labels["namespace"] for sample in samples}, {"shop"})


class RecordByName(ContainersTestCase):
    def setUp(self):
        super().setUp()
        endpoint = {"CONTAINER_RUNTIME_ENDPOINT": "unix://" + self.runtime.socket}
        self.enterContext(unittest.mock.patch.dict(os.environ, endpoint))

    def work_in(self, containers, seconds=0.3):
        for container in containers:
            self.await_work(container, seconds)

    def truths_of(self, containers):
        """Has programs that wait for it touch their pages, all at once, and returns what they report:
        {name: Truth}, of {name: (container, its log)}."""
        for container, _ in containers.values():
            os.kill(self.runtime.pid(container), signal.SIGUSR1)

        wait_for(lambda: all("iterations" in said(log) for _, log in containers.values()), "the reports", pause=0.05)
        return {name: harness.parse_truths(said(log))[0] for name, (_, log) in containers.items()}

    def test_each_fault_has_the_labels_of_its_container(self):
        """Of programs that work at the same time, in containers of one pod and of pods of one name: none is
        missing, and none has another one's labels."""
        web, database = self.pod("web-0", "shop"), self.pod("db-0", "shop", handler="own-cgroups")
        pods = {"own": web, "label": web, "before": database, "annotation": self.pod("web-0", "test")}
        containers = {}
        for name, pod in pods.items():
            # It locks its memory.
            container = self.start(pod, name, harness.pages_when_told(PAGES), attempt=BY_PAGES,
                                   capabilities=["IPC_LOCK"])  # fmt: skip
            containers[name] = container, pod.log_of(name + "-c", BY_PAGES)
        wait_for(lambda: all("READY" in said(log) for _, log in containers.values()), "the programs", pause=0.05)
        names = [option for name in pods for option in ("--container", name + "-c")]
        recorder = self.start_recording(*names, event=harness.PAGE_FAULTS)
        truths = self.truths_of(containers)
        recording = recorder.interrupt().finish()
        expected = {(function, name, pod.name, pod.namespace, name + "-c"): pages for name, pod in pods.items()
                    for function, pages in truths[name].pages().items()}  # fmt: skip
        found = collections.Counter()
        for sample in recording.samples:
            for function in filter(sample.calls, ("seventy", "thirty")):
                labels = (sample.labels.get(name) for name in ("pod", "namespace", "container"))
                found[(function, sample.comm, *labels)] += sample.count
        self.assertEqual(found, expected)

    def test_samples_are_of_what_has_these_names_and_say_so(self):
        web, database = self.pod("web-0", "shop"), self.pod("db-0", "shop", handler="own-cgroups")
        running = {name: self.start(pod, name, "0") for name, pod in (
            ("own", web), ("label", web), ("before", database), ("annotation", self.pod("web-0", "test")))}  # fmt: skip
        for options, expected in (
            (["--pod", "web-0"], {"own", "label", "annotation"}),
            (["--pod", "web-0", "--namespace", "shop"], {"own", "label"}),
            (["--namespace", "shop", "--container", "own-c", "--container", "before-c"], {"own", "before"}),
            (["--container", running["label"][:12], "--pod", "db-0"], {"label", "before"}),
        ):
            with self.subTest(options):
                recorder = self.start_recording(*options)
                self.work_in(running[name] for name in expected)
                recording = recorder.interrupt().finish()
                self.assertEqual({sample.comm for sample in recording.samples}, expected)
                for sample in recording.samples:
                    pod, namespace = {"before": ("db-0", "shop"), "annotation": ("web-0", "test")}.get(
                        sample.comm, ("web-0", "shop"))  # fmt: skip
                    found = {name: sample.labels.get(name) for name in ("pod", "namespace", "container")}
                    self.assertEqual(found, {"pod": pod, "namespace": namespace,
                                             "container": sample.comm + "-c"})  # fmt: skip

    def test_containers_that_begin_later_belong_to_it(self):
        web = self.pod("web-0", "shop")
        first = self.start(web, "own", "0")
        recorder = self.start_recording("--namespace", "shop")
        # At once, since it begins below the cgroup of its pod: it is gone after 0.3 s.
        self.await_exit(self.start(web, "brief", "300"))
        new = self.start(self.pod("web-1", "shop"), "label", "0")
        other = self.start(self.pod("web-0", "test"), "annotation", "0")
        self.work_in([first, new, other], seconds=3)
        recording = recorder.interrupt().finish()
        comms = {sample.comm for sample in recording.samples}
        self.assertLessEqual({"own", "brief", "label"}, comms)
        self.assertNotIn("annotation", comms)
        self.assertGreater(count_where(recording.of_comm("brief"), lambda s: s.calls("short_work")), 150)
        self.assertGreater(count_where(recording.of_comm("label"), lambda s: True), 300)
        self.assertEqual({sample.labels["pod"] for sample in recording.of_comm("label")}, {"web-1"})

    def test_a_name_that_nothing_has_is_refused_with_what_there_is(self):
        self.start(self.pod("web-0", "shop"), "own", "0")
        result = harness.refused("record", "--pod", "web-1", "--duration", "1s")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--pod web-1: no such container runs on this machine; did you mean 'web-0'?", result.stderr)
        with unittest.mock.patch.dict(os.environ, CONTAINER_RUNTIME_ENDPOINT="/nowhere", DOCKER_HOST="/nowhere"):
            result = harness.refused("record", "--pod", "web-0", "--duration", "1s")
        self.assertEqual(result.returncode, 1)
        self.assertIn("asking for containers by name: ", result.stderr)

    def test_a_recording_of_everything_names_containers(self):
        container = self.start(self.pod("web-0", "shop"), "own", "0")
        recorder = self.start_recording()
        self.work_in([container])
        recording = recorder.interrupt().finish()
        self.assertEqual({sample.labels.get("pod") for sample in recording.of_comm("own")}, {"web-0"})
        others = [sample for sample in recording.samples if sample.comm.startswith("pyrometer")]
        self.assertFalse([sample for sample in others if "pod" in sample.labels])


if __name__ == "__main__":
    main()
