# SPDX-License-Identifier: Apache-2.0
"""An agent at 499 Hz among processes that come and go takes no more memory and files as time passes.

Environment: PYROMETER_SOAK_SECONDS (60; 1800 by hand). Prints a line every tenth of that.
"""

import os
import statistics
import subprocess
import sys
import time

import agent_harness
import pyrometer_harness as harness
from agent_harness import otlp, parca, pyroscope

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import kernel  # noqa: E402

SECONDS = float(os.environ.get("PYROMETER_SOAK_SECONDS", "60"))
# The first minutes, in which caches fill: those of the page take up to 24 MiB and some 15 minutes.
SETTLE = min(SECONDS / 2, 960)
CHURN = "while :; do /bin/true; /bin/echo >/dev/null; /bin/sleep 0.05; done"
FEW_FILES = 100
FEW_BYTES = 24e6 if SETTLE < 960 else 4e6  # of caches that are still filling, or were given back


class Soak(agent_harness.AgentTestCase):
    def look(self, agent):
        """(anonymous memory, open files, CPU seconds, time) of the agent and its children."""
        processes = [agent.process.pid, *kernel.processes_below(agent.process.pid)]
        return (sum(map(kernel.anonymous_memory_of, processes)), kernel.files_of(agent.process.pid),
                sum(map(kernel.cpu_seconds_of, processes)), time.monotonic())  # fmt: skip

    def test_memory_and_files_are_flat(self):
        receivers = self.receiver("pyroscope"), self.receiver("parca"), self.receiver("otlp-http")
        for _ in range(2):
            churn = subprocess.Popen(["/bin/sh", "-c", CHURN])
            self.addCleanup(churn.wait)
            self.addCleanup(churn.kill)
        for i in range(5):
            self.busy("work-%d" % i)
        agent = self.agent([pyroscope(receivers[0]), parca(receivers[1]), otlp(receivers[2])],
                           frequency=499, window="10s", limits={"cpu": "50%"})  # fmt: skip
        begin = time.monotonic()
        looks = []
        while time.monotonic() < begin + SECONDS:
            time.sleep(min(SECONDS / 10, 60))  # how often to look
            looks.append((time.monotonic() - begin, *self.look(agent)))
            if len(looks) > 1:
                memory, files = looks[-1][1:3]
                cpu = (looks[-1][3] - looks[-2][3]) / (looks[-1][4] - looks[-2][4])
                print("%5.0f s: %.1f MB anonymous, %d files, %.2f %% of a core" % (
                    looks[-1][0], memory / 1e6, files, 100 * cpu), flush=True)  # fmt: skip
        settled = [look for look in looks if look[0] >= SETTLE]
        # Of several looks each, since one may fall on the moment of a delivery.
        half = len(settled) // 2
        earlier, later = (
            [statistics.median(look[i] for look in looks_of) for i in (1, 2)]
            for looks_of in (settled[:half], settled[half:])
        )
        self.assertLess(later[0], earlier[0] * 1.1 + FEW_BYTES)
        self.assertLess(later[1], earlier[1] + FEW_FILES)
        accounts = agent.stop()
        for name, receiver in zip(("pyroscope", "parca", "otlp"), receivers):
            self.assert_delivered(accounts[name], receiver)
            self.assertEqual(receiver.record()["rejected"], {})


if __name__ == "__main__":
    harness.main()
