# SPDX-License-Identifier: Apache-2.0
"""What is made of the figures of naming addresses."""

import unittest

import names_cost


def cost(title, debug_megabytes, **more):
    ours = {
        "symbols_seconds": 0.5, "reading_seconds": 2.5, "reader_cpu_seconds": 2, "reader_peak": 50e6,
        "peak_growth": 2e6, "symbols_in_memory": 1e6, "sources_in_memory": 0, "symbols_spilled": 2e6,
        "sources_spilled": 3e6, "first_finding_seconds": 0.02, "repeated_finding_seconds": 0.01, **more,
    }  # fmt: skip
    runs = [names_cost.Run(3.0, 100e6), names_cost.Run(4.0, 200e6)]
    others = {tool: runs for tool in names_cost.TOOLS}
    return names_cost.FileCost(title, int(debug_megabytes * 1e6), ours, 1.5, others)


NAMED = {"first_naming_seconds": 0.05, "repeated_naming_seconds": 0.002}


class NamesCost(unittest.TestCase):
    def test_the_slowest_and_greediest_file_counts(self):
        verdicts = names_cost.verdicts([
            cost("large", 800, **NAMED), cost("small", 400, repeated_naming_seconds=0.004)])
        self.assertEqual([(round(value, 2), limit) for _, value, limit, _ in verdicts],
                         [(0.4, 0.3), (1.5, 1), (5.0, 5)])

    def test_files_without_debug_information_say_nothing_of_its_speed(self):
        self.assertEqual(len(names_cost.verdicts([cost("stripped", 0, **NAMED)])), 1)
        self.assertIn("-", names_cost.report([cost("stripped", 0)]))

    def test_other_tools_are_compared_with_the_same_work(self):
        measured = [cost("large", 800, **NAMED)]
        # Found, named, the first answer; another's first answer and its ratio, an address and its.
        row = names_cost.report_addresses(measured).splitlines()[-1].split()
        self.assertEqual(row[1:], ["2.00", "1.00", "5.00", "0.20", "1.50"])
        row = names_cost.report_others(measured).splitlines()[-1].split()
        self.assertEqual(row[-5:], ["3.00", "2.0", "100.0", "20.0", "200.0"])

    def test_a_tool_that_took_too_long_has_no_figures(self):
        slow = cost("large", 800, **NAMED)
        slow.others = {tool: [names_cost.Run(), names_cost.Run()] for tool in names_cost.TOOLS}
        self.assertEqual(names_cost.report_others([slow]).splitlines()[-1].split()[-5:], ["-"] * 5)


if __name__ == "__main__":
    unittest.main()
