// SPDX-License-Identifier: Apache-2.0
#include "metadata/relabel.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "metadata/anchored_regex.h"

namespace pyrometer {
namespace {

constexpr std::string_view kPrivate = "__";
constexpr size_t kLongestName = 1024;  // Pyroscope's limit

auto PlaceOf(Labels& labels, std::string_view name) {
  return std::ranges::lower_bound(labels, name, {}, &Labels::value_type::first);
}

// "" if there is none.
std::string_view ValueOf(const Labels& labels, std::string_view name) {
  const auto at = std::ranges::lower_bound(labels, name, {}, &Labels::value_type::first);
  return at != labels.end() && at->first == name ? std::string_view(at->second)
                                                 : std::string_view();
}

// Those that begin with "__" and the others are counted apart: a pod may have hundreds of the
// first.
bool HasRoom(const Labels& labels, bool is_private) {
  const auto has = std::ranges::count_if(
      labels, [=](const auto& label) { return label.first.starts_with(kPrivate) == is_private; });
  return static_cast<size_t>(has) <
         (is_private ? Relabeling::kMostPrivateLabels : Relabeling::kMostLabels);
}

void Set(Labels& labels, const std::string& name, std::string_view value) {
  const auto at = PlaceOf(labels, name);
  const bool is_there = at != labels.end() && at->first == name;
  if (value.empty()) {
    if (is_there) labels.erase(at);
    return;
  }
  std::string printable = Printable(value, Relabeling::kLongestValue);
  if (is_there) {
    at->second = std::move(printable);
  } else if (HasRoom(labels, name.starts_with(kPrivate))) {
    labels.emplace(at, name, std::move(printable));
  }
}

std::string Changed(std::string_view text, char (*change)(unsigned char)) {
  std::string changed(text);
  std::ranges::transform(changed, changed.begin(),
                         [change](char c) { return change(static_cast<unsigned char>(c)); });
  return changed;
}

// The last 8 bytes of the text's MD5, as Prometheus has it. Nothing if OpenSSL refuses MD5.
std::optional<uint64_t> HashOf(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_md5(), nullptr) != 1) {
    return std::nullopt;
  }
  uint64_t hash = 0;
  for (size_t i = size - sizeof(hash); i < size; ++i) hash = hash << 8 | digest[i];
  return hash;
}

