// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_symbols.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

constexpr std::string_view kKallsyms =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T startup_64\n"
    "ffffffff81000100 t local_function\n"
    "ffffffff81000100 W weak_function\n"
    "ffffffff81000200 T do_syscall_64\n"
    "ffffffff81000300 D some_data\n"
    "ffffffff81000400 T last_function\n"
    "ffffffff81001000 T _etext\n"
    "ffffffff82000000 D jiffies\n"
    "ffffffff82000100 T stray_text\n"
    "ffffffff83000000 T _sinittext\n"
    "ffffffff83000010 t init_function\n"
    "ffffffff83000100 T _einittext\n"
    "ffffffffc0a00000 t nft_do_chain\t[nf_tables]\n"
    "ffffffffc0a00800 t nft_last\t[nf_tables]\n"
    "ffffffffc0b00000 t other_only\t[other]\n"
    "ffffffffc0c00000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]\n"
    "ffffffffc0c00400 t bpf_prog_last\t[bpf]\n"
    "not a line\n"
    "ffffffffc0d00000 t\n"
    "ffffffffc0d00000 t two words\n";

constexpr std::string_view kModules =
    "nf_tables 16384 2 nft_ct,nft_log, Live 0xffffffffc0a00000\n"
    "hidden 16384 0 - Live 0x0000000000000000\n"
    "bad line\n";

KernelSymbols Load(std::string_view kallsyms = kKallsyms, std::string_view modules = kModules) {
  Result<KernelSymbols> symbols = KernelSymbols::Read(TextFile(kallsyms).get(), modules);
  EXPECT_TRUE(symbols.has_value());
  return *std::move(symbols);
}

// "module:name", or "-".
std::string NameAt(const KernelSymbols& symbols, uint64_t address) {
  const std::optional<KernelSymbol> symbol = symbols.Find(KernelAddress(address));
  if (!symbol) return "-";
  return std::string(symbol->module) + ":" + std::string(symbol->name);
}

