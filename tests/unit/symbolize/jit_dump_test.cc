// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <random>

#include "base/clock.h"
#include "tests/shared/made_up_jit_dump.h"
#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

constexpr MonotonicTime kNow(1'000'000'000'000);
constexpr size_t kRoom = size_t{1} << 20;

// A jitdump that is read as it grows.
class JitDumpTest : public testing::Test {
 protected:
  Result<void> Read(bool has_stopped = false) {
    return dump_.Update(file_.get(), has_stopped, kNow);
  }
  Result<void> Read(const MadeUpJitDump& dump) {
    Append(dump.bytes());
    return Read();
  }
  void Append(std::string_view bytes) { ASSERT_TRUE(WriteAll(file_.get(), bytes).has_value()); }
  // "name", or "name file:line"; "-" if it has none.
  std::string At(uint64_t address, uint64_t when = kNow.value()) const {
    const auto place = dump_.Find(Address(address), MonotonicTime(when));
    if (!place) return "-";
    if (place->line == 0) return std::string(place->function);
    return fmt::format("{} {}:{}", place->function, place->file, place->line);
  }

  UniqueFd file_ = TextFile("");
  JitDump dump_{kRoom};
};

TEST_F(JitDumpTest, NamesCode) {
  ASSERT_TRUE(Read(MadeUpJitDump().Load(1, 0x1000, 0x20, "one").Load(2, 0x2000, 1, "two")));
  EXPECT_EQ(At(0xfff), "-");
  EXPECT_EQ(At(0x1000), "one");
  EXPECT_EQ(At(0x101f), "one");
  EXPECT_EQ(At(0x1020), "-");
  EXPECT_EQ(At(0x2000), "two");
  EXPECT_EQ(dump_.bad_records(), 0U);
}

TEST_F(JitDumpTest, TellsTheLinesOfTheCodeThatFollows) {
  ASSERT_TRUE(Read(MadeUpJitDump()
                       .Lines(0x1000, {{0x1000, 7, "a.js"}, {0x1008, 8}, {0x1010, 3, "b.js"}})
                       .Other(4, 40)  // how to unwind it
                       .Load(1, 0x1000, 0x20, "one")
                       .Load(2, 0x2000, 0x20, "two")));
  EXPECT_EQ(At(0x1000), "one a.js:7");
  EXPECT_EQ(At(0x1007), "one a.js:7");
  EXPECT_EQ(At(0x1008), "one a.js:8");
  EXPECT_EQ(At(0x101f), "one b.js:3");
  EXPECT_EQ(At(0x2000), "two");
}

TEST_F(JitDumpTest, SortsLinesAndKnowsNoneBeforeTheFirst) {
  ASSERT_TRUE(Read(MadeUpJitDump()
                       .Lines(0x1000, {{0x1010, 9, "a.js"}, {0x1004, 8, "a.js"}})
                       .Load(1, 0x1000, 0x20, "one")));
  EXPECT_EQ(At(0x1003), "one");
  EXPECT_EQ(At(0x1004), "one a.js:8");
  EXPECT_EQ(At(0x1010), "one a.js:9");
}

TEST_F(JitDumpTest, TakesLinesBackBySomeCompilersHeaderIfAllAreThatMuchTooHigh) {
  MadeUpJitDump dump;
  dump.Lines(0x1000, {{0x1040, 1, "a.js"}, {0x1048, 2}, {0x1050, 3}}).Load(1, 0x1000, 0x14, "one");
  ASSERT_TRUE(Read(dump));
  EXPECT_EQ(At(0x1000), "one a.js:1");
  EXPECT_EQ(At(0x1010), "one a.js:3");
  EXPECT_EQ(dump_.bad_records(), 0U);
  Append(MadeUpJitDump()
             .Lines(0x2000, {{0x2000, 1, "a.js"}, {0x2050, 5}})
             .Load(2, 0x2000, 0x80, "two")
             .bytes()
             .substr(40));
  ASSERT_TRUE(Read());
  EXPECT_EQ(At(0x2000), "two a.js:1");
  EXPECT_EQ(At(0x2050), "two a.js:5");
}

