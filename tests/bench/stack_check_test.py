# SPDX-License-Identifier: Apache-2.0
"""Which stacks of bench_load count as whole."""

import unittest

import stack_check

EXPECTED = stack_check.expected_frames(2, "small_frame")
FOLDED = """\
bench_load_cfi;from_root;run;small_frame;small_frame;bottom 90
bench_load_cfi;from_root;run;small_frame;small_frame;bottom;asm_sysvec_apic_timer_interrupt_[k] 4
bench_load_cfi;from_root;run;small_frame;bottom 1
bench_load_cfi;[unwind stopped: no unwind information];small_frame;bottom 2
bench_load_cfi;[unwind stopped: stack unreadable];run;small_frame;small_frame;bottom 1
bench_load_cfi;do_exit_[k] 1
other;from_root;run;small_frame;small_frame;bottom 7
"""
SCRIPT = """\
bench_load_cfi 
\t        ffffffff81a0168a asm_sysvec_apic_timer_interrupt
\t            15b6 bottom
\t            1674 small_frame
\t            1661 small_frame
\t            174f run
\t            204a from_root

bench_load_cfi 
\t            15b6 bottom
\t            1674 small_frame

perf 
\t            15b6 bottom
"""


class Folded(unittest.TestCase):
    def test_counts_the_stacks_of_the_program_that_have_all_frames(self):
        check = stack_check.check_folded(FOLDED.splitlines(), "bench_load_cfi", EXPECTED)
        self.assertEqual((check.samples, check.whole), (98, 94))
        self.assertEqual(check.user_frames, 5)

    def test_nothing_is_not_whole(self):
        self.assertEqual(stack_check.check_folded([], "bench_load_cfi", EXPECTED).percent(), 0)


class PerfScript(unittest.TestCase):
    def test_counts_the_stacks_of_the_program_that_have_all_frames(self):
        check = stack_check.check_perf_script(SCRIPT.splitlines(True), "bench_load_cfi", EXPECTED)
        self.assertEqual((check.samples, check.whole), (2, 1))
        self.assertEqual(check.user_frames, 5)

    def test_the_last_sample_counts_without_an_empty_line_behind_it(self):
        check = stack_check.check_perf_script(SCRIPT.splitlines(), "perf", EXPECTED)
        self.assertEqual((check.samples, check.whole), (1, 0))


if __name__ == "__main__":
    unittest.main()
