// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/help_text.h"
#include "cli/record_options.h"

namespace pyrometer {
namespace {

using Words = std::vector<std::string>;

// The words up to the first "--", and, if there is one, those after it.
struct SplitWords {
  Words ours;
  std::optional<Words> command;
};

SplitWords SplitAtDashes(int argc, const char* const* argv) {
  const Words words(argv + std::min(argc, 1), argv + argc);
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return {words, std::nullopt};
  return {Words(words.begin(), dashes), Words(std::next(dashes), words.end())};
}

// CLI11's layout, without its "..." after each list option, and with the COMMAND of record.
class HelpLayout : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return type.empty() ? "" : " " + type;
  }

  // Without the "{text}" that tells CLI11 what a flag without a value means.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (!app->get_prefix_command()) return CLI::Formatter::make_usage(app, std::move(name));
    return "Usage: " + name + " [OPTIONS] [[--] COMMAND [ARG]...]\n";
  }
};

// An option with one value each time it is given. By default CLI11 would take all further words as
// values of a list, and split "[a,b]".
template <typename T>
CLI::Option* AddValue(CLI::App& app, const char* names, T& target, const char* help) {
  CLI::Option* const option = app.add_option(names, target, help)->allow_extra_args(false);
  // As in most programs, the last value counts if one is wanted and several are given.
  if (option->get_expected_max() == 1) {
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  return option;
}

// CLI11's model of the command line, and the values that parsing fills in.
class Grammar {
 public:
  Grammar();

  // Throws CLI::ParseError.
  Result<ParsedCommand> Parse(const SplitWords& words);

  // Of the subcommand that was named, if any.
  std::string Help() const { return app_.help(); }

 private:
  void AddRecord();
  void AddEvent();
  void AddTargets();
  void AddAgent();
  void AddAgentFilter();
  void AddAgentSinks();
  void AddDoctor();
  Result<ParsedCommand> ParsedAgent() const;
  Result<ParsedCommand> ParsedRecord(const std::optional<Words>& after_dashes);

  CLI::App app_{"Finds the hot code of every process on a Linux machine, without touching it.",
                "pyrometer"};
  CLI::App* record_ = nullptr;
  CLI::App* agent_ = nullptr;
  CLI::App* doctor_ = nullptr;
  CLI::App* version_ = nullptr;
  RecordOptions record_options_;
  AgentOptions agent_options_;
  bool check_config_ = false;
  std::optional<uint32_t> explained_;
  Examination examination_;
  bool version_flag_ = false;
};

Grammar::Grammar() {
  app_.formatter(std::make_shared<HelpLayout>());  // subcommands inherit it
  app_.footer(kProgramFooter);
  app_.require_subcommand(0, 1);
  app_.set_help_flag("-h,--help", "Print this help");
  app_.add_flag("--version", version_flag_, "Print the version");
  AddRecord();
  AddAgent();
  AddDoctor();
  version_ = app_.add_subcommand("version", "Print the version, build type and libbpf version");
}

void Grammar::AddRecord() {
  RecordOptions& to = record_options_;
  record_ = app_.add_subcommand("record", "Record a profile and write it");
  record_->footer(kRecordFooter);
  record_->prefix_command();  // the first word that is no option begins the COMMAND
  AddTargets();
  AddValue(*record_, "-d,--duration", to.duration, "How long to record: 10s, 1m30s, 500ms")
      ->type_name("TIME");
  AddEvent();
  AddValue(*record_, "--unwind-memory", to.unwind_memory,
           "Limit on kernel memory for unwind tables, 1MiB to 256MiB; default 64MiB, "
           "with less than 4GiB of memory a 64th of it, but at least 8MiB")
      ->type_name("SIZE");
  AddValue(*record_, "-o,--output", to.outputs, "Write the profile to this file; may be repeated")
      ->type_name("FILE");
  AddValue(*record_, "--format", to.format,
           "pprof, folded, html or text; for - and for names without a known ending")
      ->type_name("FORMAT");
  AddValue(*record_, "--label", to.labels, "Add this label to every sample; may be repeated")
      ->type_name("NAME=VALUE");
  record_->add_flag("--no-kernel", to.no_kernel, "Leave out kernel frames");
  record_->add_flag("--no-inlines", to.no_inlines,
                    "Leave out functions that were inlined into others");
  record_->add_flag("--no-dwarf", to.no_dwarf,
                    "Read no debug information: names of functions only");
  AddValue(
      *record_, "--demangle", to.demangle,
      "Names of C++ and Rust functions: simple, full (with parameters) or none; default simple")
      ->type_name("STYLE");
  record_->add_flag("--no-sandbox", to.no_sandbox,
                    "Read files of profiled programs in this process, without a sandbox");
  record_->add_flag("-q,--quiet", to.quiet, "Show no progress line");
  record_->add_flag("--stats{text}", to.stats,
                    "Print every counter to standard error at the end; --stats=json prints JSON");
}

void Grammar::AddEvent() {
  RecordOptions& to = record_options_;
  AddValue(*record_, "-e,--event", to.event,
           "What to sample: cpu-clock (CPU time) or page-faults; default cpu-clock")
      ->type_name("EVENT");
  AddValue(*record_, "-F,--frequency", to.frequency,
           "Samples per second on each CPU, 1 to 10000; default 99; for cpu-clock")
      ->type_name("HZ");
  AddValue(*record_, "--period", to.period,
           "A sample for every so many events on a CPU; default 1; for page-faults")
      ->type_name("N");
}

void Grammar::AddTargets() {
  RecordOptions& to = record_options_;
  constexpr const char* kTargets = "Targets (each may be repeated)";
  AddValue(*record_, "-p,--pid", to.pids, "These processes, and the children they fork from now on")
      ->type_name("PID[,PID]...")
      ->group(kTargets);
  AddValue(*record_, "--comm", to.comms, "Processes or threads of this name (its first 15 bytes)")
      ->type_name("NAME")
      ->group(kTargets);
  AddValue(*record_, "-G,--cgroup", to.cgroups, "Everything in this cgroup or below it")
      ->type_name("PATH")
      ->group(kTargets);
  AddValue(*record_, "--container", to.containers,
           "Everything in this container: its id, the first 12 or more digits of it, or its name")
      ->type_name("ID|NAME")
      ->group(kTargets);
  AddValue(*record_, "--pod", to.pods, "Everything in this pod")
      ->type_name("NAME")
      ->group(kTargets);
  AddValue(*record_, "--namespace", to.namespaces, "Everything in the pods of this namespace")
      ->type_name("NAME")
      ->group(kTargets);
}

void Grammar::AddAgent() {
  AgentOptions& to = agent_options_;
  agent_ = app_.add_subcommand("agent", "Profile all the time, and deliver profiles to servers");
  agent_->footer(kAgentFooter);
  AddValue(*agent_, "--config", to.config_file,
           "Read this file; default /etc/pyrometer/pyrometer.yaml if it exists")
      ->type_name("FILE");
  agent_->add_flag("--check-config", check_config_,
                   "Check the configuration, print what it means, and do nothing else");
  AddValue(
      *agent_, "--explain", explained_,
      "Print the labels of this process, what each rule of relabel_configs does to them, and do "
      "nothing else")
      ->type_name("PID");
  constexpr const char* kOverrides = "Instead of what the file says";
  AddValue(*agent_, "-F,--frequency", to.frequency,
           "Samples per second on each CPU, 1 to 10000; default 99")
      ->type_name("HZ")
      ->group(kOverrides);
  AddValue(*agent_, "--window", to.window, "Time that a profile covers, 1s to 10m; default 10s")
      ->type_name("TIME")
      ->group(kOverrides);
  AddValue(*agent_, "--label", to.labels, "Add this label to every profile; may be repeated")
      ->type_name("NAME=VALUE")
      ->group(kOverrides);
  AddValue(*agent_, "--listen", to.listen,
           "Address of the agent's page; default 127.0.0.1:4041, '' for none")
      ->type_name("ADDRESS:PORT")
      ->group(kOverrides);
  AddValue(*agent_, "--spool-directory", to.spool_directory,
           "Where profiles wait for servers; default /var/lib/pyrometer/spool")
      ->type_name("DIR")
      ->group(kOverrides);
  agent_->add_flag("--no-kernel", to.no_kernel, "Leave out kernel frames")->group(kOverrides);
  agent_
      ->add_flag("--no-inlines", to.no_inlines, "Leave out functions that were inlined into others")
      ->group(kOverrides);
  agent_->add_flag("--no-dwarf", to.no_dwarf, "Read no debug information: names of functions only")
      ->group(kOverrides);
  AddValue(*agent_, "--demangle", to.demangle,
           "Names of C++ and Rust functions: simple, full or none; default simple")
      ->type_name("STYLE")
      ->group(kOverrides);
  AddAgentFilter();
  AddAgentSinks();
}

void Grammar::AddAgentFilter() {
  AgentOptions& to = agent_options_;
  constexpr const char* kFilter = "Processes, instead of those of the file (each may be repeated)";
  AddValue(*agent_, "--comm", to.comms, "Processes or threads of this name (its first 15 bytes)")
      ->type_name("NAME")
      ->group(kFilter);
  AddValue(*agent_, "-G,--cgroup", to.cgroups, "Everything in this cgroup or below it")
      ->type_name("PATH")
      ->group(kFilter);
  AddValue(*agent_, "--exclude-cgroup", to.exclude_cgroups,
           "Nothing in this cgroup or below it, whatever else is given")
      ->type_name("PATH")
      ->group(kFilter);
}

void Grammar::AddAgentSinks() {
  AgentOptions& to = agent_options_;
  constexpr const char* kSinks =
      "Destinations, instead of all sinks of the file (each may be repeated)";
  AddValue(*agent_, "--pyroscope", to.pyroscope_urls, "Pyroscope: http://host:4040")
      ->type_name("URL")
      ->group(kSinks);
  AddValue(*agent_, "--parca", to.parca_addresses,
           "Parca: host:7070, with TLS; http://host:7070, without")
      ->type_name("ADDRESS")
      ->group(kSinks);
  AddValue(*agent_, "--otlp", to.otlp_endpoints,
           "An OpenTelemetry collector by HTTP: http://host:4318")
      ->type_name("URL")
      ->group(kSinks);
  AddValue(*agent_, "-o,--output-directory", to.output_directories,
           "Pprof files in this directory: at most 1GiB, and a week")
      ->type_name("DIR")
      ->group(kSinks);
}

void Grammar::AddDoctor() {
  doctor_ = app_.add_subcommand("doctor", "Check what this kernel and these privileges allow");
  doctor_->footer(kDoctorFooter);
  doctor_->add_flag("--json", examination_.json, "Print JSON");
}

// Refuses what CLI11 reads differently than users mean it: after "--output=" it takes the next word
// as the value, and "++" ends a subcommand.
Result<void> RefuseOddWords(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "++") return Fail(ErrorCode::kInvalid, "'++' has no meaning here");
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      return Fail(ErrorCode::kInvalid, "{} needs a value", word.substr(0, word.size() - 1));
    }
  }
  return {};
}