TEST_F(JitDumpTest, LastCodeAtAnAddressWins) {
  MadeUpJitDump dump;
  dump.Load(1, 0x1000, 0x100, "old").Load(2, 0x1040, 0x20, "middle").Load(3, 0x10f0, 0x20, "over");
  ASSERT_TRUE(Read(dump));
  EXPECT_EQ(At(0x103f), "old");
  EXPECT_EQ(At(0x1040), "middle");
  EXPECT_EQ(At(0x1060), "old");
  EXPECT_EQ(At(0x10f0), "over");
  EXPECT_EQ(At(0x110f), "over");
}

TEST_F(JitDumpTest, KnowsWhatLaySomewhereBefore) {
  const uint64_t now = kNow.value();
  MadeUpJitDump dump;
  for (uint64_t turn = 0; turn < 100; ++turn) {
    dump.Load(now - 1000 + 10 * turn, 0x1000, 0x20, fmt::format("turn {}", turn));
  }
  dump.Load(now - 5, 0x1010, 0x40, "beyond");
  ASSERT_TRUE(Read(dump));
  for (uint64_t turn = 0; turn < 99; ++turn) {
    EXPECT_EQ(At(0x1008, now - 1000 + 10 * turn), fmt::format("turn {}", turn));
    EXPECT_EQ(At(0x1008, now - 991 + 10 * turn), fmt::format("turn {}", turn));
  }
  EXPECT_EQ(At(0x1008, now), "turn 99");
  EXPECT_EQ(At(0x1008, now - 2000), "turn 0") << "announced when it ran already";
  EXPECT_EQ(At(0x1018, now - 502), "turn 49") << "a part of it";
}

TEST_F(JitDumpTest, ForgetsWhatLaySomewhereLongBefore) {
  const uint64_t now = kNow.value();
  ASSERT_TRUE(
      Read(MadeUpJitDump().Load(now - 20, 0x1000, 1, "old").Load(now - 10, 0x1000, 1, "new")));
  EXPECT_EQ(At(0x1000, now - 15), "old");
  const MonotonicTime later = After(kNow, 2 * JitDump::kKeepReplaced);
  ASSERT_TRUE(dump_.Update(file_.get(), /*has_stopped=*/false, later));
  EXPECT_EQ(At(0x1000, now - 15), "new");
}

TEST_F(JitDumpTest, DoesNotRememberWhatWasReplacedLongBeforeItWasRead) {
  ASSERT_TRUE(Read(MadeUpJitDump().Load(1000, 0x1000, 1, "old").Load(2000, 0x1000, 1, "new")));
  EXPECT_EQ(At(0x1000, 1500), "new");
}

TEST_F(JitDumpTest, LetsTheLastCodeWinIfItsTimesAreOfAnotherClock) {
  const uint64_t future = 2 * kNow.value();
  MadeUpJitDump dump;
  dump.Load(future, 0x1000, 0x10, "old").Load(future + 1, 0x1000, 0x10, "new");
  ASSERT_TRUE(Read(dump));
  EXPECT_EQ(At(0x1000), "new");
}

TEST_F(JitDumpTest, FollowsCodeThatMovesWithItsLines) {
  ASSERT_TRUE(Read(MadeUpJitDump()
                       .Lines(0x1000, {{0x1000, 7, "a.js"}, {0x1008, 8}})
                       .Load(1, 0x1000, 0x20, "one")
                       .Move(2, 0x1000, 0x1010, 0x20)
                       .Load(3, 0x1000, 8, "other")));
  EXPECT_EQ(At(0x1000), "other");
  EXPECT_EQ(At(0x1010), "one a.js:7");
  EXPECT_EQ(At(0x1018), "one a.js:8");
  EXPECT_EQ(At(0x102f), "one a.js:8");
}

TEST_F(JitDumpTest, DoesNotKnowCodeThatCameFromNowhere) {
  MadeUpJitDump dump;
  dump.Load(1, 0x1000, 0x20, "one").Load(2, 0x2000, 0x20, "two").Move(3, 0x1008, 0x2000, 8);
  ASSERT_TRUE(Read(dump));
  EXPECT_EQ(At(0x2000), "-") << "neither a part of a function nor what lay there";
  EXPECT_EQ(At(0x2008), "two");
}

