// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<const char*>;

Result<ParsedCommand> Parse(Words words) {
  words.insert(words.begin(), "pyrometer");
  return ParseCommandLine(static_cast<int>(words.size()), words.data());
}

RecordConfig ParseRecord(Words words) {
  words.insert(words.begin(), "record");
  const Result<ParsedCommand> parsed = Parse(words);
  if (!parsed) {
    ADD_FAILURE() << parsed.error().message();
    return {};
  }
  return std::get<RecordConfig>(*parsed);
}

TEST(ParseCommandLine, RecordsTheWholeMachineUnlessTold) {
  const RecordConfig config = ParseRecord({});
  EXPECT_THAT(config.pids, IsEmpty());
  EXPECT_THAT(config.command, IsEmpty());
  EXPECT_THAT(config.outputs, IsEmpty());
  EXPECT_EQ(config.duration, std::nullopt);
  EXPECT_EQ(config.frequency.value, 99U);
  EXPECT_TRUE(config.kernel_stacks);
  EXPECT_TRUE(config.inlines);
  EXPECT_TRUE(config.dwarf);
  EXPECT_EQ(config.demangling, Demangling::kSimple);
  EXPECT_TRUE(config.sandbox);
  EXPECT_FALSE(config.quiet);
}

TEST(ParseCommandLine, ReadsEveryOptionOfRecord) {
  const RecordConfig config = ParseRecord(
      {"--comm",   "nginx",      "--cgroup",    "/a",           "--container", "0123456789ab",
       "--pid",    "7",          "--duration",  "1m30s",        "--frequency", "499",
       "--output", "a.html",     "--format",    "pprof",        "--output",    "b",
       "--label",  "service=x",  "--no-kernel", "--no-inlines", "--no-dwarf",  "--no-sandbox",
       "--quiet",  "--demangle", "none"});
  EXPECT_THAT(config.comms, ElementsAre("nginx"));
  EXPECT_THAT(config.cgroups, ElementsAre("/a"));
  EXPECT_THAT(config.containers, ElementsAre("0123456789ab"));
  EXPECT_TRUE(config.container_names.empty());
  EXPECT_THAT(config.pids, ElementsAre(Pid(7)));
  EXPECT_EQ(config.duration, std::chrono::seconds(90));
  EXPECT_EQ(config.frequency.value, 499U);
  ASSERT_EQ(config.outputs.size(), 2U);
  EXPECT_EQ(config.outputs[0].format, OutputFormat::kHtml);
  EXPECT_EQ(config.outputs[1].format, OutputFormat::kPprof);
  EXPECT_THAT(config.labels, ElementsAre(std::pair<std::string, std::string>("service", "x")));
  EXPECT_FALSE(config.kernel_stacks);
  EXPECT_FALSE(config.inlines);
  EXPECT_FALSE(config.dwarf);
  EXPECT_EQ(config.demangling, Demangling::kNone);
  EXPECT_FALSE(config.sandbox);
  EXPECT_TRUE(config.quiet);
}

TEST(ParseCommandLine, TellsNamesOfContainersFromIds) {
  const RecordConfig config =
      ParseRecord({"--container", "web", "--container", "docker://0123456789ab", "--container",
                   "web", "--pod", "web-0", "--namespace", "shop", "--pod", "web-1"});
  EXPECT_THAT(config.containers, ElementsAre("0123456789ab"));
  EXPECT_THAT(config.container_names.containers, ElementsAre("web"));
  EXPECT_THAT(config.container_names.pods, ElementsAre("web-0", "web-1"));
  EXPECT_THAT(config.container_names.namespaces, ElementsAre("shop"));
}

TEST(ParseCommandLine, ReadsShortOptions) {
  const RecordConfig config = ParseRecord({"-p", "7", "-d10s", "-F", "9", "-o", "a.txt", "-q"});
  EXPECT_THAT(config.pids, ElementsAre(Pid(7)));
  EXPECT_EQ(config.duration, std::chrono::seconds(10));
  EXPECT_EQ(config.frequency.value, 9U);
  EXPECT_EQ(config.outputs.size(), 1U);
  EXPECT_TRUE(config.quiet);
}

TEST(ParseCommandLine, ReadsWhatToSample) {
  EXPECT_EQ(ParseRecord({}).event, SampledEvent());
  EXPECT_EQ(ParseRecord({"--event", "cpu-clock", "-F", "9"}).frequency.value, 9U);
  const SampledEvent each{.kind = EventKind::kPageFaults};
  EXPECT_EQ(ParseRecord({"--event", "page-faults"}).event, each);
  const SampledEvent tenth{.kind = EventKind::kPageFaults, .period = 10};
  EXPECT_EQ(ParseRecord({"-e", "page-faults", "--period", "10"}).event, tenth);
  EXPECT_EQ(ParseRecord({"--period=10", "--event=page-faults"}).event, tenth);
}