Result<ParsedCommand> Grammar::Parse(const SplitWords& words) {
  app_.parse(Words(words.ours.rbegin(), words.ours.rend()));  // CLI11 takes them last first
  // The words of a COMMAND without "--", which are the last, are not ours to judge.
  const size_t ours = words.ours.size() - record_->remaining().size();
  RETURN_IF_ERROR(RefuseOddWords(std::span(words.ours).first(ours)));
  if (record_->parsed()) return ParsedRecord(words.command);
  if (words.command) {
    return Fail(ErrorCode::kInvalid, "only record takes a command after --");
  }
  if (agent_->parsed()) return ParsedAgent();
  if (doctor_->parsed()) return ParsedCommand(examination_);
  if (version_->parsed() || version_flag_) return ParsedCommand(ShowVersion{});
  return Fail(ErrorCode::kInvalid,
              "no subcommand given: record, agent, doctor or version; see --help");
}

Result<ParsedCommand> Grammar::ParsedRecord(const std::optional<Words>& after_dashes) {
  // With prefix_command() CLI11 leaves here the COMMAND, and also options that it does not know.
  Words command = record_->remaining();
  if (!command.empty() && command.front().starts_with('-')) {
    return Fail(ErrorCode::kInvalid, "record has no option {}; see pyrometer record --help",
                command.front());
  }
  if (after_dashes) {
    // "--" after the first word of the COMMAND is one of its own arguments.
    if (!command.empty()) command.emplace_back("--");
    command.insert(command.end(), after_dashes->begin(), after_dashes->end());
    if (command.empty()) return Fail(ErrorCode::kInvalid, "no command after --");
  }
  if (!command.empty() && command.front().empty()) {
    return Fail(ErrorCode::kInvalid, "the name of the command is empty");
  }
  record_options_.command = std::move(command);
  ASSIGN_OR_RETURN(RecordConfig config, MakeRecordConfig(record_options_));
  return ParsedCommand(std::move(config));
}

