// SPDX-License-Identifier: Apache-2.0
#include "symbolize/readable_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace pyrometer {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

// The deepest seen in real names is 30.
constexpr size_t kDeepestNesting = 100;

bool IsIdentifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<signed char>(c) < 0;
}

// What a template argument is if nobody asked for another.
bool IsDefaultArgument(std::string_view argument) {
  constexpr std::string_view kDefaults[] = {"std::allocator<",      "std::char_traits<",
                                            "std::default_delete<", "std::less<",
                                            "std::hash<",           "std::equal_to<"};
  return std::ranges::any_of(kDefaults, [&](auto prefix) { return argument.starts_with(prefix); });
}

// "std::string" for "std::basic_string" with the argument "char"; "" if there is no such name.
std::string AliasOf(std::string_view name, std::string_view argument) {
  constexpr std::string_view kPrefix = "std::basic_";
  if (argument != "char" && argument != "wchar_t") return "";
  const size_t at = name.rfind(kPrefix);
  if (at == std::string_view::npos || (at > 0 && IsIdentifier(name[at - 1]))) return "";
  const std::string_view rest = name.substr(at + kPrefix.size());
  if (!std::ranges::all_of(rest, IsIdentifier)) return "";
  return fmt::format("{}std::{}{}", name.substr(0, at), argument == "char" ? "" : "w", rest);
}

// The length of what stands before the name in "vtable for f", "non-virtual thunk to f".
size_t PrefixLength(std::string_view name) {
  for (size_t at = 0; at < name.size(); ++at) {
    const std::string_view rest = name.substr(at);
    if (rest.starts_with(" for ")) return at + 5;
    if (rest.starts_with(" to ")) return at + 4;
    const char c = name[at];
    if (!IsIdentifier(c) && c != ' ' && c != '-' && c != '#') return 0;
  }
  return 0;
}

// Reads a name from left to right, once, and writes what is to be shown. A name is made of pieces
// that nest: lists in "<>", groups in "()" and "{}".
class Shortening {
 public:
  explicit Shortening(std::string_view name) : in_(name) {}

  // Nothing if the brackets do not match, or nest too deeply.
  std::optional<std::string> Take() && {
    const size_t prefix = PrefixLength(in_);
    at_ = prefix;
    std::string name = Piece(Place::kTop);
    if (failed_ || at_ != in_.size()) return std::nullopt;
    return std::string(in_.substr(0, prefix)) + name;
  }

 private:
  enum class Place { kTop, kList, kGroup };  // outside of all brackets, in "<>", in "()"

  // The piece that is being written.
  struct Text {
    std::string out;
    size_t name = 0;             // where what follows the last blank begins, as after a return type
    bool is_conversion = false;  // "operator unsigned long": blanks belong to the name
  };

