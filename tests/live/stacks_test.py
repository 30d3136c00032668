# SPDX-License-Identifier: Apache-2.0
"""What the live tests make of collapsed stacks and of ELF files."""

import platform
import subprocess
import tempfile
import unittest

import stacks

FOLDED = """\
redis-server;_start;main;call 90
redis-server;_start;main;do_syscall_64_[k] 5
redis-server;[truncated];deep;deeper 2
redis-server;[unwind stopped: no unwind information];leaf 2
redis-server;[unwind stopped: stack unreadable];leaf;do_syscall_64_[k] 1
redis-server;ret_from_fork_[k];io_wq_worker_[k] 50
redis-server;[unknown];main 1
other;[truncated];x 7
"""


class Completeness(unittest.TestCase):
    def test_counts_the_user_stacks_of_the_named_processes(self):
        found = stacks.completeness(FOLDED, ("redis-server",))
        self.assertEqual((found.samples, found.complete), (101, 96))
        self.assertEqual(found.reasons["[truncated]"], 2)
        self.assertEqual(found.reasons["[unwind stopped: stack unreadable]"], 1)

    def test_says_the_most_frequent_reasons(self):
        found = stacks.completeness(FOLDED, ("other",))
        self.assertEqual(found.reasons_text(), "truncated 100.00 %")


class Entries(unittest.TestCase):
    @unittest.skipUnless(platform.machine() == "x86_64", "the program is x86_64 assembly")
    def test_are_the_entry_point_and_functions_without_a_caller(self):
        source = """
            .globl _start
            _start: jmp .
            .zero 100
            outermost: .cfi_startproc
            .cfi_undefined rip
            ret
            .cfi_endproc
            usual: .cfi_startproc
            ret
            .cfi_endproc
        """
        with tempfile.NamedTemporaryFile(suffix=".elf") as file:
            subprocess.run(["gcc", "-nostdlib", "-static", "-x", "assembler", "-", "-o", file.name],
                           input=source, text=True, check=True)  # fmt: skip
            listing = subprocess.run(["nm", file.name], stdout=subprocess.PIPE, text=True).stdout
            symbols = {line.split()[2]: int(line.split()[0], 16) for line in listing.splitlines()}
            ranges = stacks.entry_ranges(file.name)
        self.assertEqual(ranges[0][0], symbols["_start"])
        self.assertEqual(ranges[1:], [(symbols["outermost"], symbols["usual"])])

    def test_file_that_is_gone_says_nothing(self):
        self.assertIsNone(stacks.entry_ranges("/nonexistent"))


if __name__ == "__main__":
    unittest.main()
