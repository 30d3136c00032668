// SPDX-License-Identifier: Apache-2.0
// Format: proto/otlp_profiles.proto; opentelemetry-proto 1.10, profiles/v1development.
#include "profile/otlp.h"

#include <absl/container/flat_hash_map.h>
#include <google/protobuf/arena.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "profile/text.h"
#include "proto/otlp_profiles.pb.h"

namespace pyrometer {
namespace {

namespace otlp = opentelemetry::proto::collector::profiles::v1development;
using google::protobuf::Arena;

// The well-known values of the attribute profile.frame.type that we can vouch for.
std::string_view FrameTypeOf(CodeOrigin origin) {
  if (origin == CodeOrigin::kKernel) return "kernel";
  return origin == CodeOrigin::kUser ? "native" : "";
}

// Rows of one table of the dictionary; equal ones are one.
template <typename Row>
class Table {
 public:
  explicit Table(google::protobuf::RepeatedPtrField<Row>& rows) : rows_(rows) { Index(Row()); }

  int32_t Index(Row row) {
    const auto [known, added] =
        known_.try_emplace(row.SerializeAsString(), static_cast<int32_t>(known_.size()));
    if (added) *rows_.Add() = std::move(row);
    return known->second;
  }

 private:
  google::protobuf::RepeatedPtrField<Row>& rows_;
  absl::flat_hash_map<std::string, int32_t> known_;  // by its encoding
};

class OtlpWriter {
 public:
  OtlpWriter(const Profile& profile, const OtlpOptions& options)
      : profile_(profile), options_(options), location_of_(profile.locations.size(), 0) {
    Intern("");
    dictionary_.add_link_table();
  }

  std::string Write(std::span<const StackCount> stacks) && {
    otlp::ResourceProfiles& resource = *request_->add_resource_profiles();
    resource.mutable_resource();
    for (const auto& [key, value] : options_.resource) {
      otlp::KeyValue& attribute = *resource.mutable_resource()->add_attributes();
      attribute.set_key(key);
      attribute.mutable_value()->set_string_value(value);
    }
    otlp::ScopeProfiles& scope = *resource.add_scope_profiles();
    scope.mutable_scope()->set_name("pyrometer");
    scope.mutable_scope()->set_version(PYROMETER_VERSION);
    otlp::Profile& out = *scope.add_profiles();
    WriteFacts(stacks, out);
    for (const StackCount& stack : stacks) {
      otlp::Sample& sample = *out.add_samples();
      sample.set_stack_index(StackIndexOf(stack));
      sample.add_values(static_cast<int64_t>(stack.count));
    }
    return request_->SerializeAsString();
  }

 private:
  void WriteFacts(std::span<const StackCount> stacks, otlp::Profile& out) {
    SetType(*out.mutable_sample_type(), profile_.value_types.front());
    SetType(*out.mutable_period_type(), profile_.value_types.back());
    const std::chrono::nanoseconds begin = profile_.begin.time_since_epoch();
    out.set_time_unix_nano(static_cast<uint64_t>(std::max<int64_t>(begin.count(), 1)));
    out.set_duration_nano(static_cast<uint64_t>(std::max<int64_t>(profile_.duration.count(), 1)));
    // Receivers multiply by the period, so that it must not be 0.
    uint64_t period = profile_.Period();
    if (period == 0 && !stacks.empty() && stacks.front().count > 0) {
      period = stacks.front().value / stacks.front().count;
    }
    out.set_period(static_cast<int64_t>(std::max<uint64_t>(period, 1)));
  }

  int32_t Intern(std::string_view text) {
    std::string clean = Printable(text, options_.name);
    const auto [known, added] =
        strings_.try_emplace(std::move(clean), static_cast<int32_t>(strings_.size()));
    if (added) dictionary_.add_string_table(known->first);
    return known->second;
  }

  void SetType(otlp::ValueType& out, const ValueType& type) {
    out.set_type_strindex(Intern(type.type));
    out.set_unit_strindex(Intern(type.unit));
  }

