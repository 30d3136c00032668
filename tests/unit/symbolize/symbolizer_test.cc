// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "binary/vdso.h"
#include "symbolize/named_location.h"
#include "symbolize/symbol_table_builder.h"
#include "symbolize/symbol_table_cache.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

constexpr ObjectId kLibrary(1);
constexpr ObjectId kGone(2);
constexpr ObjectId kDamaged(3);
constexpr ObjectId kVdso(4);
constexpr ObjectId kNeverSeen(99);
constexpr ProcessKey kAlice{Pid(10), StartTime(100)};
constexpr ProcessKey kBob{Pid(20), StartTime(200)};

constexpr std::string_view kKallsyms =
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
  Result<SymbolTable> Symbols(ObjectId object) override {
    ++reads;
    if (missing) return Fail(ErrorCode::kNotFound, "gone for now");
    if (object == kGone) return Fail(ErrorCode::kNotFound, "gone");
    if (object == kDamaged) return Fail(ErrorCode::kMalformed, "damaged");
    SymbolTableBuilder builder;
    const ElfAddress end(0x2000);
    EXPECT_TRUE(builder.Add({ElfAddress(0x1000), 0x100, end}, "_ZN3foo3barEi").has_value());
    EXPECT_TRUE(builder.Add({ElfAddress(0x1100), 0x100, end}, "bad\nname\xff").has_value());
    return std::move(builder).Build();
  }
  int reads = 0;
  bool missing = false;  // files of all objects
};

class FakePerfMaps : public PerfMapSource {
 public:
  Result<UniqueFd> Open(ProcessKey process) override {
    if (growing) return UniqueFd(::dup(growing.get()));
    if (!texts.contains(process)) return Fail(ErrorCode::kNotFound, "no perf map");
    return TextFile(texts[process]);
  }
  bool HasEnded(ProcessKey process) override { return ended.contains(process); }

  std::map<ProcessKey, std::string> texts;  // in a new file each time
  UniqueFd growing;                         // everybody's, if there is one
  std::set<ProcessKey> ended;
};

class SymbolizerTest : public testing::Test {
 protected:
  Symbolizer Make(Symbolizer::Options options = {}) {
    return Symbolizer(objects_, perf_maps_, *KernelSymbols::Read(TextFile(kKallsyms).get(), ""),
                      options);
  }

  FakeObjects objects_;
  FakePerfMaps perf_maps_;
};

