# SPDX-License-Identifier: Apache-2.0
"""A containerd of a test's own, and pods in it as the kubelet would make them.

Needs root, the packages containerd, runc, python3-grpcio and python3-protobuf. Everything lies in one
directory; images are made of programs of tests/programs, nothing is downloaded, and pods use the
machine's network, so that no plugin for that is needed.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import pyrometer_harness as harness
from waiting import wait_for

PROTO = pathlib.Path(__file__).resolve().with_name("cri_pods.proto")
CGROUPS = "pyrometer-test"
PAUSE_IMAGE = "pyrometer.test/pause:1"
CONFIG = """
version = 2
root = "{home}/root"
state = "{run}"
disabled_plugins = ["io.containerd.internal.v1.restart", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "{run}/containerd.sock"
[ttrpc]
address = "{run}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
path = "{home}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{home}/cni"
conf_dir = "{home}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
default_runtime_name = "plain"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.plain]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.own-cgroups]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "{home}/own-cgroups.json"
"""


def layer_of_files(files):
    """A layer of these files: {path in the image: path here}."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for inside, here in files.items():
            with open(here, "rb") as file:
                data = file.read()
            entry = tarfile.TarInfo(inside)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return layer.getvalue()


def layer_of_directory(root):
    """A layer of all that is in a directory, which becomes the root."""
    command = ["tar", "--create", "--sort=name", "--numeric-owner", "--directory=" + root, "."]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def docker_archive(path, name, layer, config):
    """An image of one layer as `docker save` writes it, with this configuration ({"Entrypoint": [...]})."""
    described = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }).encode()  # fmt: skip
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}])
    with tarfile.open(path, "w") as tar:
        for file, data in (("manifest.json", manifest.encode()), ("config.json", described),
                           ("layer.tar", layer)):  # fmt: skip
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


class Cri:
    """The methods of cri_pods.proto: cri.StartContainer(container_id=...)."""

    def __init__(self, socket):
        compiled = subprocess.run(
            ["protoc", "--proto_path=" + str(PROTO.parent), "--descriptor_set_out=/dev/stdout", str(PROTO)],
            stdout=subprocess.PIPE, check=True).stdout  # fmt: skip
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:
            pool.Add(file)
        self.service = pool.FindServiceByName("runtime.v1.RuntimeService")
        self.factory = message_factory.MessageFactory(pool)
        # All classes now: a thread that first uses one while another makes it would meet its fields half-made.
        for message in self.service.file.message_types_by_name.values():
            self.factory.GetPrototype(message)
        self.channel = grpc.insecure_channel("unix://" + socket)

    def __getattr__(self, name):
        method = self.service.methods_by_name[name]
        request = self.factory.GetPrototype(method.input_type)
        call = self.channel.unary_unary("/runtime.v1.RuntimeService/" + name,
                                        request_serializer=request.SerializeToString,
                                        response_deserializer=self.factory.GetPrototype(
                                            method.output_type).FromString)  # fmt: skip
        return lambda **fields: call(request(**fields), timeout=60, wait_for_ready=True)


@dataclasses.dataclass
class Pod:
    id: str
    config: dict
    uid: str

    @property
    def cgroup(self):
        return self.config["linux"]["cgroup_parent"]

    @property
    def name(self):
        return self.config["metadata"]["name"]

    @property
    def namespace(self):
        return self.config["metadata"]["namespace"]

    def log_of(self, container, attempt=0):
        """Where the output of a container of this name goes."""
        return os.path.join(self.config["log_directory"], "%s-%d.log" % (container, attempt))


