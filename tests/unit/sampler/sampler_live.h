// SPDX-License-Identifier: Apache-2.0
// The sampler on the running kernel. The measure of truth is the kernel's own count of the
// program's runs. On an emulated CPU (tests/vm) most ticks are never delivered, so that nothing
// that uses this may depend on how many there are.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "sampler/sampler.h"

namespace pyrometer {

// Longer than any test may take.
inline constexpr std::chrono::minutes kForever{30};

void SpinFor(std::chrono::milliseconds time);

// Runs `body` in a child process, which does not outlive us.
pid_t Fork(const std::function<void()>& body);

// A child process that is killed when this goes. Spins, unless it is told otherwise.
class Child {
 public:
  Child() : Child([] { SpinFor(kForever); }) {}
  explicit Child(const std::function<void()>& body) : pid_(Fork(body)) {}
  ~Child() { End(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Pid pid() const { return Pid(static_cast<uint32_t>(pid_)); }
  void End();
  // Waits until it has stopped itself by SIGSTOP.
  void AwaitStop() const;
  // Lets it go on after that.
  void Continue() const;
  // The same, and waits for its end.
  void Finish();

 private:
  const pid_t pid_;
  bool ended_ = false;
};

// A moment that lies between two readings of the clock, for this thread may be kept from a CPU
// between any two steps.
struct Reading {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

// Expects `ticks` to be those that came due on `cpus` CPUs, each of that frequency, between two
// moments. Of the first and of the last period of each CPU a part may count or not.
void ExpectDue(uint64_t ticks, uint64_t cpus, Hertz frequency, const Reading& first,
               const Reading& last);

// False if `condition` does not come true in time; an emulated CPU takes a while.
bool WaitFor(const std::function<bool()>& condition);

std::unique_ptr<Sampler> LoadOrFail(const Sampler::Options& options);

// Nobody tells the kernel side of any mapping here. This leaves all it cannot unwind to it.
Sampler::Options WithoutColdSamples(Sampler::Options options);

uint64_t TicksIn(const Window& window);

// The first sample of `process` that could not be unwound: it says what the kernel side compares.
ColdSample FirstColdSampleOf(Pid process, Sampler& sampler);

// Whether `frame` lies in the code of `function`, which is not longer than that.
template <typename Function>
bool LiesIn(Frame frame, Function* function) {
  constexpr uint64_t kLongest = 512;
  const auto start = reinterpret_cast<uint64_t>(function);
  return frame.kind() == Frame::Kind::kUserAddress && frame.user_address().value() >= start &&
         frame.user_address().value() < start + kLongest;
}

class SamplerLive : public testing::Test {
 protected:
  void SetUp() override;

  // How often the kernel has run the program.
  static uint64_t RunsOf(uint32_t program_id);

  // Samples `work`, draining on the way, and holds the books against the kernel's. `look` is shown
  // what comes cold.
  static Accounting Record(
      const Sampler::Options& options, const std::function<void()>& work,
      const std::function<void(const ColdSample&)>& look = [](const ColdSample&) {});

 private:
  UniqueFd statistics_;
};

}  // namespace pyrometer
