# SPDX-License-Identifier: Apache-2.0
"""What the tables make of numbers."""

import unittest

import tables


class LineThrough(unittest.TestCase):
    def test_gives_fixed_part_and_slope(self):
        fixed, slope = tables.line_through([(frames, 1500 + 90 * frames) for frames in (8, 23, 503)])
        self.assertAlmostEqual(fixed, 1500)
        self.assertAlmostEqual(slope, 90)

    def test_takes_the_least_squares(self):
        fixed, slope = tables.line_through([(0, 1), (1, 0), (2, 2), (3, 5)])
        self.assertAlmostEqual(fixed, -0.1)
        self.assertAlmostEqual(slope, 1.4)


class Ratio(unittest.TestCase):
    def test_is_the_median_of_those_of_each_repetition(self):
        self.assertEqual(tables.ratio([2, 30, 8], [1, 10, 2]), "3.0")

    def test_a_repetition_that_was_left_out_has_none(self):
        self.assertEqual(tables.ratio([None, 30, 8, 9], [1, 10, None, 1]), "6.0")

    def test_nothing_measured_has_none(self):
        self.assertEqual(tables.ratio([], []), "-")


class Cells(unittest.TestCase):
    def test_a_median_has_its_spread_behind_it(self):
        self.assertEqual(tables.with_spread([90, 100, 140], "%.0f"), "100 (50 %)")
        self.assertEqual(tables.median([3, 1, 2]), "2.0")
        self.assertEqual(tables.median([]), "-")

    def test_what_was_left_out_does_not_count(self):
        self.assertEqual(tables.with_spread([90, None, 100, 140], "%.0f"), "100 (50 %)")
        self.assertEqual(tables.median([3, 1, None, 2]), "2.0")
        self.assertEqual((tables.median([None]), tables.with_spread([None])), ("-", "-"))


if __name__ == "__main__":
    unittest.main()