// A window with a stack of `frames` for each of `processes`.
Window WindowOf(const std::vector<Frame>& frames,
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

Frame InLibrary(uint64_t address) {
  return Frame::Object(kLibrary, ElfAddress(address));
}

const Line& OnlyLine(const LocationRef& location) {
  EXPECT_EQ(location->lines.size(), 1U);
  return location->lines.front();
}

TEST_F(SymbolizerTest, NamesEachKindOfFrame) {
  struct Case {
    Frame frame;
    const char* function;
    const char* system_name;
    CodeOrigin origin;
    const char* object;  // "-": none
  };
  const Case cases[] = {
      {InLibrary(0x1010), "foo::bar", "_ZN3foo3barEi", CodeOrigin::kUser, "/usr/lib/libfoo.so"},
      {InLibrary(0x1110), "bad\uFFFDname\uFFFD", "bad\uFFFDname\uFFFD", CodeOrigin::kUser,
       "/usr/lib/libfoo.so"},
      {InLibrary(0x1234), "libfoo.so+0x1234", "libfoo.so+0x1234", CodeOrigin::kUser,
       "/usr/lib/libfoo.so"},
      {Frame::Object(kGone, ElfAddress(0x1010)), "libgone.so+0x1010", "libgone.so+0x1010",
       CodeOrigin::kUser, "/tmp/libgone.so (deleted)"},
      {Frame::Object(kNeverSeen, ElfAddress(0x10)), "[unknown]", "[unknown]", CodeOrigin::kUnknown,
       "-"},
      {Frame::Kernel(KernelAddress(0xffffffff81000110)), "do_syscall_64", "do_syscall_64",
       CodeOrigin::kKernel, "[kernel.kallsyms]"},
      {Frame::Kernel(KernelAddress(0xffffffffc0a00010)), "nft_do_chain", "nft_do_chain",
       CodeOrigin::kKernel, "[nf_tables]"},
      {Frame::Kernel(KernelAddress(0xffffffff90000000)), "[kernel]+0xffffffff90000000",
       "[kernel]+0xffffffff90000000", CodeOrigin::kKernel, "[kernel.kallsyms]"},
      {Frame::Kernel(KernelAddress(0xffffffffff600400)), "[vsyscall]", "[vsyscall]",
       CodeOrigin::kUser, "[vsyscall]"},
      {Frame::User(Address(0x7f0000000010)), "jitted", "jitted", CodeOrigin::kJit, "[jit]"},
      {Frame::User(Address(0x7f0000001000)), "[unknown]", "[unknown]", CodeOrigin::kUnknown, "-"},
      {Frame(uint64_t{7} << 60 | 5), "[unknown]", "[unknown]", CodeOrigin::kUnknown, "-"},
  };
  perf_maps_.texts[kAlice] = "7f0000000000 100 jitted\n";
  Symbolizer symbolizer = Make();
  for (const Case& c : cases) {
    const LocationRef location = symbolizer.Name(WindowOf({c.frame})).locations.at(0);
    EXPECT_EQ(OnlyLine(location).function, c.function);
    EXPECT_EQ(OnlyLine(location).system_name, c.system_name);
    EXPECT_EQ(location->origin, c.origin) << c.function;
    EXPECT_EQ(location->object == nullptr ? "-" : location->object->path, c.object) << c.function;
  }
}

TEST_F(SymbolizerTest, SaysWhichNamesAreMadeUp) {
  perf_maps_.texts[kAlice] = "7f0000000000 100 jitted\n";
  const std::vector<Frame> named_by_symbols = {
      InLibrary(0x1010), Frame::Kernel(KernelAddress(0xffffffff81000110)),
      Frame::Kernel(KernelAddress(0xffffffffff600400)), Frame::User(Address(0x7f0000000010))};
  const std::vector<Frame> made_up = {
      InLibrary(0x1234), Frame::Object(kNeverSeen, ElfAddress(0x10)),
      Frame::Kernel(KernelAddress(0xffffffff90000000)), Frame::User(Address(0x7f0000001000)),
      Frame(uint64_t{7} << 60 | 5)};
  Symbolizer symbolizer = Make();
  for (const LocationRef& location : symbolizer.Name(WindowOf(named_by_symbols)).locations) {
    EXPECT_EQ(location->quality, NameQuality::kSymbol) << OnlyLine(location).function;
  }
  for (const LocationRef& location : symbolizer.Name(WindowOf(made_up)).locations) {
    EXPECT_EQ(location->quality, NameQuality::kMadeUp) << OnlyLine(location).function;
  }
}

TEST_F(SymbolizerTest, KeepsAddresses) {
  Symbolizer symbolizer = Make();
  const NamedWindow named =
      symbolizer.Name(WindowOf({InLibrary(0x1010), Frame::User(Address(0x5555)),
                                Frame::Kernel(KernelAddress(0xffffffff81000110))}));
  EXPECT_EQ(named.locations[0]->address, 0x1010U);
  EXPECT_EQ(named.locations[1]->address, 0x5555U);
  EXPECT_EQ(named.locations[2]->address, 0xffffffff81000110U);
}

TEST_F(SymbolizerTest, DescribesObjects) {
  Symbolizer symbolizer = Make();
  const NamedWindow named = symbolizer.Name(
      WindowOf({InLibrary(0x1010), InLibrary(0x1110), Frame::Object(kDamaged, ElfAddress(1))}));
  const CodeObject& library = *named.locations[0]->object;
  EXPECT_EQ(library.start, 0x1000U);
  EXPECT_EQ(library.limit, 0x2000U);
  EXPECT_EQ(library.file_offset, 0x800U);
  EXPECT_TRUE(library.has_functions);
  EXPECT_EQ(named.locations[1]->object.get(), &library);
  EXPECT_FALSE(named.locations[2]->object->has_functions);
}

TEST_F(SymbolizerTest, NamesTheVdso) {
  const ElfFile vdso = *OpenVdso();
  SymbolTableCache cache(objects_, {});
  const SymbolTable& symbols = *cache.Get(kVdso, *objects_.Describe(kVdso), 1).table;
  uint64_t address = 0;
  while (address < 0x10000 && !symbols.Find(ElfAddress(address))) ++address;
  Symbolizer symbolizer = Make();
  const NamedWindow named = symbolizer.Name(WindowOf({Frame::Object(kVdso, ElfAddress(address))}));
  EXPECT_EQ(OnlyLine(named.locations[0]).function, symbols.Find(ElfAddress(address))->name);
  EXPECT_EQ(named.locations[0]->object->path, "[vdso]");
}

TEST_F(SymbolizerTest, GivesEqualFramesTheSameLocationInEveryWindow) {
  perf_maps_.texts[kAlice] = "7f0000000000 100 jitted\n";
  Symbolizer symbolizer = Make();
  const Frame frames[] = {InLibrary(0x1010), Frame::Kernel(KernelAddress(0xffffffff81000110)),
                          Frame::User(Address(0x7f0000000010)), Frame::User(Address(0x5555))};
  for (const Frame frame : frames) {
    const NamedWindow first = symbolizer.Name(WindowOf({frame, frame}));
    const NamedWindow second = symbolizer.Name(WindowOf({InLibrary(0x1234), frame}));
    EXPECT_EQ(first.locations[0], first.locations[1]);
    EXPECT_EQ(first.locations[0], second.locations[1]);
  }
  EXPECT_EQ(objects_.reads, 1);
}

TEST_F(SymbolizerTest, CountsEachLocationOnceWithItsReason) {
  perf_maps_.texts[kBob] = "7f0000000000 100 jitted\n";
  Symbolizer symbolizer = Make();
  for (int window = 0; window < 3; ++window) {
    symbolizer.Name(
        WindowOf({InLibrary(0x1010), InLibrary(0x1234), InLibrary(0x1234), InLibrary(0x1235),
                  Frame::Object(kGone, ElfAddress(1)), Frame::Object(kDamaged, ElfAddress(1)),
                  Frame::Kernel(KernelAddress(0xffffffff90000000)), Frame::User(Address(0x5555))}));
    symbolizer.Name(WindowOf({Frame::User(Address(0x6666))}, {kBob}));
  }
  const SymbolizerCounts& counts = symbolizer.counts();
  EXPECT_EQ(counts.locations, 8U);
  EXPECT_EQ(counts.Of(Unresolved::kNoSymbols), 2U);
  EXPECT_EQ(counts.Of(Unresolved::kFileGone), 1U);
  EXPECT_EQ(counts.Of(Unresolved::kUnreadable), 1U);
  EXPECT_EQ(counts.Of(Unresolved::kKernel), 1U);
  EXPECT_EQ(counts.Of(Unresolved::kUnmapped), 1U);
  EXPECT_EQ(counts.Of(Unresolved::kJit), 1U);
}

TEST_F(SymbolizerTest, NamesUserAddressesByTheProcessWhoseStackItIs) {
  perf_maps_.texts[kAlice] = "7f0000000000 100 of_alice\n";
  perf_maps_.texts[kBob] = "7f0000000000 100 of_bob\n";
  Symbolizer symbolizer = Make();
  const NamedWindow named = symbolizer.Name(
      WindowOf({Frame::User(Address(0x7f0000000010)), InLibrary(0x1010)}, {kAlice, kBob}));
  std::vector<std::string> names;
  for (const LocationRef& location : named.locations) names.push_back(OnlyLine(location).function);
  EXPECT_EQ(names, (std::vector<std::string>{"of_alice", "foo::bar", "of_bob", "foo::bar"}));
}

TEST_F(SymbolizerTest, FollowsAPerfMapThatGrows) {
  constexpr Frame kFrame = Frame::User(Address(0x7f0000000010));
  Symbolizer symbolizer = Make();
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({kFrame})).locations.at(0)).function;
  };
  EXPECT_EQ(name(), "[unknown]");
  perf_maps_.texts[kAlice] = "7f0000000000 100 interpreted\n";
  EXPECT_EQ(name(), "interpreted");
  perf_maps_.texts[kAlice] += "7f0000000000 100 optimized\n";
  EXPECT_EQ(name(), "optimized");
  perf_maps_.texts.erase(kAlice);
  EXPECT_EQ(name(), "optimized") << "the process has ended, its samples are still coming";
}

