# SPDX-License-Identifier: Apache-2.0
"""Stacks that are deep, often looked at and all different fill the kernel's maps, and none is lost."""

from pyrometer_harness import BpfTestCase, Running, count_where, describe, main, program


class DeepStacks(BpfTestCase):
    def test_at_5_khz(self):
        commands = [program("deep_paths"), "300", "0"]
        with Running(*commands) as one, Running(*commands) as other:
            recorder = self.start_recording(hertz=4999)
            self.wait_for_cpu_time([one, other], 1)
            recording = recorder.interrupt().finish()
        # 11 % before there was a ring for them. None now, but for a reader that gets no CPU.
        lost = recording.accounting.lost
        self.assertLessEqual(lost, 0.001 * recording.accounting.ticks(), recording.stderr)
        deep = [s for s in recording.of_comm("deep_paths") if len(s.user_frames()) >= 300]
        all_of_them = count_where(recording.of_comm("deep_paths"), lambda s: True)
        self.assertGreater(count_where(deep, lambda s: True), 0.9 * all_of_them, describe(deep))
        self.assertGreater(len(deep), 0.5 * all_of_them, "stacks that are alike")


if __name__ == "__main__":
    main()
