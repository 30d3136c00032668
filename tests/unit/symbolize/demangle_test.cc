// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <gtest/gtest.h>

#include "symbolize/readable_name.h"

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
      {"f.g.cold", "f.g"},
      {".cold", ".cold"},
      {".part.0", ".part.0"},
      {"cold.", "cold."},
      {"main.main.func1", "main.main.func1"},
      {"crypto/tls.(*Config).clone", "crypto/tls.(*Config).clone"},
      {"mime.part", "mime.part"},
      {"example.com/storage.cold", "example.com/storage.cold"},
      {"main.(*Tier).cold", "main.(*Tier).cold"},
      {"f.init.0", "f.init.0"},
      // C++
      {"_ZN3foo3barEi", "foo::bar"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int>::push_back"},
      {"_ZN3fooC1Ev", "foo::foo"},
      {"_ZN3fooD0Ev", "foo::~foo"},
      {"_ZN3fooplERKS_", "foo::operator+"},
      {"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"},
      {"_ZZ4mainENKUlvE_clEv", "main::{lambda#1}::operator()"},
      {"_ZN3foo3barEi.cold", "foo::bar"},
      {"_ZTV3foo", "vtable for foo"},
      // Addresses of functions elsewhere
      {"f@plt", "f@plt"},
      {"_ZN3foo3barEi@plt", "foo::bar@plt"},
      {"_ZN3foo3barEi.part.0@plt", "foo::bar@plt"},
      {"@plt", "@plt"},
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

// Names of libstdc++, LLVM, node and rustc.
TEST(Demangle, ShortensNamesToWhatCanBeRead) {
  struct Case {
    const char* symbol;
    const char* function;
  };
  const Case cases[] = {
      // What is there by default
      {"_ZNSt6vectorIPcSaIS0_EED1Ev", "std::vector<char*>::~vector"},
      {"_ZNSt10unique_ptrIN2v812BackingStoreESt14default_deleteIS1_EED1Ev",
       "std::unique_ptr<v8::BackingStore>::~unique_ptr"},
      {"_ZNSt3mapIilSt4lessIiESaISt4pairIKilEEED1Ev", "std::map<int, long>::~map"},
      {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm",
       "std::string::_M_append"},
      {"_ZNSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE9_M_appendEPKwm",
       "std::wstring::_M_append"},
      {"_ZNSt3__16vectorIiNS_9allocatorIiEEE9push_backERKi", "std::vector<int>::push_back"},
      {"_ZN5boost9unordered3setISaIiEE1fEv", "boost::unordered::set<std::allocator<int>>::f"},
      {"_ZNSt6locale5_ImplC2B5cxx11Em", "std::locale::_Impl::_Impl"},
      {"_ZN4node13ToOctalStringB5cxx11Ev", "node::ToOctalString"},
      // Long template arguments
      {"_ZN2v88internal12_GLOBAL__N_121TypedElementsAccessorILNS0_12ElementsKindE18EhED0Ev",
       "v8::internal::(anonymous namespace)::TypedElementsAccessor<(v8::internal::ElementsKind)18, "
       "unsigned char>::~TypedElementsAccessor"},
      {"_ZN4node12_GLOBAL__N_112ExternStringIN2v86String22ExternalStringResourceEtED0Ev",
       "node::(anonymous namespace)::ExternString<...>::~ExternString"},
      {"_ZN4llvm11SmallVectorISt4pairIPNS_8CallBaseEPNS_18VeryLongNameIndeedEELj16EED2Ev",
       "llvm::SmallVector<...>::~SmallVector"},
      {"_ZNSt8functionIFvPN4node11EnvironmentEN2v85LocalINS3_6ObjectEEES5_EED2Ev",
       "std::function<...>::~function"},
      // Operators
      {"_ZNKSt4hashISsEclESs", "std::hash<std::string>::operator()"},
      {"_ZStltINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES5_EbRKSt4pairIT_T0_ESB_",
       "std::operator< <std::string, std::string>"},
      {"_ZN2v88internal7LogFile14MessageBuilderlsIcEERS2_T_",
       "v8::internal::LogFile::MessageBuilder::operator<< <char>"},
      {"_ZStrsIcSt11char_traitsIcEERSt13basic_istreamIT_T0_ES6_RS3_", "std::operator>><char>"},
      {"_ZNSolsEb", "std::ostream::operator<<"},
      {"_ZN1AssERKS_", "A::operator<=>"},
      {"_ZNK4llvm6Module28debug_compile_units_iteratorptEv",
       "llvm::Module::debug_compile_units_iterator::operator->"},
      {"_ZNSi6sentrycvbEv", "std::istream::sentry::operator bool"},
      {"_ZNK3foocvmEv", "foo::operator unsigned long"},
      {"_ZNKSscvSt17basic_string_viewIcSt11char_traitsIcEEEv",
       "std::string::operator std::string_view"},
      {"_Znwm", "operator new"},
      {"_ZdaPv", "operator delete[]"},
      // Enclosing functions and lambdas
      {"_ZZZN4node9AsyncWrap11EmitDestroyEPNS_11EnvironmentEdENKUlS2_E_clES2_ENUlPvE_4_FUNES4_",
       "node::AsyncWrap::EmitDestroy::{lambda#1}::operator()::{lambda#1}::_FUN"},
      {"_ZZN1SC4EvENKUlvE_clEv", "S::S::{lambda#1}::operator()"},
      {"_ZZNK3foocvbEvENKUlvE_clEv", "foo::operator bool::{lambda#1}::operator()"},
      {"_ZZ1fIiEvT_ENKUlS0_E_clEi", "f<int>::{lambda#1}::operator()"},
      {"_ZN3fooUt_C2Ev", "foo::{unnamed type#1}::foo"},
      // Function pointers, and what is greater
      {"_Z1fIPFivEEvT_", "f<int (*)()>"},
      {"_Z1fILi1EEvP1AIXgtT_Li0EEE", "f<1>"},
      {"_Z1fI1AIXgtLi1ELi0EEEEvv", "f<A<((1)>(0))>>"},
      // What stands before a name
      {"_ZThn16_NSdD0Ev", "non-virtual thunk to std::iostream::~basic_iostream"},
      {"_ZTv0_n24_NSoD1Ev", "virtual thunk to std::ostream::~basic_ostream"},
      {"_ZGVZ1fvE1x", "guard variable for f::x"},
      // Rust
      {"_RINvMs6_NtCsgvbsrvnw3yD_9hashbrown3rawINtB6_8RawTableTNtNtCs5NsDXlmzMSp_6object5write"
       "8SymbolIdBQ_EE14reserve_rehashNCINvNtB8_3map11make_hasherBQ_BQ_NtNtNtCsjrHSEGnQ3l9_3std"
       "4hash6random11RandomStateE0EBU_",
       "<hashbrown::raw::RawTable<...>>::reserve_rehash::<hashbrown::map::make_hasher<...>::"
       "{closure#0}>"},
      {"_RNvXs_NtCsfqPBR87PSkx_9rustc_hir10intravisitzNtB4_9HirTyCtxt16hir_foreign_item",
       "<! as rustc_hir::intravisit::HirTyCtxt>::hir_foreign_item"},
      {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
       "std::rt::lang_start::{{closure}}"},
      {"_RNCNvC7mycrate4main0", "mycrate::main::{closure#0}"},
  };
  for (const Case& c : cases) EXPECT_EQ(Demangle(c.symbol), c.function) << c.symbol;
}

TEST(Demangle, ShowsNamesInFullOrRaw) {
  struct Case {
    const char* symbol;
    const char* full;
  };
  const Case cases[] = {
      {"main", "main"},
      {"_ZN3foo3barEi", "foo::bar(int)"},
      {"_ZN3foo3barEi@plt", "foo::bar(int)@plt"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi",
       "std::vector<int, std::allocator<int> >::push_back(int const&)"},
      {"_ZNK3foo3barEPFvvE", "foo::bar(void (*)()) const"},
      {"_ZN4node13ToOctalStringB5cxx11Ev", "node::ToOctalString[abi:cxx11]()"},
      {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
      {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
      {"_RNCNvC7mycrate4main0", "mycrate::main::{closure#0}"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Demangle(c.symbol, NameForm::kFull), c.full);
    EXPECT_EQ(Demangle(c.symbol, NameForm::kRaw), c.symbol);
  }
  EXPECT_EQ(Demangle("_ZN3foo3barEi.part.0", NameForm::kFull), "foo::bar(int)");
  EXPECT_EQ(Demangle("_ZN3foo3barEi.part.0", NameForm::kRaw), "_ZN3foo3barEi.part.0");
  EXPECT_EQ(Demangle("a\n", NameForm::kRaw), "a\uFFFD");
}

TEST(ReadableName, LeavesWhatIsNoNameAsItIs) {
  const std::string nested = std::string(200, '(') + std::string(200, ')');
  for (const std::string& text :
       {std::string("a<b"), std::string("a>b)"), std::string("f(int"), std::string("{lambda("),
        std::string("[abi:"), std::string("operator"), std::string("operator<"),
        std::string("a -> b"), std::string("<>"), std::string("("), nested}) {
    EXPECT_EQ(ReadableName(text), text);
  }
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