TEST_F(SymbolizerTest, TakesALastLineWithoutANewlineWhenTheProcessHasEnded) {
  perf_maps_.texts[kAlice] = "7f0000000000 100 last";
  perf_maps_.texts[kBob] = "7f0000000000 100 la";
  perf_maps_.ended.insert(kAlice);
  Symbolizer symbolizer = Make();
  const auto name = [&](ProcessKey process) {
    const Window window = WindowOf({Frame::User(Address(0x7f0000000010))}, {process});
    return OnlyLine(symbolizer.Name(window).locations.at(0)).function;
  };
  EXPECT_EQ(name(kAlice), "last");
  EXPECT_EQ(name(kBob), "[unknown]");
  perf_maps_.ended = {kBob};
  EXPECT_EQ(name(kBob), "la");
  perf_maps_.ended.clear();
  perf_maps_.texts[kBob] += "s";
  EXPECT_EQ(name(kBob), "[unknown]") << "a part of a name is forgotten when its line grows";
}

TEST_F(SymbolizerTest, TakesALastLineWithoutANewlineForMadeUpWhileItMayGrow) {
  perf_maps_.growing = TextFile("7f0000000000 100 la");
  Symbolizer symbolizer = Make();
  const auto location = [&] {
    return symbolizer.Name(WindowOf({Frame::User(Address(0x7f0000000010))})).locations.at(0);
  };
  location();
  EXPECT_EQ(OnlyLine(location()).function, "la");
  EXPECT_EQ(location()->quality, NameQuality::kMadeUp);
  EXPECT_EQ(location(), location()) << "one for all windows";
  perf_maps_.ended.insert(kAlice);
  EXPECT_EQ(location()->quality, NameQuality::kSymbol) << "its writer is gone";
  perf_maps_.ended.clear();
  EXPECT_EQ(location()->quality, NameQuality::kSymbol) << "a name stays";
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), "st\n").has_value());
  EXPECT_EQ(OnlyLine(location()).function, "last");
  EXPECT_EQ(location()->quality, NameQuality::kSymbol);
}