TEST(KernelSymbols, NameFunctionsUpToTheNextSymbol) {
  const KernelSymbols symbols = Load();
  struct Case {
    uint64_t address;
    const char* name;
  };
  const Case cases[] = {
      {0, "-"},
      {0xffffffff80ffffff, "-"},
      {0xffffffff81000000, ":startup_64"},
      {0xffffffff81000100, ":weak_function"},
      {0xffffffff810002ff, ":do_syscall_64"},
      {0xffffffff81000300, "-"},  // data ends a function, and names none
      {0xffffffff81000400, ":last_function"},
      {0xffffffff81000fff, ":last_function"},
      {0xffffffff81001000, "-"},  // _etext
      {0xffffffff82000010, "-"},
      {0xffffffff82000100, "-"},  // text outside of the text
      {0xffffffff83000010, ":init_function"},
      {0xffffffff83000100, "-"},
      {0xffffffffc0a00000, "nf_tables:nft_do_chain"},
      {0xffffffffc0a03fff, "nf_tables:nft_last"},
      {0xffffffffc0a04000, "-"},  // the module's end
      {0xffffffffc0b00fff, "other:other_only"},
      {0xffffffffc0b01000, "-"},  // a module whose end is not known: not beyond the page
      {0xffffffffc0c003ff, "bpf:bpf_prog_6deef7357e7b4530_sd_fw"},
      {0xffffffffc0c00400, "bpf:bpf_prog_last"},
      {0xffffffffc0c20000, "-"},
      {0xffffffffffffffff, "-"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(NameAt(symbols, c.address), c.name) << std::hex << c.address;
}

TEST(KernelSymbols, KnowTheRangeOfTheKernel) {
  const KernelSymbols symbols = Load();
  EXPECT_EQ(symbols.text_start(), KernelAddress(0xffffffff81000000));
  EXPECT_EQ(symbols.text_end(), KernelAddress(0xffffffff81001000));
}

TEST(KernelSymbols, SayThatTheKernelHidesThem) {
  const auto symbols = KernelSymbols::Read(
      TextFile("0000000000000000 T _stext\n0000000000000000 t f\t[m]\n").get(), "");
  ASSERT_FALSE(symbols.has_value());
  EXPECT_EQ(symbols.error().code(), ErrorCode::kPermission);
}

TEST(KernelSymbols, WithNulsInTheirNamesAreNone) {
  EXPECT_TRUE(Load(std::string_view("0000000000001000 t \0b\n", 22), "").empty());
}

TEST(KernelSymbols, OfAnEmptyFileAreNone) {
  EXPECT_TRUE(Load("", "").empty());
}

TEST(KernelSymbols, FollowProgramsThatComeAndGo) {
  KernelSymbols symbols = Load();
  constexpr KernelAddress kProgram(0xffffffffc0d00000);
  symbols.Apply({.address = kProgram, .size = 0x80, .removed = false, .name = "bpf_prog_1_new"});
  EXPECT_EQ(NameAt(symbols, kProgram.value() + 0x7f), "bpf:bpf_prog_1_new");
  EXPECT_EQ(NameAt(symbols, kProgram.value() + 0x80), "-");

  symbols.Apply({.address = kProgram, .size = 0x80, .removed = true, .name = "bpf_prog_1_new"});
  EXPECT_EQ(NameAt(symbols, kProgram.value()), "bpf:bpf_prog_1_new") << "its samples come later";
  symbols.ForgetRemoved();
  EXPECT_EQ(NameAt(symbols, kProgram.value()), "-");
}

TEST(KernelSymbols, ForgetProgramsThatWereThereFromTheStart) {
  KernelSymbols symbols = Load();
  constexpr KernelAddress kProgram(0xffffffffc0c00000);
  symbols.Apply({.address = kProgram, .size = 0x100, .removed = true, .name = ""});
  symbols.ForgetRemoved();
  EXPECT_EQ(NameAt(symbols, kProgram.value()), "-");
}

TEST(KernelSymbols, NewProgramTakesThePlaceOfOldOnes) {
  KernelSymbols symbols = Load();
  symbols.Apply({.address = KernelAddress(0xffffffffc0c00200),
                 .size = 0x1000,
                 .removed = false,
                 .name = "bpf_prog_2"});
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0c001ff), "bpf:bpf_prog_6deef7357e7b4530_sd_fw");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0c00200), "bpf:bpf_prog_2");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0c00500), "bpf:bpf_prog_2");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0c01300), "-");
}

TEST(KernelSymbols, TakeTrampolinesForTheKernels) {
  KernelSymbols symbols = Load();
  symbols.Apply({.address = KernelAddress(0xffffffffc0e00000),
                 .size = 0x100,
                 .removed = false,
                 .name = "ftrace_trampoline"});
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0e00010), ":ftrace_trampoline");
}

TEST(KernelSymbols, IgnoreEventsThatSayNothing) {
  KernelSymbols symbols = Load();
  symbols.Apply({.address = KernelAddress(~uint64_t{0} - 3),
                 .size = 100,
                 .removed = false,
                 .name = "bpf_at_the_end"});
  EXPECT_EQ(NameAt(symbols, ~uint64_t{0} - 2), "bpf:bpf_at_the_end");
  symbols.Apply({.address = KernelAddress(5), .size = 0, .removed = false, .name = "empty"});
  symbols.Apply({.address = KernelAddress(5), .size = 1, .removed = false, .name = ""});
  EXPECT_EQ(NameAt(symbols, 5), "-");
}

TEST(KernelSymbols, KnowTheirModules) {
  const KernelModule expected = {"nf_tables", 0xffffffffc0a00000, 0xffffffffc0a04000};
  EXPECT_EQ(Load().modules(), std::vector<KernelModule>{expected});
}

