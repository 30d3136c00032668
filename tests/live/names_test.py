# SPDX-License-Identifier: Apache-2.0
"""What the live tests make of frames with a name and without."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import names  # noqa: E402
import pprof_reader  # noqa: E402  (tests/system)


def frame(function, mapping="/bin/program", address=0x1234):
    return pprof_reader.Frame(function, mapping, address)


class Reasons(unittest.TestCase):
    def test_are_told_by_the_made_up_name(self):
        for function, mapping, reason in (
            ("main", "/bin/program", names.NAMED),
            ("operator+", "/bin/program", names.NAMED),
            ("puts@plt", "/bin/program", names.NAMED),
            ("[plt]", "/bin/program", names.NAMELESS_STUB),
            ("program+0x1234", "/bin/program", names.ADDRESS),
            ("program+0x1200", "/bin/program", names.BEGINNING),
            ("[unknown]", "", names.NO_FILE),
            ("[vdso]", "[vdso]", names.NAMED),
        ):
            self.assertEqual(names.reason_of(frame(function, mapping)), reason, function)


class DistinctFrames(unittest.TestCase):
    def test_without_a_name_are_fewer_by_function_than_by_address(self):
        frames = [frame("main"), *(frame("program+0x1200", address=0x1200 + i) for i in range(3))]
        samples = [pprof_reader.Sample(frames, [1], {"comm": "p"})] * 2
        found = names.judge(pprof_reader.Profile([], "", (), 0, 0, 0, [], samples), ("p",))
        self.assertEqual(found.distinct_by_address(), (3, 4))
        self.assertEqual(found.distinct(), (1, 2))


class Symbols(unittest.TestCase):
    def test_that_cover_a_frame_without_a_name_are_missed(self):
        with tempfile.TemporaryDirectory() as directory:
            library = os.path.join(directory, "library.so")
            source = "int covered(int x) { return x + 1; }"
            subprocess.run(["cc", "-shared", "-x", "c", "-o", library, "-"], input=source, text=True,
                           check=True)  # fmt: skip
            (first, end, name), = [f for f in names.functions_of(library) if f[2] == "covered"]
            sample = pprof_reader.Sample([frame("main"), frame("library.so+0x1", library, end - 1),
                                          frame("library.so+0x2", library, end)], [3], {"comm": "p"})  # fmt: skip
            profile = pprof_reader.Profile([], "", (), 0, 0, 0, [], [sample])
            found = names.judge(profile, ("p",))
            self.assertEqual(name, names.covering(library, first))
            self.assertEqual(found.missed, {("library.so+0x1", library): 3})
            self.assertEqual(found.frames[names.NAMED], 3)
            self.assertEqual(found.frames[names.BEGINNING], 6)
            self.assertEqual(found.leaves, {names.BEGINNING: 3})
            self.assertAlmostEqual(found.percent(names.NAMED), 100 / 3)


if __name__ == "__main__":
    unittest.main()
