# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alerts of deploy/ against the metrics of a running agent."""

import json
import os
import re
import subprocess

import yaml
from agent_harness import AgentTestCase, promtool, pyroscope
from debian_package import ROOT
from pyrometer_harness import main
from waiting import wait_for

MONITORING = os.path.join(ROOT, "deploy", "kubernetes", "components", "monitoring")
# A name with what braces come after it: pyrometer_ticks_total{node=~"$node", outcome!~"idle"}.
SELECTOR = re.compile(r"\b(pyrometer_\w+)(\{[^}]*\})?")
LABELS = re.compile(r"(\w+)(?:=~|!~|!=|=)")


def expressions():
    """Of every panel and alert."""
    with open(os.path.join(MONITORING, "alerts.yaml"), encoding="utf-8") as file:
        for group in yaml.safe_load(file)["spec"]["groups"]:
            yield from (rule["expr"] for rule in group["rules"])
    with open(os.path.join(MONITORING, "dashboard.json"), encoding="utf-8") as file:
        for panel in json.load(file)["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))


class Monitoring(AgentTestCase):
    def series(self):
        """{metric: its labels} of an agent with a sink that drops and one that cannot be reached."""
        refusing, down = self.receiver("pyroscope"), self.receiver("pyroscope")
        refusing.set_mode("413")
        down.set_mode("refuse")
        agent = self.agent([pyroscope(refusing, name="refusing"), pyroscope(down, name="down")],
                           kubernetes={"mode": "cri", "cri_socket": os.path.join(self.home, "none.sock")})  # fmt: skip
        wanted = ("pyrometer_sink_samples_dropped_total{", "pyrometer_sink_oldest_waiting_timestamp_seconds{")
        wait_for(lambda: all(any(name.startswith(one) for name in agent.metrics()) for one in wanted),
                 "samples that are dropped, and some that wait", pause=0.2)  # fmt: skip
        found = {}
        for series in agent.metrics():
            name, _, labels = series.partition("{")
            found.setdefault(name, set()).update(LABELS.findall(labels))
        return found

    def test_names_metrics_and_labels_that_there_are(self):
        metrics = self.series()
        asked = [match for expression in expressions() for match in SELECTOR.finditer(expression)]
        self.assertGreater(len(asked), 25)
        for match in asked:
            name, labels = match[1], set(LABELS.findall(match[2] or ""))
            with self.subTest(match[0]):
                self.assertIn(name, metrics)
                # The PodMonitor gives every series its node.
                self.assertLessEqual(labels - {"node"}, metrics[name])

    def test_prometheus_accepts_the_alerts(self):
        with open(os.path.join(MONITORING, "alerts.yaml"), encoding="utf-8") as file:
            rules = yaml.safe_load(file)["spec"]
        plain = os.path.join(self.home, "rules.yaml")
        with open(plain, "w", encoding="utf-8") as file:
            yaml.safe_dump(rules, file)
        said = subprocess.run([promtool(self.directory), "check", "rules", "--lint-fatal", plain], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertIn("SUCCESS", said.stdout)

    def test_prometheus_accepts_the_queries_of_the_dashboard(self):
        # As rules, which promtool parses, with Grafana's variables in place.
        rules = [{"record": "r%d" % i, "expr": query.replace("$__rate_interval", "5m")}
                 for i, query in enumerate(expressions())]  # fmt: skip
        plain = os.path.join(self.home, "queries.yaml")
        with open(plain, "w", encoding="utf-8") as file:
            yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        said = subprocess.run([promtool(self.directory), "check", "rules", plain], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        self.assertEqual(said.returncode, 0, said.stdout)


if __name__ == "__main__":
    main()
