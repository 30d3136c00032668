// SPDX-License-Identifier: Apache-2.0
// User stacks, and where there are none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

// A process that is all system calls, with a call chain known to the last frame: Root has no
// caller, as its saved frame pointer is null.
enum class Call { kShort, kLong };

[[gnu::noinline]] void CallKernel(Call call) {
  static char buffer[1 << 20];
  const UniqueFd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  while (true) {
    const long result = call == Call::kShort
                            ? syscall(SYS_getppid)
                            : syscall(SYS_read, zero.get(), buffer, sizeof(buffer));
    if (result < 0) _exit(1);
  }
}
[[gnu::noinline]] void Middle(Call call) {
  CallKernel(call);
  asm volatile("" ::: "memory");  // no tail call
}
[[gnu::noinline]] void Root(Call call) {
  *static_cast<void**>(__builtin_frame_address(0)) = nullptr;
  Middle(call);
  asm volatile("" ::: "memory");
}

class SamplerLiveInSystemCalls : public SamplerLive, public testing::WithParamInterface<Call> {};

TEST_P(SamplerLiveInSystemCalls, SeesTheWholeUserStack) {
  Child child([] { Root(GetParam()); });
  Sampler::Options options = WithoutColdSamples({.frequency = {199}});
  options.filter.pids = {child.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->windows().accounting().exported >= 50; }));
  sampler->windows().Stop();
  child.End();
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());

  uint64_t in_system_call = 0;
  uint64_t whole = 0;
  for (const Sample& sample : window->samples) {
    const Stack& stack = window->stacks[sample.stack];
    const auto user = window->FramesOf(stack).subspan(stack.kernel_frames);
    // A tick may also meet the child on its way there, or in an interrupt, or at its end.
    if (stack.kernel_frames == 0 || user.empty() || !LiesIn(user[0], &syscall)) continue;
    in_system_call += sample.count;
    // syscall() has no frame of its own: its caller is what a frame pointer walk leaves out.
    if (stack.end == StackEnd::kNotReady && user.size() == 4 && LiesIn(user[1], &Middle) &&
        LiesIn(user[2], &Root)) {
      whole += sample.count;
    }
  }
  EXPECT_GT(in_system_call, 10U);
  EXPECT_EQ(whole, in_system_call);
}

INSTANTIATE_TEST_SUITE_P(Calls, SamplerLiveInSystemCalls,
                         testing::Values(Call::kShort, Call::kLong), [](const auto& test) {
                           return test.param == Call::kShort ? "Short" : "Long";
                         });

// Has a thread of the kernel look for requests, of which there are none. Returns an errno, or
// never.
int PollInTheKernel() {
  io_uring_params params{};
  params.flags = IORING_SETUP_SQPOLL;
  params.sq_thread_idle = 60'000;  // milliseconds, from when it was woken on
  const long ring = syscall(SYS_io_uring_setup, 8, &params);
  if (ring < 0) return errno;
  while (true) {
    syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
    std::this_thread::sleep_for(milliseconds(10));
  }
}

TEST_F(SamplerLive, SeesThatAThreadOfTheKernelInAProcessHasNoUserStack) {
  const pid_t child = Fork([] { _exit(PollInTheKernel()); });
  Sampler::Options options = WithoutColdSamples({.frequency = {199}});
  // As of 5.12, and before, when it was no thread of the process.
  options.filter.comms = {"iou-sqp-" + std::to_string(child), "io_uring-sq"};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->windows().Start());
  int status = 0;
  pid_t ended = 0;
  EXPECT_TRUE(WaitFor([&] {
    ended = waitpid(child, &status, WNOHANG);
    return ended != 0 || sampler->windows().accounting().exported >= 20;
  }));
  sampler->windows().Stop();
  if (ended != 0) {
    const int error = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    ASSERT_TRUE(error == ENOSYS || error == EPERM) << std::strerror(error);
    GTEST_SKIP() << "io_uring_setup: " << std::strerror(error);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Result<Window> window = sampler->windows().Drain();
  ASSERT_TRUE(window.has_value());
  EXPECT_FALSE(window->samples.empty());
  for (const Sample& sample : window->samples) {
    const Stack& stack = window->stacks[sample.stack];
    EXPECT_TRUE(stack.end == StackEnd::kNoUserStack) << static_cast<int>(stack.end);
    EXPECT_EQ(window->FramesOf(stack).size(), stack.kernel_frames);
  }
}

