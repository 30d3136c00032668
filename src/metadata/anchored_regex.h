// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/result.h"

namespace re2 {
class RE2;
}

namespace pyrometer {

// What a regular expression's groups matched, for as long as it and the text live.
struct RegexMatch {
  std::vector<std::optional<std::string_view>> groups;  // the first is the whole text
  const std::map<std::string, int>* names = nullptr;    // the numbers of named groups

  // `text` with each $1, $name, ${1} and ${name} replaced by what that group matched, by nothing if
  // it took no part or does not exist, and each $$ by $, as Go's regexp.Expand does. A name is as
  // long as letters, digits and '_' go; a dollar without one stays. Ends early, at a whole piece,
  // when the result has `most` bytes or more.
  std::string Expand(std::string_view text, size_t most) const;
};

// A regular expression of RE2's syntax (https://github.com/google/re2/wiki/Syntax) that matches
// whole texts of UTF-8; the dot matches line ends too. Matching takes time that is linear in the
// text, whatever the expression, and it and what it caches take at most kMostBytes. Any thread.
class AnchoredRegex {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 10;

  // Errors: kInvalid, with RE2's words for what is wrong; also for one that takes more memory.
  static Result<AnchoredRegex> Compile(const std::string& expression);
  AnchoredRegex(AnchoredRegex&&) noexcept;
  AnchoredRegex& operator=(AnchoredRegex&&) noexcept;
  ~AnchoredRegex();

  bool Matches(std::string_view text) const;
  // With what the groups matched; nothing if it does not match.
  std::optional<RegexMatch> Match(std::string_view text) const;

 private:
  explicit AnchoredRegex(std::unique_ptr<const re2::RE2> regex);

  std::unique_ptr<const re2::RE2> regex_;
};

}  // namespace pyrometer