  std::string_view Rest() const { return in_.substr(at_); }
  bool Skip(std::string_view what) {
    if (!Rest().starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  // Up to a ',', or to a bracket that closes what is around; not beyond it.
  std::string Piece(Place place) {
    Text text;
    if (++depth_ > kDeepestNesting) failed_ = true;
    while (!failed_ && at_ < in_.size() && TakeNext(place, text)) {
    }
    --depth_;
    return std::move(text.out);
  }

  // False at the end of the piece.
  bool TakeNext(Place place, Text& text) {
    const char c = in_[at_];
    const bool is_at_top = place == Place::kTop;
    if (!is_at_top && (c == ',' || c == ')')) return false;
    if (place == Place::kList && c == '>') return false;  // else "((1)>(0))" compares
    if (TakeOperator(text)) return true;
    if (c == '<') return TakeList(text);
    if (c == '(') return TakeGroup(place, text);
    if (c == '{') return TakeBraces(text);
    if (c == '[' && Rest().starts_with("[abi:")) {
      at_ = std::min(in_.find(']', at_), in_.size() - 1) + 1;
    } else if (!SkipInlineNamespace(text)) {
      // "->" is no bracket, and of Rust's types in "{closure_env#0}" and "[u8; 4]" none matters.
      if (c == '-' && Rest().starts_with("->")) text.out += in_[at_++];
      text.out += in_[at_++];
      if (c == ' ' && !text.is_conversion) text.name = text.out.size();
    }
    return true;
  }

  // "operator<<", "operator()", "operator bool"
  bool TakeOperator(Text& text) {
    constexpr std::string_view kWord = "operator";
    constexpr std::string_view kSymbols[] = {"<<=", ">>=", "<=>", "->*", "<<", ">>",
                                             "<=",  ">=",  "->",  "()",  "<",  ">"};
    if (!text.out.empty() && IsIdentifier(text.out.back())) return false;
    const std::string_view rest = Rest();
    if (!rest.starts_with(kWord)) return false;
    if (rest.size() > kWord.size() && IsIdentifier(rest[kWord.size()])) return false;
    at_ += kWord.size();
    text.out += kWord;
    for (const std::string_view symbol : kSymbols) {
      if (!Skip(symbol)) continue;
      text.out += symbol;
      // Which is set apart, lest it reads as another: "operator< <int>"
      if (Rest().starts_with(" <")) text.out += in_[at_++];
      return true;
    }
    text.is_conversion = Rest().starts_with(' ');
    return true;
  }

  // "std::__cxx11::string" is std::string to everyone.
  bool SkipInlineNamespace(const Text& text) {
    if (!text.out.ends_with("std::")) return false;
    return Skip("__cxx11::") || Skip("__1::") || Skip("__Cr::") || Skip("__ndk1::");
  }

  // Of a template; or the type in "<T as Trait>::f", which is not to be shortened away.
  bool TakeList(Text& text) {
    const char before = text.out.empty() ? ' ' : text.out.back();
    const bool is_comparison = before == ')';
    if (is_comparison) {
      text.out += in_[at_++];
      return true;
    }
    const bool is_type = !IsIdentifier(before) && before != ':' && before != ']' && before != '}' &&
                         !IsAfterOperator(text.out);
    ++at_;
    std::string arguments = Arguments(Place::kList);
    if (!Skip(">")) failed_ = true;
    if (std::string alias = AliasOf(text.out, arguments); !alias.empty()) {
      text.out = std::move(alias);
    } else if (is_type || arguments.size() <= kLongestArguments) {
      text.out.append("<").append(arguments).append(">");
    } else {
      text.out += "<...>";
    }
    return true;
  }

  static bool IsAfterOperator(std::string_view out) {
    if (out.ends_with(' ')) out.remove_suffix(1);
    return !out.empty() && std::string_view("<>=-+*/%^&|~!").find(out.back()) < out.size() &&
           out.rfind("operator") != std::string_view::npos &&
           out.size() - out.rfind("operator") <= 11;
  }

  // Separated by ", ", up to the bracket that closes them. Of a template, what is there by default
  // is left out.
  std::string Arguments(Place place) {
    std::string list;
    bool is_first = true;
    do {
      Skip(" ");
      const std::string argument = Piece(place);
      if (is_first || !IsDefaultArgument(argument)) {
        list.append(is_first ? "" : ", ").append(argument);
      }
      is_first = false;
    } while (!failed_ && Skip(","));
    while (list.ends_with(' ')) list.pop_back();
    return list;
  }

  // Parameters of an enclosing function go with what is before its name; at the top, also the
  // function's own. Others are a part of a type or an expression.
  bool TakeGroup(Place place, Text& text) {
    if (Skip(kAnonymous)) {
      text.out += kAnonymous;
      return true;
    }
    ++at_;
    const std::string group = Arguments(Place::kGroup);
    if (!Skip(")")) failed_ = true;
    const size_t after_group = at_;
    while (Skip(" const") || Skip(" volatile") || Skip(" &&") || Skip(" &") || Skip("&")) {
    }
    const bool is_scope = Rest().starts_with("::");
    if (is_scope || (place == Place::kTop && at_ == in_.size())) {
      if (is_scope) text.out.erase(0, std::exchange(text.name, 0));
      text.is_conversion = false;
    } else {
      at_ = after_group;
      text.out.append("(").append(group).append(")");
    }
    return true;
  }

  // "{lambda(int)#1}" without the parameters; "{closure#0}"
  bool TakeBraces(Text& text) {
    text.out += in_[at_++];
    while (at_ < in_.size() && in_[at_] != '}') {
      const char c = in_[at_++];
      if (c == '<' || c == '(') {
        Arguments(c == '<' ? Place::kList : Place::kGroup);
        if (!Skip(c == '<' ? ">" : ")")) failed_ = true;
        if (failed_) return false;
      } else {
        text.out += c;
      }
    }
    if (!Skip("}")) failed_ = true;
    text.out += '}';
    return true;
  }

  std::string_view in_;
  size_t at_ = 0;
  size_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::string ReadableName(std::string_view demangled) {
  std::optional<std::string> shown = Shortening(demangled).Take();
  return shown && !shown->empty() ? *std::move(shown) : std::string(demangled);
}

}  // namespace pyrometer
