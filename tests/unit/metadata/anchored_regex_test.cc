// SPDX-License-Identifier: Apache-2.0
#include "metadata/anchored_regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyrometer {
namespace {

using testing::HasSubstr;

AnchoredRegex Regex(const std::string& expression) {
  return *AnchoredRegex::Compile(expression);
}

// With everything that fits.
std::string Expanded(const std::string& expression, std::string_view text,
                     std::string_view replacement) {
  const AnchoredRegex regex = Regex(expression);
  const std::optional<RegexMatch> match = regex.Match(text);
  return match ? match->Expand(replacement, 1000) : "no match";
}

TEST(AnchoredRegex, MatchesWholeTextsOnly) {
  EXPECT_TRUE(Regex("ngin.").Matches("nginx"));
  EXPECT_FALSE(Regex("ngin").Matches("nginx"));
  EXPECT_FALSE(Regex("ginx").Matches("nginx"));
  EXPECT_TRUE(Regex("a|nginx").Matches("nginx"));
  EXPECT_FALSE(Regex("n|nginx-").Matches("nginx"));
  EXPECT_TRUE(Regex("").Matches(""));
  EXPECT_FALSE(Regex("").Matches("a"));
  EXPECT_TRUE(Regex("a.b").Matches("a\nb"));
}

TEST(AnchoredRegex, SaysWhatIsWrongWithAnExpression) {
  const Result<AnchoredRegex> regex = AnchoredRegex::Compile("a(b");
  ASSERT_FALSE(regex.has_value());
  EXPECT_EQ(regex.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(regex.error().message(), HasSubstr("missing ): a(b"));
  EXPECT_FALSE(AnchoredRegex::Compile("a)(b").has_value());
}

TEST(AnchoredRegex, RefusesWhatTakesTooMuchMemory) {
  EXPECT_FALSE(AnchoredRegex::Compile("((a{100}){100}){100}").has_value());
  EXPECT_TRUE(AnchoredRegex::Compile(R"((?i)[\pL\pN_]+-[0-9a-f]{8,10}-[\pL\pN]{5})").has_value());
}

TEST(AnchoredRegex, TakesTimeInProportionToTheText) {
  EXPECT_FALSE(Regex("(a*)*b").Matches(std::string(100'000, 'a')));
}

TEST(AnchoredRegex, ExpandsAsGoDoes) {
  struct Case {
    const char* expression;
    const char* text;
    const char* replacement;
    const char* expanded;
  };
  for (const auto& [expression, text, replacement, expanded] :
       std::vector<Case>{{"(.)(.*)", "abc", "$2-$1", "bc-a"},
                         {"(.)(.*)", "abc", "${1}x${2}", "axbc"},
                         {"(.)(.*)", "abc", "$1x$2", "bc"},  // the group 1x, which does not exist
                         {"(.)(.*)", "abc", "$0", "abc"},
                         {"(.)(.*)", "abc", "$3", ""},
                         {"(.)(.*)", "abc", "$01", ""},
                         {"(.)(.*)", "abc", "$99999999999999999999", ""},
                         {"(?P<first>.)(.*)", "abc", "$first $2", "a bc"},
                         {"(?P<first>.)(.*)", "abc", "${first}s", "as"},
                         {"(?P<first>.)(.*)", "abc", "$firsts", ""},
                         {"(a)|(b)", "b", "[$1][$2]", "[][b]"},
                         {"(.*)", "", "<$1>", "<>"},
                         {".*", "a", "$$1", "$1"},
                         {".*", "a", "$$$$", "$$"},
                         {".*", "a", "$", "$"},
                         {".*", "a", "$-", "$-"},
                         {".*", "a", "a$ b", "a$ b"},
                         {"(.*)", "a", "${1", "${1"},
                         {"(.*)", "a", "${}", "${}"},
                         {"(.*)", "a", "${1-}", "${1-}"},
                         {"(.*)", "a", "no group", "no group"},
                         {"b", "a", "$0", "no match"}}) {
    EXPECT_EQ(Expanded(expression, text, replacement), expanded)
        << expression << " " << replacement;
  }
}

TEST(AnchoredRegex, EndsAnExpansionThatIsTooLong) {
  const AnchoredRegex regex = Regex("(.*)");
  const std::string text(100, 'a');
  std::string replacement;
  for (int i = 0; i < 1000; ++i) replacement += "$1";
  EXPECT_EQ(regex.Match(text)->Expand(replacement, 250).size(), 300U);
}

}  // namespace
}  // namespace pyrometer
