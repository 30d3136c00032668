// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/source_recording.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/debuginfo/collected_source.h"

namespace pyrometer {
namespace {

using Frame = CollectedSource::Frame;

RecordingSink Recorder() {
  return {~size_t{0}, [] {}, [] { return false; }};
}

TEST(SourceRecording, TellsWhatWasRecordedByTwo) {
  RecordingSink first = Recorder();
  RecordingSink second = Recorder();
  const auto tell = [](RecordingSink& sink, const char* name, uint64_t at) {
    const SourceSink::Text text = sink.AddName(name);
    const SourceSink::Text path = sink.AddPath("/src", std::string(name) + ".c");
    const SourceSink::Range range{at, at + 8};
    sink.AddScope({.name = text, .ranges = {&range, 1}});
    sink.BeginProgram(at);
    const SourceSink::Row row{.address = at, .file = path, .line = 7};
    sink.AddSequence({&row, 1}, at + 8);
    return text;
  };
  const SourceSink::Text known = tell(first, "f", 0x10);
  tell(second, "g", 0x20);
  CollectedSource told;
  RecordingPlayer player(told);
  RecordingPlayer::Texts of_first;
  RecordingPlayer::Texts of_second;
  player.Play(second.Take(), of_second);
  player.Play(first.Take(), of_first);
  // A text of an earlier recording.
  const SourceSink::Range range{0x30, 0x38};
  first.AddScope({.name = known, .ranges = {&range, 1}});
  player.Play(first.Take(), of_first);
  EXPECT_TRUE(told.is_sound());
  EXPECT_EQ(told.At(uint64_t{0x10}), std::vector({Frame{"f", "/src/f.c", 7}}));
  EXPECT_EQ(told.At(uint64_t{0x20}), std::vector({Frame{"g", "/src/g.c", 7}}));
  EXPECT_EQ(told.At(uint64_t{0x30}).at(0).function, "f");
  EXPECT_EQ(player.rows(), 2U);
}

// Units share line number programs, and each thread comes upon them.
TEST(SourceRecording, LeavesOutLinesThatWereRecordedBefore) {
  RecordingSink sinks[] = {Recorder(), Recorder()};
  RecordingPlayer::Texts texts[2];
  CollectedSource told;
  RecordingPlayer player(told);
  for (int i = 0; i < 2; ++i) {
    sinks[i].BeginProgram(100);
    const SourceSink::Row row{.address = 0x10, .file = SourceSink::kUnknown, .line = 7};
    sinks[i].AddSequence({&row, 1}, 0x18);
    player.Play(sinks[i].Take(), texts[i]);
    // It goes on, and is malformed.
    sinks[i].AddSequence({&row, 1}, 0x18);
    sinks[i].NoteMalformedProgram();
    player.Play(sinks[i].Take(), texts[i]);
  }
  EXPECT_EQ(player.rows(), 2U);
  EXPECT_EQ(player.malformed_programs(), 1U);
}

TEST(SourceRecording, IsTakenWhenThereIsMuch) {
  int taken = 0;
  RecordingSink* self = nullptr;
  RecordingSink sink(
      1000, [&] { ++taken, self->Take(); }, [] { return false; });
  self = &sink;
  for (int i = 0; i < 100; ++i) sink.AddName(std::string(100, 'x'));
  EXPECT_GE(taken, 10);
  EXPECT_LE(taken, 20);
}

}  // namespace
}  // namespace pyrometer
