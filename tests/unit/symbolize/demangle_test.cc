// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

TEST(Demangle, ShowsNamesAsTheirAuthorsWroteThem) {
  struct Case {
    const char* symbol;
    const char* function;
  };
  const Case cases[] = {
      // C, and what only looks mangled
      {"main", "main"},
      {"", ""},
      {"_Z", "_Z"},
      {"_Zebra", "_Zebra"},
      {"_R", "_R"},
      {"__libc_start_main", "__libc_start_main"},
      // Copies and parts of functions
      {"f.cold", "f"},
      {"f.part.0", "f"},
      {"f.constprop.0", "f"},
      {"f.isra.12.part.3.cold", "f"},
      {"f.constprop.0.isra.0", "f"},
      {"f.llvm.1234567890123456789", "f"},
      {"f.lto_priv.0", "f"},
      {"f.cold.1", "f"},
      {"_ZN3foo3barEi.part.0.cold", "foo::bar"},
      {"f.0", "f.0"},
      {"f.1.2", "f.1.2"},
      {"f.colder", "f.colder"},
      {"f.g.cold", "f.g.cold"},
      {"f.1.cold", "f.1"},
      {"main._omp_fn.0.cold", "main._omp_fn.0"},
      {"f.__uniq.123.llvm.9", "f.__uniq.123"},
      {"_ZN3foo3barEi.avx2.cold", "foo::bar"},
      {"std.mem.cold", "std.mem.cold"},
      {"main.(*Cache).cold", "main.(*Cache).cold"},
      {"main.Max[go.shape.int].cold", "main.Max[go.shape.int].cold"},
      {".cold", ".cold"},
      {".part.0", ".part.0"},
      {"cold.", "cold."},
      {"main.main.func1", "main.main.func1"},
      {"crypto/tls.(*Config).clone", "crypto/tls.(*Config).clone"},
      {"mime.part", "mime.part"},
      {"f.init.0", "f.init.0"},
      // C++
      {"_ZN3foo3barEi", "foo::bar"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
      {"_ZN3fooC1Ev", "foo::foo"},
      {"_ZN3fooD0Ev", "foo::~foo"},
      {"_ZN3fooplERKS_", "foo::operator+"},
      {"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"},
      {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
      {"_ZN3foo3barEi.cold", "foo::bar"},
      {"_ZTV3foo", "vtable for foo"},
      // Stubs, and mold's names for them
      {"memcpy@plt", "memcpy@plt"},
      {"_ZNSo5flushEv@plt", "std::ostream::flush@plt"},
      {"_ZN3foo3barEi.cold@plt", "foo::bar@plt"},
      {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE@plt", "core::fmt::Formatter::pad@plt"},
      {"_ZN3foo3barEi$plt", "foo::bar@plt"},
      {"free$pltgot", "free@plt"},
      {"@plt", "@plt"},
      {"$plt", "$plt"},
      // Rust, older mangling
      {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
      {"_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h"
       "0123456789abcdefE",
       "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"},
      {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234567890",
       "core::fmt::Formatter::pad"},
      // Rust, v0
      {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
      {"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
      {"_RNvC6_123foo3bar", "123foo::bar"},
      {"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
       "utf8_idents::საჭმელად_გემრიელი_სადილი"},
  };
  for (const Case& c : cases) EXPECT_EQ(Demangle(c.symbol), c.function) << c.symbol;
}

TEST(Demangle, ShowsParametersOrNothingAtAllIfTold) {
  struct Case {
    const char* symbol;
    const char* full;
  };
  const Case cases[] = {
      {"main", "main"},
      {"f.constprop.0", "f"},
      {"_ZN3foo3barEi", "foo::bar(int)"},
      {"_ZNK3foo3barERKS_.part.0", "foo::bar(foo const&) const"},
      {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
      {"_RNvC6_123foo3bar", "123foo::bar"},
      {"_ZN2ns4sortIiEEvPT_S2_", "void ns::sort<int>(int*, int*)"},
  };
  for (const auto& [symbol, full] : cases) {
    EXPECT_EQ(Demangle(symbol, Demangling::kFull), full);
    EXPECT_EQ(Demangle(symbol, Demangling::kNone), symbol);
  }
  EXPECT_EQ(Demangle("a\nb", Demangling::kNone), Demangle("a\nb")) << "always printable";
}

TEST(Demangle, LeavesHostileNamesMangled) {
  // Each S_ doubles what is printed: 2^60 bytes, if one lets it.
  std::string doubling = "_Z1f";
  for (int i = 0; i < 60; ++i) doubling += "N1aIS_S_E";
  std::string substitutions = "_Z1f1AIiiE";
  for (char digit = '0'; digit <= '9'; ++digit) {
    substitutions += std::string("1AIS") + digit + "_S" + digit + "_E";
  }
  std::string references = "_RIC0";
  for (int i = 0; i < 60; ++i) references += "TB_B_E";
  const std::string cases[] = {
      doubling,
      substitutions,
      references,
      "_ZN" + std::string(100'000, '1'),
      "_Z" + std::string(100'000, 'P') + "i",
      "_Z1f" + std::string(1000, 'P'),
      "_R" + std::string(3000, 'N'),
      std::string(5000, 'f') + "@plt",
  };
  for (const std::string& symbol : cases) {
    const std::string function = Demangle(symbol);
    EXPECT_LE(function.size(), kMaxNameLength);
    EXPECT_FALSE(function.empty());
  }
}

TEST(Demangle, ShowsWhatGrowsTooLongAsItIs) {
  // t0 = pair<int, int>, t1 = pair<t0, t0>, ...: the 14th is 16,384 times as long.
  std::string symbol = "_Z1fI4pairIiiE";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (size_t i = 0; i < 14; ++i) {
    const std::string last = i == 0 ? "S1_" : "S" + digits.substr(i + 1, 1) + "_";
    symbol += "S0_I" + last + last + "E";
  }
  symbol += "EvT_";
  EXPECT_EQ(Demangle(symbol), symbol);
}

TEST(Demangle, MakesNamesPrintable) {
  EXPECT_EQ(Demangle("a\nb\xff"), "a\uFFFDb\uFFFD");
}

}  // namespace
}  // namespace pyrometer
