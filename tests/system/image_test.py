# SPDX-License-Identifier: Apache-2.0
"""The agent's image, run as deploy/kubernetes has it run: by a real containerd, from the DaemonSet's own
manifest. Needs root, apt and the packages containerd, runc, python3-grpcio, python3-protobuf and
python3-yaml.

What differs from a node: the pod is in the machine's network namespace, as no network plugin is needed
for that, and so the agent listens on a free port of the loopback address; /run/containerd is the one of
the test's own containerd, and /var/lib/pyrometer a directory of the test's.
"""

import copy
import json
import os
import re
import shlex
import stat
import subprocess
import urllib.error
import urllib.request

import containers_test
import yaml
from agent_harness import accounts_in, otlp, parca, pyroscope
from container_runtime import layer_of_directory
from debian_package import ROOT, build_package
from kubernetes_pod import KubernetesPod
from pyrometer_harness import main
from waiting import wait_for

DEPLOY = os.path.join(ROOT, "deploy")
MANIFESTS = os.path.join(DEPLOY, "kubernetes")
IMAGE = "pyrometer.test/agent:1"
NODE = "node-1"
TOKEN = "sesame"
CAPABILITIES = "/usr/include/linux/capability.h"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def image_config():
    """The last stage of the Dockerfile, as the image's configuration."""
    lines = re.sub(r"\\\n", " ", read(DEPLOY, "docker", "Dockerfile")).splitlines()
    stage = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    said = dict(line.split(" ", 1) for line in stage if re.match("[A-Z]+ ", line))
    labels = dict(pair.split("=", 1) for pair in shlex.split(said["LABEL"]))
    return {"User": said["USER"], "Labels": labels, "Entrypoint": json.loads(said["ENTRYPOINT"]),
            "Cmd": json.loads(said["CMD"])}  # fmt: skip


def status_of(pid):
    """{"Uid": "0\\t0\\t0\\t0", ...}"""
    lines = read("/proc", str(pid), "status").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def capability_number(name):
    return int(re.search(r"#define CAP_%s\s+(\d+)" % name, read(CAPABILITIES))[1])