TEST_F(SymbolizerTest, TakesALastLineForANameWhenItsNewlineComes) {
  perf_maps_.growing = TextFile("7f0000000000 100 last");
  Symbolizer symbolizer = Make();
  const auto location = [&] {
    return symbolizer.Name(WindowOf({Frame::User(Address(0x7f0000000010))})).locations.at(0);
  };
  location();
  EXPECT_EQ(location()->quality, NameQuality::kMadeUp);
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), "\n").has_value());
  EXPECT_EQ(OnlyLine(location()).function, "last");
  EXPECT_EQ(location()->quality, NameQuality::kSymbol);
}

TEST_F(SymbolizerTest, KeepsNamesOfTablesThatItDropped) {
  Symbolizer symbolizer =
      Make({.symbol_tables = {.idle_bytes = 0}, .perf_map_bytes = 0, .keep_windows = 60});
  perf_maps_.texts[kAlice] = "7f0000000000 100 jitted\n";
  const std::vector<Frame> frames = {InLibrary(0x1010), Frame::User(Address(0x7f0000000010))};
  const NamedWindow first = symbolizer.Name(WindowOf(frames));
  perf_maps_.texts.clear();
  const NamedWindow second = symbolizer.Name(WindowOf(frames));
  EXPECT_EQ(first.locations, second.locations);
  EXPECT_EQ(objects_.reads, 1);
  for (uint32_t i = 0; i < SymbolTableCache::kUseWindows; ++i) symbolizer.Name(WindowOf(frames));
  symbolizer.Name(WindowOf({InLibrary(0x1020)}));
  EXPECT_EQ(objects_.reads, 2);
}

TEST_F(SymbolizerTest, NamesFramesAgainWhoseSymbolsHadNoRoom) {
  Symbolizer symbolizer = Make({.symbol_tables = {.idle_bytes = 0, .max_bytes = 1}});
  EXPECT_EQ(OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010)})).locations[0]).function,
            "foo::bar");
  EXPECT_EQ(symbolizer.counts().symbol_table_bytes, 0U);
  const Frame late = InLibrary(0x1020);
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010), late})).locations[1]).function;
  };
  for (uint32_t window = 2; window < 1 + SymbolTableCache::kUseWindows; ++window) {
    EXPECT_EQ(name(), "libfoo.so+0x1020");
  }
  EXPECT_EQ(objects_.reads, 1);
  EXPECT_EQ(symbolizer.counts().Of(Unresolved::kNoRoom), 1U);
  EXPECT_EQ(name(), "foo::bar");
  EXPECT_EQ(objects_.reads, 2);
  EXPECT_EQ(symbolizer.counts().tables_dropped_in_use, 2U);
}

