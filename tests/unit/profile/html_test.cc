// SPDX-License-Identifier: Apache-2.0
// What can be told without a browser; tests/system/html opens the page in one.
#include "profile/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kBegin = "<script id=\"profile\" type=\"text/plain\">";

// The compressed profile as it stands in the page.
std::string PayloadOf(const std::string& page) {
  const size_t begin = page.find(kBegin) + kBegin.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::string Decode(std::string_view base64) {
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    group = (group << 6) | static_cast<uint32_t>(kAlphabet.find(c));
    if ((bits += 6) < 8) continue;
    bits -= 8;
    bytes += static_cast<char>((group >> bits) & 0xFF);
  }
  return bytes;
}

// The facts as JSON and the stacks as numbers, see html.cc.
struct Decoded {
  std::string facts;
  std::string stacks;
};

Decoded DecodePayload(const std::string& page) {
  const std::string plain = Inflate(Decode(PayloadOf(page)));
  uint32_t size = 0;
  if (plain.size() < sizeof size) return {};
  std::memcpy(&size, plain.data(), sizeof size);
  return {plain.substr(4, size), plain.substr(4 + size)};
}

TEST(EncodeHtml, TellsWhatIsInlinedAndWhereFunctionsAreInTheSource) {
  Location location;
  location.origin = CodeOrigin::kUser;
  location.object = MakeObject("/bin/x");
  location.lines = {
      {.function = "inner", .system_name = {}, .file = "/src/a.h", .line = 7, .start_line = 5},
      {.function = "outer", .system_name = {}, .file = "b.c"}};
  MadeProfile made;
  made.Add({std::make_shared<const Location>(location)}, 1);
  const std::string facts = DecodePayload(EncodeHtml(made.profile())).facts;
  EXPECT_THAT(facts, HasSubstr(R"("names":["app","outer","inner"])"));
  EXPECT_THAT(facts, HasSubstr(R"("sources":["","/src/a.h:5","b.c"])"));
  EXPECT_THAT(facts, HasSubstr(R"("traits":[0,0,0,0,2,0,1,2,2,1,1,1])"));
}

TEST(EncodeHtml, SendsStacksAsDifferencesToTheOneBefore) {
  const LocationRef main = MakeLocation("main");
  MadeProfile made;
  made.Add({main, MakeLocation("a")}, 5).Add({main, MakeLocation("b")}, 300);
  const Decoded decoded = DecodePayload(EncodeHtml(made.profile()));
  // Frames in their order: app, a, b, main.
  EXPECT_THAT(decoded.facts, HasSubstr(R"("names":["app","a","b","main"])"));
  EXPECT_EQ(decoded.stacks, std::string("\x00\x03\x00\x03\x01\x05"
                                        "\x02\x01\x02\xAC\x02",
                                        11));
}

TEST(EncodeHtml, TellsTheAccountingAndWhatWasCut) {
  MadeProfile made;
  made.Add({MakeLocation("f")}, 4, {.end = StackEnd::kTruncated});
  Accounting accounting{.exported = 4, .idle = 6};
  accounting.lost[Accounting::kStackMapFull] = 2;
  made.profile().accounting = accounting;
  const std::string facts = DecodePayload(EncodeHtml(made.profile(), {.host = "db-1"})).facts;
  EXPECT_THAT(facts, testing::Not(testing::HasSubstr("\"filter\"")));
  const std::string filtered =
      DecodePayload(EncodeHtml(made.profile(), {.filter = "pod=web", .of = 70, .lowest = {49}}))
          .facts;
  EXPECT_THAT(filtered, testing::HasSubstr("\"filter\":{\"of\":70,\"words\":\"pod=web\"}"));
  EXPECT_THAT(filtered, testing::HasSubstr("\"lowestHertz\":49"));
  EXPECT_THAT(facts, HasSubstr(R"("ticks":12)"));
  EXPECT_THAT(facts, HasSubstr(R"("reasons":{"stack_map_full":2})"));
  EXPECT_THAT(facts, HasSubstr(R"("cut":{"truncated":4})"));
  EXPECT_THAT(facts, HasSubstr(R"("host":"db-1")"));
}

TEST(EncodeHtml, TellsTheCpuTimeByWhatTheSamplesAreWorth) {
  MadeProfile made;
  made.Add({MakeLocation("f")}, 4);
  made.profile().samples[0].value = 1'500'000'000;  // of windows of another frequency
  EXPECT_THAT(DecodePayload(EncodeHtml(made.profile())).facts,
              HasSubstr(R"("event":{"hertz":100,"noun":"CPU time","value":1.5})"));
}

TEST(EncodeHtml, SpeaksOfPageFaultsAsCounted) {
  MadeProfile made;
  made.CountPageFaults(10).Add({MakeLocation("f")}, 4);
  const std::string page = EncodeHtml(made.profile());
  EXPECT_THAT(page, HasSubstr("<title>Page fault profile</title>"));
  const std::string facts = DecodePayload(page).facts;
  EXPECT_THAT(facts, HasSubstr(R"("event":{"noun":"page faults","period":10,"value":40})"));
  EXPECT_THAT(facts, HasSubstr(R"("title":"Page fault profile")"));
  EXPECT_THAT(facts, testing::Not(HasSubstr("hertz")));
}

TEST(EncodeHtml, KeepsForeignTextOutOfTheMarkup) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>";
  MadeProfile made;
  made.Add({MakeLocation(hostile), MakeLocation("\xff\xfe")}, 1, {.comm = hostile});
  made.profile().labels = {{hostile, hostile}};
  const std::string page = EncodeHtml(made.profile(), {.title = hostile, .host = hostile});
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</title>"));
  EXPECT_EQ(PayloadOf(page).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                              "0123456789+/="),
            std::string::npos);
}

TEST(EncodeHtml, AdmitsItsOwnScriptsOnly) {
  const std::string page = EncodeHtml(MadeProfile().profile());
  const size_t policy = page.find("Content-Security-Policy");
  ASSERT_NE(policy, std::string::npos);
  const std::string value = page.substr(policy, page.find("\">", policy) - policy);
  EXPECT_THAT(value, HasSubstr("default-src 'none'"));
  EXPECT_THAT(value, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(value.substr(0, value.find("style-src")), Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(value, Not(HasSubstr("unsafe-eval")));
}

TEST(EncodeHtml, NamesTheLibrariesAndTheirLicences) {
  const std::string page = EncodeHtml(MadeProfile().profile());
  EXPECT_THAT(page, HasSubstr("d3-flame-graph 5.0.0 (Apache-2.0)"));
  EXPECT_THAT(page, HasSubstr("Permission to use, copy, modify, and/or distribute this software"));
}

TEST(EncodeHtml, IsTheSameForTheSameProfile) {
  MadeProfile made;
  for (int i = 0; i < 100; ++i) made.Add({MakeLocation("f" + std::to_string(i))}, 1);
  EXPECT_EQ(EncodeHtml(made.profile()), EncodeHtml(made.profile()));
}

}  // namespace
}  // namespace pyrometer