class Image(containers_test.ContainersTestCase):
    work = {"first": "plain_static", "second": "plain_static", "short": "short_lived_static"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rootfs = os.path.join(cls.directory, "rootfs")
        made = subprocess.run([os.path.join(DEPLOY, "docker", "rootfs"), build_package(), cls.rootfs],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)  # fmt: skip
        assert made.returncode == 0, made.stdout
        cls.runtime.import_image(IMAGE, layer_of_directory(cls.rootfs), image_config())
        cls.template = yaml.safe_load(read(MANIFESTS, "daemonset.yaml"))["spec"]["template"]

    def configuration(self, **changes):
        """pyrometer.yaml of the manifests, for a test's window, servers and port."""
        config = yaml.safe_load(read(MANIFESTS, "pyrometer.yaml"))
        return {**config, "window": "1s", "frequency": 199, "server": {"listen": "127.0.0.1:0"}, **changes}

    def start_in_pod(self, configuration, handler="", template=None):
        """Has the agent's pod run, and returns its container's id, when it samples."""
        self.profiles = os.path.join(self.home, "state", "profiles")
        pod = KubernetesPod(template or self.template, os.path.join(self.home, "volumes"), NODE,
                            {("configMap", "pyrometer"): {"pyrometer.yaml": json.dumps(configuration)},
                             ("secret", "pyrometer"): {"server.token": TOKEN}},
                            {"/run/containerd": self.runtime.run,
                             "/var/lib/pyrometer": os.path.join(self.home, "state")})  # fmt: skip
        sandbox = self.pod("pyrometer-x2x4z", "pyrometer", labels=pod.metadata["labels"], handler=handler,
                           pid=pod.pid_namespace())  # fmt: skip
        config = pod.container_config(IMAGE, "NODE")
        self.log = os.path.join(sandbox.config["log_directory"], config["log_path"])
        if os.path.exists(self.log):
            os.unlink(self.log)
        container = self.runtime.start_container(sandbox, config)
        self.addCleanup(self.remove, container)
        wait_for(lambda: "sampling at" in self.said() or self.runtime.status(container).status.state != 1,
                 "the agent", pause=0.1)  # fmt: skip
        url = re.search(r"see (http://\S+)/$", self.said(), re.MULTILINE)
        self.assertTrue(url, self.said())
        self.url, self.probes = url[1], pod.probe_paths()
        return container

    def said(self):
        return containers_test.said(self.log)

    def get(self, path, **headers):
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def stop(self, container):
        """Ends it as the kubelet does. Returns what it says of its sinks."""
        seconds = self.template["spec"]["terminationGracePeriodSeconds"]
        self.runtime.cri.StopContainer(container_id=container, timeout=seconds)
        status = self.runtime.status(container).status
        self.assertEqual((status.exit_code, status.reason), (0, "Completed"), self.said())
        return accounts_in(self.said())

    def test_profiles_the_pods_of_its_node_with_the_rights_of_its_manifest(self):
        receivers = {"pyroscope": self.receiver("pyroscope"), "parca": self.receiver("parca"),
                     "otlp": self.receiver("otlp-http")}  # fmt: skip
        sinks = [{"type": "file", "directory": "/var/lib/pyrometer/profiles"}, pyroscope(receivers["pyroscope"]),
                 parca(receivers["parca"]), otlp(receivers["otlp"])]  # fmt: skip
        web = self.pod("web-7c5b8d9f6-x2x4z", "shop", labels={"pod-template-hash": "7c5b8d9f6"})
        before = self.start(web, "first", "0")
        server = {"listen": "127.0.0.1:0", "bearer_token_file": "/var/run/secrets/pyrometer/server.token"}
        agent = self.start_in_pod(self.configuration(sinks=sinks, server=server))
        self.check_rights(self.runtime.pid(agent))
        self.assertIn("foreign files are read behind seccomp filter, no capabilities", self.said())
        annotated = self.pod("annotated", "infra", annotations={"pyrometer.io/service-name": "chosen"})
        after = self.start(annotated, "second", "0")
        brief = self.start(annotated, "short", "300")
        self.await_exit(brief)
        for container in (before, after):
            self.await_work(container)
        for probe, path in self.probes.items():
            wait_for(lambda path=path: self.answers(path), probe, 120, pause=0.2)
        self.assertIn("pyrometer_build_info", self.get("/metrics", Authorization="Bearer " + TOKEN))
        with self.assertRaisesRegex(urllib.error.HTTPError, "401"):
            self.get("/metrics")
        account = self.stop(agent)

        samples = self.delivered()
        for name, least, function, labels in (
            ("first", 50, "outer", {"namespace": "shop", "pod": "web-7c5b8d9f6-x2x4z", "service_name": "web",
                                     "workload_kind": "Deployment", "workload_name": "web"}),
            ("second", 50, "outer", {"namespace": "infra", "pod": "annotated", "service_name": "chosen"}),
            ("short", 20, "short_work", {"namespace": "infra", "pod": "annotated", "service_name": "chosen"}),
        ):  # fmt: skip
            with self.subTest(name):
                labels = {**labels, "container": name + "-c", "node": NODE}
                self.assert_labels(samples[name], labels, (function,), least)
        seen = {(labels.get("container"), labels["service_name"]) for some in samples.values() for labels, _ in some}
        self.assertLessEqual({("pyrometer", "pyrometer"), (None, "containerd")}, seen)
        for name, receiver in receivers.items():
            with self.subTest(name):
                self.assert_delivered(account[name], receiver)
                self.assertEqual(receiver.record()["rejected"], {})

    def answers(self, path):
        try:
            return self.get(path) == "ok\n"
        except OSError:
            return False

    def metric(self, name):
        lines = self.get("/metrics").splitlines()
        return float(next(line for line in lines if line.startswith(name + " ")).split()[-1])

    def test_knows_cgroups_by_the_machines_paths_in_a_cgroup_namespace_of_its_own(self):
        """As containers have one where cgroups are of version 2 only."""
        kept, dropped = self.pod("kept", "shop"), self.pod("dropped", "shop")
        containers = [self.start(kept, "first", "0"), self.start(dropped, "second", "0")]
        rules = [{"source_labels": ["__meta_cgroup_path"], "regex": "%s/.*" % dropped.cgroup, "action": "drop"},
                 {"source_labels": ["__meta_cgroup_path"], "regex": "%s/(.{12}).*" % kept.cgroup,
                  "target_label": "id"}]  # fmt: skip
        sinks = [{"type": "file", "directory": "/var/lib/pyrometer/profiles"}]
        agent = self.start_in_pod(self.configuration(sinks=sinks, relabel_configs=rules), "own-cgroups")
        own = os.readlink("/proc/self/ns/cgroup")
        # It began in one of its own, and has left it.
        spec = json.loads(self.runtime.status(agent).info["info"])["runtimeSpec"]
        self.assertIn({"type": "cgroup"}, spec["linux"]["namespaces"])
        self.assertEqual(os.readlink("/proc/%d/ns/cgroup" % self.runtime.pid(agent)), own)
        filtered = 'pyrometer_ticks_total{outcome="filtered"}'
        wait_for(lambda: self.metric(filtered) > 0, "ticks of what is dropped", pause=0.1)
        before = self.metric(filtered)
        for container in containers:
            self.await_work(container)
        wait_for(lambda: self.metric(filtered) > before + 50, "more of them", pause=0.1)
        self.stop(agent)
        labels = {"namespace": "shop", "pod": "kept", "container": "first-c", "service_name": "first-c",
                  "id": containers[0][:12], "node": NODE}  # fmt: skip
        samples = self.delivered()
        self.assert_labels(samples["first"], labels, ("outer",), 50)
        self.assertNotIn("second", samples)

    def test_goes_on_without_sys_admin_where_the_kernel_does_not_ask_for_it(self):
        if int(read("/proc/sys/kernel/perf_event_paranoid")) > 2:
            self.skipTest("this kernel asks for it")
        template = copy.deepcopy(self.template)
        template["spec"]["containers"][0]["securityContext"]["capabilities"]["add"].remove("SYS_ADMIN")
        work = self.start(self.pod("worker", "shop"), "first", "0")
        sinks = [{"type": "file", "directory": "/var/lib/pyrometer/profiles"}]
        agent = self.start_in_pod(self.configuration(sinks=sinks), "own-cgroups", template)
        self.assertIn("paths of cgroups are as this container sees them", self.said())
        self.await_work(work)
        self.stop(agent)
        labels = {"namespace": "shop", "pod": "worker", "container": "first-c", "service_name": "first-c",
                  "node": NODE}  # fmt: skip
        self.assert_labels(self.delivered()["first"], labels, ("outer",), 50)

    def test_a_new_pod_delivers_what_the_old_one_could_not(self):
        receiver = self.receiver("pyroscope")
        receiver.set_mode("refuse")
        work = self.start(self.pod("worker", "shop"), "first", "0")
        agent = self.start_in_pod(self.configuration(sinks=[pyroscope(receiver)]))
        self.await_work(work)
        old = self.stop(agent)["pyroscope"]
        self.assertGreater(old.spooled, 50)
        self.assertEqual(old.delivered, 0)
        receiver.set_mode("ok")
        agent = self.start_in_pod(self.configuration(sinks=[pyroscope(receiver)]))
        wait_for(lambda: receiver.ticks() >= old.spooled, "the old pod's profiles", pause=0.2)
        new = self.stop(agent)["pyroscope"]
        self.assertTrue(new.balances())
        self.assertEqual(new.dropped, new.reasons.get("maybe_arrived", 0), new)
        self.assertEqual(receiver.record()["rejected"], {})

    def test_the_image_has_what_it_needs_and_nothing_that_others_could_use(self):
        files, programs = {}, set()
        for directory, names, others in os.walk(self.rootfs):
            for name in names + others:
                path = os.path.join(directory, name)
                files["/" + os.path.relpath(path, self.rootfs)] = os.lstat(path)
        for path, found in files.items():
            if path.startswith(("/usr/bin/", "/usr/sbin/")) and stat.S_ISREG(found.st_mode):
                with open(self.rootfs + path, "rb") as file:
                    programs |= {path} if file.read(4) == b"\x7fELF" else set()
        self.assertEqual(programs, {"/usr/bin/pyrometer"})
        self.assertFalse([path for path, found in files.items()
                          if stat.S_ISREG(found.st_mode) and found.st_mode & (stat.S_ISUID | stat.S_ISGID)])  # fmt: skip
        times = {int(found.st_mtime) for found in files.values()}
        self.assertEqual(len(times), 1, "times of the build")
        self.assertLess(sum(found.st_size for found in files.values() if stat.S_ISREG(found.st_mode)), 80 << 20)
        listed = subprocess.run(["dpkg-query", "--admindir=" + self.rootfs + "/var/lib/dpkg", "-W",
                                 "-f", "${db:Status-Status} ${Package}\n"],
                                stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()  # fmt: skip
        for package in ("pyrometer", "libc6", "libstdc++6", "ca-certificates", "base-files"):
            self.assertIn("installed " + package, listed)
            self.assertTrue(os.path.exists("%s/usr/share/doc/%s/copyright" % (self.rootfs, package)), package)

    def test_the_image_runs_as_a_user_without_rights_where_nobody_says_otherwise(self):
        config = image_config()
        uid, gid = map(int, config["User"].split(":"))
        self.assertNotIn(0, (uid, gid))
        check = subprocess.run(["chroot", "--userspec=%d:%d" % (uid, gid), "--groups=", self.rootfs,
                                *config["Entrypoint"], *config["Cmd"], "--check-config"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
        self.assertEqual(check.returncode, 0, check.stdout)
        self.assertIn(": ok\n", check.stdout)

    def check_rights(self, pid):
        """The process has what the manifest says, and has given up what it can."""
        context = self.template["spec"]["containers"][0]["securityContext"]
        status = status_of(pid)
        granted = sum(1 << capability_number(name) for name in context["capabilities"]["add"])
        self.assertEqual(int(status["CapBnd"], 16), granted)
        held = int(status["CapPrm"], 16)
        self.assertEqual(held & ~granted, 0)
        if int(read("/proc/sys/kernel/perf_event_paranoid")) <= 2:
            self.assertEqual(granted & ~held, 1 << capability_number("SYS_ADMIN"))
        self.assertEqual(status["Uid"].split(), ["0"] * 4)
        self.assertEqual((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))
        mounts = [line.split() for line in read("/proc", str(pid), "mountinfo").splitlines()]
        writable = {fields[4] for fields in mounts if "rw" in fields[5].split(",")}
        ours = {m["mountPath"] for m in self.template["spec"]["containers"][0]["volumeMounts"]
                if not m.get("readOnly")}  # fmt: skip
        self.assertNotIn("/", writable)
        self.assertLessEqual(ours, writable)
        # Those that Kubernetes has no word for: the runtime's own, and what is mounted below a read-only one.
        others = {path for path in writable - ours
                  if not path.startswith(("/proc", "/dev", "/sys/fs/cgroup/", "/run/containerd/"))}  # fmt: skip
        self.assertEqual(others, set())


if __name__ == "__main__":
    main()
