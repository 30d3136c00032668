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
  SymbolAnswer Symbols(ObjectId object, DebugInfo /*debug_info*/) override {
    ++reads;
    if (late) return {.table = nullptr, .reason = Unresolved::kNotReady};
    if (missing || object == kGone) return {.table = nullptr, .reason = Unresolved::kFileGone};
    if (object == kDamaged) return {.table = nullptr, .reason = Unresolved::kUnreadable};
    if (preliminary) return {.table = WithoutSources(), .better_after = 1};
    MadeUpSymbols symbols;
    const ElfAddress end(0x2000);
    symbols.Add({ElfAddress(0x1000), 0x100, end}, "_ZN3foo3barEi");
    symbols.Add({ElfAddress(0x1100), 0x100, end}, "bad\nname\xff");
    const SymbolTableBuilder::KnownCode unnamed[] = {
        {.range = {ElfAddress(0x1300), ElfAddress(0x1340)}}};
    symbols.AddCode(unnamed);
    // [0x1080, 0x1090) is of inlined().
    symbols.PutText(0, "_ZN3foo7inlinedEv");
    symbols.PutText(1, "foo.cc");
    symbols.PutText(2, "foo.h");
    symbols.AddSource({ElfAddress(0x1000), ElfAddress(0x1100)},
                      {.start_line = 5,
                       .calls = {{.name = 0, .within = {}, .from = {1, 9}, .start_line = 70}},
                       .rows = {{.size = 0x80, .call = {}, .place = {1, 6}},
                                {.size = 0x10, .call = 0, .place = {2, 71}}}});
    return {.table = std::make_shared<const SymbolTable>(*symbols.Build())};
  }
  static std::shared_ptr<const SymbolTable> WithoutSources() {
    MadeUpSymbols symbols;
    symbols.Add({ElfAddress(0x1000), 0x100, ElfAddress(0x2000)}, "_ZN3foo3barEi");
    return std::make_shared<const SymbolTable>(*symbols.Build());
  }
  int reads = 0;
  bool missing = false;      // files of all objects
  bool late = false;         // likewise: they do not answer in time
  bool preliminary = false;  // likewise: their debug information is not read yet
};

class FakePerfMaps : public PerfMapSource {
 public:
  Result<UniqueFd> Open(ProcessKey process) override {
    if (growing) return UniqueFd(::dup(growing.get()));
    if (growing_of.contains(process)) return UniqueFd(::dup(growing_of[process].get()));
    if (!texts.contains(process)) return Fail(ErrorCode::kNotFound, "no perf map");
    return TextFile(texts[process]);
  }
  Result<std::optional<PerfMapFunction>> Read(int fd, const PerfMapPart& part,
                                              PerfMapSink sink) override {
    return DirectPerfMapReader().Read(fd, part, sink);
  }
  bool HasEnded(ProcessKey process) override { return ended.contains(process); }
  std::vector<ProcessKey> InheritsFrom(ProcessKey process) override { return inherited[process]; }

  std::map<ProcessKey, std::string> texts;    // in a new file each time
  UniqueFd growing;                           // everybody's, if there is one
  std::map<ProcessKey, UniqueFd> growing_of;  // one's
  std::set<ProcessKey> ended;
  std::map<ProcessKey, std::vector<ProcessKey>> inherited;
};

class FakeJitDumps : public JitDumpSource {
 public:
  std::vector<Use> DumpsOf(ProcessKey process) override { return uses[process]; }
  Result<UniqueFd> OpenDump(File file) override {
    if (!files.contains(file)) return Fail(ErrorCode::kNotFound, "no jitdump");
    return UniqueFd(::dup(files[file].get()));
  }
  Result<bool> Read(int fd, const JitDumpPart& part, JitDumpSink sink) override {
    ++reads;
    if (fail) return Fail(*fail, "the reader has died");
    return DirectJitDumpReader().Read(fd, part, sink);
  }

  std::map<ProcessKey, std::vector<Use>> uses;
  std::map<File, UniqueFd> files;
  std::optional<ErrorCode> fail;
  int reads = 0;
};

class SymbolizerTest : public testing::Test {
 protected:
  Symbolizer Make(Symbolizer::Options options = {}) {
    return Symbolizer({objects_, perf_maps_, jit_dumps_},
                      *KernelSymbols::Read(TextFile(kKallsyms).get(), ""), options);
  }

  FakeObjects objects_;
  FakePerfMaps perf_maps_;
  FakeJitDumps jit_dumps_;
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
