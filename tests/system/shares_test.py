# SPDX-License-Identifier: Apache-2.0
"""Functions that take 60, 30 and 10 percent come out with these shares, below 5, 60 and 300
frames, and every frame is there: to the sample where work is counted, and within the bounds of chance
where time is."""

from pyrometer_harness import (
    PAGE_FAULTS, BpfTestCase, all_at_once, is_named, main, pages, program, record,
)

CPU_SECONDS = "2"
DEPTHS = (5, 60, 300)


def chain(depth):
    """The user stack of the work in `shares DEPTH`, root first, without its leaf."""
    levels = ["shares::Level<%d>" % level for level in range(depth, 0, -1)]
    return ["from_root", "shares::Loop", *levels]


def depth_of(samples):
    """How many functions stand below the work in `samples` of one process."""
    (depth,) = (d for d in DEPTHS if any(s.calls("shares::Level<%d>" % d) for s in samples)
                and not any(s.calls("shares::Level<%d>" % (d + 1)) for s in samples))
    return depth


class Shares(BpfTestCase):
    def test_of_pages(self):
        commands = [[program("shares"), str(depth), pages(200)] for depth in DEPTHS]
        recording = record(self.directory, command=all_at_once(*commands), event=PAGE_FAULTS)
        self.assertEqual(recording.status, 0)
        depths_seen = set()
        for truth in recording.truths:
            samples = recording.of_pid(truth.pid)
            depth = depth_of(samples)
            depths_seen.add(depth)
            self.assert_pages(samples, truth, lambda leaf, depth=depth: [*chain(depth), leaf],
                              "%d frames" % depth)
        self.assertEqual(depths_seen, set(DEPTHS))

    def check(self, hertz):
        commands = [[program("shares"), str(depth), CPU_SECONDS] for depth in DEPTHS]
        recording = record(self.directory, command=all_at_once(*commands), hertz=hertz)
        self.assertEqual(recording.status, 0)
        self.assertEqual(len(recording.truths), len(DEPTHS))
        depths_seen = set()
        for truth in recording.truths:
            samples = recording.of_pid(truth.pid)
            depth = depth_of(samples)
            depths_seen.add(depth)
            what = "%d frames at %d Hz" % (depth, hertz)
            with self.subTest(what):
                self.assert_shares(samples, truth, what)
                self.assert_cpu_time(recording, samples, truth.cpu_ns, what)
                self.assert_complete(samples, chain(depth), what)
        self.assertEqual(depths_seen, set(DEPTHS))

    def assert_complete(self, samples, expected, what):
        def whole(sample):
            frames = sample.user_frames()[: len(expected)]
            return len(frames) == len(expected) and all(map(is_named, frames, expected))

        leaves = ("shares::Sixty", "shares::Thirty", "shares::Ten")
        # Early samples, if too many are left to user space at a time, go by frame pointers and say so: a tick
        # in the two instructions before a function has its own frame misses its caller.
        self.assert_each([s for s in samples if any(map(s.calls, leaves))], whole, what)

    def test_at_99_hertz(self):
        self.check(99)

    def test_at_999_hertz(self):
        self.check(999)


if __name__ == "__main__":
    main()
