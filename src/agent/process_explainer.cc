// SPDX-License-Identifier: Apache-2.0
#include "agent/process_explainer.h"

#include <pthread.h>

#include <utility>

#include "agent/label_explanation.h"

namespace pyrometer {

ProcessExplainer::ProcessExplainer(Procfs procfs, const Clock& clock,
                                   ContainerDirectory* containers, EnvironmentReader* environments)
    : procfs_(std::move(procfs)),
      clock_(clock),
      containers_(containers),
      environments_(environments),
      thread_([this] { Run(); }) {}

ProcessExplainer::~ProcessExplainer() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

Result<std::string> ProcessExplainer::Explain(const AgentConfig& config, const Labels& of_node,
                                              Pid pid) {
  Question question{.config = config, .of_node = of_node, .pid = pid};
  const absl::MutexLock lock(&mutex_);
  if (question_ != nullptr) {
    return Fail(ErrorCode::kExhausted, "another process is being explained; try again");
  }
  question_ = &question;
  mutex_.Await(absl::Condition(&question.answered));
  question_ = nullptr;
  return std::move(question.answer);
}

void ProcessExplainer::Run() {
  ::pthread_setname_np(::pthread_self(), "explaining");
  const absl::MutexLock lock(&mutex_);
  while (true) {
    const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || (question_ != nullptr && !question_->answered);
    };
    mutex_.Await(absl::Condition(&has_work));
    if (question_ == nullptr || question_->answered) return;
    Question& question = *question_;
    mutex_.Unlock();
    Result<std::string> answer = ExplainLabels(procfs_, question.config,
                                               {.clock = clock_,
                                                .containers = containers_,
                                                .environments = environments_,
                                                .of_node = question.of_node},
                                               question.pid);
    mutex_.Lock();
    question.answer = std::move(answer);
    question.answered = true;
  }
}

}  // namespace pyrometer