TEST_F(SymbolizerTest, NamesFramesAgainWhoseFileWasMissingForATime) {
  Symbolizer symbolizer = Make();
  const auto locations = [&] {
    return symbolizer.Name(WindowOf({InLibrary(0x1010), InLibrary(0x1110)})).locations;
  };
  objects_.missing = true;
  EXPECT_EQ(OnlyLine(locations()[0]).function, "libfoo.so+0x1010");
  objects_.missing = false;
  for (uint32_t window = 2; window < 1 + SymbolTableCache::kUseWindows; ++window) {
    EXPECT_EQ(OnlyLine(locations()[0]).function, "libfoo.so+0x1010");
  }
  EXPECT_EQ(objects_.reads, 1);
  const std::vector<LocationRef> found = locations();
  EXPECT_EQ(OnlyLine(found[0]).function, "foo::bar");
  EXPECT_EQ(OnlyLine(found[1]).function, "bad\uFFFDname\uFFFD");
  EXPECT_EQ(found[0]->quality, NameQuality::kSymbol);
  EXPECT_TRUE(found[0]->object->has_functions);
  EXPECT_EQ(locations(), found);
}

TEST_F(SymbolizerTest, KeepsNamesWhoseFileIsMissingLater) {
  Symbolizer symbolizer = Make({.symbol_tables = {.idle_bytes = 0}});
  const auto name = [&](uint64_t address) {
    return OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010), InLibrary(address)})).locations[0])
        .function;
  };
  EXPECT_EQ(name(0x1010), "foo::bar");
  for (uint32_t i = 0; i < SymbolTableCache::kUseWindows; ++i) name(0x1010);
  objects_.missing = true;
  for (uint32_t i = 0; i < 3 * SymbolTableCache::kUseWindows; ++i) {
    EXPECT_EQ(name(0x1020), "foo::bar");
  }
  EXPECT_GE(objects_.reads, 3);
}

TEST_F(SymbolizerTest, ForgetsLocationsThatAreNoLongerUsed) {
  Symbolizer symbolizer =
      Make({.symbol_tables = {.idle_bytes = 0}, .perf_map_bytes = 0, .keep_windows = 2});
  const std::weak_ptr<const Location> location =
      symbolizer.Name(WindowOf({InLibrary(0x1010)})).locations.at(0);
  symbolizer.Name(WindowOf({InLibrary(0x1020)}));
  EXPECT_FALSE(location.expired());
  for (int i = 0; i < 3; ++i) symbolizer.Name(WindowOf({InLibrary(0x1020)}));
  EXPECT_TRUE(location.expired());
}

TEST_F(SymbolizerTest, GivesNewNamesToNewKernelCode) {
  constexpr KernelAddress kProgram(0xffffffffc0d00000);
  const Frame frame = Frame::Kernel(kProgram);
  Symbolizer symbolizer = Make();
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({frame})).locations.at(0)).function;
  };
  EXPECT_EQ(name(), "[kernel]+0xffffffffc0d00000");
  symbolizer.Apply({.address = kProgram, .size = 64, .removed = false, .name = "bpf_prog_1"});
  symbolizer.Apply({.address = kProgram, .size = 64, .removed = true, .name = "bpf_prog_1"});
  EXPECT_EQ(name(), "bpf_prog_1") << "it ran and went within the window";
  symbolizer.Apply({.address = kProgram, .size = 32, .removed = false, .name = "bpf_prog_2"});
  EXPECT_EQ(name(), "bpf_prog_2");
}

TEST_F(SymbolizerTest, GivesNewNamesWhereNewKernelCodeLiesInNewerOne) {
  constexpr KernelAddress kProgram(0xffffffffc0d00000);
  constexpr KernelAddress kInside(0xffffffffc0d00010);
  const Frame frame = Frame::Kernel(KernelAddress(0xffffffffc0d00100));
  Symbolizer symbolizer = Make();
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({frame})).locations.at(0)).function;
  };
  symbolizer.Apply({.address = kProgram, .size = 512, .removed = false, .name = "bpf_prog_1"});
  EXPECT_EQ(name(), "bpf_prog_1");
  symbolizer.Apply({.address = kInside, .size = 16, .removed = false, .name = "bpf_prog_2"});
  symbolizer.Apply({.address = kProgram, .size = 512, .removed = false, .name = "bpf_prog_3"});
  EXPECT_EQ(name(), "bpf_prog_3");
}