TEST_F(JitDumpTest, ReadsOnWhereItStopped) {
  const std::string all = MadeUpJitDump()
                              .Lines(0x1000, {{0x1000, 7, "a.js"}})
                              .Load(1, 0x1000, 0x20, "one")
                              .Load(2, 0x2000, 0x20, "two")
                              .bytes();
  for (const char byte : all) {
    Append({&byte, 1});
    ASSERT_TRUE(Read());
  }
  EXPECT_EQ(At(0x1000), "one a.js:7");
  EXPECT_EQ(At(0x2000), "two");
  EXPECT_EQ(dump_.bad_records(), 0U);
  int offered = 0;
  const auto count = [&](int fd, const JitDumpPart& part, OnJitCode) {
    return ReadJitDumpRecords(fd, part, [&](const JitCode&) { ++offered; });
  };
  ASSERT_TRUE(dump_.Update(file_.get(), false, kNow, count));
  EXPECT_EQ(offered, 0);
}

// The rest of a large file is read at once, or for the next window.
TEST_F(JitDumpTest, ReadsSoManyBytesAtATime) {
  MadeUpJitDump all;
  for (uint64_t i = 1; i <= 1000; ++i) {
    const uint64_t address = 0x1000 * i;
    all.Lines(address, {{address, 7, std::string(1000, 'f')}})
        .Load(1, address, 0x20, "code " + std::to_string(i));
  }
  file_ = TextFile(all.bytes());
  const auto cut = [&](int fd, JitDumpPart part, OnJitCode on_code) {
    part.most_bytes = 1 << 18;
    return ReadJitDumpRecords(fd, part, on_code);
  };
  for (const bool has_stopped : {false, true}) {
    JitDump dump(size_t{8} << 20);
    const auto update = [&] { return dump.Update(file_.get(), has_stopped, kNow, cut); };
    const auto line_of = [&](uint64_t i) {
      const auto place = dump.Find(Address(0x1000 * i), kNow);
      return place ? place->line : 0;
    };
    ASSERT_TRUE(update());
    EXPECT_EQ(line_of(1), 7U);
    EXPECT_FALSE(dump.Find(Address(0x1000 * 1000), kNow));
    int rounds = 1;
    for (; dump.has_more(); ++rounds) ASSERT_TRUE(update());
    EXPECT_GE(rounds, 4);
    EXPECT_LE(rounds, 6);
    for (uint64_t i = 1; i <= 1000; ++i) EXPECT_EQ(line_of(i), 7U) << i;
  }
}

TEST_F(JitDumpTest, BeginsAnewWhenTheFileDoes) {
  ASSERT_TRUE(Read(MadeUpJitDump().Load(1, 0x1000, 0x20, "one")));
  const auto rewrite = [&](const MadeUpJitDump& dump) {
    ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
    ASSERT_EQ(::lseek(file_.get(), 0, SEEK_SET), 0);
    ASSERT_TRUE(Read(dump));
  };
  rewrite(MadeUpJitDump({.created = 78})
              .Load(1, 0x2000, 0x20, "longer than it was")
              .Load(1, 0x3000, 0x20, "two"));
  EXPECT_EQ(At(0x1000), "-");
  EXPECT_EQ(At(0x2000), "longer than it was");
  rewrite(MadeUpJitDump({.created = 79}).Load(1, 0x4000, 1, "short"));
  EXPECT_EQ(At(0x2000), "-");
  EXPECT_EQ(At(0x4000), "short");
  file_ = TextFile(MadeUpJitDump({.created = 79}).Load(1, 0x5000, 1, "other").bytes());
  ASSERT_TRUE(Read());
  EXPECT_EQ(At(0x4000), "-");
  EXPECT_EQ(At(0x5000), "other");
}

