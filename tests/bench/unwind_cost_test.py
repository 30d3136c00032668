# SPDX-License-Identifier: Apache-2.0
"""What is made of the costs of stacks."""

import unittest

import recorders
import unwind_cost


def costs_of(fixed, slope):
    """Three repetitions of each shape, the last one disturbed; `fixed` and `slope` by size."""
    costs = {}
    for depth, size in unwind_cost.SHAPES:
        costs[depth, size] = cost = unwind_cost.Costs()
        cost.unwound["CFI"].frames = frames = depth + 3
        sample = fixed[size] + slope[size] * frames
        cost.unwound["CFI"].sample_ns = [sample, sample, sample + 9000]
    return costs


class Line(unittest.TestCase):
    def test_goes_through_the_medians_of_one_size_of_frames(self):
        costs = costs_of({32: 1500, 192: 700}, {32: 50, 192: 90})
        self.assertAlmostEqual(unwind_cost.line(costs, "CFI", 32)[0], 1500)
        self.assertAlmostEqual(unwind_cost.line(costs, "CFI", 32)[1], 50)
        self.assertAlmostEqual(unwind_cost.line(costs, "CFI", 192)[1], 90)

    def test_worst_is_each_the_greater_of_the_two_sizes(self):
        costs = costs_of({32: 1500, 192: 700}, {32: 50, 192: 90})
        fixed, slope = unwind_cost.worst_line(costs, "CFI")
        self.assertAlmostEqual(fixed, 1500)
        self.assertAlmostEqual(slope, 90)

    def test_nothing_measured_is_a_failure(self):
        costs = {shape: unwind_cost.Costs() for shape in unwind_cost.SHAPES}
        with self.assertRaises(recorders.Failure):
            unwind_cost.worst_line(costs, "CFI")


class Report(unittest.TestCase):
    def test_has_a_row_for_each_shape_even_without_perf(self):
        costs = costs_of({32: 1500, 192: 700}, {32: 50, 192: 90})
        for text in (unwind_cost.report(costs), unwind_cost.report_copied(costs)):
            rows = [row for row in text.splitlines() if row.startswith(("32 B ", "192 B "))]
            self.assertEqual(len(rows), len(unwind_cost.SHAPES))


if __name__ == "__main__":
    unittest.main()
