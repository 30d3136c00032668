# SPDX-License-Identifier: Apache-2.0
import unittest

import script

check_licenses = script.load("check-licenses")

TAG = "SPDX-License-" + "Identifier:"
USER = f"// {TAG} Apache-2.0\n"
KERNEL = f"/* {TAG} GPL-2.0-only OR BSD-2-Clause */\n"


class CheckLicensesTest(script.TreeTest):
    """Each test breaks one rule in a tree that keeps them all."""

    def setUp(self):
        super().setUp()
        for text in ("Apache-2.0", "GPL-2.0-only", "BSD-2-Clause"):
            self.write(f"LICENSES/{text}.txt")
        for text in ("LICENSE", "bpf/LICENSE", "include/pyrometer/abi/LICENSE"):
            self.write(text)
        self.write("src/base/file.cc", USER)
        self.write("scripts/run", f"#!/bin/bash\n# {TAG} Apache-2.0\n")
        self.write("bpf/sampler.bpf.c", KERNEL)
        self.write("include/pyrometer/abi/frame.h", KERNEL)
        self.write("README.md", "no licence of its own")
        self.write("build/dev/generated.h", "not ours")

    def assert_breach(self, *parts):
        breaches = check_licenses.check(self.root)
        self.assertEqual(len(breaches), 1, breaches)
        for part in parts:
            self.assertIn(part, breaches[0])

    def test_accepts_a_tree_that_keeps_the_rules(self):
        self.assertEqual(check_licenses.check(self.root), [])

    def test_wants_a_licence_in_every_kind_of_source(self):
        for path in ("src/base/clock.h", "src/base/CMakeLists.txt", "proto/a.proto",
                     "tests/programs/a.c", "src/profile/page.js"):
            with self.subTest(path):
                self.write(path, "\n")
                self.assert_breach(path, "no SPDX-License-Identifier")
                self.remove(path)

    def test_wants_a_licence_in_programs_without_a_suffix(self):
        self.write("scripts/test", "#!/bin/bash\n")
        self.assert_breach("scripts/test", "no SPDX-License-Identifier")

    def test_wants_it_at_the_top(self):
        self.write("src/base/clock.h", "\n\n" + USER)
        self.assert_breach("src/base/clock.h", "no SPDX-License-Identifier")

    def test_knows_which_licence_belongs_where(self):
        for path, wrong, right in (("src/base/clock.h", KERNEL, "here it is Apache-2.0"),
                                   ("bpf/maps.bpf.h", USER, "here it is GPL-2.0-only OR"),
                                   ("include/pyrometer/abi/a.h", USER, "here it is GPL-2.0-only")):
            with self.subTest(path):
                self.write(path, wrong)
                self.assert_breach(path, right)
                self.remove(path)

    def test_wants_the_texts(self):
        for path in ("LICENSES/GPL-2.0-only.txt", "LICENSE", "bpf/LICENSE"):
            with self.subTest(path):
                self.remove(path)
                self.assert_breach(path, "missing")
                self.write(path)


if __name__ == "__main__":
    unittest.main()