Result<ParsedCommand> Grammar::ParsedAgent() const {
  if (check_config_ && explained_) {
    return Fail(ErrorCode::kInvalid, "--check-config and --explain do not go together");
  }
  if (check_config_) return ParsedCommand(ConfigCheck{agent_options_});
  if (explained_) return ParsedCommand(Explanation{agent_options_, Pid(*explained_)});
  return ParsedCommand(agent_options_);
}

// CLI11 puts two blank lines between groups.
std::string WithSingleBlanks(std::string text) {
  constexpr std::string_view kTwoBlanks = "\n\n\n";
  for (size_t at = 0; (at = text.find(kTwoBlanks, at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string OnOneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

Result<ParsedCommand> ParseCommandLine(int argc, const char* const* argv) {
  const SplitWords words = SplitAtDashes(argc, argv);
  Grammar grammar;
  try {
    return grammar.Parse(words);
  } catch (const CLI::CallForHelp&) {
    return ParsedCommand(ShowHelp{WithSingleBlanks(grammar.Help()) + "\n"});
  } catch (const CLI::ArgumentMismatch& error) {
    // "--pid: 1 required PID missing", the only way to give a wrong number of values here.
    const std::string_view message = error.what();
    return Fail(ErrorCode::kInvalid, "{} needs a value", message.substr(0, message.find(':')));
  } catch (const CLI::ExtrasError& error) {
    return Fail(ErrorCode::kInvalid, "{}; see pyrometer --help", OnOneLine(error.what()));
  } catch (const CLI::ParseError& error) {
    return Error(ErrorCode::kInvalid, OnOneLine(error.what()));
  }
}

}  // namespace pyrometer