TEST(ParseCommandLine, ReadsWhichStatsAreWanted) {
  EXPECT_EQ(ParseRecord({}).stats, std::nullopt);
  EXPECT_EQ(ParseRecord({"--stats"}).stats, StatsFormat::kText);
  EXPECT_EQ(ParseRecord({"--stats=json"}).stats, StatsFormat::kJson);
  const RecordConfig config = ParseRecord({"--stats", "make", "all"});
  EXPECT_EQ(config.stats, StatsFormat::kText);
  EXPECT_THAT(config.command, ElementsAre("make", "all"));
  EXPECT_EQ(Parse({"record", "--stats=xml"}).error().code(), ErrorCode::kInvalid);
}

TEST(ParseCommandLine, CollectsRepeatedTargetsOnce) {
  const RecordConfig config = ParseRecord(
      {"-p", "1,2", "--pid=2", "-p", "3", "--comm", "a b", "--comm", "[x,y]", "--comm", "a b"});
  EXPECT_THAT(config.pids, ElementsAre(Pid(1), Pid(2), Pid(3)));
  EXPECT_THAT(config.comms, ElementsAre("a b", "[x,y]"));
}

TEST(ParseCommandLine, CutsNamesAsTheKernelDoes) {
  EXPECT_THAT(ParseRecord({"--comm", "a-rather-long-process-name"}).comms,
              ElementsAre("a-rather-long-p"));
}

TEST(ParseCommandLine, LetsTheLastOfSingleOptionsCount) {
  EXPECT_EQ(ParseRecord({"-F", "1", "-F", "2"}).frequency.value, 2U);
  EXPECT_EQ(ParseRecord({"--unwind-memory", "8MiB"}).unwind_memory, size_t{8} << 20);
}

TEST(ParseCommandLine, LeavesTheCommandUntouched) {
  const struct {
    Words words;
    std::vector<std::string> command;
  } cases[] = {
      {{"--", "sleep", "1"}, {"sleep", "1"}},
      {{"--", "x", "--pid", "0", "-h", "--", ""}, {"x", "--pid", "0", "-h", "--", ""}},
      {{"--", "--odd-name"}, {"--odd-name"}},
      {{"sleep", "1"}, {"sleep", "1"}},
      {{"make", "-j8", "--output", "x"}, {"make", "-j8", "--output", "x"}},
      {{"sh", "-c", "x", "--", "y"}, {"sh", "-c", "x", "--", "y"}},
      {{"record", "doctor"}, {"record", "doctor"}},
      {{"doctor"}, {"doctor"}},
      {{"-q", "env", "--help"}, {"env", "--help"}},
      {{"./configure", "--prefix=", "++"}, {"./configure", "--prefix=", "++"}},
  };
  for (const auto& [words, command] : cases) {
    EXPECT_EQ(ParseRecord(words).command, command);
  }
}

TEST(ParseCommandLine, TakesOptionsBeforeTheCommandForItself) {
  const RecordConfig config = ParseRecord({"-F", "9", "--", "x", "-F", "8"});
  EXPECT_EQ(config.frequency.value, 9U);
  EXPECT_THAT(config.command, ElementsAre("x", "-F", "8"));
}