// What a rule may change by the labels it was compared with.
std::vector<RelabelStep::Change> Difference(const Labels& before, const Labels& after) {
  std::set<std::string> names;
  for (const Labels* const labels : {&before, &after}) {
    for (const auto& [name, value] : *labels) names.insert(name);
  }
  const auto value_in = [](const Labels& labels, const std::string& name) {
    const std::string_view value = ValueOf(labels, name);
    return value.empty() ? std::nullopt : std::optional(std::string(value));
  };
  std::vector<RelabelStep::Change> changes;
  for (const std::string& name : names) {
    RelabelStep::Change change{
        .name = name, .before = value_in(before, name), .after = value_in(after, name)};
    if (change.before != change.after) changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

struct Relabeling::Rule {
  RelabelRule written;
  AnchoredRegex regex;

  std::string Sources(const Labels& labels) const;
  // False: they are dropped.
  bool Run(Labels& labels) const;
  void Replace(const std::string& sources, Labels& labels) const;
  void Map(Labels& labels) const;
  // The label that labelmap makes of this one; nothing if it makes none.
  std::optional<std::string> Mapped(const std::string& name) const;
  bool Reads(std::string_view name) const;
  // Adds to `names` the labels in which the rule leaves traces of those that are already there.
  // False if that may be any label.
  bool Spread(std::set<std::string>& names) const;
};

std::string Relabeling::Rule::Sources(const Labels& labels) const {
  std::string sources;
  for (size_t i = 0; i < written.source_labels.size(); ++i) {
    if (i > 0) sources += written.separator;
    sources += ValueOf(labels, written.source_labels[i]);
  }
  return sources;
}

bool Relabeling::Rule::Run(Labels& labels) const {
  const std::string sources = Sources(labels);
  const std::string& target = written.target_label;
  switch (written.action) {
    case RelabelAction::kKeep:
      return regex.Matches(sources);
    case RelabelAction::kDrop:
      return !regex.Matches(sources);
    case RelabelAction::kKeepEqual:
      return ValueOf(labels, target) == sources;
    case RelabelAction::kDropEqual:
      return ValueOf(labels, target) != sources;
    case RelabelAction::kReplace:
      Replace(sources, labels);
      return true;
    case RelabelAction::kHashMod:
      Set(labels, target, fmt::to_string(HashOf(sources).value_or(0) % written.modulus));
      return true;
    case RelabelAction::kLowercase:
      Set(labels, target, Changed(sources, [](unsigned char c) { return absl::ascii_tolower(c); }));
      return true;
    case RelabelAction::kUppercase:
      Set(labels, target, Changed(sources, [](unsigned char c) { return absl::ascii_toupper(c); }));
      return true;
    case RelabelAction::kLabelMap:
      Map(labels);
      return true;
    case RelabelAction::kLabelDrop:
      std::erase_if(labels, [this](const auto& label) { return regex.Matches(label.first); });
      return true;
    case RelabelAction::kLabelKeep:
      std::erase_if(labels, [this](const auto& label) { return !regex.Matches(label.first); });
      return true;
  }
  return true;
}

void Relabeling::Rule::Replace(const std::string& sources, Labels& labels) const {
  const std::optional<RegexMatch> match = regex.Match(sources);
  if (!match) return;
  const std::string target = match->Expand(written.target_label, kLongestName + 1);
  if (!IsIdentifier(target) || target.size() > kLongestName) return;
  Set(labels, target, match->Expand(written.replacement, kLongestValue));
}

// Of labels that are mapped to one name the last counts; what is added is not mapped itself.
void Relabeling::Rule::Map(Labels& labels) const {
  const Labels before = labels;
  for (const auto& [name, value] : before) {
    if (const std::optional<std::string> mapped = Mapped(name)) Set(labels, *mapped, value);
  }
}

std::optional<std::string> Relabeling::Rule::Mapped(const std::string& name) const {
  const std::optional<RegexMatch> match = regex.Match(name);
  if (!match) return std::nullopt;
  std::string mapped = match->Expand(written.replacement, kLongestName + 1);
  if (!IsIdentifier(mapped) || mapped.size() > kLongestName) return std::nullopt;
  return mapped;
}

bool Relabeling::Rule::Reads(std::string_view name) const {
  if (std::ranges::find(written.source_labels, name) != written.source_labels.end()) return true;
  switch (written.action) {
    case RelabelAction::kKeepEqual:
    case RelabelAction::kDropEqual:
      return written.target_label == name;
    case RelabelAction::kLabelMap:
      return regex.Matches(name);
    default:
      return false;
  }
}

bool Relabeling::Rule::Spread(std::set<std::string>& names) const {
  const bool reads_one =
      std::ranges::any_of(names, [this](const std::string& name) { return Reads(name); });
  if (!reads_one) return true;
  switch (written.action) {
    case RelabelAction::kReplace:
      if (!IsIdentifier(written.target_label)) return false;
      [[fallthrough]];
    case RelabelAction::kHashMod:
    case RelabelAction::kLowercase:
    case RelabelAction::kUppercase:
      names.insert(written.target_label);
      break;
    case RelabelAction::kLabelMap:
      for (const std::string& name : std::set<std::string>(names)) {
        if (std::optional<std::string> mapped = Mapped(name)) names.insert(*std::move(mapped));
      }
      break;
    default:
      break;
  }
  return true;
}

Relabeling::Relabeling() : rules_(std::make_shared<const std::vector<Rule>>()) {}

Result<Relabeling> Relabeling::Compile(std::span<const RelabelRule> rules) {
  if (rules.size() > kMostRelabelRules) {
    return Fail(ErrorCode::kInvalid, "more than {} rules", kMostRelabelRules);
  }
  std::vector<Rule> compiled;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (const std::optional<RelabelMistake> mistake = FindMistake(rules[i])) {
      return Fail(ErrorCode::kInvalid, "rule {}: {}: {}", i, mistake->field, mistake->why);
    }
    if (rules[i].action == RelabelAction::kHashMod && !HashOf("")) {
      return Fail(ErrorCode::kUnsupported, "rule {}: OpenSSL has no MD5 here, which hashmod needs",
                  i);
    }
    ASSIGN_OR_RETURN(AnchoredRegex regex, AnchoredRegex::Compile(rules[i].regex));
    compiled.push_back({.written = rules[i], .regex = std::move(regex)});
  }
  Relabeling relabeling;
  relabeling.rules_ = std::make_shared<const std::vector<Rule>>(std::move(compiled));
  return relabeling;
}

bool Relabeling::empty() const {
  return rules_->empty();
}

Relabeled Relabeling::Apply(const Labels& labels) const {
  Relabeled result{.labels = labels, .dropped_by = std::nullopt};
  for (size_t i = 0; i < rules_->size(); ++i) {
    if (!(*rules_)[i].Run(result.labels)) return {.labels = {}, .dropped_by = i};
  }
  std::erase_if(result.labels, [](const auto& label) { return label.first.starts_with(kPrivate); });
  return result;
}

std::vector<RelabelStep> Relabeling::Explain(const Labels& labels) const {
  std::vector<RelabelStep> steps;
  Labels now = labels;
  for (const Rule& rule : *rules_) {
    RelabelStep step{.sources = rule.Sources(now), .changes = {}};
    const Labels before = now;
    step.drops = !rule.Run(now);
    step.changes = Difference(before, now);
    steps.push_back(std::move(step));
    if (steps.back().drops) break;
  }
  return steps;
}

bool Relabeling::Reads(std::string_view name) const {
  return std::ranges::any_of(*rules_, [name](const Rule& rule) { return rule.Reads(name); });
}

bool Relabeling::DecidesWithout(size_t rule, std::span<const std::string_view> others) const {
  std::set<std::string> traces(others.begin(), others.end());
  for (size_t i = 0; i < rule; ++i) {
    if (!(*rules_)[i].Spread(traces)) return false;
  }
  return std::ranges::none_of(traces,
                              [&](const std::string& name) { return (*rules_)[rule].Reads(name); });
}

}  // namespace pyrometer
