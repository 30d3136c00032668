// SPDX-License-Identifier: Apache-2.0
// Format: proto/pprof.proto. A protobuf message may be written in pieces, which readers put
// together: so samples, locations, functions and strings go into the compressor as they come up, a
// few hundred samples at a time, and only the interning tables stay.
#include "profile/pprof.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>
#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/printable.h"
#include "profile/deflater.h"
#include "profile/text.h"
#include "proto/pprof.pb.h"

namespace pyrometer {
namespace {

using google::protobuf::Arena;

bool LooksLikeLibrary(std::string_view path) {
  const std::string_view name = BaseName(path);
  return name.ends_with(".so") || name.find(".so.") != std::string_view::npos;
}

// The executable that most samples have in their stack; else the library; null if there is no file.
// `counted`: of ProfileSample or StackCount.
template <typename Counted>
const CodeObject* MainBinary(const Profile& profile, const Counted& counted) {
  absl::flat_hash_map<const CodeObject*, uint64_t> samples;
  std::vector<const CodeObject*> seen;
  for (const auto& sample : counted) {
    seen.clear();
    for (const uint32_t id : sample.stack) {
      const Location& location = *profile.locations[id];
      const CodeObject* object = location.object.get();
      if (location.origin != CodeOrigin::kUser || object == nullptr) continue;
      if (!object->path.starts_with('/')) continue;
      if (std::find(seen.begin(), seen.end(), object) != seen.end()) continue;
      seen.push_back(object);
      samples[object] += sample.count;
    }
  }
  const auto rank = [](const auto& entry) {
    // The path decides between equals, so that the outcome does not hang on addresses.
    return std::tuple(!LooksLikeLibrary(entry.first->path), entry.second, entry.first->path);
  };
  const auto best = std::max_element(samples.begin(), samples.end(),
                                     [&](auto& a, auto& b) { return rank(a) < rank(b); });
  return best == samples.end() ? nullptr : best->first;
}

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, const PprofOptions& options)
      : profile_(profile), options_(options), location_ids_(profile.locations.size()) {
    StartPart();
  }

  // `counted`: of ProfileSample, which get labels, or of StackCount, which get none.
  template <typename Counted>
  EncodedPprof Write(const Counted& counted) && {
    Intern("");
    WriteTypes();
    if (const CodeObject* main = MainBinary(profile_, counted)) MappingOf(main, CodeOrigin::kUser);
    size_t in_part = 0;
    for (const auto& sample : counted) {
      WriteSample(sample);
      if (++in_part % kSamplesPerPart == 0) FinishPart();
    }
    WriteMappings();
    WriteFacts();
    FinishPart();
    return {.gzip = std::move(out_).Finish(), .plain_size = plain_size_};
  }

 private:
  static constexpr size_t kSamplesPerPart = 256;

  // Path, build id, start, limit, file offset.
  using ObjectContent = std::tuple<absl::string_view, BuildId, uint64_t, uint64_t, uint64_t>;

  // What a mapping turns out to hold is known after the last sample: mappings are written last.
  struct MappingEntry {
    std::string_view path;
    const CodeObject* object = nullptr;
    bool functions = false;
    bool filenames = false;
    bool lines = false;
    bool inlines = false;
  };

  void StartPart() { part_ = Arena::CreateMessage<pprof::Profile>(&arena_); }

  void FinishPart() {
    part_->SerializeToString(&bytes_);
    out_.Append(bytes_);
    plain_size_ += bytes_.size();
    arena_.Reset();
    StartPart();
  }

  // Strings are cleaned before they are compared, so that equal results share an entry.
  int64_t Intern(std::string_view text) {
    std::string cleaned;
    if (text.size() > options_.name || !IsPrintable(text)) {
      cleaned = Printable(text, options_.name);
      text = cleaned;
    }
    const absl::string_view key(text.data(),
                                text.size());  // not std's where absl is built as C++14
    const auto [known, added] = strings_.try_emplace(key, static_cast<int64_t>(strings_.size()));
    if (added) part_->add_string_table(known->first);
    return known->second;
  }

  void SetType(pprof::ValueType& out, const ValueType& type) {
    out.set_type(Intern(type.type));
    out.set_unit(Intern(type.unit));
  }