// A kernel whose modules come and go.
class KernelNamesTest : public SymbolizerTest {
 protected:
  static constexpr KernelAddress kOwn{0xffffffff81000110};
  static constexpr KernelAddress kNft{0xffffffffc0a00010};
  static constexpr KernelAddress kLater{0xffffffffc0b00010};
  static constexpr std::string_view kNftModule = "nf_tables 16384 0 - Live 0xffffffffc0a00000\n";
  static constexpr std::string_view kLaterModule = "later 4096 0 - Live 0xffffffffc0b00000\n";
  static constexpr std::string_view kLaterSymbol = "ffffffffc0b00000 t run_later\t[later]\n";

  KernelNamesTest() { HasModules(kNftModule, kKallsyms); }

  void HasModules(std::string_view modules, std::string_view kallsyms) {
    tree_.File("proc/modules", modules);
    tree_.File("proc/kallsyms", kallsyms);
  }
  Symbolizer MakeLive() {
    return Symbolizer(objects_, perf_maps_,
                      KernelSymbols::Load(tree_.AsProcfs()).value_or(KernelSymbols()),
                      {.kernel = tree_.AsProcfs()});
  }
  static std::string NameOf(Symbolizer& symbolizer, KernelAddress address) {
    const NamedWindow named =
        symbolizer.Name(WindowOf({Frame::Kernel(kOwn), Frame::Kernel(address)}));
    return OnlyLine(named.locations.at(1)).function;
  }

  TemporaryTree tree_;
};

TEST_F(KernelNamesTest, NamesModulesThatAreLoadedLater) {
  Symbolizer symbolizer = MakeLive();
  EXPECT_EQ(NameOf(symbolizer, kLater), "[kernel]+0xffffffffc0b00010");
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 0U) << "no module has come";
  HasModules(std::string(kNftModule) + std::string(kLaterModule),
             std::string(kKallsyms) + std::string(kLaterSymbol));
  for (int window = 0; window < 3; ++window) {
    EXPECT_EQ(NameOf(symbolizer, kLater), "run_later");
    EXPECT_EQ(NameOf(symbolizer, kNft), "nft_do_chain");
  }
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 1U);
}

TEST_F(KernelNamesTest, NamesAModuleInThePlaceOfAnother) {
  Symbolizer symbolizer = MakeLive();
  EXPECT_EQ(NameOf(symbolizer, kNft), "nft_do_chain");
  HasModules("other 4096 0 - Live 0xffffffffc0a00000\n", "ffffffffc0a00000 t other\t[other]\n");
  EXPECT_EQ(NameOf(symbolizer, kNft), "other");
}

TEST_F(KernelNamesTest, KeepsNamesOfModulesThatHaveGone) {
  Symbolizer symbolizer = MakeLive();
  HasModules("", "ffffffff81000000 T _stext\n");
  EXPECT_EQ(NameOf(symbolizer, kNft), "nft_do_chain");
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 1U);
}

TEST_F(KernelNamesTest, ReadsNothingAgainForTheKernelsOwnCode) {
  Symbolizer symbolizer = MakeLive();
  HasModules("", kKallsyms);
  for (int window = 0; window < 3; ++window) EXPECT_EQ(NameOf(symbolizer, kOwn), "do_syscall_64");
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 0U);
}

TEST_F(KernelNamesTest, ReadsNothingAgainWhenOnlyTheUseOfAModuleChanges) {
  Symbolizer symbolizer = MakeLive();
  HasModules("nf_tables 16384 2 nft_ct,nft_log, Live 0xffffffffc0a00000\n", kKallsyms);
  EXPECT_EQ(NameOf(symbolizer, kLater), "[kernel]+0xffffffffc0b00010");
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 0U);
}

