// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binary/vdso.h"
#include "symbolize/named_location.h"
#include "symbolize/symbol_table_cache.h"
#include "tests/unit/symbolize/symbolizer_fixture.h"

namespace pyrometer {
namespace {

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
      {InLibrary(0x1324), "libfoo.so+0x1300", "libfoo.so+0x1300", CodeOrigin::kUser,
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

std::string LinesOf(const LocationRef& location) {
  std::string text;
  for (const Line& line : location->lines) {
    text += fmt::format("{} ({}) {}:{} from {}; ", line.function, line.system_name, line.file,
                        line.line, line.start_line);
  }
  return text;
}

TEST_F(SymbolizerTest, TellsWhatWasInlinedAndWhereThatIsInTheSource) {
  Symbolizer symbolizer = Make();
  const NamedWindow named =
      symbolizer.Name(WindowOf({InLibrary(0x1010), InLibrary(0x1085), InLibrary(0x10a0)}));
  EXPECT_EQ(LinesOf(named.locations[0]), "foo::bar (_ZN3foo3barEi) foo.cc:6 from 5; ");
  EXPECT_EQ(LinesOf(named.locations[1]),
            "foo::inlined (_ZN3foo7inlinedEv) foo.h:71 from 70; "
            "foo::bar (_ZN3foo3barEi) foo.cc:9 from 5; ");
  EXPECT_EQ(LinesOf(named.locations[2]), "foo::bar (_ZN3foo3barEi) :0 from 0; ")
      << "nothing is known of these lines";
}

TEST_F(SymbolizerTest, LeavesOutWhatWasInlinedIfSoAsked) {
  Symbolizer symbolizer = Make({.naming = {.inlines = false}});
  const NamedWindow named = symbolizer.Name(WindowOf({InLibrary(0x1085)}));
  EXPECT_EQ(LinesOf(named.locations[0]), "foo::bar (_ZN3foo3barEi) foo.cc:9 from 5; ");
}

TEST_F(SymbolizerTest, DemanglesAsAsked) {
  const auto lines = [&](Demangling how) {
    Symbolizer symbolizer = Make({.naming = {.demangling = how}});
    return LinesOf(symbolizer.Name(WindowOf({InLibrary(0x1085)})).locations[0]);
  };
  EXPECT_EQ(lines(Demangling::kFull),
            "foo::inlined() (_ZN3foo7inlinedEv) foo.h:71 from 70; "
            "foo::bar(int) (_ZN3foo3barEi) foo.cc:9 from 5; ");
  EXPECT_EQ(lines(Demangling::kNone),
            "_ZN3foo7inlinedEv (_ZN3foo7inlinedEv) foo.h:71 from 70; "
            "_ZN3foo3barEi (_ZN3foo3barEi) foo.cc:9 from 5; ");
}

TEST_F(SymbolizerTest, NamesFramesAgainWhenTheirDebugInformationIsRead) {
  Symbolizer symbolizer = Make();
  objects_.preliminary = true;
  const auto lines = [&] {
    return LinesOf(symbolizer.Name(WindowOf({InLibrary(0x1085)})).locations[0]);
  };
  EXPECT_EQ(lines(), "foo::bar (_ZN3foo3barEi) :0 from 0; ");
  EXPECT_EQ(lines(), "foo::bar (_ZN3foo3barEi) :0 from 0; ");
  objects_.preliminary = false;
  EXPECT_EQ(lines(),
            "foo::inlined (_ZN3foo7inlinedEv) foo.h:71 from 70; "
            "foo::bar (_ZN3foo3barEi) foo.cc:9 from 5; ");
  const int reads = objects_.reads;
  lines();
  EXPECT_EQ(objects_.reads, reads) << "there is no better one";
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
  std::vector<FrameRange> BeginWindow(uint32_t, MonotonicTime) override {
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
      Make({.symbol_tables = {.idle_bytes = 0}, .perf_maps = {.bytes = 0}, .keep_windows = 1});
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

TEST_F(SymbolizerTest, NamesAnEmptyWindow) {
  EXPECT_TRUE(Make().Name(Window()).locations.empty());
}

}  // namespace
}  // namespace pyrometer
