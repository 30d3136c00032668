// SPDX-License-Identifier: Apache-2.0
#include "agent/label_explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/container_following.h"
#include "agent/label_rules.h"
#include "agent/process_facts.h"
#include "agent/process_labels.h"
#include "base/cgroup_namespace.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "export/grpc_client.h"
#include "foreign/opener_pool.h"
#include "metadata/relabel.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

std::string Quoted(std::string_view text) {
  return fmt::format("\"{}\"", Printable(text));
}

std::string Listed(const Labels& labels) {
  size_t width = 26;
  for (const auto& [name, value] : labels) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("  {:<{}} {}\n", name, width, Quoted(value));
  }
  return text.empty() ? "  none\n" : text;
}

// "drop [a, b]", with the values of these labels if there are any.
std::string Told(const RelabelRule& rule, const RelabelStep& step) {
  std::string text = fmt::format("{}", Name(rule.action));
  if (!rule.source_labels.empty()) {
    text += fmt::format(" [{}] = {}", fmt::join(rule.source_labels, ", "), Quoted(step.sources));
  }
  return text;
}

std::string Told(const RelabelStep::Change& change) {
  if (!change.before) return fmt::format("adds {} = {}", change.name, Quoted(*change.after));
  if (!change.after) return fmt::format("removes {}, was {}", change.name, Quoted(*change.before));
  return fmt::format("changes {} from {} to {}", change.name, Quoted(*change.before),
                     Quoted(*change.after));
}

std::string Told(const AgentConfig& config, const std::vector<RelabelStep>& steps) {
  const std::vector<RelabelRule> rules = RulesOf(config);
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    text += fmt::format("  {}: {}\n", NameOfRule(config, i), Told(rules[i], steps[i]));
    for (const RelabelStep::Change& change : steps[i].changes) {
      text += fmt::format("    {}\n", Told(change));
    }
    if (steps[i].drops) {
      text += "    drops the process\n";
    } else if (steps[i].changes.empty()) {
      text += "    no effect\n";
    }
  }
  return text.empty() ? "  none\n" : text;
}

// Those of every profile come before what a process has.
Labels WithCommon(const Labels& labels, const Labels& common) {
  std::map<std::string, std::string> all(common.begin(), common.end());
  all.insert(labels.begin(), labels.end());
  return {all.begin(), all.end()};
}

struct KnownProcess {
  std::string comm;
  Labels labels;  // before the rules
};

Result<KnownProcess> LookAt(const Procfs& procfs, EnvironmentReader* environments, Pid pid) {
  Result<ProcessDirectory> directory = ProcessDirectory::Open(procfs, pid);
  if (!directory && IsGone(directory.error())) {
    return Fail(ErrorCode::kNotFound, "there is no process {}", pid.value());
  }
  if (!directory) return std::move(directory).error();
  ASSIGN_OR_RETURN(const ProcStat stat, directory->Stat());
  if (stat.kernel_thread) {
    return KnownProcess{stat.comm, LabelsOfName(ProcessLabels::kKernel, MetaLabels::kNone)};
  }
  const SeenProcess seen{
      .key = {pid, stat.start}, .comm = stat.comm, .directory = &*directory, .inherited = nullptr};
  Labels labels = LabelsOf(seen, MetaLabels::kAll);
  if (environments != nullptr) {
    const EnvironmentReader::Answer service = environments->Ask(seen.key);
    if (service && *service) labels = WithOtelServiceName(std::move(labels), **service);
  }
  return KnownProcess{stat.comm, std::move(labels)};
}

// A container that runs is known within this, or not at all: see ContainerDirectory::Options.
constexpr std::chrono::seconds kContainerPatience{8};
constexpr std::chrono::milliseconds kContainerPause{20};

std::shared_ptr<const ContainerMetadata> AskFor(ContainerDirectory& containers, const Clock& clock,
                                                std::string_view id) {
  const MonotonicTime end = After(clock.Now(), kContainerPatience);
  while (true) {
    const ContainerDirectory::Answer answer = containers.Find(id);
    if (answer.state != ContainerDirectory::Answer::State::kAwaited) return answer.metadata;
    if (clock.Now() > end) return nullptr;
    std::this_thread::sleep_for(kContainerPause);
  }
}

// What comes out, and what rules do on the way to it.
std::string Told(const Relabeling& rules, const Labels& captured,
                 const ContainerMetadata* container, const AgentConfig& config,
                 const Labels& of_node) {
  const Labels before = BeforeRules(captured, container);
  std::string text = "before the rules:\n" + Listed(before);
  if (container != nullptr && OptsOut(*container)) {
    return text + "samples: none, since the pod's annotation pyrometer.io/profile is \"false\"\n";
  }
  const std::vector<RelabelStep> steps = rules.Explain(before);
  text += "rules:\n" + Told(config, steps);
  const std::optional<Labels> after = ApplyRules(rules, captured, container).labels;
  if (!after) {
    return text + fmt::format("samples: none, since {} drops the process\n",
                              NameOfRule(config, steps.size() - 1));
  }
  return text + "labels of its samples:\n" +
         Listed(WithCommon(*after, CommonLabels(config, of_node)));
}

}  // namespace

Result<std::string> ExplainLabels(const Procfs& procfs, const AgentConfig& config,
                                  const ExplanationSources& sources, Pid pid) {
  ASSIGN_OR_RETURN(const Relabeling rules, Relabeling::Compile(RulesOf(config)));
  ASSIGN_OR_RETURN(const KnownProcess process, LookAt(procfs, sources.environments, pid));
  std::string text = fmt::format("process {} ({})\n", pid.value(), Printable(process.comm));
  const std::string_view id = ValueIn(process.labels, kMetaContainerId);
  std::shared_ptr<const ContainerMetadata> container;
  if (!id.empty() && sources.containers == nullptr) {
    text += "its container: nobody is asked for it, since kubernetes.mode is off\n";
  } else if (!id.empty()) {
    container = AskFor(*sources.containers, sources.clock, id);
    if (container == nullptr) text += "its container: unknown to those who could be asked\n";
  }
  return text + Told(rules, WithPid(process.labels, pid), container.get(), config, sources.of_node);
}

Result<std::string> ExplainLabels(const Procfs& procfs, const AgentOptions& options,
                                  const Clock& clock, Pid pid) {
  ASSIGN_OR_RETURN(const AgentConfig config, MakeAgentConfig(options));
  // If this cannot be, the agent beside it has the same paths.
  static_cast<void>(EnterMachineCgroupNamespace(procfs));
  std::shared_ptr<ForeignFiles> files;
  if (config.otel_service_name) {  // while there is one thread
    // Nobody but this thread asks, so the clock outlives it.
    const std::shared_ptr<const Clock> borrowed(std::shared_ptr<void>(), &clock);
    ASSIGN_OR_RETURN(files, OpenerPool::Start({.clock = borrowed}));
  }
  GrpcClient::ConfigureLibrary();
  Log log(clock);
  const std::unique_ptr<ContainerDirectory> containers =
      FollowContainers(config.kubernetes, clock, log);
  std::optional<EnvironmentReader> environments;
  if (config.otel_service_name) environments.emplace(procfs, clock, std::move(files));
  return ExplainLabels(procfs, config,
                       {.clock = clock,
                        .containers = containers.get(),
                        .environments = environments ? &*environments : nullptr},
                       pid);
}

}  // namespace pyrometer