TEST_F(KernelNamesTest, TriesHiddenSymbolsAgainNowAndThen) {
  HasModules("nf_tables 16384 0 - Live 0x0000000000000000\n", "0000000000000000 T _stext\n");
  Symbolizer symbolizer = MakeLive();
  const auto in_windows = [&](uint32_t count) {
    std::string name;
    for (uint32_t window = 0; window < count; ++window) name = NameOf(symbolizer, kOwn);
    return name;
  };
  EXPECT_EQ(in_windows(KernelNamer::kRetryWindows), "[kernel]+0xffffffff81000110");
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 1U);
  HasModules(kNftModule, kKallsyms);
  EXPECT_EQ(in_windows(1), "do_syscall_64");
  EXPECT_EQ(NameOf(symbolizer, kNft), "nft_do_chain");
  EXPECT_EQ(symbolizer.counts().kernel_symbols_read, 2U);
  const LocationRef own = symbolizer.Name(WindowOf({Frame::Kernel(kOwn)})).locations.at(0);
  EXPECT_TRUE(own->object->has_functions);
}

constexpr Frame::Kind kInvented = static_cast<Frame::Kind>(7);

// Names frames by a number that it can be told to change.
class InventedNamer : public FrameNamer {
 public:
  struct State {
    int number = 1;
    int named = 0;
    bool changed = false;
    bool per_process = false;
    uint32_t ended_window = 0;
  };
  explicit InventedNamer(State& state) : state_(state) {}

  bool IsPerProcess() const override { return state_.per_process; }
  std::vector<FrameRange> BeginWindow(uint32_t) override {
    if (!std::exchange(state_.changed, false)) return {};
    return {{Frame(uint64_t{7} << 60), Frame((uint64_t{8} << 60) - 1)}};
  }
  LocationRef Name(Frame frame, ProcessKey process, uint32_t) override {
    ++state_.named;
    const std::string name =
        fmt::format("line {} of {} in {}", state_.number, frame.bits() & 0xf, process.pid.value());
    return MakeLocation(CodeOrigin::kUser, nullptr, frame.bits(), SameName(name));
  }
  void EndWindow(uint32_t unused_since) override { state_.ended_window = unused_since; }

 private:
  State& state_;
};

TEST_F(SymbolizerTest, HasFramesOfAnInventedKindNamedByWhoeverIsRegisteredForIt) {
  const Frame frame(uint64_t{7} << 60 | 5);
  InventedNamer::State state;
  Symbolizer symbolizer =
      Make({.symbol_tables = {.idle_bytes = 0}, .perf_map_bytes = 0, .keep_windows = 1});
  symbolizer.Register(kInvented, std::make_unique<InventedNamer>(state));
  const auto name = [&] {
    const Window window = WindowOf({InLibrary(0x1010), frame});
    return OnlyLine(symbolizer.Name(window).locations.at(1)).function;
  };
  for (int window = 0; window < 3; ++window) EXPECT_EQ(name(), "line 1 of 5 in 0");
  EXPECT_EQ(state.named, 1);
  EXPECT_EQ(state.ended_window, 2U);
  state.number = 2;
  EXPECT_EQ(name(), "line 1 of 5 in 0") << "nobody said that it has changed";
  state.changed = true;
  EXPECT_EQ(name(), "line 2 of 5 in 0");
}

TEST_F(SymbolizerTest, AsksForTheProcessOfFramesThatMeanSomethingThereOnly) {
  InventedNamer::State state{.per_process = true};
  Symbolizer symbolizer = Make();
  symbolizer.Register(Frame::Kind::kUserAddress, std::make_unique<InventedNamer>(state));
  const NamedWindow named = symbolizer.Name(WindowOf({Frame::User(Address(3))}, {kAlice, kBob}));
  EXPECT_EQ(OnlyLine(named.locations.at(0)).function, "line 1 of 3 in 10");
  EXPECT_EQ(OnlyLine(named.locations.at(1)).function, "line 1 of 3 in 20");
}

TEST_F(SymbolizerTest, CountsFramesOfAKindThatNobodyNames) {
  Symbolizer symbolizer = Make();
  symbolizer.Name(WindowOf({Frame(uint64_t{7} << 60 | 5)}));
  EXPECT_EQ(symbolizer.counts().Of(Unresolved::kOtherKind), 1U);
}

TEST_F(SymbolizerTest, NamesStacksThatAreNobodys) {
  Symbolizer symbolizer = Make();
  Window window = WindowOf({Frame::User(Address(0x10))});
  window.stacks[0].process.reset();
  EXPECT_EQ(OnlyLine(symbolizer.Name(std::move(window)).locations.at(0)).function, "[unknown]");
}

TEST_F(SymbolizerTest, NamesAnEmptyWindow) {
  EXPECT_TRUE(Make().Name(Window()).locations.empty());
}

}  // namespace
}  // namespace pyrometer
