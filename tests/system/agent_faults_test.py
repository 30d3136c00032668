# SPDX-License-Identifier: Apache-2.0
"""Whatever a server, the disk or the machine does, the agent knows what became of every tick.

    offered = delivered + spooled + dropped, by reason

and what a receiver has counted is what the agent says it delivered, never more than once.

Environment: PYROMETER_OUTAGE_SECONDS (10), PYROMETER_KILLS (1): longer by hand.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import agent_harness
import pyrometer_harness as harness
from agent_harness import FOUND, accounts_in, otlp, parca, pyroscope
from waiting import wait_for

OUTAGE = float(os.environ.get("PYROMETER_OUTAGE_SECONDS", "10"))
KILLS = int(os.environ.get("PYROMETER_KILLS", "1"))
THREADS = """
import threading, time
threading.stack_size(65536)
for _ in range(%d):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("READY", flush=True)
while True:
    sum(range(1000))
"""


def tasks_left():
    """How many more threads this cgroup and the machine allow; the receivers need some as well."""
    with open("/proc/sys/kernel/threads-max") as file:
        left = int(file.read()) // 2
    with open("/proc/self/cgroup") as file:
        paths = ["/sys/fs/cgroup" + line.strip().split(":")[2] for line in file if line.startswith("0::")]
        file.seek(0)
        paths += ["/sys/fs/cgroup/pids" + line.strip().split(":")[2] for line in file if ":pids:" in line]
    for path in paths:
        while len(path) > len("/sys/fs/cgroup"):
            try:
                with open(path + "/pids.max") as most, open(path + "/pids.current") as now:
                    if (limit := most.read().strip()) != "max":
                        left = min(left, int(limit) - int(now.read()))
            except OSError:
                pass  # the root of a hierarchy has none
            path = os.path.dirname(path)
    return max(left, 100)


class Faults(agent_harness.AgentTestCase):
    in_doubt = {}  # by sink: ticks under way when its server went away

    def set_mode_between_windows(self, agent, receiver, mode, **more):
        """What is under way when a server goes away may have arrived: where a window begins all the same, it is
        that, `in_doubt`, and no more."""
        waiting = 'pyrometer_sink_samples_in_memory{sink="pyroscope"}'
        wait_for(lambda: agent.metrics()[waiting] == 0, "a pause between windows", pause=0.01)
        receiver.set_mode(mode, **more)
        self.in_doubt = {}
        if mode == "refuse":
            failing = 'pyrometer_sink_failing{sink="pyroscope"}'
            wait_for(lambda: agent.metrics()[failing] == 1, "a failure", pause=0.1)
            self.in_doubt["pyroscope"] = agent.dropped("pyroscope", "maybe_arrived")

    def assert_nothing_lost(self, agent, receivers):
        """Ends the agent, whose sinks have dropped nothing so far but what was in doubt. At its end a sink has two
        seconds: what is under way then is in doubt, and what is spooled is not lost."""
        for sink in receivers:
            self.assertEqual(agent.dropped(sink), self.in_doubt.get(sink, 0), agent.said())
        accounts = self.stop_sending(agent, receivers)
        for sink, receiver in receivers.items():
            self.assert_delivered(accounts[sink], receiver)

    def misbehave(self, mode, options=None, **more):
        """An agent and its receiver, which has misbehaved for a while and takes everything again."""
        receiver = self.receiver("pyroscope")
        self.busy()
        agent = self.agent([pyroscope(receiver, retry={"min_backoff": "200ms", "max_backoff": "1s"}, **(options or {}))])
        self.await_ticks(receiver, 100)
        self.set_mode_between_windows(agent, receiver, mode, **more)
        if mode != "refuse":
            wait_for(lambda: sum(receiver.record()["misbehaved"].values()) >= 3, "misbehaviour", pause=0.1)
        receiver.set_mode("ok")
        self.await_ticks(receiver, 300)
        return agent, receiver

    def assert_taken_once(self, receiver):
        record = receiver.record()
        self.assertEqual(record["repeated"], 0)
        self.assertEqual(record["rejected"], {}, record["messages"])

    def assert_everything_later(self, mode, **more):
        agent, receiver = self.misbehave(mode, **more)
        self.assert_nothing_lost(agent, {"pyroscope": receiver})
        self.assert_taken_once(receiver)

    def assert_some_lost(self, mode, reason, options=None, stores=False):
        """For this reason. The receiver has what was delivered, and if it `stores` while it misbehaves, or at the
        agent's end, up to all that is in doubt."""
        agent, receiver = self.misbehave(mode, options)
        refused = 0 if stores else agent.dropped("pyroscope")
        account = self.stop_sending(agent, ("pyroscope",))["pyroscope"]
        self.assertTrue(account.balances(), account)
        self.assertGreater(account.reasons.get(reason, 0), 0, account)
        in_doubt = account.dropped - refused
        self.assert_between(receiver.ticks(), (account.delivered, account.delivered + in_doubt), account)
        self.assert_taken_once(receiver)

    def test_a_server_that_refuses_connections_gets_everything_later(self):
        self.assert_everything_later("refuse")

    def test_a_server_that_asks_to_come_back_later_gets_everything(self):
        self.assert_everything_later("429", retry_after=1)

    def test_a_server_that_is_not_available_gets_everything_later(self):
        self.assert_everything_later("503")

    def test_what_a_failing_server_may_have_stored_is_not_sent_again(self):
        self.assert_some_lost("500", "maybe_arrived")

    def test_what_is_too_large_for_a_server_is_dropped_and_said(self):
        self.assert_some_lost("413", "http_413")

    def test_a_server_that_closes_in_the_middle_may_have_it(self):
        self.assert_some_lost("close", "maybe_arrived", stores=True)

    def test_a_server_that_hangs_may_have_it(self):
        self.assert_some_lost("hang", "maybe_arrived", {"timeout": "2s"}, stores=True)

    def test_a_reload_that_waits_for_a_server_does_not_hold_up_the_end(self):
        receiver = self.receiver("pyroscope")
        self.busy()
        agent = self.agent([pyroscope(receiver, timeout="5m")])
        self.await_ticks(receiver, 100)
        receiver.set_mode("hang")
        wait_for(lambda: sum(receiver.record()["misbehaved"].values()) >= 1, "misbehaviour", pause=0.1)
        # The old sink has two seconds for what hangs, and the new one hangs as well.
        agent.write_config(self.config([pyroscope(receiver, timeout="6m")]))
        agent.process.send_signal(signal.SIGHUP)  # which is read first, should both be there
        self.assertTrue(agent.stop()["pyroscope"].balances(), agent.said())  # long before these five minutes

    def test_at_least_once_loses_nothing_where_the_operator_chose_it(self):
        retry = {"min_backoff": "200ms", "max_backoff": "1s", "at_least_once": True}
        receiver = self.receiver("pyroscope")
        self.busy()
        agent = self.agent([pyroscope(receiver, timeout="2s", retry=retry)])
        self.await_ticks(receiver, 100)
        receiver.set_mode("500", times=5)
        self.await_ticks(receiver, 300)
        account = self.stop_sending(agent, ("pyroscope",))["pyroscope"]
        self.assertEqual((account.dropped, account.offered), (0, account.delivered + account.spooled), account)
        self.assertGreaterEqual(receiver.ticks(), account.delivered)

    def test_a_changed_certificate_stops_delivery_until_it_is_trusted(self):
        good, other = self.certificate("good"), self.certificate("other")
        receiver = self.receiver("pyroscope", "--cert", good + ".crt", "--key", good + ".key",
                                 "--bad-cert", other + ".crt", "--bad-key", other + ".key")  # fmt: skip
        self.busy()
        agent = self.agent([{"type": "pyroscope", "url": "https://localhost:%d" % receiver.port,
                             "tls": {"ca_file": good + ".crt"}, "timeout": "2s",
                             "retry": {"min_backoff": "200ms", "max_backoff": "1s"}}])  # fmt: skip
        self.await_ticks(receiver, 100)
        receiver.set_mode("bad_certificate")
        wait_for(lambda: "(tls)" in agent.said(), "the certificate to be refused")
        receiver.set_mode("ok")
        self.await_ticks(receiver, 300)
        # A window on its way when the certificate changed may have arrived.
        self.assert_delivered(self.stop_sending(agent, ("pyroscope",))["pyroscope"], receiver)

    def certificate(self, name):
        """The path, without its endings, of a self-signed certificate for localhost."""
        path = os.path.join(self.home, name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", path + ".key", "-out", path + ".crt"],
                       check=True, capture_output=True)  # fmt: skip
        return path

    def test_an_outage_of_one_sink_of_three_delays_only_that_one(self):
        down, second, third = self.receiver("pyroscope"), self.receiver("parca"), self.receiver("otlp-http")
        self.busy()
        agent = self.agent([pyroscope(down, retry={"min_backoff": "200ms", "max_backoff": "2s"}), parca(second), otlp(third)])
        self.await_ticks(down, 100)
        self.set_mode_between_windows(agent, down, "refuse")
        end = time.monotonic() + OUTAGE
        while time.monotonic() < end:
            # Each second's window arrives while the other sink is away.
            self.await_ticks(second, 1)
            self.await_ticks(third, 1)
        down.set_mode("ok")
        waits = 'pyrometer_sink_samples_%s{sink="pyroscope"}'
        wait_for(lambda: agent.metrics()[waits % "in_memory"] + agent.metrics()[waits % "spooled"] < 1000,
                 "the backlog to be delivered", 120, pause=0.2)  # fmt: skip
        receivers = {"pyroscope": down, "parca": second, "otlp": third}
        self.assert_nothing_lost(agent, receivers)
        self.assertEqual([receiver.record()["repeated"] for receiver in receivers.values()], 3 * [0])

    def test_what_was_spooled_survives_kill_9_and_arrives_once(self):
        """The sink is away for so long that windows go to the disk; then the agent is killed."""
        for _ in range(KILLS):
            shutil.rmtree(self.spool, ignore_errors=True)
            receiver = self.receiver("pyroscope")
            receiver.set_mode("refuse")
            self.busy()
            sink = pyroscope(receiver, retry={"min_backoff": "100ms", "max_backoff": "500ms"})
            agent = self.agent([sink])
            spooled = 'pyrometer_sink_samples_spooled{sink="pyroscope"}'
            wait_for(lambda a=agent: a.metrics()[spooled] > 0, "a spool", 90, pause=0.1)
            time.sleep(random.random() * 2)  # at any moment of the spooling
            on_disk = agent.metrics()[spooled]
            agent.kill()
            receiver.set_mode("ok")
            found = 'pyrometer_sink_found_samples{sink="pyroscope"}'
            again = self.agent([sink])
            # What it finds arrives, and what it takes anew.
            waiting = ('pyrometer_sink_spool_files{sink="pyroscope"}', 'pyrometer_sink_samples_in_memory{sink="pyroscope"}')
            wait_for(lambda a=again: not any(map(a.metrics().get, waiting)), "all to be sent", pause=0.05)
            metrics = again.metrics()
            self.assertGreaterEqual(metrics[found], on_disk)
            self.assertEqual(metrics[found], sum(
                ticks for name, ticks in metrics.items() if name.startswith("pyrometer_sink_found_samples_")))
            self.assertEqual(again.dropped("pyroscope"), 0)
            of_now = again.stop()["pyroscope"]
            of_before = accounts_in(again.said(), FOUND)["pyroscope"]
            accounts = [of_now, of_before]
            for account in accounts:
                self.assertTrue(account.balances(), accounts)
                self.assertEqual(account.dropped, account.reasons.get("maybe_arrived", 0), accounts)
            arrived = sum(account.delivered for account in accounts)
            in_doubt = sum(account.dropped for account in accounts)
            self.assert_between(receiver.ticks(), (arrived, arrived + in_doubt), accounts)
            self.assertEqual(receiver.record()["repeated"], 0)

    def test_a_full_disk_costs_what_does_not_fit_and_nothing_else(self):
        os.makedirs(self.spool)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.spool], check=True)
        self.addCleanup(subprocess.run, ["umount", self.spool], check=True)
        down, second = self.receiver("pyroscope"), self.receiver("parca")
        down.set_mode("refuse")
        for i in range(8):
            self.busy("work-%d" % i)
        agent = self.agent([pyroscope(down), parca(second)], frequency=499)
        self.await_ticks(second, 15000, seconds=120)
        accounts = agent.stop()
        self.assertTrue(accounts["pyroscope"].balances(), accounts)
        self.assertEqual(accounts["pyroscope"].delivered, 0)
        self.assertGreater(accounts["pyroscope"].dropped, 0, accounts)
        self.assert_delivered(accounts["parca"], second)

    def test_thousands_of_new_processes_and_threads_do_not_upset_the_accounts(self):
        forks = 'pyrometer_kernel_records_total{type="fork"}'
        receiver = self.receiver("pyroscope")
        agent = self.agent([pyroscope(receiver)])
        began, before = time.monotonic(), agent.metrics()[forks]
        for _ in range(3):
            storm = subprocess.Popen(["/bin/sh", "-c", "while :; do /bin/true; done"])
            self.addCleanup(storm.wait)
            self.addCleanup(storm.kill)
        threads = subprocess.Popen([sys.executable, "-c", THREADS % min(5000, tasks_left() // 2)],
                                   stdout=subprocess.PIPE)  # fmt: skip
        self.addCleanup(threads.stdout.close)
        self.addCleanup(threads.wait)
        self.addCleanup(threads.kill)
        self.await_ticks(receiver, 3000, seconds=120)
        metrics = agent.metrics()
        print("%.0f new processes and threads a second" % (
            (metrics[forks] - before) / (time.monotonic() - began)), flush=True)  # fmt: skip
        self.assertGreater(metrics[forks], 1000)
        self.assertEqual(metrics['pyrometer_ticks_total{outcome="window_dropped"}'], 0)
        self.assert_nothing_lost(agent, {"pyroscope": receiver})


if __name__ == "__main__":
    harness.main()
