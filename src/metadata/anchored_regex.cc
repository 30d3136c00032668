// SPDX-License-Identifier: Apache-2.0
#include "metadata/anchored_regex.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace pyrometer {
namespace {

constexpr std::string_view kWordCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// What follows a dollar: "name rest" or "{name}rest".
struct GroupReference {
  std::string_view name;
  std::string_view rest;
};

std::optional<GroupReference> ParseReference(std::string_view text) {
  const bool in_braces = text.starts_with('{');
  if (in_braces) text.remove_prefix(1);
  const size_t size = std::min(text.find_first_not_of(kWordCharacters), text.size());
  const std::string_view name = text.substr(0, size);
  text.remove_prefix(size);
  if (name.empty() || (in_braces && !text.starts_with('}'))) return std::nullopt;
  if (in_braces) text.remove_prefix(1);
  return GroupReference{name, text};
}

// Nothing if `name` is no number as Go writes them: "01" is the name of a group.
std::optional<size_t> ParseGroupNumber(std::string_view name) {
  if (name.size() > 1 && name.starts_with('0')) return std::nullopt;
  size_t number = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

std::string_view GroupOf(const RegexMatch& match, std::string_view name) {
  std::optional<size_t> number = ParseGroupNumber(name);
  if (!number) {
    const auto named = match.names->find(std::string(name));
    if (named == match.names->end()) return {};
    number = static_cast<size_t>(named->second);
  }
  return *number < match.groups.size() ? match.groups[*number].value_or("") : std::string_view();
}

re2::StringPiece Piece(std::string_view text) {
  // Never null: RE2 could not tell a group that matched nothing of it from one that took no part.
  return text.data() == nullptr ? re2::StringPiece("", 0)
                                : re2::StringPiece(text.data(), text.size());
}

}  // namespace

std::string RegexMatch::Expand(std::string_view text, size_t most) const {
  std::string expanded;
  while (expanded.size() < most) {
    const size_t dollar = text.find('$');
    expanded += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      expanded += '$';
      text.remove_prefix(1);
    } else if (const std::optional<GroupReference> reference = ParseReference(text)) {
      expanded += GroupOf(*this, reference->name);
      text = reference->rest;
    } else {
      expanded += '$';
    }
  }
  return expanded;
}

AnchoredRegex::AnchoredRegex(std::unique_ptr<const re2::RE2> regex) : regex_(std::move(regex)) {}
AnchoredRegex::AnchoredRegex(AnchoredRegex&&) noexcept = default;
AnchoredRegex& AnchoredRegex::operator=(AnchoredRegex&&) noexcept = default;
AnchoredRegex::~AnchoredRegex() = default;

Result<AnchoredRegex> AnchoredRegex::Compile(const std::string& expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_dot_nl(true);
  options.set_max_mem(kMostBytes);
  auto regex = std::make_unique<const re2::RE2>(expression, options);
  if (!regex->ok()) {
    return Fail(ErrorCode::kInvalid, "is no regular expression: {}", regex->error());
  }
  return AnchoredRegex(std::move(regex));
}

bool AnchoredRegex::Matches(std::string_view text) const {
  return regex_->Match(Piece(text), 0, text.size(), re2::RE2::ANCHOR_BOTH, nullptr, 0);
}

std::optional<RegexMatch> AnchoredRegex::Match(std::string_view text) const {
  std::vector<re2::StringPiece> pieces(static_cast<size_t>(regex_->NumberOfCapturingGroups()) + 1);
  if (!regex_->Match(Piece(text), 0, text.size(), re2::RE2::ANCHOR_BOTH, pieces.data(),
                     static_cast<int>(pieces.size()))) {
    return std::nullopt;
  }
  RegexMatch match{.groups = {}, .names = &regex_->NamedCapturingGroups()};
  match.groups.reserve(pieces.size());
  for (const re2::StringPiece& piece : pieces) {
    match.groups.push_back(piece.data() == nullptr
                               ? std::nullopt
                               : std::optional(std::string_view(piece.data(), piece.size())));
  }
  return match;
}

}  // namespace pyrometer
