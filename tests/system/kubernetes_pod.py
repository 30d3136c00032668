# SPDX-License-Identifier: Apache-2.0
"""The pod of a workload's manifest, as the kubelet asks a container runtime for it.

Everything in the manifest either becomes part of the request, is listed here as none of the runtime's
business, or is an error, so that a test of the pod is one of all that the manifest says.
"""

import os

CPU_SHARES, MIB = 1024, 1 << 20
# For the scheduler, the API server, the DaemonSet's controller and the network.
NOT_OF_THE_RUNTIME = {"serviceAccountName", "automountServiceAccountToken", "nodeSelector", "tolerations",
                      "terminationGracePeriodSeconds"}  # fmt: skip
PROBES = {"startupProbe", "livenessProbe", "readinessProbe"}
# The kubelet's, without a procMount.
MASKED_PATHS = ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
                "/sys/firmware"]  # fmt: skip
READONLY_PATHS = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
PROFILES = {"RuntimeDefault": 0, "Unconfined": 1}
PROPAGATIONS = {"None": 0, "HostToContainer": 1}


def take_all(mapping, what, taken):
    """Fails if there is more in it than what is looked at."""
    unknown = set(mapping) - set(taken)
    assert not unknown, "%s: this test does not know what to do with %s" % (what, sorted(unknown))


def megabytes(text):
    assert text.endswith("Mi"), text
    return int(text.removesuffix("Mi")) * MIB


class KubernetesPod:
    """`template` is spec.template of a workload with one container. `directory` is where the kubelet
    would keep volumes, `files` has the content of ConfigMaps and Secrets ({("configMap", name): {file: text}}),
    and `elsewhere` says which paths of the host are other ones in this test."""

    def __init__(self, template, directory, node_name, files, elsewhere):
        self.spec, self.metadata = template["spec"], template["metadata"]
        (self.container,) = self.spec["containers"]
        self.directory, self.node_name, self.files, self.elsewhere = directory, node_name, files, elsewhere
        take_all(self.spec, "the pod", {"containers", "volumes", "hostPID", *NOT_OF_THE_RUNTIME})
        take_all(self.container, "the container", PROBES | {
            "name", "image", "args", "env", "ports", "securityContext", "resources", "volumeMounts"})  # fmt: skip

    def pid_namespace(self):
        return "NODE" if self.spec.get("hostPID") else "CONTAINER"

    def container_config(self, image, network):
        """CRI's ContainerConfig."""
        return {
            "metadata": {"name": self.container["name"], "attempt": 0},
            "image": {"image": image},
            "args": self.container["args"],
            "envs": [self._variable(entry) for entry in self.container["env"]],
            "mounts": [self._mount(mount) for mount in self.container["volumeMounts"]],
            "log_path": self.container["name"] + ".log",
            "linux": {"resources": self._resources(), "security_context": self._security(network)},
        }

    def probe_paths(self):
        return {name: self.container[name]["httpGet"]["path"] for name in PROBES}

    def _variable(self, entry):
        take_all(entry, "a variable", {"name", "valueFrom"})
        assert entry["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}, entry
        return {"key": entry["name"], "value": self.node_name}

    def _resources(self):
        take_all(self.container["resources"], "resources", {"requests", "limits"})
        requests, limits = (self.container["resources"][which] for which in ("requests", "limits"))
        take_all(limits, "limits", {"memory"})
        millis = int(requests["cpu"].removesuffix("m"))
        return {"cpu_shares": millis * CPU_SHARES // 1000,
                "memory_limit_in_bytes": megabytes(limits["memory"])}  # fmt: skip

    def _security(self, network):
        context = self.container["securityContext"]
        take_all(context, "securityContext", {
            "privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsUser", "runAsGroup",
            "capabilities", "seccompProfile", "appArmorProfile", "seLinuxOptions"})  # fmt: skip
        return {
            "capabilities": {"add_capabilities": context["capabilities"]["add"],
                             "drop_capabilities": context["capabilities"]["drop"]},
            "privileged": context["privileged"],
            "namespace_options": {"network": network, "pid": self.pid_namespace()},
            "selinux_options": {"type": context["seLinuxOptions"]["type"]},
            "run_as_user": {"value": context["runAsUser"]},
            "run_as_group": {"value": context["runAsGroup"]},
            "readonly_rootfs": context["readOnlyRootFilesystem"],
            "no_new_privs": not context["allowPrivilegeEscalation"],
            "masked_paths": MASKED_PATHS, "readonly_paths": READONLY_PATHS,
            "seccomp": {"profile_type": PROFILES[context["seccompProfile"]["type"]]},
            "apparmor": {"profile_type": PROFILES[context["appArmorProfile"]["type"]]},
        }  # fmt: skip

    def _mount(self, mount):
        take_all(mount, "a mount", {"name", "mountPath", "readOnly", "mountPropagation"})
        (volume,) = (v for v in self.spec["volumes"] if v["name"] == mount["name"])
        return {"container_path": mount["mountPath"], "host_path": self._path_of(volume),
                "readonly": mount.get("readOnly", False),
                "propagation": PROPAGATIONS[mount.get("mountPropagation", "None")]}  # fmt: skip

    def _path_of(self, volume):
        take_all(volume, "a volume", {"name", "hostPath", "configMap", "secret", "emptyDir"})
        if "hostPath" in volume:
            return self._host_path(volume["hostPath"])
        path = os.path.join(self.directory, volume["name"])
        os.makedirs(path, exist_ok=True)
        if "emptyDir" not in volume:
            self._write_files(volume, path)
        return path

    def _host_path(self, source):
        path = self.elsewhere.get(source["path"], source["path"])
        if source["type"] == "DirectoryOrCreate":
            os.makedirs(path, exist_ok=True)
        assert source["type"] in ("Directory", "DirectoryOrCreate") and os.path.isdir(path), source
        return path

    def _write_files(self, volume, path):
        kind = "configMap" if "configMap" in volume else "secret"
        source = volume[kind]
        take_all(source, "a volume", {"name", "secretName", "optional", "defaultMode"})
        name = (kind, source["name" if kind == "configMap" else "secretName"])
        assert name in self.files or source.get("optional"), name
        for file, text in self.files.get(name, {}).items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = os.open(os.path.join(path, file), flags, source.get("defaultMode", 0o644))
            with open(descriptor, "w", encoding="utf-8") as out:
                out.write(text)
