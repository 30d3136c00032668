# SPDX-License-Identifier: Apache-2.0
"""What is wrong, hostile or missing ends in one clear line and the documented exit status, or is
counted; never in a crash, half a file or a silent empty profile."""

import contextlib
import os
import shutil
import struct
import subprocess

from pyrometer_harness import (
    PYROMETER, BpfTestCase, Running, count_where, describe, in_time, main, pages_when_told, program, refused,
)

PAGES = 50

FAILED, WRONG_USAGE, REFUSED, NOT_EXECUTABLE, NO_COMMAND = 1, 2, 3, 126, 127


def every_sample(_):
    return True


class Refusal(BpfTestCase):
    def setUp(self):
        self.outputs = os.path.join(self.directory, self.id().rpartition(".")[2])
        os.mkdir(self.outputs)
        self.output = os.path.join(self.outputs, "profile.pb.gz")

    def assert_refused(self, result, status, words):
        """One line on standard error with all of `words`; no file, whole or half."""
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(os.listdir(self.outputs), [])

    def record(self, *options, **more):
        return refused("record", "--duration", "200ms", "--output", self.output, *options, **more)

    def test_of_a_pid_that_does_not_exist(self):
        child = subprocess.Popen(["true"])
        child.wait()
        for pid in (child.pid, 4194304):
            self.assert_refused(self.record("--pid", str(pid)), FAILED, [str(pid)])

    def test_of_a_pid_that_is_no_number(self):
        for pid in ("0", "-1", "x", "99999999999999999999"):
            with self.subTest(pid):
                result = self.record("--pid=" + pid)
                self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
                self.assertIn(pid, result.stderr)

    def test_of_frequencies_out_of_range(self):
        for hertz in ("0", "100000", "-99", "many"):
            with self.subTest(hertz):
                result = self.record("--frequency=" + hertz)
                self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
                self.assertIn("frequency", result.stderr.lower())
                self.assertEqual(os.listdir(self.outputs), [])

    def test_of_a_directory_that_does_not_exist(self):
        missing = os.path.join(self.outputs, "missing", "profile.pb.gz")
        result = refused("record", "--duration", "200ms", "--output", missing)
        self.assert_refused(result, FAILED, [os.path.dirname(missing)])

    def test_of_an_output_that_is_a_directory(self):
        result = refused("record", "--duration", "200ms", "--format", "pprof",
                         "--output", self.outputs)
        self.assert_refused(result, WRONG_USAGE, [self.outputs])

    def test_of_a_name_that_tells_no_format(self):
        result = refused("record", "--duration", "200ms", "--output", self.output + ".xyz")
        self.assert_refused(result, WRONG_USAGE, [".xyz"])

    def test_of_a_command_that_does_not_exist(self):
        result = refused("record", "--output", self.output, "--", "/does/not/exist")
        self.assert_refused(result, NO_COMMAND, ["/does/not/exist"])

    def test_of_a_command_that_may_not_be_executed(self):
        text = os.path.join(self.directory, "text")
        with open(text, "w") as file:
            file.write("no program")
        result = refused("record", "--output", self.output, "--", text)
        self.assert_refused(result, NOT_EXECUTABLE, [text])

    def test_of_a_cgroup_that_does_not_exist(self):
        self.assert_refused(self.record("--cgroup", "/no/such/group"), FAILED,
                            ["/no/such/group"])

    def test_without_privilege_says_what_is_missing(self):
        copy = os.path.join(self.directory, "pyrometer")
        shutil.copy(shutil.which(PYROMETER), copy)
        os.chmod(self.outputs, 0o777)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                  "--bounding-set=-all", copy)
        result = refused("record", "--duration", "200ms", "--output", self.output, command=nobody)
        self.assert_refused(result, REFUSED, [])
        self.assertRegex(result.stderr, "root|CAP_")

    def test_without_btf_says_so(self):
        release = os.uname().release
        for other in ("/boot/vmlinux-%s", "/lib/modules/%s/vmlinux-%s",
                      "/lib/modules/%s/build/vmlinux"):
            if os.path.exists(other.replace("%s", release)):
                self.skipTest("BTF is also in " + other)
        hidden = ("unshare", "--mount", "sh", "-c",
                  'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh", PYROMETER)
        result = refused("record", "--duration", "200ms", "--output", self.output, command=hidden)
        self.assert_refused(result, REFUSED, ["BTF"])

    def test_of_a_full_filesystem_leaves_no_half_file(self):
        full = os.path.join(self.directory, "full")
        os.mkdir(full)
        script = (
            'mount -t tmpfs -o size=16k none "$1" || exit 99; cd "$1"; '
            # All but what the name of a file needs.
            "head -c 1000000 /dev/zero > fill 2>/dev/null; "
            '"$2" record --quiet --frequency 999 --output "$1/profile.pb.gz" -- "$3" 60 0.3 '
            ">/dev/null; "
            "status=$?; ls -A; exit $status"
        )
        result = refused(
            command=("unshare", "--mount", "sh", "-c", script, "sh", full, shutil.which(PYROMETER),
                     program("shares"))
        )
        self.assertEqual(result.returncode, FAILED, result.stderr)
        self.assertEqual(result.stdout.split(), ["fill"], "left in the directory")
        self.assertIn("profile.pb.gz", result.stderr)

    def test_a_file_that_was_there_survives_a_failure(self):
        with open(self.output, "w") as file:
            file.write("precious")
        refused("record", "--output", self.output, "--", "/does/not/exist")
        with open(self.output) as file:
            self.assertEqual(file.read(), "precious")
        os.unlink(self.output)


class Survival(BpfTestCase):
    """The recording goes on, and what can be named is named."""

    def test_a_pid_that_is_over_at_once_ends_in_a_profile(self):
        with Running("sh", "-c", "echo READY; read word", stdin=subprocess.PIPE) as shell:
            recorder = self.start_recording("--pid", str(shell.pid), "--duration", "1s")
            shell.process.stdin.close()
            shell.process.wait()
            recording = recorder.finish()
        self.assertEqual(recording.status, 0, recording.stderr)
        self.assertLess(recording.accounting.samples, 100)

    # Each is a damage to a good ELF file; the code that runs is in a page behind it.
    @staticmethod
    def corrupt_files():
        with open(program("plugin_a.so"), "rb") as file:
            good = file.read()

        def changed(offset, layout, value):
            data = bytearray(good)
            struct.pack_into(layout, data, offset, value)
            return bytes(data)

        program_headers = struct.unpack_from("<Q", good, 0x20)[0]
        section_headers = struct.unpack_from("<Q", good, 0x28)[0]
        sections = bytearray(good)
        for at in range(section_headers, len(good) - 63, 64):
            struct.pack_into("<QQQQ", sections, at + 16, *[2**64 - 1] * 4)
        notes = bytearray(good)
        for at in range(program_headers, program_headers + 56 * 9, 56):
            if struct.unpack_from("<I", good, at)[0] == 4:
                struct.pack_into("<I", notes, struct.unpack_from("<Q", good, at + 8)[0], 2**32 - 1)
        return {
            "empty": b"",
            "text": b"no ELF file at all\n" * 500,
            "magic only": b"\x7fELF",
            "cut in the header": good[:40],
            "cut in the middle": good[: len(good) // 2],
            "program headers beyond the end": changed(0x20, "<Q", 2**63),
            "section headers beyond the end": changed(0x28, "<Q", 2**64 - 64),
            "program headers of size 1": changed(0x36, "<H", 1),
            "too many program headers": changed(0x38, "<H", 0xFFFF),
            "too many section headers": changed(0x3C, "<H", 0xFFFE),
            "names in a section that is missing": changed(0x3E, "<H", 0xFF00),
            "another word size": changed(4, "<B", 1),
            "another byte order": changed(5, "<B", 2),
            "sections of absurd sizes": bytes(sections),
            "notes of absurd sizes": bytes(notes),
            "random bytes behind a header": good[:64] + bytes(i * 7919 % 251 for i in range(9000)),
        }

    def test_corrupt_elf_files_among_the_mapped_ones(self):
        with contextlib.ExitStack() as running:
            processes = []
            for number, content in enumerate(self.corrupt_files().values()):
                path = os.path.join(self.directory, "corrupt_%d.so" % number)
                with open(path, "wb") as file:
                    file.write(content)
                processes.append(
                    running.enter_context(Running(program("run_mapped"), path, pages_when_told(PAGES))))
            recording, truths = self.record_pages(processes)
        self.assertEqual(recording.status, 0, recording.stderr)
        for number, (what, truth) in enumerate(zip(self.corrupt_files(), truths)):
            with self.subTest(what):
                name = "corrupt_%d.so" % number
                samples = recording.of_pid(truth.pid)
                named = [s for s in samples if s.user_frames()[-1:] and s.user_frames()[-1].startswith(name + "+0x")]
                # Of one that says that its tables came late, its leaf may be all that can be told.
                short = [s for s in in_time(named) if not s.calls("run_mapped_code")]
                self.assertEqual((count_where(named, every_sample), describe(short)), (PAGES, ""), describe(samples))

    def record_jit_with_map(self, write):
        """The samples of `jit` in its JIT functions when write(path) has made its perf-map."""
        with Running(program("jit"), pages_when_told(PAGES)) as jit:
            path = "/tmp/perf-%d.map" % jit.pid
            write(path)
            try:
                recording, (truth,) = self.record_pages([jit], "--pid", str(jit.pid))
            finally:
                os.unlink(path)
        self.assertEqual(recording.status, 0, recording.stderr)
        samples = [s for s in recording.samples if s.calls("enter_jit")]
        self.assertEqual(count_where(samples, every_sample), sum(truth.pages().values()))
        return samples

    EVERYTHING = "0 7fffffffffff stolen\n"

    def test_perf_maps_that_are_no_regular_files_are_not_read(self):
        secret = os.path.join(self.directory, "secret")
        with open(secret, "w") as file:
            file.write(self.EVERYTHING)
        kinds = {
            "symbolic link": lambda path: os.symlink(secret, path),
            "pipe": os.mkfifo,  # Opening it for reading would wait for a writer for ever.
            "link to a device": lambda path: os.symlink("/dev/zero", path),
        }
        for kind, write in kinds.items():
            with self.subTest(kind):
                samples = self.record_jit_with_map(write)
                self.assertFalse([s for s in samples if s.calls("stolen")])

    def test_perf_maps_full_of_rubbish_do_no_harm(self):
        def huge(path):
            with open(path, "w") as file:
                file.write("10 10 x\n")
                file.truncate(1 << 40)  # Sparse: a terabyte of zeros.

        def written(content):
            def write(path):
                with open(path, "wb") as file:
                    file.write(content)
            return write

        kinds = {
            "a terabyte": huge,
            "random bytes": written(bytes(i * i % 251 for i in range(100000))),
            "one endless line": written(b"7" * 5_000_000),
            "no names": written(b"1000 10\n1000\n\n \n1000 10 \n" * 1000),
            "negative and endless numbers": written(
                b"-1 -1 a\nffffffffffffffff ffffffffffffffff b\n" + b"f" * 200 + b" 1 c\n"),
            "name with control characters": written(b"0 7fffffffffff a;b\x00\x1b[31m\xff\xfe c\n"),
        }
        for kind, write in kinds.items():
            with self.subTest(kind):
                self.record_jit_with_map(write)


if __name__ == "__main__":
    main()
