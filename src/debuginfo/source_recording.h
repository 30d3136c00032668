// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// What a reader has told of an object's code, in order.
struct SourceRecording {
  bool begins_part = false;  // paths have numbers from 0 on again
  // The bytes of a name, or of a path's directory and file, follow one another.
  struct Text {
    bool is_path = false;
    uint32_t directory = 0;  // bytes
    uint32_t name = 0;       // bytes
  };
  struct Scope {
    SourceSink::Scope scope;  // without ranges
    size_t ranges = 0;
  };
  struct Lines {
    enum class Kind : uint8_t {
      kProgram,    // the sequences that follow are of the program at `at`
      kSequence,   // of `rows` rows, up to `at`
      kMalformed,  // the program is, from there on
    };
    Kind kind = Kind::kSequence;
    uint64_t at = 0;
    size_t rows = 0;
  };

  std::vector<Text> texts;
  std::string text_bytes;
  std::vector<Scope> scopes;
  std::vector<SourceSink::Range> ranges;
  std::vector<Lines> lines;
  std::vector<SourceSink::Row> rows;
};

// Records what it is told. Names have numbers for good, and paths, which every unit gives anew,
// have some of their own in each part. One thread.
class RecordingSink : public SourceSink, public LineProgramListener {
 public:
  // Of paths' numbers.
  static constexpr Text kPath = Text{1} << 31;

  // `on_much` takes the recording, when it has `much` bytes or more; `is_full` as of a SourceSink.
  RecordingSink(size_t much, std::function<void()> on_much, std::function<bool()> is_full)
      : much_(much), on_much_(std::move(on_much)), is_full_(std::move(is_full)) {}

  Text AddName(std::string_view name) override;
  Text AddPath(std::string_view directory, std::string_view file) override;
  void AddScope(const Scope& scope) override;
  void AddSequence(std::span<const Row> rows, uint64_t end) override;
  bool is_full() const override { return is_full_(); }

  // Of a file: no path of the part before is told any more. REQUIRES: all was taken.
  void BeginPart();

  void BeginProgram(uint64_t offset) override;
  void NoteMalformedProgram() override;

  // What was recorded since the last call. Texts keep their numbers.
  SourceRecording Take();

 private:
  void Add(const SourceRecording::Text& text);
  void Grow(size_t bytes);

  const size_t much_;
  const std::function<void()> on_much_;
  const std::function<bool()> is_full_;
  SourceRecording now_;
  size_t bytes_ = 0;  // of now_
  Text names_ = 0;
  Text paths_ = 0;  // of the part
};

// Tells a sink what several RecordingSinks have recorded. One thread at a time.
class RecordingPlayer {
 public:
  // Of one RecordingSink: the numbers that its texts have there.
  struct Texts {
    std::vector<SourceSink::Text> names;
    std::vector<SourceSink::Text> paths;  // of the part
  };

  // `sink` must outlive this.
  explicit RecordingPlayer(SourceSink& sink) : sink_(sink) {}

  // `texts`: the same for all recordings of one RecordingSink, which come in their order; empty at
  // first. Line number programs that were recorded before are left out.
  void Play(SourceRecording recording, Texts& texts);

  uint64_t rows() const { return rows_; }
  uint64_t malformed_programs() const { return malformed_programs_; }

 private:
  void PlayTexts(const SourceRecording& recording, Texts& texts);
  void PlayLines(SourceRecording& recording, const Texts& texts);

  SourceSink& sink_;
  absl::flat_hash_set<uint64_t> programs_;
  bool is_known_program_ = false;
  uint64_t rows_ = 0;
  uint64_t malformed_programs_ = 0;
};

}  // namespace pyrometer
