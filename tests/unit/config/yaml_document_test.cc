// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_document.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = ConfigNode::Kind;

std::string Repeated(std::string_view text, size_t times) {
  std::string repeated;
  for (size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

TEST(ReadYaml, MakesATreeThatKnowsItsPlaces) {
  const YamlDocument document = ReadYaml("a: 1\nb:\n  - x\n  - {c: \"2\"}\nd:\n", "f");
  ASSERT_THAT(document.errors, IsEmpty());
  const ConfigNode& root = document.root;
  ASSERT_EQ(root.kind, Kind::kMap);
  ASSERT_THAT(root.children, SizeIs(3));
  EXPECT_EQ(root.children[0].key, "a");
  EXPECT_EQ(root.children[0].text, "1");
  EXPECT_EQ(root.children[0].where, "f:1:4");
  const ConfigNode& list = root.children[1];
  ASSERT_THAT(list.children, SizeIs(2));
  EXPECT_EQ(list.children[0].text, "x");
  EXPECT_EQ(list.children[0].where, "f:3:5");
  const ConfigNode* const inner = Find(list.children[1], "c");
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->text, "2");
  EXPECT_EQ(inner->key_where, "f:4:6");
  EXPECT_EQ(root.children[2].kind, Kind::kNothing);
  EXPECT_EQ(root.children[2].where, "f:5:1");
}

TEST(ReadYaml, RefusesWhatOnlySavesTyping) {
  for (const char* text : {"a: &x 1\nb: *x", "a: &x {b: *x}", "a: *x", "a: !!int 1", "a: !x y",
                           "? [a]\n: b", "? {a: b}\n: c"}) {
    EXPECT_THAT(ReadYaml(text, "f").errors, SizeIs(1)) << text;
  }
}

TEST(ReadYaml, RefusesWhatIsTooDeep) {
  const size_t deep = 100'000;
  for (const std::string& text :
       {Repeated("[", deep), Repeated("{a: ", deep), Repeated("- ", deep), Repeated("? ", deep),
        "a: " + Repeated("[", kDeepestYaml) + Repeated("]", kDeepestYaml)}) {
    const YamlDocument document = ReadYaml(text, "f");
    ASSERT_THAT(document.errors, SizeIs(1)) << text.substr(0, 10);
    EXPECT_THAT(document.errors[0], HasSubstr("nested deeper than 16 levels"));
    EXPECT_THAT(document.root.children, IsEmpty());
  }
}

TEST(ReadYaml, RefusesWhatIsTooLarge) {
  EXPECT_THAT(ReadYaml(std::string(kLongestYaml + 1, '#'), "f").errors,
              ElementsAre(HasSubstr("larger than 1048576 bytes")));
  EXPECT_THAT(ReadYaml("[" + Repeated("a,", kMostYamlNodes) + "]", "f").errors,
              ElementsAre(HasSubstr("more than 10000 values")));
}

TEST(ReadYaml, SurvivesOddBytes) {
  for (const std::string& text :
       {std::string("\xff\xfe\x61"), std::string("\xfe\xff\x00", 3), std::string("\0\0\xfe\xff", 4),
        std::string("a: \0", 4), std::string("\xef\xbb\xbf") + "a: 1",
        std::string("%YAML 9.9\n---\n"), std::string("%TAG ! x\n"), std::string("a: |99\n x"),
        std::string("\"\\U0011FFFF\""), std::string("a: >-"), std::string("---\n..."),
        std::string(":"), std::string("- -\n -"), std::string(100'000, ':'),
        std::string(100'000, '?'), std::string(kLongestYaml, '"'), std::string(100'000, '\n'),
        Repeated("a: ", 100'000), Repeated("'a' ", 100'000)}) {
    const YamlDocument document = ReadYaml(text, "f");
    EXPECT_LE(document.root.children.size(), kMostYamlNodes) << text.substr(0, 10);
  }
}

}  // namespace
}  // namespace pyrometer
