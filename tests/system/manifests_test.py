# SPDX-License-Identifier: Apache-2.0
"""The manifests and the Helm chart of deploy/, without a cluster. Needs kubectl and go, and the packages
python3-jsonschema, python3-kubernetes and python3-yaml.

helm itself is in no distribution: the chart is rendered by chart/render.go, which has Go's templates and
stand-ins for Helm's functions.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import jsonschema
import yaml

import kubernetes_schema
import pyrometer_harness as harness
from discovery_server import DiscoveryServer, is_namespaced

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MANIFESTS = os.path.join(ROOT, "deploy", "kubernetes")
COMPONENTS = os.path.join(MANIFESTS, "components")
CHART = os.path.join(ROOT, "deploy", "helm", "pyrometer")
CUSTOM = {"PodMonitor", "PrometheusRule"}  # of the Prometheus operator
# What only a chart says.
OF_HELM = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version",
           "checksum/config"}  # fmt: skip


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def run(*command, **more):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                            **more)  # fmt: skip
    assert result.returncode == 0, "%s: %s" % (" ".join(command), result.stderr)
    return result.stdout


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def merged(values, changes):
    """As `helm --values` merges: null takes a value away."""
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return changes
    both = {**values, **{key: merged(values.get(key), value) for key, value in changes.items()}}
    return {key: value for key, value in both.items() if value is not None}


def without_helms(value):
    if isinstance(value, dict):
        return {key: without_helms(item) for key, item in value.items() if key not in OF_HELM}
    return [without_helms(item) for item in value] if isinstance(value, list) else value


class ManifestTestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("kubectl", "go"):
            if not shutil.which(program):
                harness.skip_or_fail("no %s" % program)
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="pyrometer-test-"))

    def kustomized(self, *components, config=None):
        """Of deploy/kubernetes as it is, or of a kustomization as users write it."""
        if not components and config is None:
            return documents(run("kubectl", "kustomize", MANIFESTS))
        own = tempfile.mkdtemp(dir=self.directory)
        kustomization = {"resources": [os.path.relpath(MANIFESTS, os.path.realpath(own))],
                         "components": [os.path.relpath(os.path.join(COMPONENTS, name), os.path.realpath(own))
                                        for name in components],
                         "configMapGenerator": [{"name": "pyrometer", "namespace": "pyrometer",
                                                 "behavior": "replace", "files": ["pyrometer.yaml"]}]}  # fmt: skip
        for name, content in (("kustomization.yaml", kustomization), ("pyrometer.yaml", config)):
            with open(os.path.join(own, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        return documents(run("kubectl", "kustomize", own))

    def charted(self, **changes):
        values = merged(yaml.safe_load(read(CHART, "values.yaml")), changes)
        jsonschema.validate(values, json.loads(read(CHART, "values.schema.json")))
        chart = yaml.safe_load(read(CHART, "Chart.yaml"))
        data = {"Values": values, "Chart": {"AppVersion": str(chart["appVersion"])},
                "Release": {"Name": "pyrometer", "Namespace": "pyrometer", "Service": "Helm"}}  # fmt: skip
        environment = {**os.environ, "GO111MODULE": "off", "HOME": self.directory}
        return documents(run("go", "run", os.path.join(HERE, "chart", "render.go"), CHART,
                             input=json.dumps(data), env=environment))  # fmt: skip

    def skip_without_components(self):
        version = json.loads(run("kubectl", "version", "--client", "--output=json"))["clientVersion"]
        if (int(version["major"]), int(re.match(r"\d+", version["minor"])[0])) < (1, 21):
            self.skipTest("this kubectl knows no components of kustomizations")


class Manifests(ManifestTestCase):
    def test_every_field_is_one_of_kubernetes(self):
        files = [os.path.join(directory, name) for directory, _, names in os.walk(MANIFESTS) for name in names
                 if name.endswith(".yaml") and name not in ("kustomization.yaml", "pyrometer.yaml")]  # fmt: skip
        checked = set()
        for file in files:
            for manifest in documents(read(file)):
                if manifest["kind"] not in CUSTOM:
                    self.assertEqual(kubernetes_schema.problems_of(manifest), [], file)
                    checked.add(manifest["kind"])
        self.assertLessEqual({"DaemonSet", "Namespace", "NetworkPolicy", "ServiceAccount", "ClusterRole"}, checked)

    def test_a_wrong_field_would_be_noticed(self):
        daemonset = yaml.safe_load(read(MANIFESTS, "daemonset.yaml"))
        pod = daemonset["spec"]["template"]["spec"]
        pod["hostPids"] = pod["hostPID"] = "yes"
        del pod["containers"][0]["name"]
        said = " ".join(kubernetes_schema.problems_of(daemonset))
        for expected in ("no field hostPids", "'yes' is no bool", "`name`, must not be `None`"):
            self.assertIn(expected, said)

    def apply(self, *arguments):
        """The lines of `kubectl apply --dry-run=client`."""
        with DiscoveryServer() as server:
            self.addCleanup(server.shutdown)
            kubeconfig = os.path.join(self.directory, "kubeconfig")
            server.write_kubeconfig(kubeconfig)
            environment = {**os.environ, "KUBECONFIG": kubeconfig, "HOME": self.directory}
            # Without validation, for which the server would have to have all schemas: see the test above.
            said = run("kubectl", "apply", "--dry-run=client", "--validate=false", *arguments, env=environment)
            self.assertEqual(server.changes, [])
        return said.splitlines()

    def test_kubectl_would_apply_them(self):
        said = self.apply("-k", MANIFESTS)
        self.assertEqual(len(said), len(self.kustomized()))
        self.assertIn("daemonset.apps/pyrometer created (dry run)", said)
        for line in said:
            self.assertRegex(line, r"^\S+ created \(dry run\)$")

    def test_kubectl_would_apply_the_components(self):
        for component, least in (("api", 2), ("kubelet", 2), ("monitoring", 2), ("node-labels", 2)):
            with self.subTest(component):
                directory = os.path.join(COMPONENTS, component)
                files = [name for name in os.listdir(directory)
                         if name.endswith(".yaml") and name != "kustomization.yaml"]  # fmt: skip
                said = [line for name in files for line in self.apply("-f", os.path.join(directory, name))]
                self.assertGreaterEqual(len([line for line in said if "created (dry run)" in line]), least, said)

    def test_the_readmes_kustomization_does_what_it_says(self):
        example = re.search(r"```yaml\n(apiVersion.*?)```", read(ROOT, "deploy", "README.md"), re.DOTALL)[1]
        own = os.path.realpath(tempfile.mkdtemp(dir=self.directory))
        self.assertIn("../pyrometer/deploy/kubernetes\n", example)
        example = example.replace("../pyrometer/deploy/kubernetes", os.path.relpath(MANIFESTS, own))
        shutil.copy(os.path.join(MANIFESTS, "pyrometer.yaml"), own)
        self.skip_without_components()
        for text in (example, re.sub(r"(?m)^( *)#(components|-)", r"\1\2", example)):
            with open(os.path.join(own, "kustomization.yaml"), "w", encoding="utf-8") as file:
                file.write(text)
            made = documents(run("kubectl", "kustomize", own))
            self.assertIs("PodMonitor" in [m["kind"] for m in made], text is not example)
            (daemonset,) = (m for m in made if m["kind"] == "DaemonSet")
            pod = daemonset["spec"]["template"]["spec"]
            self.assertEqual(pod["containers"][0]["image"], "registry.example.com/pyrometer:0.1.0")
            (volume,) = (v for v in pod["volumes"] if v["name"] == "runtime")
            self.assertEqual(volume["hostPath"], {"path": "/run/k3s/containerd", "type": "Directory"})

    def test_the_agent_has_no_permission_in_the_cluster_unless_asked_for(self):
        kinds = {manifest["kind"]: manifest for manifest in self.kustomized()}
        self.assertFalse([kind for kind in kinds if "Role" in kind])
        self.assertIs(kinds["DaemonSet"]["spec"]["template"]["spec"]["automountServiceAccountToken"], False)
        self.assertIs(kinds["ServiceAccount"]["automountServiceAccountToken"], False)

    def test_the_container_has_the_capabilities_of_the_service(self):
        unit = read(ROOT, "packaging", "pyrometer.service")
        bounded = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)[1].split()
        template = yaml.safe_load(read(MANIFESTS, "daemonset.yaml"))["spec"]["template"]
        context = template["spec"]["containers"][0]["securityContext"]
        self.assertEqual({"CAP_" + name for name in context["capabilities"]["add"]}, set(bounded))
        self.assertEqual(context["capabilities"]["drop"], ["ALL"])

    def test_the_agent_takes_both_configurations(self):
        chart = yaml.safe_load(read(CHART, "values.yaml"))["config"]
        for config in (read(MANIFESTS, "pyrometer.yaml"), json.dumps(chart)):
            file = os.path.join(self.directory, "checked.yaml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(config)
            self.assertIn(": ok", run(harness.PYROMETER, "agent", "--check-config", "--config", file))

    def test_versions_are_those_of_the_project(self):
        version = re.search(r"project\(pyrometer VERSION (\S+)", read(ROOT, "CMakeLists.txt"))[1]
        chart = yaml.safe_load(read(CHART, "Chart.yaml"))
        tag = yaml.safe_load(read(MANIFESTS, "kustomization.yaml"))["images"][0]["newTag"]
        self.assertEqual((str(chart["version"]), str(chart["appVersion"]), tag), (version,) * 3)
        self.assertIn("ARG VERSION=" + version, read(ROOT, "deploy", "docker", "Dockerfile"))


class Chart(ManifestTestCase):
    def comparable(self, manifests):
        """{(kind, name): manifest} without what differs between the two ways and means the same."""
        found = {}
        for manifest in copy.deepcopy(manifests):
            if manifest["kind"] == "Namespace":
                continue  # helm --create-namespace
            manifest = without_helms(manifest)
            metadata = manifest["metadata"]
            if is_namespaced(manifest["apiVersion"], manifest["kind"]):
                metadata.setdefault("namespace", "pyrometer")
            if manifest["kind"] == "ConfigMap" and "pyrometer.yaml" in manifest["data"]:
                metadata["name"] = "pyrometer"  # without the hash of its content
                metadata.pop("labels", None)
                manifest["data"] = {key: yaml.safe_load(text) for key, text in manifest["data"].items()}
            if manifest["kind"] == "DaemonSet":
                for volume in manifest["spec"]["template"]["spec"]["volumes"]:
                    if "configMap" in volume:
                        volume["configMap"]["name"] = "pyrometer"
            found[manifest["kind"], metadata["name"]] = manifest
        return found

    def assert_same(self, charted, kustomized):
        charted, kustomized = self.comparable(charted), self.comparable(kustomized)
        self.assertEqual(sorted(charted), sorted(kustomized))
        for name, manifest in kustomized.items():
            self.assertEqual(charted[name], manifest)

    def test_gives_what_the_manifests_give(self):
        self.assert_same(self.charted(), self.kustomized())

    def test_gives_what_the_components_give(self):
        self.skip_without_components()
        enabled = {"enabled": True}
        for kubernetes, components, more in (
            ({"mode": "api"}, ("api", "monitoring"),
             {"podMonitor": enabled, "alerts": enabled, "dashboard": enabled}),
            ({"mode": "auto"}, ("api",), {}),
            ({"mode": "kubelet"}, ("kubelet",), {}),
            ({"mode": "cri", "node_labels": ["zone"]}, ("node-labels",), {}),
            ({"mode": "api", "node_labels": ["zone"]}, ("api", "node-labels"), {}),
        ):  # fmt: skip
            with self.subTest(kubernetes):
                changes = {"config": {"kubernetes": kubernetes}, **more}
                config = merged(yaml.safe_load(read(CHART, "values.yaml")), changes)["config"]
                self.assert_same(self.charted(**changes), self.kustomized(*components, config=config))

    def test_auto_may_ask_the_api_server_and_has_its_token(self):
        for kubernetes in ({"mode": "auto"}, {"mode": "auto", "node_labels": ["zone"]}, None, {"mode": None}):
            with self.subTest(kubernetes):
                charted = self.charted(config={"kubernetes": kubernetes})
                rules = [rule for manifest in charted if manifest["kind"] == "ClusterRole"
                         for rule in manifest["rules"]]  # fmt: skip
                self.assertIn({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}, rules)
                (daemonset,) = (m for m in charted if m["kind"] == "DaemonSet")
                self.assertIs(daemonset["spec"]["template"]["spec"]["automountServiceAccountToken"], True)

    def test_every_value_shows_in_the_manifests(self):
        changes = {
            "image": {"repository": "r/p", "digest": "sha256:" + "a" * 64, "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "pull"}], "secretName": "tokens", "runtimeDirectory": "/run/crio",
            "stateDirectory": "", "capabilities": ["BPF", "PERFMON"], "resources": {"limits": {"memory": "1Gi"}},
            "nodeSelector": {"a": "b"}, "tolerations": [{"key": "c"}], "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high", "maxUnavailable": 1, "podAnnotations": {"d": "e"},
            "serviceAccount": {"name": "other", "annotations": {"f": "g"}},
            "networkPolicy": {"from": "watchers"}, "dashboard": {"enabled": True, "labels": {"h": "i"}},
        }  # fmt: skip
        charted = self.charted(**changes)
        manifests = {manifest["kind"]: manifest for manifest in charted}
        (dashboard,) = (m for m in charted if m["metadata"]["name"] == "pyrometer-dashboard")
        pod = manifests["DaemonSet"]["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        self.assertEqual(container["image"], "r/p@sha256:" + "a" * 64)
        self.assertEqual(container["imagePullPolicy"], "Always")
        self.assertEqual(container["securityContext"]["capabilities"]["add"], ["BPF", "PERFMON"])
        self.assertEqual(container["resources"]["limits"]["memory"], "1Gi")
        self.assertIn("/run/crio", [mount["mountPath"] for mount in container["volumeMounts"]])
        self.assertEqual(volumes["runtime"]["hostPath"]["path"], "/run/crio")
        self.assertEqual(volumes["state"], {"name": "state", "emptyDir": {}})
        self.assertEqual(volumes["secrets"]["secret"]["secretName"], "tokens")
        self.assertEqual(pod["metadata"]["annotations"]["d"], "e")
        self.assertEqual(pod["spec"]["nodeSelector"]["a"], "b")
        self.assertEqual(pod["spec"]["tolerations"], [{"key": "c"}])
        self.assertEqual(pod["spec"]["affinity"], {"nodeAffinity": {}})
        self.assertEqual(pod["spec"]["imagePullSecrets"], [{"name": "pull"}])
        self.assertEqual((pod["spec"]["priorityClassName"], pod["spec"]["serviceAccountName"]), ("high", "other"))
        self.assertEqual(manifests["ServiceAccount"]["metadata"]["name"], "other")
        self.assertEqual(manifests["ServiceAccount"]["metadata"]["annotations"], {"f": "g"})
        self.assertEqual(manifests["DaemonSet"]["spec"]["updateStrategy"]["rollingUpdate"], {"maxUnavailable": 1})
        self.assertIn("watchers", json.dumps(manifests["NetworkPolicy"]))
        self.assertEqual(dashboard["metadata"]["labels"]["h"], "i")
        for kind, manifest in manifests.items():
            self.assertEqual(kubernetes_schema.problems_of(manifest), [], kind)
        self.assertNotIn("NetworkPolicy", [m["kind"] for m in self.charted(networkPolicy={"enabled": False})])
        self.assertNotIn("containerd", json.dumps(self.charted(runtimeDirectory="")))

    def test_the_schema_refuses_what_would_not_work(self):
        schema = json.loads(read(CHART, "values.schema.json"))
        jsonschema.Draft7Validator.check_schema(schema)
        values = yaml.safe_load(read(CHART, "values.yaml"))
        for wrong in (
            {"imagee": {}}, {"image": {"digest": "latest"}}, {"capabilities": ["CAP_BPF"]},
            {"config": {"kubernetes": {"mode": "docker"}}}, {"config": {"sinks": [{"url": "http://x"}]}},
            {"config": {"server": {"listen": "0.0.0.0:80"}}}, {"runtimeDirectory": "run/containerd"},
            {"tolerations": {}}, {"maxUnavailable": "some"}, {"podMonitor": {"enabled": "yes"}},
        ):  # fmt: skip
            with self.subTest(wrong), self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(merged(values, wrong), schema)


if __name__ == "__main__":
    harness.main()