  int32_t StackIndexOf(const StackCount& stack) {
    otlp::Stack row;
    row.mutable_location_indices()->Reserve(static_cast<int>(stack.stack.size()) + 1);
    for (const uint32_t index : stack.stack) row.add_location_indices(LocationIndexOf(index));
    // Receivers drop samples without a frame.
    if (IsCut(stack.end) || stack.stack.empty()) {
      otlp::Location marker;
      AddLine(marker, Line{.function = CutMarker(stack.end), .system_name = {}, .file = {}});
      row.add_location_indices(locations_.Index(std::move(marker)));
    }
    return stacks_.Index(std::move(row));
  }

  int32_t LocationIndexOf(uint32_t index) {
    int32_t& known = location_of_[index];
    if (known != 0) return known;
    const Location& location = *profile_.locations[index];
    otlp::Location row;
    row.set_mapping_index(MappingIndexOf(location.object.get(), location.origin));
    row.set_address(location.address);
    for (const Line& line : location.lines) AddLine(row, line);
    if (location.lines.empty()) AddLine(row, Line{});
    const std::string_view type = FrameTypeOf(location.origin);
    if (!type.empty()) row.add_attribute_indices(AttributeOf("profile.frame.type", type));
    known = locations_.Index(std::move(row));
    return known;
  }

  void AddLine(otlp::Location& location, const Line& line) {
    otlp::Function function;
    const int32_t name = Intern(NameOf(line));
    function.set_name_strindex(name);
    function.set_system_name_strindex(line.system_name.empty() ? name : Intern(line.system_name));
    function.set_filename_strindex(Intern(line.file));
    function.set_start_line(std::max<int64_t>(line.start_line, 0));
    otlp::Line& out = *location.add_lines();
    out.set_function_index(functions_.Index(std::move(function)));
    out.set_line(std::max<int64_t>(line.line, 0));
  }

  int32_t MappingIndexOf(const CodeObject* object, CodeOrigin origin) {
    otlp::Mapping row;
    std::string_view path = "[unknown]";
    if (origin == CodeOrigin::kKernel) path = "[kernel.kallsyms]";
    if (origin == CodeOrigin::kJit) path = "[jit]";
    if (object != nullptr) {
      if (!object->path.empty()) path = object->path;
      row.set_memory_start(object->start);
      row.set_memory_limit(object->limit);
      row.set_file_offset(object->file_offset);
      if (!object->build_id.empty()) {
        row.add_attribute_indices(
            AttributeOf("process.executable.build_id.gnu", object->build_id.ToHex()));
      }
    }
    row.set_filename_strindex(Intern(path));
    return mappings_.Index(std::move(row));
  }

  int32_t AttributeOf(std::string_view key, std::string_view value) {
    otlp::KeyValueAndUnit row;
    row.set_key_strindex(Intern(key));
    row.mutable_value()->set_string_value(value.data(), value.size());
    return attributes_.Index(std::move(row));
  }

  const Profile& profile_;
  const OtlpOptions& options_;
  Arena arena_;
  otlp::ExportProfilesServiceRequest* request_ =
      Arena::CreateMessage<otlp::ExportProfilesServiceRequest>(&arena_);
  otlp::ProfilesDictionary& dictionary_ = *request_->mutable_dictionary();
  absl::flat_hash_map<std::string, int32_t> strings_;
  Table<otlp::Mapping> mappings_{*dictionary_.mutable_mapping_table()};
  Table<otlp::Location> locations_{*dictionary_.mutable_location_table()};
  Table<otlp::Function> functions_{*dictionary_.mutable_function_table()};
  Table<otlp::KeyValueAndUnit> attributes_{*dictionary_.mutable_attribute_table()};
  Table<otlp::Stack> stacks_{*dictionary_.mutable_stack_table()};
  std::vector<int32_t> location_of_;  // by index in the profile; 0: not written yet
};

}  // namespace

std::string EncodeOtlp(const Profile& profile, std::span<const StackCount> stacks,
                       const OtlpOptions& options) {
  return OtlpWriter(profile, options).Write(stacks);
}

}  // namespace pyrometer
