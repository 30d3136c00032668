// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolize/source_map_writer.h"
#include "symbolize/symbolizer.h"
#include "tests/shared/made_up_symbols.h"
#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {

inline constexpr ObjectId kLibrary(1);
inline constexpr ObjectId kGone(2);
inline constexpr ObjectId kDamaged(3);
inline constexpr ObjectId kVdso(4);
inline constexpr ObjectId kNeverSeen(99);
inline constexpr ProcessKey kAlice{Pid(10), StartTime(100)};
inline constexpr ProcessKey kBob{Pid(20), StartTime(200)};

inline constexpr std::string_view kKallsyms =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 T do_syscall_64\n"
    "ffffffff81000200 t _RNvC4rust4work.cold\n"
    "ffffffff81001000 T _etext\n"
    "ffffffffc0a00000 t nft_do_chain\t[nf_tables]\n";

class FakeObjects : public ObjectSource {
 public:
  std::optional<ObjectDescription> Describe(ObjectId object) override {
    const std::vector<Segment> segments = {{.offset = FileOffset(0x800),
                                            .address = ElfAddress(0x1000),
                                            .file_size = 0x1000,
                                            .memory_size = 0x1000,
                                            .executable = true}};
    if (object == kVdso) return ObjectDescription{"[vdso]", {}, {}, true};
    if (object == kGone) return ObjectDescription{"/tmp/libgone.so (deleted)", {}, segments, false};
    if (object == kNeverSeen) return std::nullopt;
    return ObjectDescription{"/usr/lib/libfoo.so", {}, segments, false};
  }
  SymbolAnswer Symbols(ObjectId object) override {
    ++reads;
    if (late) return {.table = nullptr, .reason = Unresolved::kNotReady};
    if (missing || object == kGone) return {.table = nullptr, .reason = Unresolved::kFileGone};
    if (object == kDamaged) return {.table = nullptr, .reason = Unresolved::kUnreadable};
    MadeUpSymbols symbols;
    const ElfAddress end(0x2000);
    symbols.Add({ElfAddress(0x1000), 0x100, end}, "_ZN3foo3barEi");
    symbols.Add({ElfAddress(0x1100), 0x100, end}, "bad\nname\xff");
    const SymbolTableBuilder::KnownCode unnamed[] = {
        {.range = {ElfAddress(0x1300), ElfAddress(0x1340)}}};
    symbols.AddCode(unnamed);
    return {.table = std::make_shared<const SymbolTable>(*symbols.Build())};
  }
  SourceAnswer Sources(ObjectId object) override {
    if (object != kLibrary || !has_sources) return {};
    if (late_sources) return {.map = nullptr, .is_coming = true};
    SourceMapWriter writer(ElfAddress(0x1000));
    const auto file = writer.AddPath("/src", "foo.cc");
    const auto add = [&](uint32_t depth, const char* name, SourceSink::Range range, uint32_t call) {
      writer.AddScope({.depth = depth,
                       .name = writer.AddName(name),
                       .call_file = file,
                       .call_line = call,
                       .ranges = {&range, 1}});
    };
    add(0, "_ZN3foo3bazEi", {0x1000, 0x1100}, 0);  // of the same code as the symbol's function
    add(1, "_ZN3foo5innerEv", {0x1010, 0x1020}, 7);
    add(0, "only.in.lines", {0x1300, 0x1340}, 0);
    const std::vector<SourceSink::Row> rows = {{0x1000, file, 5}, {0x1010, file, 50}};
    writer.AddSequence(rows, 0x1100);
    const auto bytes =
        std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = 4096});
    EXPECT_TRUE(std::move(writer).Write(*bytes));
    return {.map = std::make_shared<const SourceMap>(*SourceMap::From(bytes))};
  }
  std::vector<ObjectId> TakeImproved() override { return std::exchange(improved, {}); }

  std::vector<ObjectId> improved;
  int reads = 0;
  bool has_sources = false;   // of the library
  bool late_sources = false;  // they are still being made
  bool missing = false;       // files of all objects
  bool late = false;          // likewise: they do not answer in time
};

class FakeJits : public JitSource {
 public:
  Result<UniqueFd> OpenPerfMap(ProcessKey process) override {
    if (growing) return UniqueFd(::dup(growing.get()));
    if (!texts.contains(process)) return Fail(ErrorCode::kNotFound, "no perf map");
    return TextFile(texts[process]);
  }
  bool HasEnded(ProcessKey process) override { return ended.contains(process); }

  Result<UniqueFd> OpenJitDump(ProcessKey process) override {
    if (!dumps.contains(process)) return Fail(ErrorCode::kNotFound, "no jitdump");
    return UniqueFd(::dup(dumps[process].get()));
  }

  std::map<ProcessKey, std::string> texts;  // in a new file each time
  std::map<ProcessKey, UniqueFd> dumps;
  UniqueFd growing;  // everybody's, if there is one
  std::set<ProcessKey> ended;
};

class SymbolizerTest : public testing::Test {
 protected:
  Symbolizer Make(Symbolizer::Options options = {}) {
    return Symbolizer(objects_, jits_, *KernelSymbols::Read(TextFile(kKallsyms).get(), ""),
                      options);
  }

  FakeObjects objects_;
  FakeJits jits_;
};

// A window with a stack of `frames` for each of `processes`.
inline Window WindowOf(const std::vector<Frame>& frames,
                       const std::vector<ProcessKey>& processes = {kAlice}) {
  Window window;
  for (const ProcessKey process : processes) {
    window.stacks.push_back({.first_frame = static_cast<uint32_t>(window.frames.size()),
                             .kernel_frames = 0,
                             .user_frames = static_cast<uint16_t>(frames.size()),
                             .end = StackEnd::kComplete,
                             .process = process});
    window.frames.insert(window.frames.end(), frames.begin(), frames.end());
  }
  return window;
}

inline Frame InLibrary(uint64_t address) {
  return Frame::Object(kLibrary, ElfAddress(address));
}

inline const Line& OnlyLine(const LocationRef& location) {
  EXPECT_EQ(location->lines.size(), 1U);
  return location->lines.front();
}

}  // namespace pyrometer