TEST(ParseCommandLine, RefusesWrongUsageInOneLine) {
  const std::pair<Words, const char*> cases[] = {
      {{}, "record, agent, doctor or version"},
      {{"bogus"}, "bogus"},
      {{"--bogus"}, "--bogus"},
      {{"doctor", "record"}, "record"},
      {{"version", "x"}, "x"},
      {{"doctor", "--", "x"}, "only record takes a command"},
      {{"--", "x"}, "only record takes a command"},
      {{"record", "--bogus"}, "no option --bogus"},
      {{"record", "--bogus", "sleep", "1"}, "no option --bogus"},
      {{"record", "-x"}, "no option -x"},
      {{"record", "--"}, "no command after --"},
      {{"record", "--", ""}, "name of the command is empty"},
      {{"record", "++"}, "'++'"},
      {{"record", "--pid"}, "--pid needs a value"},
      {{"record", "++", "--version"}, "'++'"},
      {{"record", "--output="}, "--output needs a value"},
      {{"record", "--output=", "-q"}, "--output needs a value"},
      {{"record", "--output=", "./configure", "--prefix="}, "--output needs a value"},
      {{"doctor", "--json="}, "--json needs a value"},
      {{"record", "--pid", "0"}, "'0' is not a process id"},
      {{"record", "--pid", "-1"}, "'-1' is not a process id"},
      {{"record", "--pid", "4194305"}, "'4194305' is not a process id"},
      {{"record", "--pid", "99999999999"}, "'99999999999' is not a process id"},
      {{"record", "--pid", "1x"}, "'1x' is not a process id"},
      {{"record", "--pid", "1,"}, "'' is not a process id"},
      {{"record", "--pid", ""}, "'' is not a process id"},
      {{"record", "--comm", ""}, "--comm is empty"},
      {{"record", "--cgroup", ""}, "--cgroup is empty"},
      {{"record", "--container", "my nginx"}, "'my nginx' is no container's id or name"},
      {{"record", "--container", "docker://my-nginx"}, "is no container's id or name"},
      {{"record", "--pod", "a/b"}, "'a/b' cannot be the name given to --pod"},
      {{"record", "--namespace", ""}, "'' cannot be the name given to --namespace"},
      {{"record", "--frequency", "0"}, "1 to 10000"},
      {{"record", "--frequency", "100000"}, "1 to 10000"},
      {{"record", "--frequency", "fast"}, "1 to 10000"},
      {{"record", "--event", "faults"}, "choose cpu-clock or page-faults"},
      {{"record", "--event", "page-faults", "-F", "99"}, "--period instead of --frequency"},
      {{"record", "-F", "99", "--event", "page-faults"}, "--period instead of --frequency"},
      {{"record", "--period", "10"}, "for --event cpu-clock give --frequency"},
      {{"record", "--event", "cpu-clock", "--period", "1"}, "for --event cpu-clock give"},
      {{"record", "--event", "page-faults", "--period", "0"}, "1 to 1000000000"},
      {{"agent", "--event", "page-faults"}, "--event"},
      {{"record", "--unwind-memory", "2G"}, "1 to 256 MiB"},
      {{"record", "--duration", "10"}, "'10' is not a duration"},
      {{"record", "--duration", ""}, "'' is not a duration"},
      {{"record", "--duration", "-1s"}, "'-1s' is not a duration"},
      {{"record", "--duration", "0s"}, "too short"},
      {{"record", "--output", "profile"}, "give --format"},
      {{"record", "--output", ""}, "is empty"},
      {{"record", "--output", "-", "--output", "-"}, "'-' is given twice"},
      {{"record", "--format", "svg"}, "choose pprof, folded, html or text"},
      {{"record", "--label", "x"}, "has no '='"},
      {{"record", "--label", "a=1", "--label", "a=2"}, "'a' is given twice"},
      {{"record", "--pid", "1", "--", "x"}, "cannot be combined with"},
      {{"record", "--comm", "x", "y"}, "cannot be combined with"},
      {{"record", "--cgroup", "/x", "--", "y"}, "cannot be combined with"},
      {{"record", "--container", "0123456789ab", "--", "y"}, "cannot be combined with"},
      {{"record", "--pod", "web", "--", "y"}, "cannot be combined with"},
  };
  for (const auto& [words, reason] : cases) {
    const Result<ParsedCommand> parsed = Parse(words);
    ASSERT_FALSE(parsed.has_value()) << reason;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid) << parsed.error().message();
    EXPECT_THAT(parsed.error().message(), HasSubstr(reason));
    EXPECT_THAT(parsed.error().message(), Not(HasSubstr("\n")));
  }
}

TEST(ParseCommandLine, SurvivesAnEmptyArgumentVector) {
  EXPECT_FALSE(ParseCommandLine(0, nullptr).has_value());
}

TEST(ParseCommandLine, ShowsTheHelpOfTheSubcommand) {
  const std::pair<Words, const char*> cases[] = {
      {{"--help"}, "Subcommands:"},
      {{"-h"}, "Subcommands:"},
      {{"record", "--help"}, "--duration TIME"},
      {{"record", "--frequency", "0", "-h"}, "Exit status:"},
      {{"doctor", "--help"}, "--json"},
  };
  for (const auto& [words, text] : cases) {
    const Result<ParsedCommand> parsed = Parse(words);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
    EXPECT_THAT(std::get<ShowHelp>(*parsed).text, HasSubstr(text));
    EXPECT_THAT(std::get<ShowHelp>(*parsed).text, Not(HasSubstr("{")));
  }
}