  void WriteTypes() {
    for (const ValueType& type : profile_.value_types) SetType(*part_->add_sample_type(), type);
    SetType(*part_->mutable_period_type(), profile_.value_types.back());
    part_->set_default_sample_type(Intern(profile_.value_types.back().type));
  }

  void WriteFacts() {
    const auto begin = std::chrono::nanoseconds(profile_.begin.time_since_epoch());
    part_->set_time_nanos(begin.count());
    // Without a duration Parca would take it for another type of profile.
    part_->set_duration_nanos(std::max<int64_t>(profile_.duration.count(), 1));
    part_->set_period(static_cast<int64_t>(profile_.Period()));
    part_->add_comment(Intern("pyrometer " PYROMETER_VERSION));
    part_->add_comment(
        Intern(fmt::format("{} of {} samples have a stack that was cut", cut_, samples_written_)));
    for (const std::string& comment : options_.comments) part_->add_comment(Intern(comment));
  }

  void AddLabel(pprof::Sample& sample, std::string_view key, std::string_view value) {
    pprof::Label& label = *sample.add_label();
    label.set_key(Intern(key));
    label.set_str(Intern(value));
  }

  template <typename Counted>
  pprof::Sample& WriteStack(const Counted& sample) {
    pprof::Sample& out = *part_->add_sample();
    out.mutable_location_id()->Reserve(static_cast<int>(sample.stack.size()) + 1);
    for (const uint32_t index : sample.stack) out.add_location_id(LocationIdOf(index));
    if (IsCut(sample.end)) {
      out.add_location_id(MarkerIdOf(sample.end));
      cut_ += sample.count;
    }
    samples_written_ += sample.count;
    out.add_value(static_cast<int64_t>(sample.count));
    out.add_value(static_cast<int64_t>(sample.value));
    return out;
  }

  void WriteSample(const StackCount& sample) {
    pprof::Sample& out = WriteStack(sample);
    if (out.location_id().empty()) out.add_location_id(MarkerIdOf(sample.end));
  }

  void WriteSample(const ProfileSample& sample) {
    pprof::Sample& out = WriteStack(sample);
    pprof::Label& pid = *out.add_label();
    pid.set_key(Intern("pid"));
    pid.set_num(sample.process.pid.value());
    AddLabel(out, "comm", ProcessNameOf(sample));
    AddLabel(out, "thread", sample.thread.empty() ? ProcessNameOf(sample) : sample.thread);
    for (const auto& [key, value] : profile_.labels) AddLabel(out, key, value);
    if (sample.labels == nullptr) return;
    for (const auto& [key, value] : *sample.labels) {
      if (!IsTaken(key)) AddLabel(out, key, value);
    }
  }

  // What a process is labelled with replaces neither what we measured nor what the user said.
  bool IsTaken(std::string_view key) const {
    if (key == "pid" || key == "comm" || key == "thread") return true;
    return std::ranges::any_of(profile_.labels, [&](const auto& l) { return l.first == key; });
  }

  uint64_t LocationIdOf(uint32_t index) {
    uint64_t& id = location_ids_[index];
    if (id == 0) id = WriteLocation(*profile_.locations[index]);
    return id;
  }

  uint64_t WriteLocation(const Location& location) {
    pprof::Location& out = *part_->add_location();
    out.set_id(++locations_);
    out.set_mapping_id(MappingOf(location.object.get(), location.origin));
    out.set_address(location.address);
    MappingEntry& mapping = mappings_[out.mapping_id() - 1];
    mapping.inlines |= location.lines.size() > 1;
    for (const Line& line : location.lines) {
      mapping.filenames |= !line.file.empty();
      mapping.lines |= line.line > 0;
      AddLine(out, line);
    }
    if (location.lines.empty()) AddLine(out, Line{});
    return out.id();
  }

  // The marker of a cut stack: a location of its own, without address and mapping. "[unknown]" for
  // a stack that is not cut.
  uint64_t MarkerIdOf(StackEnd end) {
    uint64_t& id = marker_ids_[static_cast<size_t>(end)];
    if (id != 0) return id;
    pprof::Location& out = *part_->add_location();
    out.set_id(id = ++locations_);
    AddLine(out, Line{.function = CutMarker(end), .system_name = {}, .file = {}});
    return id;
  }

