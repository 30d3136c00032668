// SPDX-License-Identifier: Apache-2.0
#include "server/profile_query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr size_t kShownBytes = 60;
constexpr size_t kMaxConditions = 100;

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<std::chrono::seconds> ParseSeconds(std::string_view text, std::chrono::seconds most) {
  const std::optional<uint32_t> number = ParseNumber(text);
  if (!number || *number == 0 || *number > most.count()) {
    return Fail(ErrorCode::kInvalid, "seconds={}: must be a whole number from 1 to {}",
                Printable(text, kShownBytes), most.count());
  }
  return std::chrono::seconds(*number);
}

Result<Pid> ParsePid(std::string_view text) {
  const std::optional<uint32_t> pid = ParseNumber(text);
  if (!pid || *pid == 0) {
    return Fail(ErrorCode::kInvalid, "pid={}: must be a process id", Printable(text, kShownBytes));
  }
  return Pid(*pid);
}

Result<void> AddCondition(const std::string& name, const std::string& value, ProfileQuery& query) {
  if (name == "pid") {
    ASSIGN_OR_RETURN(const Pid pid, ParsePid(value));
    query.pids.push_back(pid);
  } else if (name == "comm") {
    if (value.empty()) return Fail(ErrorCode::kInvalid, "comm=: must be a process's name");
    query.comms.push_back(value);
  } else if (name == "label") {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Fail(ErrorCode::kInvalid, "label={}: must be written label=NAME=VALUE",
                  Printable(value, kShownBytes));
    }
    query.labels[value.substr(0, equals)].push_back(value.substr(equals + 1));
  }
  return {};
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// What is no escape stays as it is.
std::string Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    decoded += text[i] == '+' ? ' ' : text[i];
    if (text[i] != '%' || text.size() - i <= 2) continue;
    const std::optional<int> high = HexDigit(text[i + 1]);
    const std::optional<int> low = HexDigit(text[i + 2]);
    if (!high || !low) continue;
    decoded.back() = static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

template <typename T>
bool IsOneOf(const T& value, const std::vector<T>& wanted) {
  return std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

const std::string* Find(const Labels& labels, const std::string& name) {
  for (const auto& [key, value] : labels) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

QueryParameters ParseQuery(std::string_view target) {
  QueryParameters parameters;
  const size_t begin = target.find('?');
  if (begin == std::string_view::npos) return parameters;
  for (const std::string_view part : Split(target.substr(begin + 1), '&')) {
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    parameters.emplace_back(Decode(part.substr(0, equals)),
                            Decode(part.substr(std::min(equals + 1, part.size()))));
  }
  return parameters;
}

namespace {

Result<ProfileQuery> Parse(const QueryParameters& parameters, std::chrono::seconds usual,
                           std::chrono::seconds most) {
  if (parameters.size() > kMaxConditions) {
    return Fail(ErrorCode::kInvalid, "more than {} parameters", kMaxConditions);
  }
  ProfileQuery query;
  query.duration = usual;
  bool has_seconds = false;
  for (const auto& [name, value] : parameters) {
    if (name != "seconds") {
      RETURN_IF_ERROR(AddCondition(name, value, query));
    } else if (!has_seconds) {
      ASSIGN_OR_RETURN(query.duration, ParseSeconds(value, most));
      has_seconds = true;
    }
  }
  return query;
}

}  // namespace

Result<ProfileQuery> ParseProfileQuery(const QueryParameters& parameters) {
  return Parse(parameters, std::chrono::seconds(30), kMaxProfileDuration);
}

Result<ProfileQuery> ParseFlameGraphQuery(QueryParameters parameters) {
  std::erase_if(parameters, [](const auto& p) { return p.first != "seconds" && p.second.empty(); });
  return Parse(parameters, std::chrono::seconds(300), kMaxFlameGraphSpan);
}

Result<Pid> ParsePid(const QueryParameters& parameters) {
  const auto pid = std::ranges::find(parameters, "pid", &QueryParameters::value_type::first);
  return ParsePid(std::string_view(pid == parameters.end() ? "" : pid->second));
}

std::string InWords(const ProfileQuery& query) {
  std::vector<std::string> words;
  for (const auto& [name, values] : query.labels) {
    words.push_back(fmt::format("{}={}", name, fmt::join(values, " or ")));
  }
  if (!query.comms.empty()) {
    words.push_back(fmt::format("process {}", fmt::join(query.comms, " or ")));
  }
  if (!query.pids.empty()) {
    std::vector<uint32_t> pids;
    for (const Pid pid : query.pids) pids.push_back(pid.value());
    words.push_back(fmt::format("pid {}", fmt::join(pids, " or ")));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

bool Matches(const ProfileQuery& query, const ProfileSample& sample, const Labels& common) {
  if (!query.pids.empty() && !IsOneOf(sample.process.pid, query.pids)) return false;
  if (!query.comms.empty() && !IsOneOf(sample.comm, query.comms)) return false;
  for (const auto& [name, values] : query.labels) {
    const std::string* value = sample.labels ? Find(*sample.labels, name) : nullptr;
    if (value == nullptr) value = Find(common, name);
    if (value == nullptr || !IsOneOf(*value, values)) return false;
  }
  return true;
}

}  // namespace pyrometer
