// SPDX-License-Identifier: Apache-2.0
#include "agent/label_explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "agent/process_facts.h"
#include "agent/process_labels.h"
#include "base/cgroup_namespace.h"
#include "base/printable.h"
#include "metadata/relabel.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

std::string Quoted(std::string_view text) {
  return fmt::format("\"{}\"", Printable(text));
}

std::string Listed(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("  {:<26} {}\n", name, Quoted(value));
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

std::string Told(const std::vector<RelabelRule>& rules, const std::vector<RelabelStep>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    text += fmt::format("  relabel_configs[{}]: {}\n", i, Told(rules[i], steps[i]));
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

// Those of the configuration are on every profile, whatever a process has.
Labels WithOwn(Labels labels, const AgentConfig& config) {
  for (const auto& own : config.labels) {
    std::erase_if(labels, [&](const auto& label) { return label.first == own.first; });
    labels.push_back(own);
  }
  std::ranges::sort(labels);
  return labels;
}

struct KnownProcess {
  std::string comm;
  Labels labels;  // before the rules
};

Result<KnownProcess> LookAt(const Procfs& procfs, Pid pid) {
  Result<ProcessDirectory> directory = ProcessDirectory::Open(procfs, pid);
  if (!directory && IsGone(directory.error())) {
    return Fail(ErrorCode::kNotFound, "there is no process {}", pid.value());
  }
  if (!directory) return std::move(directory).error();
  ASSIGN_OR_RETURN(const ProcStat stat, directory->Stat());
  if (stat.kernel_thread) {
    return KnownProcess{stat.comm, LabelsOfName(ProcessLabels::kKernel, MetaLabels::kWithout)};
  }
  const SeenProcess seen{
      .key = {pid, stat.start}, .comm = stat.comm, .directory = &*directory, .inherited = nullptr};
  return KnownProcess{stat.comm, LabelsOf(seen, MetaLabels::kWith)};
}

}  // namespace

Result<std::string> ExplainLabels(const Procfs& procfs, const AgentConfig& config, Pid pid) {
  ASSIGN_OR_RETURN(const Relabeling rules, Relabeling::Compile(config.relabel_configs));
  ASSIGN_OR_RETURN(const KnownProcess process, LookAt(procfs, pid));
  const Labels before = WithPid(process.labels, pid);
  const std::vector<RelabelStep> steps = rules.Explain(before);
  std::string text =
      fmt::format("process {} ({})\nbefore the rules:\n{}rules:\n{}", pid.value(),
                  Printable(process.comm), Listed(before), Told(config.relabel_configs, steps));
  const std::optional<Labels> after = ApplyRules(rules, before).labels;
  if (!after) {
    return text + fmt::format("samples: none, since relabel_configs[{}] drops the process\n",
                              steps.size() - 1);
  }
  text += "labels of its samples:\n" + Listed(WithOwn(*after, config));
  // That takes an answer of the runtime's, and time; see late_labels.h.
  const bool has_container = !ValueIn(*after, kContainerIdLabel).empty();
  if (has_container && config.kubernetes.mode != KubernetesMode::kOff) {
    text +=
        "the names of its pod, service_name among them, take the place of container_id where the "
        "container runtime knows it\n";
  }
  return text;
}

Result<std::string> ExplainLabels(const Procfs& procfs, const AgentOptions& options, Pid pid) {
  ASSIGN_OR_RETURN(const AgentConfig config, MakeAgentConfig(options));
  // If this cannot be, the agent beside it has the same paths.
  static_cast<void>(EnterMachineCgroupNamespace(procfs));
  return ExplainLabels(procfs, config, pid);
}

}  // namespace pyrometer
