# SPDX-License-Identifier: Apache-2.0
"""The harness itself, over canned outputs: no root, no recording."""

import gzip
import types
import unittest

import bounds
import pprof_reader
import pyrometer_harness as harness


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """One field: an int, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def canned_profile(**changes):
    """Two samples in main -> work, 3 and 4 ticks; `changes` replaces parts by name."""
    strings = b"".join(
        field(6, text)
        for text in (b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"work",
                     b"/bin/program", b"comm", b"busy", b"pid", b"abcd")
    )
    parts = {
        "types": field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4)),
        "samples": field(2, field(1, varint(2) + varint(1)) + field(2, varint(3) + varint(30))
                         + field(3, field(1, 8) + field(2, 9))
                         + field(3, field(1, 10) + field(3, 42)))
        # Not packed: as old writers do.
        + field(2, field(1, 1) + field(2, 4) + field(2, 40)),
        "mappings": field(3, field(1, 1) + field(5, 7) + field(6, 11)),
        "locations": field(4, field(1, 1) + field(2, 1) + field(3, 0x1000) + field(4, field(1, 1)))
        + field(4, field(1, 2) + field(2, 1) + field(3, 0x2000) + field(4, field(1, 2))),
        "functions": field(5, field(1, 1) + field(2, 5)) + field(5, field(1, 2) + field(2, 6)),
        "strings": strings,
        "rest": field(9, 1000) + field(10, 2000) + field(11, field(1, 3) + field(2, 4))
        + field(12, 10) + field(14, 3),
    }
    parts.update(changes)
    return gzip.compress(b"".join(parts.values()))


class PprofReader(unittest.TestCase):
    def test_reads_samples_with_names_files_and_labels(self):
        profile = pprof_reader.parse(canned_profile())
        self.assertEqual(profile.sample_types, [("samples", "count"), ("cpu", "nanoseconds")])
        self.assertEqual((profile.period, profile.default_type), (10, "cpu"))
        self.assertEqual((profile.total(0), profile.total(1)), (7, 70))
        first = profile.samples[0]
        self.assertEqual([frame.function for frame in first.frames], ["main", "work"])
        self.assertEqual(first.frames[1].mapping, "/bin/program")
        self.assertEqual(first.labels, {"comm": "busy", "pid": 42})
        self.assertEqual(profile.mappings[0].build_id, "abcd")

    def test_refuses_what_pprof_refuses(self):
        flaws = {
            "an id that is not the next": {
                "functions": field(5, field(1, 1)) + field(5, field(1, 3))},
            "an id that stands twice": {"functions": field(5, field(1, 1)) + field(5, field(1, 1))},
            "a location that is missing": {"locations": b""},
            "a function that is missing": {"functions": b""},
            "a mapping that is missing": {"mappings": b""},
            "a value too few": {"samples": field(2, field(1, 1) + field(2, 4))},
            "a first string that is not empty": {"strings": field(6, b"x")},
            "a string index out of range": {"functions": field(5, field(1, 1) + field(2, 99))},
            "a message cut short": {"rest": field(9, 1000) + b"\x5a\x7f"},
            "text that is not UTF-8": {"strings": field(6, b"") + field(6, b"\xff")},
        }
        for flaw, change in flaws.items():
            with self.subTest(flaw), self.assertRaises(pprof_reader.MalformedProfile):
                pprof_reader.parse(canned_profile(**change))


class AccountingLine(unittest.TestCase):
    def test_is_found_among_other_lines(self):
        accounting = harness.Accounting.parse(
            "recording...\nsamples=10 idle=20 filtered=3 lost=2 (stack_map_full=1 no_memory=1) "
            "undelivered=5 processes=4 stacks=6 truncated=3 (truncated=1 tables_not_ready=2)\n"
        )
        self.assertEqual(accounting.ticks(), 35)
        self.assertEqual(accounting.lost_by_reason, {"stack_map_full": 1, "no_memory": 1})
        self.assertEqual((accounting.undelivered, accounting.truncated), (5, 3))
        self.assertEqual(accounting.truncated_by_reason, {"truncated": 1, "tables_not_ready": 2})

    def test_needs_no_reasons_when_nothing_is_lost(self):
        line = "samples=1 idle=0 filtered=0 lost=0 undelivered=0 processes=1 stacks=1 truncated=0"
        self.assertEqual(harness.Accounting.parse(line).lost_by_reason, {})

    def test_is_refused_if_reasons_do_not_add_up(self):
        for lost, cut in (("3 (no_memory=1)", "0"), ("0", "3 (truncated=1)"), ("0", "1")):
            line = ("samples=1 idle=0 filtered=0 lost=%s undelivered=0 processes=1 stacks=1 truncated=%s" %
                    (lost, cut))
            with self.subTest(line), self.assertRaises(AssertionError):
                harness.Accounting.parse(line)

    def test_missing_is_none(self):
        self.assertIsNone(harness.Accounting.parse("samples=10\n"))


class FoldedStacks(unittest.TestCase):
    def test_are_read_with_spaces_in_names_and_kernel_frames(self):
        (sample,) = harness.parse_folded("busy loop;main;void f<int>(char const*);read_[k] 12\n")
        self.assertEqual((sample.comm, sample.count), ("busy loop", 12))
        self.assertEqual(sample.frames, ["main", "void f<int>(char const*)", "read"])
        self.assertEqual(sample.user_frames(), ["main", "void f<int>(char const*)"])

    def test_are_refused_with_a_frame_or_count_missing(self):
        for line in ("busy;main;;work 1", "busy;main", "busy;main -1", " 3"):
            with self.subTest(line), self.assertRaises(ValueError):
                harness.parse_folded(line)

    def test_tell_why_they_are_cut(self):
        samples = harness.parse_folded("c;[truncated];a 2\nc;[unwind stopped: tables not ready];a 3\nc;main;a 4\n")
        self.assertEqual(harness.cut_by_reason(samples), {"truncated": 2, "tables_not_ready": 3})

    def test_find_chains_only_without_gaps(self):
        (sample,) = harness.parse_folded("c;main;a;b;leaf 1")
        self.assertTrue(sample.has_chain(["a", "b", "leaf"]))
        self.assertFalse(sample.has_chain(["main", "b"]))


class CutStacks(unittest.TestCase):
    """assert_cut_only_when_late, of a recorder that counted two samples that came too early."""

    def judge(self, whole, late, others):
        stats = ", ".join('{"name": "cold_samples_%s_total", "labels": {}, "value": %d}' % (how, count)
                          for how, count in zip(harness.LATE, (1, 1, 0, 0)))  # fmt: skip
        counts = {"main": whole, "[unwind stopped: tables not ready]": late, "[unwind stopped: unsupported rule]": others}
        folded = "".join("c;%s;a %d\n" % (root, count) for root, count in counts.items() if count)
        samples = harness.parse_folded(folded)
        harness.BpfTestCase().assert_cut_only_when_late(
            types.SimpleNamespace(stderr="\n[\n%s\n]" % stats), samples)  # fmt: skip

    def test_may_be_as_many_as_were_counted_late(self):
        self.judge(whole=99, late=2, others=0)

    def test_may_not_be_more_nor_for_other_reasons(self):
        for late, others in ((3, 0), (2, 1)):
            with self.subTest(late=late, others=others), self.assertRaises(AssertionError):
                self.judge(99, late, others)


class FunctionNames(unittest.TestCase):
    def test_are_recognized_however_they_are_demangled(self):
        for frame in ("shares::Level<60>", "void shares::Level<60>(void (*)())"):
            self.assertTrue(harness.is_named(frame, "shares::Level<60>"), frame)
        self.assertTrue(harness.is_named(
            "outer::Box<std::string, 7>::operator bool() const", "outer::Box<...>::operator bool"))

    def test_are_not_mistaken_for_longer_or_shorter_ones(self):
        for frame in ("shares::Level<6>", "other_shares::Level<60>", "shares::Level<60>::Inner"):
            self.assertFalse(harness.is_named(frame, "shares::Level<60>"), frame)
        for frame in ("plain+0x12", "seventy+0x1", "xseventy", "seventy2"):
            self.assertFalse(harness.is_named(frame, "seventy"), frame)


class Bounds(unittest.TestCase):
    def test_probabilities_add_up(self):
        total = sum(bounds.binomial_probability(200, k, 0.1) for k in range(201))
        self.assertAlmostEqual(total, 1.0)

    def test_hold_the_truth_and_refuse_what_is_far_from_it(self):
        low, high = bounds.binomial_limits(2000, 0.6)
        self.assertTrue(1080 < low < 1200 < high < 1320, (low, high))
        low, high = bounds.binomial_limits(50, 0.1)
        self.assertEqual(low, 0)
        self.assertTrue(10 < high < 20, high)

    def test_of_certain_and_impossible_things_leave_no_room(self):
        self.assertEqual(bounds.binomial_limits(100, 1.0), (100, 100))
        self.assertEqual(bounds.binomial_limits(100, 0.0), (0, 0))

    def test_of_cpu_time_are_narrow_for_a_process_that_fills_the_machine(self):
        low, high = bounds.cpu_time_limits(1e9, 1e6, 1000)
        self.assertTrue(985 < low < 1000 < high < 1015, (low, high))

    def test_of_cpu_time_have_room_for_what_the_hypervisor_took_above_only(self):
        quiet = bounds.cpu_time_limits(1e9, 1e6, 4000)
        stolen = bounds.cpu_time_limits(1e9, 1e6, 4000, stolen_ns=5e8)
        self.assertEqual(stolen[0], quiet[0])
        self.assertTrue(1500 < stolen[1] < 500 + 1.2 * quiet[1], (quiet, stolen))


class GoRaw(unittest.TestCase):
    def test_counts_the_first_column_only(self):
        text = ("PeriodType: cpu nanoseconds\nPeriod: 10\nSamples:\nsamples/count cpu/nanoseconds\n"
                "          3         30: 2 1 \n                comm:[12 30: x]\n"
                "          4         40: 1 \nLocations\n     1: 0x1000 M=1 main\nMappings\n")
        self.assertEqual(harness.total_of_go_raw(text), 7)


class Commands(unittest.TestCase):
    def test_run_beside_each_other_keep_their_arguments(self):
        command = harness.all_at_once(["a", "x y"], ["b"])
        self.assertEqual(command[2:], ['"${1}" "${2}" & "${3}" & wait', "sh", "a", "x y", "b"])

    def test_report_their_truth_between_other_lines(self):
        (truth,) = harness.parse_truths('READY\n{"pid":7,"cpu_ns":5,"iterations":{"f":2}}\nbye\n')
        self.assertEqual((truth.pid, truth.iterations), (7, {"f": 2}))


if __name__ == "__main__":
    unittest.main()
