# SPDX-License-Identifier: Apache-2.0
"""What the recorders are told, and what is read from what they say."""

import unittest

import load_variants
import recorders

PERF_STDERR = """\
[ perf record: Woken up 21 times to write data ]
Warning:
Processed 4051 events and lost 3 chunks!
[ perf record: Captured and wrote 5.730 MB perf.data (711 samples) ]
"""
FRAMES = """\
00000000 0000000000000014 00000000 CIE "zR" cf=1 df=-8 ra=16

00000018 0000000000000010 0000001c FDE cie=00000000 pc=0000000000001630..0000000000001669
   LOC           CFA      rbx   ra
0000000000001630 rsp+8    u     c-8
0000000000001637 rsp+32   c-16  c-8
"""
SYMBOLS = """\
0000000000001630 t small_frame
0000000000001680 t large_frame
                 U puts@GLIBC_2.2.5
"""


class Perf(unittest.TestCase):
    def test_says_how_many_samples_it_has(self):
        self.assertEqual(recorders.Perf().samples("", PERF_STDERR), 711)

    def test_that_crashed_has_none(self):
        self.assertEqual(recorders.Perf().samples("", "*** stack smashing detected ***"), 0)

    def test_with_stacks_is_told_the_processes(self):
        target = recorders.Target("bench_load_cfi", (12, 13))
        command = recorders.PerfDwarf().command(1999, "/tmp", target)
        self.assertIn("--call-graph dwarf -p 12,13 ", " ".join(command) + " ")


class Variants(unittest.TestCase):
    def test_functions_within_an_fde_are_covered(self):
        self.assertEqual(load_variants.covered(FRAMES, SYMBOLS), {"small_frame"})

    def test_a_row_by_the_frame_pointer_is_recognized(self):
        self.assertIsNone(load_variants.ROW_BY_FRAME_POINTER.search(FRAMES))
        by_frame_pointer = FRAMES.replace("rsp+32", "rbp+16")
        self.assertIsNotNone(load_variants.ROW_BY_FRAME_POINTER.search(by_frame_pointer))


if __name__ == "__main__":
    unittest.main()
