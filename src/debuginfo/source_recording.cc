// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/source_recording.h"

namespace pyrometer {
namespace {

using Lines = SourceRecording::Lines;

SourceSink::Text In(const RecordingPlayer::Texts& texts, SourceSink::Text text) {
  const bool is_path = (text & RecordingSink::kPath) != 0;
  const std::vector<SourceSink::Text>& known = is_path ? texts.paths : texts.names;
  const SourceSink::Text number = text & ~RecordingSink::kPath;
  return number < known.size() ? known[number] : SourceSink::kUnknown;
}

}  // namespace

void RecordingSink::Add(const SourceRecording::Text& text) {
  now_.texts.push_back(text);
  Grow(sizeof(text) + text.directory + text.name);
}

void RecordingSink::BeginPart() {
  now_.begins_part = true;
  paths_ = 0;
}

SourceSink::Text RecordingSink::AddName(std::string_view name) {
  now_.text_bytes.append(name);
  Add({.name = static_cast<uint32_t>(name.size())});
  return names_++;
}

SourceSink::Text RecordingSink::AddPath(std::string_view directory, std::string_view file) {
  now_.text_bytes.append(directory).append(file);
  Add({.is_path = true,
       .directory = static_cast<uint32_t>(directory.size()),
       .name = static_cast<uint32_t>(file.size())});
  return kPath | paths_++;
}

void RecordingSink::AddScope(const Scope& scope) {
  now_.scopes.push_back({.scope = scope, .ranges = scope.ranges.size()});
  now_.scopes.back().scope.ranges = {};
  now_.ranges.insert(now_.ranges.end(), scope.ranges.begin(), scope.ranges.end());
  Grow(sizeof(SourceRecording::Scope) + scope.ranges.size_bytes());
}

void RecordingSink::AddSequence(std::span<const Row> rows, uint64_t end) {
  now_.lines.push_back({.kind = Lines::Kind::kSequence, .at = end, .rows = rows.size()});
  now_.rows.insert(now_.rows.end(), rows.begin(), rows.end());
  Grow(sizeof(Lines) + rows.size_bytes());
}

void RecordingSink::BeginProgram(uint64_t offset) {
  now_.lines.push_back({.kind = Lines::Kind::kProgram, .at = offset});
  Grow(sizeof(Lines));
}

void RecordingSink::NoteMalformedProgram() {
  now_.lines.push_back({.kind = Lines::Kind::kMalformed});
  Grow(sizeof(Lines));
}

void RecordingSink::Grow(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ >= much_) on_much_();
}

SourceRecording RecordingSink::Take() {
  bytes_ = 0;
  return std::exchange(now_, {});
}

void RecordingPlayer::Play(SourceRecording recording, Texts& texts) {
  PlayTexts(recording, texts);
  std::span<const SourceSink::Range> ranges(recording.ranges);
  for (const SourceRecording::Scope& recorded : recording.scopes) {
    SourceSink::Scope scope = recorded.scope;
    scope.name = In(texts, scope.name);
    scope.call_file = In(texts, scope.call_file);
    scope.ranges = ranges.first(recorded.ranges);
    ranges = ranges.subspan(recorded.ranges);
    sink_.AddScope(scope);
  }
  PlayLines(recording, texts);
}

void RecordingPlayer::PlayTexts(const SourceRecording& recording, Texts& texts) {
  if (recording.begins_part) texts.paths.clear();
  std::string_view bytes = recording.text_bytes;
  for (const SourceRecording::Text& text : recording.texts) {
    const std::string_view directory = bytes.substr(0, text.directory);
    const std::string_view name = bytes.substr(text.directory, text.name);
    bytes.remove_prefix(directory.size() + name.size());
    if (text.is_path) {
      texts.paths.push_back(sink_.AddPath(directory, name));
    } else {
      texts.names.push_back(sink_.AddName(name));
    }
  }
}

void RecordingPlayer::PlayLines(SourceRecording& recording, const Texts& texts) {
  std::span<SourceSink::Row> rows(recording.rows);
  for (const Lines& lines : recording.lines) {
    switch (lines.kind) {
      case Lines::Kind::kProgram:
        is_known_program_ = !programs_.insert(lines.at).second;
        break;
      case Lines::Kind::kMalformed:
        if (!is_known_program_) ++malformed_programs_;
        break;
      case Lines::Kind::kSequence:
        if (!is_known_program_) {
          const auto sequence = rows.first(lines.rows);
          for (SourceSink::Row& row : sequence) row.file = In(texts, row.file);
          sink_.AddSequence(sequence, lines.at);
          rows_ += sequence.size();
        }
        rows = rows.subspan(lines.rows);
        break;
    }
  }
}

}  // namespace pyrometer
