# SPDX-License-Identifier: Apache-2.0
"""scripts/setup, on a machine whose dpkg and apt are ours."""
import os
import pathlib
import shutil
import subprocess
import unittest

import script

# Prints the wanted packages that the file `installed` does not deny.
DPKG_QUERY = """#!/bin/bash
shift 2
for package; do
  grep -qxF -- "$package" "$MACHINE/absent" || echo "ii  $package"
done
"""
APT_GET = """#!/bin/bash
while [[ $1 == -* ]]; do if [[ $1 == -o ]]; then shift; fi; shift; done
echo "$DEBIAN_FRONTEND $*" >> "$MACHINE/calls"
if [[ -s $MACHINE/failures ]]; then
  sed -i 1d "$MACHINE/failures"
  echo "E: the mirror is gone"
  exit 100
fi
"""
APT_CACHE = """#!/bin/bash
if grep -qxF -- "$2" "$MACHINE/unknown"; then exit; fi
printf '%s:\\n  Candidate: 1.0\\n' "$2"
"""


class SetupTest(script.TreeTest):
    def setUp(self):
        super().setUp()
        self.root.chmod(0o755)  # for the test that runs as nobody; so the copy
        shutil.copy(script.SCRIPTS / "setup", self.root)
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET),
                           ("apt-cache", APT_CACHE), ("sleep", "#!/bin/sh\n"),
                           ("npm", "#!/bin/sh\n"), ("go", "#!/bin/sh\n"),
                           ("chromium", "#!/bin/sh\n")):
            self.program(name, text)
        for tool in ("bash", "sh", "env", "grep", "sed", "mktemp", "rm", "cat"):
            (self.root / "bin" / tool).symlink_to(pathlib.Path("/bin", tool))
        for name in ("absent", "unknown", "failures", "calls"):
            self.write(name)

    def program(self, name, text):
        self.write(f"bin/{name}", text)
        (self.root / "bin" / name).chmod(0o755)

    def setup(self, *arguments, **options):
        environment = {"PATH": str(self.root / "bin"), "MACHINE": str(self.root)}
        return subprocess.run([self.root / "setup", *arguments], capture_output=True,
                              text=True, check=False, env=environment, **options)

    def calls(self):
        return (self.root / "calls").read_text().splitlines()

    def as_root(self):
        if os.geteuid() != 0:
            self.program("sudo", '#!/bin/sh\nexec "$@"\n')

    def test_does_nothing_when_all_is_there(self):
        done = self.setup("test")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.calls(), [])

    def test_installs_just_what_is_missing_without_asking(self):
        self.as_root()
        self.write("absent", "libelf-dev\ngdb\n")
        done = self.setup("test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.calls(), [
            "noninteractive update",
            "noninteractive install --no-install-recommends libelf-dev gdb"])
        self.assertIn("libelf-dev gdb", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_building_needs_less_than_testing(self):
        self.write("absent", "gdb\n")
        self.assertEqual(self.setup("build").returncode, 0)
        self.assertEqual(self.calls(), [])

    def test_takes_a_command_from_wherever_it_comes(self):
        self.as_root()
        self.write("absent", "npm\nnodejs\n")
        self.setup("build")
        self.assertEqual(self.calls(), [])
        self.remove("bin/npm")
        self.setup("build")
        self.assertIn("nodejs npm", self.calls()[-1])

    def test_takes_the_alternative_that_the_release_has(self):
        self.as_root()
        self.write("absent", "bpftool\nlinux-tools-generic\n")
        self.setup("build")
        self.assertTrue(self.calls()[-1].endswith(" bpftool"), self.calls())
        self.write("unknown", "bpftool\n")
        self.setup("build")
        self.assertTrue(self.calls()[-1].endswith(" linux-tools-generic"), self.calls())

    def test_is_content_with_an_alternative_that_is_installed(self):
        self.write("absent", "bpftool\n")
        self.setup("build")
        self.assertEqual(self.calls(), [])

    def test_tries_again(self):
        self.as_root()
        self.write("absent", "gdb\n")
        self.write("failures", "\n\n")
        self.assertEqual(self.setup("test").returncode, 0)
        self.assertEqual(len(self.calls()), 4)

    def test_fails_with_the_words_of_apt(self):
        self.as_root()
        self.write("absent", "gdb\n")
        self.write("failures", "\n" * 6)
        failed = self.setup("test")
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("E: the mirror is gone", failed.stderr)
        self.assertIn("could not install what is missing: gdb", failed.stderr)

    def test_tells_an_ordinary_user_without_sudo_what_to_do(self):
        self.write("absent", "gdb\n")
        options = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        failed = self.setup("test", **options)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("missing: gdb", failed.stderr)
        self.assertIn("run scripts/setup as root once", failed.stderr)
        self.assertEqual(self.calls(), [])

    def test_lists_what_another_distribution_needs(self):
        self.remove("bin/apt-get")
        failed = self.setup("build")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("libelf-dev", failed.stderr)

    def test_refuses_an_unknown_level(self):
        self.assertEqual(self.setup("everything").returncode, 2)


if __name__ == "__main__":
    unittest.main()
