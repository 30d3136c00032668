// SPDX-License-Identifier: Apache-2.0
// How kernel addresses are named while code comes and goes.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "symbolize/kernel_namer.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/symbolize/symbolizer_fixture.h"

namespace pyrometer {
namespace {

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
    return Symbolizer({objects_, perf_maps_, jit_dumps_},
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

}  // namespace
}  // namespace pyrometer
