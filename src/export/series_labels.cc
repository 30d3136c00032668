// SPDX-License-Identifier: Apache-2.0
#include "export/series_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace pyrometer {
namespace {

constexpr std::string_view kServiceName = "service_name";

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string Sanitised(std::string_view name) {
  std::string clean(name);
  for (char& c : clean) {
    if (!IsLetter(c) && !IsDigit(c)) c = '_';
  }
  if (IsDigit(clean.front())) clean.insert(clean.begin(), '_');
  return clean;
}

// True if a label of this name may not be sent.
bool IsReserved(std::string_view name) {
  return name.starts_with("__");
}

bool IsOfRelabeling(std::string_view name) {
  return name.starts_with("__meta_") || name.starts_with("__tmp");
}

class Fitting {
 public:
  explicit Fitting(const LabelRules& rules) : rules_(rules) {}

  // REQUIRES: labels whose names need no change come first.
  void Add(std::string_view name, std::string_view value) {
    const std::string fitted = NameFor(name);
    std::string clean = Printable(value, rules_.value);
    if (value.size() > rules_.value) {
      ++out_.altered["label_shortened"];
    } else if (clean != value) {
      ++out_.altered["label_cleaned"];
    }
    taken_.insert(fitted);
    out_.labels.emplace_back(fitted, std::move(clean));
  }

  void Dropped(const char* why) { ++out_.altered[why]; }

  SeriesLabels Finish() && {
    std::sort(out_.labels.begin(), out_.labels.end());
    while (out_.labels.size() > rules_.labels) {
      auto last = std::prev(out_.labels.end());
      if (last->first == kServiceName && last != out_.labels.begin()) --last;
      out_.labels.erase(last);
      Dropped("label_limit");
    }
    return std::move(out_);
  }

 private:
  std::string NameFor(std::string_view name) {
    const std::string clean = Sanitised(name).substr(0, rules_.name);
    std::string free = clean;
    for (size_t n = 2; taken_.contains(free); ++n) {
      const std::string suffix = fmt::format("_{}", n);
      free = clean.substr(0, rules_.name - suffix.size()) + suffix;
    }
    if (name.size() > rules_.name) {
      ++out_.altered["label_shortened"];
    } else if (free != name) {
      ++out_.altered["label_renamed"];
    }
    return free;
  }

  const LabelRules& rules_;
  SeriesLabels out_;
  std::set<std::string, std::less<>> taken_;
};

bool NeedsNoChange(std::string_view name, const LabelRules& rules) {
  return name.size() <= rules.name && Sanitised(name) == name;
}

}  // namespace

SeriesLabels FitLabels(const Labels& labels, const LabelRules& rules) {
  Fitting fitting(rules);
  std::vector<const Labels::value_type*> to_change;
  for (const auto& label : labels) {
    const auto& [name, value] = label;
    if (name.empty() || value.empty()) continue;  // an empty value means: no such label
    if (IsReserved(name)) {
      if (!IsOfRelabeling(name)) fitting.Dropped("label_reserved");
    } else if (NeedsNoChange(name, rules)) {
      fitting.Add(name, value);
    } else {
      to_change.push_back(&label);
    }
  }
  for (const auto* label : to_change) {
    // Sanitising must not make up a reserved name either ("--name").
    const bool reserved = IsReserved(Sanitised(label->first));
    fitting.Add(reserved ? "label" + label->first : label->first, label->second);
  }
  return std::move(fitting).Finish();
}

std::string SeriesText(const Labels& labels, size_t limit) {
  std::string text = "{";
  for (const auto& [name, value] : labels) {
    if (text.size() > 1) text += ',';
    text += fmt::format("{}=\"", name);
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  text += '}';
  return Printable(text, limit);
}

std::string_view ValueOf(const Labels& labels, std::string_view name) {
  const auto at = std::ranges::find(labels, name, &Labels::value_type::first);
  return at == labels.end() ? std::string_view() : std::string_view(at->second);
}

}  // namespace pyrometer
