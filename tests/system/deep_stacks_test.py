# SPDX-License-Identifier: Apache-2.0
"""Stacks that are deep and all different fill the kernel's maps, and none is lost."""

from pyrometer_harness import (
    BpfTestCase, NOT_READY, PAGE_FAULTS, Running, count_where, describe, is_named, main, not_judged, pages_when_told,
    program, stats_of,
)

DEPTH = 300
# Where maps are as large as usual (kernel_memory.cc), that of a window takes 580 such stacks, and the ring for
# what is too much for it 800 or more: the map is full before all are there, even if it is emptied once, and no
# reader needs to be quick.
PAGES = 1300


def is_whole(sample):
    """Whether the user stack of `sample` is one of those that deep_paths makes; it may say that its tables came late,
    and goes by frame pointers then."""
    frames = sample.user_frames()
    if frames[:1] == [NOT_READY]:
        frames = frames[1:]
    root, calls, leaf = frames[:3], frames[3:-1], frames[-1]
    return (
        len(calls) == DEPTH
        and all(map(is_named, root, ("from_root", "loop", "step")))
        and all(is_named(call, "left") or is_named(call, "right") for call in calls[::2])
        and all(is_named(call, "step") for call in calls[1::2])
        and is_named(leaf, "bottom")
    )


class DeepStacks(BpfTestCase):
    def test_beyond_what_the_maps_hold_are_all_there(self):
        with Running(program("deep_paths"), str(DEPTH), pages_when_told(PAGES)) as target:
            recorder = self.start_recording("--pid", str(target.pid), "--stats=json", event=PAGE_FAULTS)
            truth = target.work()
            recording = recorder.interrupt().finish()
        self.assertEqual(recording.accounting.lost, 0, recording.stderr)
        self.assertEqual(truth.pages(), {"bottom": PAGES})
        ours = [sample for sample in recording.samples if sample.calls("bottom")]
        whole = [sample for sample in ours if is_whole(sample)]
        self.assertEqual(
            (count_where(ours, lambda s: True), count_where(whole, lambda s: True)), (PAGES, PAGES),
            describe([s for s in ours if s not in whole]))
        self.assertEqual(len({tuple(sample.frames) for sample in whole}), PAGES)
        beyond = stats_of(recording.stderr)["cold_samples_total{reason=map_full}"]
        if beyond == 0:
            not_judged("the kernel's maps were emptied before they were full")


if __name__ == "__main__":
    main()