TEST_F(JitDumpTest, RefusesWhatItCannotMakeSenseOf) {
  const std::vector<std::pair<MadeUpJitDump::Header, std::string>> kHeaders = {
      {{.magic = 0x4454694a}, "a jitdump in the byte order of another machine"},
      {{.magic = 0x464c457f}, "not a jitdump"},
      {{.version = 2}, "a jitdump of version 2"},
      {{.size = 39}, "not a jitdump"},
      {{.flags = 1},
       "a jitdump with times of the processor's clock: they cannot be compared with "
       "those of samples"},
      {{.flags = 4}, "a jitdump with flags 0x4"},
  };
  for (const auto& [header, message] : kHeaders) {
    MadeUpJitDump dump(header);
    dump.Load(1, 0x1000, 0x20, "one");
    JitDump refused(kRoom);
    const Result<void> read = refused.Update(TextFile(dump.bytes()).get(), false, kNow);
    ASSERT_FALSE(read) << message;
    EXPECT_EQ(read.error().message(), message);
    EXPECT_TRUE(refused.empty());
  }
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_EQ(dump_.Update(pipe[0], false, kNow).error().code(), ErrorCode::kInvalid);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(JitDumpTest, ReadsALongerHeader) {
  ASSERT_TRUE(Read(MadeUpJitDump({.size = 64}).Load(1, 0x1000, 0x20, "one")));
  EXPECT_EQ(At(0x1000), "one");
}

TEST_F(JitDumpTest, PassesOverRecordsThatLie) {
  MadeUpJitDump dump;
  dump.Load(1, 0x1000, 0x20, "too much", 0x21)
      .Load(1, 0x1000, 0x20, "endless", ~uint64_t{0})
      .Load(1, 0x1000, 0, "empty")
      .Load(1, ~uint64_t{0} - 4, 0x20, "around the end")
      .Move(1, 0x1000, ~uint64_t{0} - 4, 0x20)
      .Move(1, 0x1000, 0x2000, 0)
      .Other(0, 20)
      .Other(1, 20)
      .Other(2, 4)
      .Lines(0x1000, {{0x1000, 1, "a.js"}}, 2)
      .Lines(0x1000, {{0x1000, 1, "a.js"}}, ~uint64_t{0})
      .Lines(0x1000, {{0x1000, 1}})
      .Load(1, 0x7000, 0x20, "good");
  ASSERT_TRUE(Read(dump));
  EXPECT_EQ(At(0x7000), "good");
  EXPECT_EQ(At(0x1000), "-");
  EXPECT_EQ(dump_.bad_records(), 12U);
}

TEST_F(JitDumpTest, DoesNotBelieveLinesOfOtherCode) {
  MadeUpJitDump dump;
  dump.Lines(0x1000, {{0x1000, 7, "a.js"}}).Load(1, 0x2000, 0x20, "another");
  dump.Lines(0x3000, {{0x3000, 7, "a.js"}, {0x2fff, 8}}).Load(1, 0x3000, 0x20, "before it");
  dump.Lines(0x4000, {{0x4000, 7, "a.js"}, {0x4061, 8}}).Load(1, 0x4000, 0x20, "behind it");
  dump.Lines(0x5000, {{0x5000, 7, "a.js"}});
  for (int i = 0; i < 20; ++i) dump.Other(9, 8);
  dump.Load(1, 0x5000, 0x20, "long ago");
  ASSERT_TRUE(Read(dump));
  EXPECT_EQ(At(0x2000), "another");
  EXPECT_EQ(At(0x3000), "before it");
  EXPECT_EQ(At(0x4000), "behind it");
  EXPECT_EQ(At(0x5000), "long ago");
  EXPECT_EQ(dump_.bad_records(), 3U);
}

TEST_F(JitDumpTest, StopsAtARecordThatCannotBeOne) {
  MadeUpJitDump dump;
  dump.Load(1, 0x1000, 0x20, "one").Claiming(15).Load(1, 0x2000, 0x20, "two");
  ASSERT_TRUE(Read(dump));
  ASSERT_TRUE(Read());
  EXPECT_EQ(At(0x1000), "one");
  EXPECT_EQ(At(0x2000), "-");
  EXPECT_EQ(dump_.bad_records(), 1U) << "told once";
}

TEST_F(JitDumpTest, WaitsForTheRestOfARecordWhileSomebodyMayWriteIt) {
  const std::string all =
      MadeUpJitDump().Load(1, 0x1000, 0x20, "one").Load(2, 0x2000, 0x20, "two").bytes();
  Append(all.substr(0, all.size() - 1));
  ASSERT_TRUE(Read());
  EXPECT_EQ(At(0x2000), "-");
  EXPECT_EQ(dump_.bad_records(), 0U);
  ASSERT_TRUE(Read(/*has_stopped=*/true));
  EXPECT_EQ(At(0x1000), "one");
  EXPECT_EQ(dump_.bad_records(), 1U) << "it was cut off";
}

TEST_F(JitDumpTest, MakesNamesPrintableAndCutsThem) {
  ASSERT_TRUE(Read(MadeUpJitDump()
                       .Lines(0x1000, {{0x1000, 7, "a\n.js"}})
                       .Load(1, 0x1000, 0x20, "bad\x1b[31m\xff")
                       .Load(1, 0x2000, 0x20, std::string(100000, 'x'))));
  EXPECT_EQ(At(0x1000), "bad\uFFFD[31m\uFFFD a\uFFFD.js:7");
  EXPECT_EQ(At(0x2000).size(), JitCode::kMaxName);
}

TEST_F(JitDumpTest, HasALimitToItsMemory) {
  dump_ = JitDump(100'000);
  std::string bytes = MadeUpJitDump().bytes();
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t start = 0x1000 + i * 0x100;
    bytes += MadeUpJitDump()
                 .Lines(start, {{start, 1, "a.js"}, {start + 1, 2}})
                 .Load(1, start, 0x10, fmt::format("function {} {}", i, std::string(100, 'x')))
                 .bytes()
                 .substr(40);
  }
  // What is passed over is not what lay there before either.
  bytes += MadeUpJitDump().Load(2, 0x1000, 0x10, "new").bytes().substr(40);
  Append(bytes);
  ASSERT_TRUE(Read());
  EXPECT_LT(dump_.bytes(), 200'000U);
  EXPECT_GT(dump_.passed_over(), 1000U);
  EXPECT_EQ(At(0x1000), "-");
  EXPECT_EQ(At(0x1101).substr(0, 11), "function 1 ");
  EXPECT_EQ(At(0x1101).substr(112), "a.js:2");
}

TEST_F(JitDumpTest, GivesMemoryOfReplacedCodeBack) {
  std::string bytes = MadeUpJitDump().bytes();
  for (uint64_t i = 0; i < 5000; ++i) {
    bytes += MadeUpJitDump().Load(1, 0x1000, 0x10, std::string(1000, 'x')).bytes().substr(40);
  }
  Append(bytes);
  ASSERT_TRUE(Read());
  ASSERT_TRUE(Read());
  EXPECT_LT(dump_.bytes(), 5000U);
  EXPECT_EQ(dump_.passed_over(), 0U);
}

// As above, the simple way.
TEST_F(JitDumpTest, AgreesWithASimplerWayToFindTheCode) {
  std::mt19937 random(1);
  std::map<uint64_t, std::vector<std::pair<uint64_t, std::string>>> expected;
  MadeUpJitDump dump;
  const uint64_t begin = kNow.value() - 10000;
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t start = random() % 64;
    const uint64_t size = 1 + random() % 16;
    const std::string name = fmt::format("f{}", i);
    dump.Load(begin + 10 * i, start, size, name);
    for (uint64_t a = start; a < start + size; ++a) expected[a].emplace_back(begin + 10 * i, name);
  }
  ASSERT_TRUE(Read(dump));
  for (const auto& [address, codes] : expected) {
    for (uint64_t when = begin - 5; when < begin + 3100; when += 23) {
      std::string name = codes.front().second;
      for (const auto& [since, then] : codes) {
        if (since <= when) name = then;
      }
      ASSERT_EQ(At(address, when), name) << address << " " << when - begin;
    }
  }
}

}  // namespace
}  // namespace pyrometer