class ContainerRuntime:
    """A running containerd. Everything that it made is gone at the end of the `with`."""

    def __init__(self, home):
        for program in ("containerd", "runc", "ctr"):
            if not shutil.which(program):
                harness.skip_or_fail("no %s (Debian packages containerd, runc)" % program)
        self.home = home
        self.run = os.path.join(home, "run")  # what /run/containerd is for the machine's own
        self.socket = os.path.join(self.run, "containerd.sock")
        self.log = os.path.join(home, "containerd.log")

    def __enter__(self):
        os.makedirs(self.run)
        # As where systemd has started the machine: what is mounted there can be seen in containers.
        subprocess.run(["mount", "--bind", self.run, self.run], check=True)
        subprocess.run(["mount", "--make-shared", self.run], check=True)
        with open(os.path.join(self.home, "config.toml"), "w") as file:
            file.write(CONFIG.format(home=self.home, run=self.run, pause=PAUSE_IMAGE))
        with open(os.path.join(self.home, "own-cgroups.json"), "w") as file:
            spec = json.loads(subprocess.run(["ctr", "oci", "spec"], stdout=subprocess.PIPE, check=True).stdout)
            spec["linux"]["namespaces"].append({"type": "cgroup"})
            json.dump(spec, file)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["containerd", "--config", os.path.join(self.home, "config.toml")],
                stdout=log, stderr=log)  # fmt: skip
        try:
            wait_for(lambda: os.path.exists(self.socket) or self.process.poll() is not None, "containerd", 60)
            self.cri = Cri(self.socket)
            self.add_image(PAUSE_IMAGE, {"pause": harness.program("pause")}, ["/pause"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def said(self):
        with open(self.log, errors="replace") as log:
            return log.read()[-4000:]

    def ctr(self, *arguments, check=True):
        return subprocess.run(["ctr", "--address", self.socket, "--namespace", "k8s.io", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=check,
                              timeout=120)  # fmt: skip

    def add_image(self, name, files, command):
        self.import_image(name, layer_of_files(files), {"Entrypoint": command})

    def import_image(self, name, layer, config):
        archive = os.path.join(self.home, "image.tar")
        docker_archive(archive, name, layer, config)
        self.ctr("images", "import", "--snapshotter", "native", archive)

    def run_pod(self, name, namespace="default", labels=None, annotations=None, handler="", pid="CONTAINER"):
        uid = str(uuid.uuid4())
        config = {
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "log_directory": os.path.join(self.home, "logs"),
            "labels": {**(labels or {}), "io.kubernetes.pod.name": name, "io.kubernetes.pod.uid": uid,
                       "io.kubernetes.pod.namespace": namespace},
            "annotations": annotations or {},
            "linux": {"cgroup_parent": "/%s/pod%s" % (CGROUPS, uid),
                      "security_context": {"namespace_options": {"network": "NODE", "pid": pid}}},
        }  # fmt: skip
        made = self.cri.RunPodSandbox(config=config, runtime_handler=handler)
        return Pod(made.pod_sandbox_id, config, uid)

    def run_container(self, pod, name, image, command, attempt=0, capabilities=()):
        """The id of a container that was started."""
        options = {"namespace_options": {"network": "NODE", "pid": "CONTAINER"},
                   "capabilities": {"add_capabilities": list(capabilities)}}
        config = {"metadata": {"name": name, "attempt": attempt}, "image": {"image": image},
                  "command": command, "log_path": "%s-%d.log" % (name, attempt),
                  "linux": {"security_context": options}}  # fmt: skip
        return self.start_container(pod, config)

    def start_container(self, pod, config):
        """The same, of CRI's own ContainerConfig."""
        container = self.cri.CreateContainer(pod_sandbox_id=pod.id, config=config,
                                             sandbox_config=pod.config).container_id  # fmt: skip
        self.cri.StartContainer(container_id=container)
        return container

    def status(self, container):
        return self.cri.ContainerStatus(container_id=container, verbose=True)

    def pid(self, container):
        return json.loads(self.status(container).info["info"])["pid"]

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.SubprocessError):
            for task in self.ctr("tasks", "ls", "-q", check=False).stdout.split():
                self.ctr("tasks", "rm", "-f", task, check=False)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.end_shims()
        self.unmount()
        remove_cgroups()

    def end_shims(self):
        """Shims outlive containerd; those of ours have our socket in their arguments."""
        for directory in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (directory / "cmdline").read_bytes().split(b"\0")
                if b"containerd-shim" in words[0] and self.socket.encode() in words:
                    os.kill(int(directory.name), signal.SIGKILL)

    def unmount(self):
        with open("/proc/self/mountinfo") as mounts:
            ours = [line.split()[4] for line in mounts if line.split()[4].startswith(self.home + "/")]
        for mount in reversed(ours):
            subprocess.run(["umount", "-l", mount], check=False)


def remove_cgroups():
    """What runc leaves of the pods' own cgroups, in every hierarchy."""
    with open("/proc/self/mountinfo") as mounts:
        points = [line.split()[4] for line in mounts if " - cgroup" in line]
    for point in points:
        top = os.path.join(point, CGROUPS)
        for directory, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)
