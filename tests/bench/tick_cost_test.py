# SPDX-License-Identifier: Apache-2.0
"""What is made of the kernel's books, and of what tick_anatomy prints."""

import unittest

import tick_cost

# Ten ticks of four frames each; a mark takes 20 ns.
ANATOMY = "-\t0\t10\nentry\t5200\t10\nrows\t8800\t40\nstore\t0\t0\nmark\t1600\t80\n"


class Parts(unittest.TestCase):
    def test_are_those_of_a_mean_tick_without_the_marks(self):
        entry, rows, store = tick_cost.parts_of(ANATOMY)
        self.assertEqual((entry.name, entry.times, entry.ns), ("entry", 1, 500))
        self.assertEqual((rows.times, rows.ns), (4, 800))
        self.assertEqual((store.times, store.ns), (0, 0))


class Report(unittest.TestCase):
    def setUp(self):
        parts = tick_cost.parts_of(ANATOMY)
        self.results = {
            load.title: tick_cost.Ticks([6.0, 9.0, 8.0], [10.0, 10.0, 16.0], parts)
            for load in tick_cost.LOADS
        }

    def test_has_the_median_ratio_of_what_was_measured_at_the_same_time(self):
        row = tick_cost.report(self.results).splitlines()[2]
        self.assertRegex(row, r"^two busy programs +8\.00 \(38 %\) +10\.00 \(60 %\) +0\.60$")

    def test_has_a_row_for_each_part_and_two_columns_for_each_load(self):
        rows = tick_cost.report_parts(self.results).splitlines()
        self.assertRegex(rows[3], r"^rows( +800 +4\.0){3}$")

    def test_judges_each_load_by_its_own_target(self):
        targets = [(value, target) for _, value, target, _ in tick_cost.verdicts(self.results)]
        self.assertEqual(targets, [(0.6, 0.6), (0.6, 0.6), (0.6, 1.0)])


if __name__ == "__main__":
    unittest.main()