  void AddLine(pprof::Location& location, const Line& line) {
    pprof::Line& out = *location.add_line();
    out.set_function_id(FunctionIdOf(line));
    out.set_line(std::max<int64_t>(line.line, 0));
  }

  uint64_t FunctionIdOf(const Line& line) {
    const int64_t name = Intern(NameOf(line));
    const int64_t system_name = line.system_name.empty() ? name : Intern(line.system_name);
    const int64_t file = Intern(line.file);
    const int64_t start_line = std::max<int64_t>(line.start_line, 0);
    const auto [known, added] = functions_.try_emplace(
        std::tuple(name, system_name, file, start_line), functions_.size() + 1);
    if (added) {
      pprof::Function& out = *part_->add_function();
      out.set_id(known->second);
      out.set_name(name);
      out.set_system_name(system_name);
      out.set_filename(file);
      out.set_start_line(start_line);
    }
    return known->second;
  }

  // Code of no known object gets a pseudo mapping by its origin: servers merge what has none.
  uint64_t MappingOf(const CodeObject* object, CodeOrigin origin) {
    const CodeOrigin key = object == nullptr ? origin : CodeOrigin::kUser;
    const auto [known, added] = mapping_ids_.try_emplace(std::pair(object, key), 0);
    if (!added) return known->second;
    std::string_view path = "[unknown]";
    if (origin == CodeOrigin::kKernel) path = "[kernel.kallsyms]";
    if (origin == CodeOrigin::kJit) path = "[jit]";
    if (object != nullptr) {
      known->second = MappingOfContent(*object, object->path.empty() ? path : object->path);
    } else {
      mappings_.push_back({.path = path});
      known->second = mappings_.size();
    }
    return known->second;
  }

  // A file that was forgotten and met again has another CodeObject, but is the same file.
  uint64_t MappingOfContent(const CodeObject& object, std::string_view path) {
    const ObjectContent content{absl::string_view(path.data(), path.size()), object.build_id,
                                object.start, object.limit, object.file_offset};
    const auto [known, added] = object_ids_.try_emplace(content, mappings_.size() + 1);
    if (added) mappings_.push_back({.path = path, .object = &object});
    mappings_[known->second - 1].functions |= object.has_functions;
    return known->second;
  }

  void WriteMappings() {
    for (size_t i = 0; i < mappings_.size(); ++i) {
      const MappingEntry& entry = mappings_[i];
      pprof::Mapping& out = *part_->add_mapping();
      out.set_id(i + 1);
      out.set_filename(Intern(entry.path));
      out.set_has_filenames(entry.filenames);
      out.set_has_line_numbers(entry.lines);
      out.set_has_inline_frames(entry.inlines);
      if (entry.object == nullptr) continue;
      out.set_memory_start(entry.object->start);
      out.set_memory_limit(entry.object->limit);
      out.set_file_offset(entry.object->file_offset);
      out.set_build_id(Intern(entry.object->build_id.ToHex()));
      out.set_has_functions(entry.functions && options_.has_functions);
    }
  }

  const Profile& profile_;
  const PprofOptions& options_;
  uint64_t samples_written_ = 0;  // ticks
  uint64_t cut_ = 0;              // of them
  size_t plain_size_ = 0;
  Deflater out_{Deflater::Format::kGzip};
  Arena arena_;
  pprof::Profile* part_ = nullptr;  // in arena_
  std::string bytes_;

  absl::flat_hash_map<std::string, int64_t> strings_;
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t, int64_t>, uint64_t> functions_;
  std::vector<uint64_t> location_ids_;  // by index in the profile; 0: not written yet
  std::array<uint64_t, kStackEnds> marker_ids_{};
  uint64_t locations_ = 0;
  absl::flat_hash_map<std::pair<const CodeObject*, CodeOrigin>, uint64_t> mapping_ids_;
  absl::flat_hash_map<ObjectContent, uint64_t> object_ids_;
  std::vector<MappingEntry> mappings_;
};

}  // namespace

std::string EncodePprof(const Profile& profile) {
  return PprofWriter(profile, {}).Write(profile.samples).gzip;
}

EncodedPprof EncodePprofBatch(const Profile& profile, std::span<const StackCount> stacks,
                              const PprofOptions& options) {
  return PprofWriter(profile, options).Write(stacks);
}

}  // namespace pyrometer
