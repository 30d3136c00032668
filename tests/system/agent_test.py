# SPDX-License-Identifier: Apache-2.0
"""The agent delivers to every kind of sink, and what arrives is what was sampled, to the tick."""

import base64
import collections
import datetime
import glob
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import zlib

import agent_harness
import pprof_reader
import pyrometer_harness as harness
from agent_harness import otlp, parca, pyroscope
from waiting import wait_for


def by_service(samples):
    """{service: ticks} of what a receiver recorded by series."""
    services = collections.Counter()
    for series, ticks in samples.items():
        services[re.search(r'service[_.]name="((?:[^"\\]|\\.)*)"', series)[1]] += ticks
    return dict(services)


class Agent(agent_harness.AgentTestCase):
    def test_what_arrives_everywhere_is_what_was_sampled(self):
        receivers = {"pyroscope": self.receiver("pyroscope"), "ingest": self.receiver("pyroscope"),
                     "parca": self.receiver("parca"), "otlp": self.receiver("otlp-http"),
                     "otlp-grpc": self.receiver("otlp-grpc")}  # fmt: skip
        files = os.path.join(self.home, "profiles")
        self.busy("alpha")
        self.busy("beta")
        agent = self.agent([
            pyroscope(receivers["pyroscope"]),
            pyroscope(receivers["ingest"], name="ingest", api="ingest"),
            parca(receivers["parca"]),
            otlp(receivers["otlp"]),
            otlp(receivers["otlp-grpc"], "grpc", name="otlp-grpc"),
            {"type": "file", "directory": files},
        ], labels={"cluster": "blue"}, frequency=99)  # fmt: skip
        for receiver in receivers.values():
            self.await_ticks(receiver, 600)
        accounts = self.stop_sending(agent, receivers)

        self.assertEqual(set(accounts), {*receivers, "file"})
        for name, account in accounts.items():
            self.assertTrue(account.balances(), (name, account))
        late = [name for name, account in accounts.items() if account.spooled or account.dropped]
        if late:
            return harness.not_judged("that all have the same: %s did not take the last window in time" % late)
        in_files = collections.Counter()
        for path in glob.glob(os.path.join(files, "*", "*.pb.gz")):
            with open(path, "rb") as file:
                profile = pprof_reader.parse(file.read())
            in_files[os.path.basename(os.path.dirname(path))] += profile.total()
        self.assertEqual(sum(in_files.values()), accounts["file"].offered)
        wanted = None
        for name, receiver in receivers.items():
            record = receiver.record()
            self.assertEqual(record["rejected"], {}, (name, record["messages"]))
            services = by_service(record["samples"])
            self.assertEqual(sum(services.values()), accounts[name].delivered, name)
            wanted = wanted or services
            self.assertEqual(services, wanted, name)
        self.assertNotIn("unknown_service", wanted)
        self.assertGreater(wanted["alpha"], 100)
        self.assertGreater(wanted["beta"], 100)
        self.assertEqual(sum(wanted.values()), accounts["file"].offered)

    def test_a_scrape_gets_what_it_asks_for(self):
        process = self.busy("gamma")
        self.busy("delta")
        agent = self.agent([])
        status, body = agent.get("/debug/pprof/profile?seconds=2&pid=%d" % process.pid)
        self.assertEqual(status, 200)
        profile = pprof_reader.parse(body)
        self.assertGreater(profile.total(), 0)
        self.assertEqual({sample.labels["comm"] for sample in profile.samples}, {"gamma"})
        status, body = agent.get("/debug/pprof/profile?seconds=1&label=service_name=delta")
        self.assertEqual(status, 200, body)
        self.assertEqual({s.labels["service_name"] for s in pprof_reader.parse(body).samples}, {"delta"})
        self.assertEqual(agent.stop(), {})

    def test_samples_tell_their_container_and_their_systemd_unit(self):
        identity = "0123456789abcdef" * 4
        container = self.cgroup("docker-%s.scope" % identity)
        unit = self.cgroup("system.slice/pyrometer-test.service")
        receiver = self.receiver("pyroscope")
        agent = self.agent([pyroscope(receiver)])
        self.busy("kappa", container)
        self.busy("lambda", unit)
        for _ in range(10):
            self.busy("brief", container, seconds=0.2).wait()

        def each_has_worked():
            services = by_service(receiver.record()["samples"])
            return all(services.get(name, 0) > 50 for name in ("kappa", "brief", "pyrometer-test"))

        wait_for(each_has_worked, "ticks of each", pause=0.2)
        agent.stop()
        samples = receiver.record()["samples"]
        for name, labels in {"kappa": 'container_id="%s"' % identity, "brief": 'container_id="%s"' % identity,
                             "pyrometer-test": 'systemd_unit="pyrometer-test.service"'}.items():  # fmt: skip
            series = {one: ticks for one, ticks in samples.items() if 'service_name="%s"' % name in one}
            self.assertTrue(all(labels in one for one in series), series)
        self.assertNotIn("lambda", by_service(samples))

    def test_metrics_follow_the_conventions_and_the_page_shows_a_flame_graph(self):
        receiver = self.receiver("pyroscope")
        self.busy()
        agent = self.agent([pyroscope(receiver)])
        self.await_ticks(receiver, 300)
        _, text = agent.get("/metrics")
        checked = subprocess.run([agent_harness.promtool(self.home), "check", "metrics"], input=text, capture_output=True)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, b"", b""))
        metrics = agent.metrics()
        self.assertEqual(metrics['pyrometer_sink_samples_dropped_total{sink="pyroscope"}'.replace("_dropped", "_offered")],
                         sum(metrics['pyrometer_sink_samples_%s{sink="pyroscope"}' % part]
                             for part in ("delivered_total", "in_memory", "spooled")))  # fmt: skip
        self.assertEqual(agent.get("/readyz")[0], 200)
        self.assertIn(b"pyroscope", agent.get("/")[1])
        self.assertIn(b"<html", agent.get("/flamegraph?seconds=60")[1])
        self.assertEqual(json.loads(agent.get("/api/status")[1])["sinks"][0]["name"], "pyroscope")

    def test_profiles_have_labels_of_the_node(self):
        answers = [(403, b"Forbidden"), (200, json.dumps({"kind": "Node", "metadata": {"labels": {
            "topology.kubernetes.io/zone": "eu-1a", "other": "x"}}}).encode())]  # fmt: skip

        class Api(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answers.pop(0) if self.path == "/api/v1/nodes/node-1" else (404, b"")
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        api = self.enterContext(http.server.HTTPServer(("127.0.0.1", 0), Api))
        threading.Thread(target=api.serve_forever, daemon=True).start()
        self.addCleanup(api.shutdown)
        self.busy("alpha")
        files = os.path.join(self.home, "profiles")
        agent = self.agent([{"type": "file", "directory": files}], kubernetes={
            "mode": "off", "node_name": "node-1", "node_labels": ["topology.kubernetes.io/zone", "absent"],
            "api": {"url": "http://127.0.0.1:%d" % api.server_port, "token_file": ""}})  # fmt: skip
        series = os.path.join(files, "node=node-1,service_name=alpha,topology_kubernetes_io_zone=eu-1a.*")
        wait_for(lambda: glob.glob(series), "a profile with the node's labels", pause=0.1)
        self.assertEqual(json.loads(agent.get("/api/status")[1])["labels"],
                         {"node": "node-1", "topology_kubernetes_io_zone": "eu-1a"})
        self.assertTrue(agent.stop()["file"].balances())
        self.assertIn("needs 'get' on nodes", agent.said())

    def flame_graph(self, agent, query):
        """The facts of a flame graph's page."""
        status, page = agent.get("/flamegraph?" + query)
        self.assertEqual(status, 200)
        data = zlib.decompress(base64.b64decode(re.search(rb'<script id="profile"[^>]*>([^<]+)<', page)[1]))
        size = int.from_bytes(data[:4], "little")
        return json.loads(data[4:4 + size])

    def test_the_page_chooses_by_label_and_explains_a_process(self):
        receiver = self.receiver("pyroscope")
        chosen = self.busy("alpha", OTEL_SERVICE_NAME="checkout")
        self.busy("beta")
        agent = self.agent([pyroscope(receiver)])
        self.await_ticks(receiver, 300)
        everything = self.flame_graph(agent, "seconds=60&label=")
        self.assertLessEqual({"alpha", "beta"}, set(everything["processes"]))
        self.assertNotIn("filter", everything)
        only = self.flame_graph(agent, "seconds=60&label=service_name=checkout")
        self.assertEqual(only["processes"], {"alpha": {"pid": chosen.pid}})
        self.assertEqual(only["filter"]["words"], "service_name=checkout")
        self.assertGreater(only["filter"]["of"], 200)
        self.assertEqual(self.flame_graph(agent, "label=service_name=nobody")["processes"], {})
        choices = {choice["label"]: [value["value"] for value in choice["values"]]
                   for choice in json.loads(agent.get("/api/status")[1])["recent_labels"]}  # fmt: skip
        self.assertLessEqual({"checkout", "beta"}, set(choices["service_name"]))
        _, page = agent.get("/explain?pid=%d" % chosen.pid)
        for line in ("__meta_process_otel_service_name &quot;checkout&quot;", "__meta_process_executable"):
            self.assertIn(line, re.sub(" +", " ", page.decode()))

    def await_window(self, agent):
        """Returns when the window of now, of a second, is over."""
        now = time.time()

        def last_window():
            return json.loads(agent.get("/api/status")[1])["sampling"]["last_window"]

        wait_for(lambda: datetime.datetime.fromisoformat(last_window()).timestamp() > now + 1, "the window of now",
                 pause=0.1)  # fmt: skip

    def await_what_was_sampled(self, agent, sink):
        """Returns when all ticks of up to now have come to this sink.

        They come late where a table is being made for their stacks: in a window after their own.
        """
        self.await_window(agent)
        wait_for(lambda: agent.metrics()["pyrometer_cold_samples_waiting"] == 0, "stacks", pause=0.01)
        self.await_window(agent)
        waiting = 'pyrometer_sink_samples_in_memory{sink="%s"}' % sink
        wait_for(lambda: agent.metrics()[waiting] == 0, "its delivery", pause=0.01)

    def test_a_changed_configuration_applies_between_two_windows(self):
        first, second = self.receiver("pyroscope"), self.receiver("otlp-http")
        self.busy("epsilon")
        agent = self.agent([pyroscope(first)])
        self.await_ticks(first, 200)
        agent.reload(self.config([pyroscope(first), otlp(second)], frequency=99, filter={"comms": ["epsilon"]},
                                 labels={"cluster": "green"}))  # fmt: skip
        self.await_what_was_sampled(agent, "otlp")
        before = by_service(second.record()["samples"])
        self.await_ticks(second, 200)
        after = by_service(second.record()["samples"])
        self.assertEqual({name for name in after if after[name] != before.get(name)}, {"epsilon"})
        self.assertTrue(any("green" in series for series in first.record()["samples"]))
        self.assertEqual(agent.metrics()["pyrometer_frequency_hertz"], 99)
        for name, account in self.stop_sending(agent, ("pyroscope", "otlp")).items():
            self.assertTrue(account.balances())
            self.assertEqual(account.dropped, account.reasons.get("maybe_arrived", 0), (name, account))

    def test_a_bad_configuration_leaves_the_old_one_in_force(self):
        receiver = self.receiver("pyroscope")
        self.busy()
        agent = self.agent([pyroscope(receiver)])
        self.await_ticks(receiver, 100)
        agent.reload("sinks: [}{ garbage\0")
        self.assertIn("the old configuration stays in force", agent.said())
        self.await_ticks(receiver, 200)
        _, page = agent.get("/")
        self.assertIn(b"was refused", page)
        self.assertEqual(agent.dropped("pyroscope"), 0)
        self.assertTrue(agent.stop()["pyroscope"].balances())

    def test_a_sink_that_cannot_be_made_changes_nothing_else(self):
        files = os.path.join(self.home, "profiles")
        process = self.busy("iota")
        agent = self.agent([{"type": "file", "directory": files}], frequency=49)
        agent.reload(self.config([{"type": "file", "directory": "/proc/nowhere"}], frequency=199))
        self.assertIn("the old configuration stays in force", agent.said())
        _, body = agent.get("/debug/pprof/profile?seconds=2&pid=%d" % process.pid)
        self.assertEqual(pprof_reader.parse(body).period, 1_000_000_000 // 49)
        self.assertEqual(agent.metrics()["pyrometer_frequency_hertz"], 49)

    def test_says_that_its_server_is_not_as_configured(self):
        with socket.socket() as free, socket.socket() as taken:
            for one in (free, taken):
                one.bind(("127.0.0.1", 0))
            taken.listen()
            ports = [one.getsockname()[1] for one in (free, taken)]
            free.close()
            agent = self.agent([], server={"listen": "127.0.0.1:%d" % ports[0]})
            agent.reload(self.config([], server={"listen": "127.0.0.1:%d" % ports[1]}))
            self.assertIn("in force, but for the server", agent.said())
            self.assertIn(b"The server is as it was", agent.get("/")[1])

    def test_ends_before_its_window_and_sends_that(self):
        receiver = self.receiver("pyroscope")
        self.busy("zeta")
        agent = self.agent([pyroscope(receiver)], window="10m")
        wait_for(lambda: agent.metrics()['pyrometer_ticks_total{outcome="exported"}'] >= 100, "ticks")
        account = agent.stop()["pyroscope"]
        self.assertTrue(account.balances(), account)
        self.assertGreaterEqual(account.offered, 100)
        if account.delivered != account.offered:
            return harness.not_judged("that the last window arrives: its receiver did not take it in two seconds")
        self.assertEqual(receiver.ticks(), account.delivered)

    def await_services_since_now(self, agent, receiver, more=200):
        """{service: ticks} of what is sampled from now on, so many at least, in whole windows."""
        self.await_what_was_sampled(agent, "pyroscope")
        before = by_service(receiver.record()["samples"])
        self.await_ticks(receiver, more)
        self.await_what_was_sampled(agent, "pyroscope")
        after = by_service(receiver.record()["samples"])
        return {name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)}

    def test_rules_change_labels_and_drop_processes_until_they_change(self):
        dropped = self.cgroup("pyrometer-dropped-%d" % os.getpid())
        receiver = self.receiver("pyroscope")
        rules = [{"source_labels": ["__meta_process_comm"], "regex": "mu", "target_label": "service_name",
                  "replacement": "renamed"},
                 {"source_labels": ["__meta_process_executable"], "regex": ".*/python[^/]*",
                  "target_label": "language", "replacement": "python"},
                 {"source_labels": ["__meta_cgroup_path"], "regex": "/pyrometer-dropped-.*", "action": "drop"},
                 {"source_labels": ["__meta_process_comm"], "regex": "xi", "action": "drop"}]  # fmt: skip
        agent = self.agent([pyroscope(receiver)])
        processes = [self.busy(name) for name in ("mu", "xi")] + [self.busy("nu", dropped)]
        self.await_ticks(receiver, 100)
        services = self.await_services_since_now(agent, receiver)
        self.assertLessEqual({"mu", "nu", "xi"}, set(services), services)

        # What was seen without rules is seen anew.
        agent.reload(self.config([pyroscope(receiver)], relabel_configs=rules))
        services = self.await_services_since_now(agent, receiver)
        self.assertIn("renamed", services)
        self.assertFalse({"mu", "nu", "xi"} & set(services), services)
        series = [one for one in receiver.record()["samples"] if 'service_name="renamed"' in one]
        self.assertTrue(all('language="python"' in one for one in series), series)
        self.assertFalse(any("__meta" in one for one in receiver.record()["samples"]))

        # The dropped cgroup is filtered in the kernel; the process that its own name drops after it.
        filtered, unwanted = 'pyrometer_ticks_total{outcome="filtered"}', "pyrometer_samples_unwanted_total"
        before = agent.metrics()
        wait_for(lambda: agent.metrics()[filtered] >= before[filtered] + 50, "ticks of the dropped cgroup", pause=0.1)
        wait_for(lambda: agent.metrics()[unwanted] >= before[unwanted] + 50, "samples of xi", pause=0.1)
        on_page = json.loads(agent.get("/api/status")[1])["sampling"]["ticks"]
        self.assertGreater(on_page["filtered"], before[filtered] + before[unwanted], "both count for who looks")
        processes[1].kill()
        processes[1].wait()
        self.await_what_was_sampled(agent, "pyroscope")
        without_xi = agent.metrics()[unwanted]
        self.await_ticks(receiver, 200)
        self.assertEqual(agent.metrics()[unwanted], without_xi, "nothing of the dropped cgroup comes so far")

        agent.reload(self.config([pyroscope(receiver)], relabel_configs=rules[:1]))
        services = self.await_services_since_now(agent, receiver)
        self.assertIn("nu", services)
        self.assertIn("renamed", services)
        for account in agent.stop().values():
            self.assertTrue(account.balances(), account)

    def test_services_are_named_by_their_environment(self):
        receiver = self.receiver("pyroscope")
        agent = self.agent([pyroscope(receiver)])
        named = self.busy("rho", OTEL_SERVICE_NAME="checkout")
        self.busy("tau", OTEL_RESOURCE_ATTRIBUTES="service.version=1,service.name=the%20cart")
        # Gone before anyone could ask them: they have their parent's.
        parent = ["/bin/sh", "-c", 'while :; do "$0" -S -c "sum(range(1000000))"; done',
                  os.path.join(self.home, "rho")]  # fmt: skip
        brief = subprocess.Popen(parent, env={**os.environ, "OTEL_SERVICE_NAME": "batch"}, start_new_session=True)
        self.addCleanup(brief.wait)
        self.addCleanup(os.killpg, brief.pid, signal.SIGKILL)
        self.await_ticks(receiver, 100)
        services = self.await_services_since_now(agent, receiver)
        self.assertLessEqual({"checkout", "the cart", "batch"}, set(services), services)
        self.assertFalse({"rho", "tau", "sh"} & set(services), services)
        metrics = agent.metrics()
        self.assertGreaterEqual(metrics['pyrometer_environments_total{outcome="read"}'], 3)
        explained = subprocess.run([harness.PYROMETER, "agent", "--explain", str(named.pid)],
                                   capture_output=True, text=True, check=True).stdout  # fmt: skip
        self.assertRegex(explained, r'labels of its samples:\n(.*\n)*  service_name +"checkout"')
        agent.stop()

        receiver = self.receiver("pyroscope")
        agent = self.agent([pyroscope(receiver)], otel_service_name=False, sample_labels=["pid"])
        self.await_ticks(receiver, 100)
        self.assertTrue(all(account.balances() for account in agent.stop().values()))
        samples = receiver.record()["samples"]
        self.assertLessEqual({"rho", "tau"}, set(by_service(samples)))
        self.assertTrue(all(re.search(r'\bpid="\d+"', series) for series in samples), samples)
        self.assertTrue(any('pid="%d"' % named.pid in series for series in samples), samples)

    def test_explains_the_labels_of_a_process(self):
        cgroup = self.cgroup("pyrometer-dropped-%d" % os.getpid())
        kept, dropped = self.busy("omega"), self.busy("psi", cgroup)
        config = os.path.join(self.home, "rules.yaml")
        with open(config, "w") as file:
            file.write("relabel_configs:\n"
                       "  - {source_labels: [__meta_process_comm], regex: '(.)(.*)', target_label: app, replacement: '${1}-$2'}\n"
                       "  - {source_labels: [__meta_cgroup_path], regex: '/pyrometer-dropped-.*', action: drop}\n")  # fmt: skip

        def explain(pid):
            return subprocess.run([harness.PYROMETER, "agent", "--config", config, "--explain", str(pid)],
                                  capture_output=True, text=True)  # fmt: skip

        wait_for(lambda: "psi" in explain(dropped.pid).stdout, "the program")
        said = explain(kept.pid).stdout
        self.assertRegex(said, r'__meta_process_pid +"%d"' % kept.pid)
        self.assertIn('adds app = "o-mega"', said)
        self.assertRegex(said, r'labels of its samples:\n  app +"o-mega"\n  service_name +"omega"')
        said = explain(dropped.pid).stdout
        self.assertIn('drop [__meta_cgroup_path] = "/%s"\n    drops the process' % os.path.basename(cgroup), said)
        self.assertIn("samples: none", said)
        gone = explain(2**22 + 1)
        self.assertEqual((gone.returncode, gone.stdout), (1, ""))
        self.assertIn("there is no process %d" % (2**22 + 1), gone.stderr)

    def test_samples_only_what_the_filter_names(self):
        receiver = self.receiver("pyroscope")
        self.busy("eta")
        self.busy("theta")
        agent = self.agent([pyroscope(receiver)], filter={"comms": ["eta"]})
        self.await_ticks(receiver, 200)
        agent.stop()
        self.assertEqual(set(by_service(receiver.record()["samples"])), {"eta"})

    def test_samples_nothing_in_excluded_cgroups(self):
        excluded = self.cgroup("pyrometer-excluded-%d" % os.getpid())
        receiver = self.receiver("pyroscope")
        self.busy("rho", excluded)
        self.busy("sigma")
        name = "/" + os.path.basename(excluded)
        agent = self.agent([pyroscope(receiver)], filter={"exclude_cgroups": [name]})
        wait_for(lambda: agent.metrics()['pyrometer_ticks_total{outcome="filtered"}'] >= 100, "ticks of rho")
        self.await_ticks(receiver, 100)
        services = self.await_services_since_now(agent, receiver)
        self.assertIn("sigma", services)
        self.assertNotIn("rho", services)
        agent.reload(self.config([pyroscope(receiver)]))
        self.assertIn("rho", self.await_services_since_now(agent, receiver))

    def test_a_cgroup_that_is_not_there_is_not_everything(self):
        receiver = self.receiver("pyroscope")
        self.busy()
        agent = self.agent([pyroscope(receiver)], filter={"cgroups": ["/no/such/cgroup"]})
        wait_for(lambda: agent.metrics()['pyrometer_ticks_total{outcome="filtered"}'] >= 200, "ticks")
        self.assertEqual(agent.stop()["pyroscope"].offered, 0)
        self.assertEqual(receiver.ticks(), 0)

    def test_refuses_to_start_with_a_mistake(self):
        config = os.path.join(self.home, "bad.yaml")
        with open(config, "w") as file:
            file.write("frequency: 99\nsinks:\n  - {type: pyroscop, url: 'http://x'}\n")
        result = subprocess.run([harness.PYROMETER, "agent", "--config", config], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("bad.yaml:3:", result.stderr)
        self.assertIn("pyroscope", result.stderr)


if __name__ == "__main__":
    harness.main()
