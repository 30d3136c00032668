# SPDX-License-Identifier: Apache-2.0
"""What is made of recordings of the load, and of those that fail."""

import unittest

import kernel_cost
import measure
import recorders


class MadeUpBench:
    """Every sample takes 2 us of pyrometer and 3 us of bpftrace; what `fails` raises Failure."""

    def __init__(self, fails):
        self._fails = fails
        self._calls = 0

    def cost(self, recorder, shape, _hertz, _seconds, comm=None):
        self._calls += 1
        if self._fails(recorder.name, self._calls):
            raise recorders.Failure("stack smashing detected")
        ns, samples = (300, 0) if comm else ({"pyrometer": 2000}.get(recorder.name, 3000), 1000)
        return measure.Recorded(
            samples=samples, start_cpu=0, record_cpu=0, record_seconds=1, steady_cpu=0,
            steady_seconds=1, total_cpu=0, peak=0, kernel_memory=0, written=0,
            books=measure.Books(runs=1000, run_ns=ns * 1000, samples=samples), frames=shape[1] + 3,
            load=[{"frame_bytes": 32, "median_ns": 5000}],
        )  # fmt: skip


def report(fails):
    compared = [recorders.Pyrometer("pyrometer"), recorders.Bpftrace(), recorders.Perf()]
    costs = kernel_cost.measure(MadeUpBench(fails), compared, 2, lambda _: None)
    rows = kernel_cost.report(costs, compared).splitlines()
    return [row for row in rows if row.startswith("32 B")]


class Report(unittest.TestCase):
    def test_has_the_costs_of_a_sample_and_their_ratio(self):
        for row in report(lambda *_: False):
            self.assertRegex(row, r" 2\.00 \( 0 %\) +3\.00 \( 0 %\) +1\.5 +5\.00 +5\.00 +5\.00$")

    def test_leaves_out_a_yardstick_that_always_fails(self):
        for row in report(lambda name, _: name != "pyrometer"):
            self.assertRegex(row, r" 2\.00 \( 0 %\) +- +- +5\.00 +- +-$")

    def test_has_every_shape_though_recordings_fail_now_and_then(self):
        rows = report(lambda name, call: name != "pyrometer" and call % 3 == 0)
        self.assertEqual(len(rows), len(kernel_cost.SHAPES))

    def test_pyrometer_may_not_fail(self):
        with self.assertRaises(recorders.Failure):
            report(lambda name, _: name == "pyrometer")


if __name__ == "__main__":
    unittest.main()