TEST(KernelSymbols, OfModulesThatHaveGoneStayUntilSomethingTakesTheirPlace) {
  constexpr std::string_view kKernel =
      "ffffffff81000000 T _stext\nffffffff81000000 T start\nffffffff81001000 T _etext\n";
  const auto load = [&](std::string_view symbols, std::string_view modules) {
    return Load(std::string(kKernel) + std::string(symbols), modules);
  };
  KernelSymbols symbols =
      load("ffffffffc0100000 t a1\t[a]\nffffffffc0101000 t a2\t[a]\nffffffffc0200000 t b1\t[b]\n",
           "a 8192 0 - Live 0xffffffffc0100000\nb 4096 0 - Live 0xffffffffc0200000\n");
  symbols.Update(load("ffffffffc0200000 t b1\t[b]\nffffffffc0300000 t c1\t[c]\n",
                      "b 4096 0 - Live 0xffffffffc0200000\nc 4096 0 - Live 0xffffffffc0300000\n"));
  EXPECT_EQ(NameAt(symbols, 0xffffffff81000010), ":start");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0100010), "a:a1");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0101010), "a:a2");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0200010), "b:b1");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0300010), "c:c1");

  symbols.Update(load("ffffffffc0101800 t d1\t[d]\n", "d 4096 0 - Live 0xffffffffc0101000\n"));
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0100010), "a:a1");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0101010), "-") << "it is d's, and no function of d";
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0101810), "d:d1");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0200010), "b:b1");
}

TEST(KernelSymbols, ForgetModulesThatHaveGoneWhenThereAreTooMany) {
  std::string many;
  for (int i = 0; i < 60'000; ++i) {
    many += fmt::format("{:x} t f{}\t[m]\n", 0xffffffffc0100000 + i * 16, i);
  }
  KernelSymbols symbols = Load(many, "");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0100000), "m:f0");
  symbols.Update(Load());
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0100000), "-");
}

TEST(KernelSymbols, StayWhatEventsSaidWhenReadAgain) {
  constexpr KernelAddress kRemoved(0xffffffffc0d00000);
  constexpr KernelAddress kAdded(0xffffffffc0c00200);
  KernelSymbols symbols = Load();
  symbols.Apply({.address = kRemoved, .size = 0x80, .removed = false, .name = "bpf_prog_1"});
  symbols.Apply({.address = kRemoved, .size = 0x80, .removed = true, .name = "bpf_prog_1"});
  symbols.Apply({.address = kAdded, .size = 0x80, .removed = false, .name = "bpf_prog_2"});
  symbols.Update(Load(std::string(kKallsyms) + "ffffffffc0f00000 t bpf_prog_3\t[bpf]\n"));
  EXPECT_EQ(NameAt(symbols, kRemoved.value()), "bpf:bpf_prog_1") << "its samples come later";
  EXPECT_EQ(NameAt(symbols, kAdded.value()), "bpf:bpf_prog_2");
  EXPECT_EQ(NameAt(symbols, 0xffffffffc0f00000), "bpf:bpf_prog_3");
}

TEST(KernelSymbols, LoadFromProcAndSys) {
  std::string root = testing::TempDir() + "/pyrometer_kernel_XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  std::filesystem::create_directories(root + "/sys/kernel");
  std::ofstream(root + "/kallsyms") << kKallsyms;
  std::ofstream(root + "/modules") << kModules;
  std::ofstream(root + "/sys/kernel/notes", std::ios::binary)
      << std::string("\4\0\0\0\3\0\0\0\3\0\0\0GNU\0\xab\xcd\xef\0", 20);
  const Result<KernelSymbols> symbols = KernelSymbols::Load({.root = root, .sys = root + "/sys"});
  ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
  EXPECT_EQ(NameAt(*symbols, 0xffffffff81000200), ":do_syscall_64");
  EXPECT_EQ(symbols->build_id().ToHex(), "abcdef");
  std::filesystem::remove_all(root);
  EXPECT_EQ(KernelSymbols::Load({.root = root, .sys = root}).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pyrometer
