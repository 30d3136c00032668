// SPDX-License-Identifier: Apache-2.0
// The page is html/page.html with the scripts put in at build time; this adds the profile: base64
// of zlib of
//   length of the facts  32 bit, little endian
//   facts                JSON: what the header shows, and the frames' names
//   stacks               numbers in LEB128, for each stack in the order of ShownStacks:
//                        how many frames it shares with the one before, how many follow,
//                        these frames, the samples
// which html/profile.js reads. 50,000 stacks of 30 frames are some 500 kB so.
#include "profile/html.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/printable.h"
#include "profile/deflater.h"
#include "profile/html_page.h"
#include "profile/shown_stacks.h"
#include "profile/text.h"

namespace pyrometer {
namespace {

using nlohmann::json;

void AppendLeb128(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = (group << 8) | (i < have ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= have ? kAlphabet[(group >> (18 - 6 * i)) & 63] : '=';
    }
  }
  return text;
}

json AccountingFacts(const Accounting& accounting) {
  json lost = json::object();
  for (size_t i = 0; i < accounting.lost.size(); ++i) {
    if (accounting.lost[i] == 0) continue;
    lost[std::string(Name(static_cast<Accounting::Lost>(i)))] = accounting.lost[i];
  }
  return {{"ticks", accounting.Ticks()},
          {"exported", accounting.exported},
          {"idle", accounting.idle},
          {"filtered", accounting.filtered},
          {"lost", accounting.TotalLost()},
          {"reasons", lost},
          {"undelivered", accounting.undelivered}};
}

// How many samples were cut, by reason.
json CutFacts(const Profile& profile) {
  std::map<std::string, uint64_t> cut;
  for (const ProfileSample& sample : profile.samples) {
    if (IsCut(sample.end)) cut[std::string(Name(sample.end))] += sample.count;
  }
  return cut;
}

// How many processes bear each name.
json ProcessFacts(const Profile& profile) {
  std::map<std::string, std::vector<ProcessKey>> keys;
  for (const ProfileSample& s : profile.samples) {
    keys[Printable(ProcessNameOf(s))].push_back(s.process);
  }
  json facts = json::object();
  for (auto& [name, all] : keys) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    facts[name] = all.size() == 1 ? json{{"pid", all[0].pid.value()}} : json{{"count", all.size()}};
  }
  return facts;
}

// The texts in the order of their numbers, which it gives them.
json Numbered(std::map<std::string_view, size_t>& texts) {
  json all = json::array();
  for (auto& [text, number] : texts) {
    number = all.size();
    all.push_back(text);
  }
  return all;
}

// Names, objects and sources apart, since a few hundred objects serve many thousand frames.
json FrameFacts(const std::vector<ShownFrame>& frames) {
  std::map<std::string_view, size_t> objects;
  std::map<std::string_view, size_t> sources;
  for (const ShownFrame& frame : frames) {
    objects.try_emplace(frame.object, 0);
    sources.try_emplace(frame.source, 0);
  }
  json object_texts = Numbered(objects);
  json source_texts = Numbered(sources);
  json names = json::array();
  json traits = json::array();
  for (const ShownFrame& frame : frames) {
    names.push_back(frame.name);
    traits.push_back(static_cast<int>(frame.kind));
    traits.push_back(frame.inlined ? 1 : 0);
    traits.push_back(objects[frame.object]);
    traits.push_back(sources[frame.source]);
  }
  return {{"objects", std::move(object_texts)},
          {"sources", std::move(source_texts)},
          {"names", std::move(names)},
          {"traits", std::move(traits)}};
}

std::string TitleOf(const Profile& profile, const HtmlOptions& options) {
  return Printable(options.title.empty() ? FactsOf(profile.event).title : options.title);
}

// What the samples are of: a clock has "hertz", a counted event "period"; all of them together are
// worth "value", which is seconds or a count.
json EventJson(const Profile& profile) {
  const EventFacts& event = FactsOf(profile.event);
  const uint64_t value = TotalsOf(profile).value;
  json facts = {{"noun", event.noun}};
  if (event.counted) {
    facts["period"] = profile.event_period;
    facts["value"] = value;
  } else {
    facts["hertz"] = profile.frequency.value;
    facts["value"] = std::chrono::duration<double>(std::chrono::nanoseconds(value)).count();
  }
  return facts;
}

std::string Facts(const Profile& profile, const ShownStacks& shown, const HtmlOptions& options) {
  const auto begin =
      std::chrono::duration_cast<std::chrono::milliseconds>(profile.begin.time_since_epoch());
  json labels = json::array();
  for (const auto& [key, value] : profile.labels) {
    labels.push_back({Printable(key), Printable(value)});
  }
  json facts = {{"title", TitleOf(profile, options)},
                {"host", Printable(options.host)},
                {"version", PYROMETER_VERSION},
                {"start", begin.count()},
                {"seconds", std::chrono::duration<double>(profile.duration).count()},
                {"event", EventJson(profile)},
                {"labels", std::move(labels)},
                {"cut", CutFacts(profile)},
                {"processes", ProcessFacts(profile)},
                {"frames", FrameFacts(shown.frames())}};
  if (!options.filter.empty()) {
    facts["filter"] = {{"words", Printable(options.filter)}, {"of", options.of}};
  }
  if (options.lowest.value != 0) facts["lowestHertz"] = options.lowest.value;
  if (profile.accounting.Ticks() > 0) facts["accounting"] = AccountingFacts(profile.accounting);
  return facts.dump();
}

void AppendStacks(Deflater& out, const ShownStacks& shown) {
  std::string bytes;
  absl::Span<const uint32_t> previous;
  for (const ShownStacks::Stack& stack : shown.stacks()) {
    const absl::Span<const uint32_t> frames = shown.FramesOf(stack);
    const size_t shared = static_cast<size_t>(
        std::mismatch(previous.begin(), previous.end(), frames.begin(), frames.end()).first -
        previous.begin());
    bytes.clear();
    AppendLeb128(bytes, shared);
    AppendLeb128(bytes, frames.size() - shared);
    for (const uint32_t id : frames.subspan(shared)) AppendLeb128(bytes, id);
    AppendLeb128(bytes, stack.samples);
    out.Append(bytes);
    previous = frames;
  }
}

std::string Payload(const Profile& profile, const HtmlOptions& options) {
  const ShownStacks shown(profile);
  const std::string facts = Facts(profile, shown, options);
  std::array<char, 4> size{};
  for (size_t i = 0; i < size.size(); ++i) size[i] = static_cast<char>(facts.size() >> (8 * i));
  Deflater out(Deflater::Format::kZlib);
  out.Append({size.data(), size.size()});
  out.Append(facts);
  AppendStacks(out, shown);
  return Base64(std::move(out).Finish());
}

}  // namespace

std::string EncodeHtml(const Profile& profile, const HtmlOptions& options) {
  std::string page(kPageBeforeTitle);
  page += EscapeHtml(TitleOf(profile, options));
  page += kPageBeforeProfile;
  page += Payload(profile, options);
  page += kPageAfterProfile;
  return page;
}

}  // namespace pyrometer
