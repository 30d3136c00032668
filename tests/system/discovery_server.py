# SPDX-License-Identifier: Apache-2.0
"""As much of an API server as `kubectl apply --dry-run=client` asks: which kinds there are, and that no
object is there yet. Whatever would change something is counted, and refused."""

import http.server
import json
import os
import threading

# (group, version): {kind: (plural, whether it is in a namespace)}
KINDS = {
    ("", "v1"): {"Namespace": ("namespaces", False), "ConfigMap": ("configmaps", True),
                 "ServiceAccount": ("serviceaccounts", True)},
    ("apps", "v1"): {"DaemonSet": ("daemonsets", True)},
    ("networking.k8s.io", "v1"): {"NetworkPolicy": ("networkpolicies", True)},
    ("rbac.authorization.k8s.io", "v1"): {"ClusterRole": ("clusterroles", False),
                                          "ClusterRoleBinding": ("clusterrolebindings", False)},
    ("monitoring.coreos.com", "v1"): {"PodMonitor": ("podmonitors", True),
                                      "PrometheusRule": ("prometheusrules", True)},
}  # fmt: skip
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def is_namespaced(api_version, kind):
    group, _, version = api_version.rpartition("/")
    return KINDS[group, version][kind][1]


def discovery():
    """{path: answer}"""
    answers = {"/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}}
    groups = []
    for (group, version), kinds in KINDS.items():
        name = "%s/%s" % (group, version) if group else version
        answers["/apis/" + name if group else "/api/" + name] = {
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name,
            "resources": [{"name": plural, "singularName": kind.lower(), "namespaced": namespaced,
                           "kind": kind, "verbs": VERBS} for kind, (plural, namespaced) in kinds.items()],
        }  # fmt: skip
        if group:
            spoken = {"groupVersion": name, "version": version}
            groups.append({"name": group, "versions": [spoken], "preferredVersion": spoken})
    answers["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    return answers


class DiscoveryServer(http.server.ThreadingHTTPServer):
    class Request(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        answers = discovery()

        def do_GET(self):
            path = self.path.partition("?")[0]
            answer = self.answers.get(path)
            self.reply(answer or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                                  "reason": "NotFound", "message": path + " not found"},
                       200 if answer else 404)  # fmt: skip

        def refuse(self):
            self.server.changes.append("%s %s" % (self.command, self.path))
            self.reply({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 405}, 405)

        do_POST = do_PUT = do_PATCH = do_DELETE = refuse

        def reply(self, answer, status):
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Request)
        self.changes = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def write_kubeconfig(self, path):
        cluster = {"name": "test", "cluster": {"server": "http://127.0.0.1:%d" % self.server_port}}
        context = {"name": "test", "context": {"cluster": "test", "user": "test"}}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "test", "clusters": [cluster],
                  "contexts": [context], "users": [{"name": "test", "user": {}}]}  # fmt: skip
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            json.dump(config, file)