// One process, all of whose memory is one object.
class OfOneObject {
 public:
  static constexpr ObjectId kObject{7};

  explicit OfOneObject(const Child& child) : sampler_(LoadOrFail(OptionsFor(child))) {
    if (sampler_ == nullptr || !sampler_->windows().Start()) return;
    known_ = FirstColdSampleOf(child.pid(), *sampler_);
  }

  // ELF address 0 lies at `bias` from now on.
  void MapAt(uint64_t bias) {
    const PublishedMapping all{
        .mapping = {Address(0x1000), Address(0x7fff'ffff'f000), kObject, bias}};
    sampler_->mappings().Publish(known_->process, known_->exec,
                                 {.count = known_->exec_pages, .slack = 0}, std::span(&all, 1));
  }

  // Some ticks that all begin from now on.
  Window NextTicks() {
    EXPECT_TRUE(sampler_->windows().Drain().has_value());
    const uint64_t before = sampler_->windows().accounting().exported;
    EXPECT_TRUE(WaitFor([&] { return sampler_->windows().accounting().exported > before + 50; }));
    return sampler_->windows().Drain().value_or(Window());
  }

  bool is_sampling() const { return known_.has_value(); }
  Sampler& sampler() { return *sampler_; }

 private:
  static Sampler::Options OptionsFor(const Child& child) {
    Sampler::Options options{.frequency = {999}};
    options.cold_per_second = 1;  // the others stay in the kernel
    options.filter.pids = {child.pid()};
    return options;
  }

  const std::unique_ptr<Sampler> sampler_;
  std::optional<ColdSample> known_;
};

TEST_F(SamplerLive, KeepsAddressesThatDoNotFitIntoAnObjectFrame) {
  const Child child;
  OfOneObject process(child);
  ASSERT_TRUE(process.is_sampling());
  const auto frames_at = [&](uint64_t elf_address) {
    process.MapAt(reinterpret_cast<uint64_t>(&SpinFor) - elf_address);
    std::vector<Frame> frames;
    const Window window = process.NextTicks();
    for (const Stack& stack : window.stacks) {
      const auto user = window.FramesOf(stack).subspan(stack.kernel_frames);
      if (!user.empty()) frames.push_back(user[0]);
    }
    return frames;
  };
  const auto of_spinning = [&](Frame frame) { return LiesIn(frame, &SpinFor); };
  const auto of_object = [](Frame frame) { return frame.kind() == Frame::Kind::kObject; };
  EXPECT_THAT(frames_at(0x1000), testing::Contains(testing::ResultOf(of_object, true)));
  const std::vector<Frame> beyond = frames_at(uint64_t{1} << 41);
  EXPECT_THAT(beyond, testing::Contains(testing::ResultOf(of_spinning, true)));
  EXPECT_THAT(beyond, testing::Each(testing::ResultOf(of_object, false)));
}

TEST_F(SamplerLive, TakesNoStackForWholeWhereATableCouldNotBeRead) {
  const Child child([] { Root(Call::kShort); });
  OfOneObject process(child);
  ASSERT_TRUE(process.is_sampling());
  process.MapAt(0);
  const auto ends_with = [&](const UnwindTable& table) {
    EXPECT_TRUE(process.sampler().tables().Load(OfOneObject::kObject, table));
    std::vector<StackEnd> ends;
    const Window window = process.NextTicks();
    for (const Stack& stack : window.stacks) ends.push_back(stack.end);
    return ends;
  };
  UnwindTable unread;
  unread.unread = true;
  const std::vector<StackEnd> guessed = ends_with(unread);
  EXPECT_THAT(guessed, testing::Contains(StackEnd::kNotReady));
  EXPECT_THAT(guessed, testing::Not(testing::Contains(StackEnd::kComplete)));
  EXPECT_THAT(ends_with(UnwindTable()), testing::Contains(StackEnd::kComplete))
      << "it was read: the program has frame pointers";
}

}  // namespace
}  // namespace pyrometer