TEST(ParseCommandLine, ReadsTheOtherSubcommands) {
  EXPECT_FALSE(std::get<Examination>(*Parse({"doctor"})).json);
  EXPECT_TRUE(std::get<Examination>(*Parse({"doctor", "--json"})).json);
  EXPECT_TRUE(std::holds_alternative<ShowVersion>(*Parse({"version"})));
  EXPECT_TRUE(std::holds_alternative<ShowVersion>(*Parse({"--version"})));
}

TEST(ParseCommandLine, StartsAnAgentWithTheDefaultFile) {
  const Result<ParsedCommand> parsed = Parse({"agent"});
  ASSERT_TRUE(parsed.has_value());
  const AgentOptions& options = std::get<AgentOptions>(*parsed);
  EXPECT_EQ(options.config_file, std::nullopt);
  EXPECT_EQ(options.frequency, std::nullopt);
  EXPECT_FALSE(options.no_kernel);
  EXPECT_THAT(options.pyroscope_urls, IsEmpty());
}

TEST(ParseCommandLine, ReadsEveryOptionOfTheAgent) {
  const Result<ParsedCommand> parsed = Parse({"agent",
                                              "--config",
                                              "c.yaml",
                                              "--frequency",
                                              "49",
                                              "--window",
                                              "30s",
                                              "--label",
                                              "a=b",
                                              "--label=c=d",
                                              "--listen",
                                              "",
                                              "--no-kernel",
                                              "--no-inlines",
                                              "--no-dwarf",
                                              "--demangle",
                                              "full",
                                              "--comm",
                                              "nginx",
                                              "--cgroup",
                                              "/a",
                                              "--exclude-cgroup",
                                              "/b",
                                              "--spool-directory",
                                              "/s",
                                              "--pyroscope",
                                              "http://p:4040",
                                              "--parca",
                                              "p:7070",
                                              "--parca",
                                              "q:7070",
                                              "--otlp",
                                              "http://c:4318",
                                              "-o",
                                              "d"});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  const AgentOptions& options = std::get<AgentOptions>(*parsed);
  EXPECT_EQ(options.config_file, "c.yaml");
  EXPECT_EQ(options.frequency, "49");
  EXPECT_EQ(options.window, "30s");
  EXPECT_THAT(options.labels, ElementsAre("a=b", "c=d"));
  EXPECT_EQ(options.listen, "");
  EXPECT_TRUE(options.no_kernel);
  EXPECT_TRUE(options.no_inlines);
  EXPECT_TRUE(options.no_dwarf);
  EXPECT_EQ(options.demangle, "full");
  EXPECT_THAT(options.comms, ElementsAre("nginx"));
  EXPECT_THAT(options.cgroups, ElementsAre("/a"));
  EXPECT_THAT(options.exclude_cgroups, ElementsAre("/b"));
  EXPECT_EQ(options.spool_directory, "/s");
  EXPECT_THAT(options.pyroscope_urls, ElementsAre("http://p:4040"));
  EXPECT_THAT(options.parca_addresses, ElementsAre("p:7070", "q:7070"));
  EXPECT_THAT(options.otlp_endpoints, ElementsAre("http://c:4318"));
  EXPECT_THAT(options.output_directories, ElementsAre("d"));
}

TEST(ParseCommandLine, ChecksTheConfigurationInsteadOfStarting) {
  const Result<ParsedCommand> parsed = Parse({"agent", "--check-config", "--config", "c.yaml"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::get<ConfigCheck>(*parsed).options.config_file, "c.yaml");
}

TEST(ParseCommandLine, ExplainsAProcessInsteadOfStarting) {
  const Result<ParsedCommand> parsed = Parse({"agent", "--explain", "4711", "--config", "c.yaml"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::get<Explanation>(*parsed).pid, Pid(4711));
  EXPECT_EQ(std::get<Explanation>(*parsed).options.config_file, "c.yaml");
  for (const Words& words : {Words{"agent", "--explain", "nginx"}, Words{"agent", "--explain"},
                             Words{"agent", "--explain", "1", "--check-config"}}) {
    EXPECT_FALSE(Parse(words).has_value());
  }
}

TEST(ParseCommandLine, RefusesWhatTheAgentDoesNotKnow) {
  for (const Words& words :
       {Words{"agent", "--frequncy", "9"}, Words{"agent", "word"}, Words{"agent", "--config"},
        Words{"agent", "--config="}, Words{"agent", "--", "make"}, Words{"agent", "record"}}) {
    const Result<ParsedCommand> parsed = Parse(words);
    ASSERT_FALSE(parsed.has_value()) << words.back();
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace pyrometer
