// SPDX-License-Identifier: Apache-2.0
// make_profile STACKS FORMAT OUTPUT: writes a made-up profile of STACKS distinct stacks as html or
// pprof, through the same code as `pyrometer record`.
// Standard error gets what a test compares: "samples=N stacks=N cut=N".
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "export/file_sink.h"
#include "profile/html.h"
#include "profile/pprof.h"
#include "profile/profile_builder.h"
#include "profile/text.h"

namespace pyrometer {
namespace {

constexpr std::string_view kHostileNames[] = {
    "</script><img src=x onerror=\"document.title='injected'\">",
    "<svg onload=document.title='injected'>",
    "\"><b>bold</b>&amp;&#60;",
    "bell\a newline\n escape\x1b[31m not \xff utf-8",
    "semi;colon",
    "__proto__",
    "@@scripts@@",
};

std::shared_ptr<CodeObject> Object(std::string path, uint64_t start) {
  auto object = std::make_shared<CodeObject>();
  object->path = std::move(path);
  object->start = start;
  object->limit = start + 0x400000;
  object->file_offset = start;
  object->has_functions = true;
  const std::array<std::byte, 4> id{std::byte{0xab}, std::byte(start >> 16), std::byte{1}};
  object->build_id = BuildId(id);
  return object;
}

// Stacks grow like those of a server: a few entry points, a call graph that fans out, now and then
// a system call, some inlines, a JIT.
class ProfileMaker {
 public:
  ProfileMaker(size_t stacks, const SampledEvent& event) : left_(stacks), event_(event) {
    MakeLocations();
  }

  Profile Make() && {
    ProfileBuilder builder({.labels = {{"service", "shop"}}});
    while (left_ > 0) builder.Add(MakeWindow(std::min<size_t>(left_, 5'000)));
    Profile profile = std::move(builder).Finish();
    profile.begin = std::chrono::sys_days{std::chrono::year{2026} / 11 / 21};
    profile.duration = std::chrono::seconds(10);
    profile.end = profile.begin + profile.duration;
    profile.accounting.exported = TotalsOf(profile).samples;
    profile.accounting.idle = 12'345;
    profile.accounting.lost[Accounting::kStackMapFull] = 3;
    return profile;
  }

 private:
  static constexpr size_t kUserFunctions = 4'000;
  static constexpr size_t kKernelFunctions = 600;

  void AddLocation(CodeOrigin origin, std::shared_ptr<const CodeObject> object, std::string name) {
    auto location = std::make_shared<Location>();
    location->origin = origin;
    location->object = std::move(object);
    location->address = 0x1000 + 16 * locations_.size();
    if (locations_.size() % 7 == 3) {
      location->lines.push_back({.function = name + "::inlined",
                                 .system_name = {},
                                 .file = "inline.h",
                                 .line = 3,
                                 .start_line = 2});
    }
    location->lines.push_back({.function = std::move(name),
                               .system_name = {},
                               .file = "source.cc",
                               .line = static_cast<int64_t>(locations_.size()),
                               .start_line = 1});
    locations_.push_back(std::move(location));
  }

  void MakeLocations() {
    const auto program = Object("/usr/bin/shopd", 0x1000);
    const auto library = Object("/usr/lib/libshop.so.1", 0x10000);
    const auto kernel = Object("[kernel.kallsyms]", 0xffffffff81000000);
    for (size_t i = 0; i < kUserFunctions; ++i) {
      const bool hostile = i % 500 == 1 && i / 500 < std::size(kHostileNames);
      const std::string name =
          hostile ? std::string(kHostileNames[i / 500])
                  : fmt::format("shop::{}::Handle{}(std::string_view, int)", i % 37, i);
      const bool jit = i % 40 == 9;
      AddLocation(jit ? CodeOrigin::kJit : CodeOrigin::kUser,
                  jit          ? nullptr
                  : i % 3 == 0 ? library
                               : program,
                  name);
    }
    for (size_t i = 0; i < kKernelFunctions; ++i) {
      AddLocation(CodeOrigin::kKernel, kernel, fmt::format("sys_function_{}", i));
    }
  }

  // Root first. A function's callees are few and always the same; so stacks share their trunks.
  std::vector<size_t> MakeStack() {
    std::vector<size_t> stack{random_() % 3};
    const size_t depth = 8 + random_() % 40;
    while (stack.size() < depth) {
      const size_t choice = random_() % 4;  // mostly the first callee: trunks, then twigs
      const size_t callee = choice < 2 ? 0 : choice == 2 ? 1 : random_() % 6;
      stack.push_back((stack.back() * 5 + callee * 131 + 17) % kUserFunctions);
    }
    if (random_() % 4 != 0) return stack;
    for (size_t i = 2 + random_() % 8; i > 0; --i) {
      const size_t step = random_() % 3;
      const size_t last = stack.back() < kUserFunctions ? 0 : stack.back() - kUserFunctions;
      stack.push_back(kUserFunctions + (last * 3 + step + 1) % kKernelFunctions);
    }
    return stack;
  }

  // A frame for each location; what code it is does not matter to those who read names.
  static Frame FrameOf(size_t id) {
    return Frame::Object(ObjectId(1), ElfAddress(static_cast<uint64_t>(id)));
  }

  NamedWindow MakeWindow(size_t stacks) {
    NamedWindow named;
    Window& window = named.window;
    window.event = event_;
    if (!event_.counted()) window.frequency = Hertz{99};
    for (size_t i = 0; i < stacks; ++i) {
      const std::vector<size_t> made = MakeStack();
      Stack stack{.first_frame = static_cast<uint32_t>(named.locations.size())};
      for (auto id = made.rbegin(); id != made.rend(); ++id) {
        ++(*id < kUserFunctions ? stack.user_frames : stack.kernel_frames);
        window.frames.push_back(FrameOf(*id));
        named.locations.push_back(locations_[*id]);
      }
      stack.end = i % 50 == 0   ? StackEnd::kTruncated
                  : i % 50 == 1 ? StackEnd::kNoUnwindInfo
                                : StackEnd::kComplete;
      const uint32_t process = static_cast<uint32_t>(made[0]);
      // Distinct by its thread where the frames happen to be equal.
      window.samples.push_back(
          {.process = {Pid(100 + process), StartTime(7)},
           .exec = ExecId(1),
           .comm = process == 2 ? "<b>evil</b>" : fmt::format("shopd-{}", process),
           .thread = fmt::format("worker-{}", i % 4),
           .stack = static_cast<uint32_t>(window.stacks.size()),
           .count = 1 + random_() % 9,
           .first_seen = {},
           .last_seen = {},
           .event = event_.kind});
      window.stacks.push_back(stack);
    }
    left_ -= stacks;
    return named;
  }

  size_t left_;
  const SampledEvent event_;
  std::mt19937 random_{42};
  std::vector<LocationRef> locations_;
};

Result<std::string> Encode(const Profile& profile, std::string_view format) {
  if (format == "pprof") return EncodePprof(profile);
  if (!format.ends_with("html")) return Fail(ErrorCode::kInvalid, "{}: no such format", format);
  return EncodeHtml(profile, {.title = "A <made-up> profile", .host = "build-7.example"});
}

Result<void> Run(size_t stacks, std::string_view format, std::string path) {
  const SampledEvent event = format == "faults.html"
                                 ? SampledEvent{.kind = EventKind::kPageFaults, .period = 10}
                                 : SampledEvent{};
  const Profile profile = ProfileMaker(stacks, event).Make();
  ASSIGN_OR_RETURN(const std::string bytes, Encode(profile, format));
  ASSIGN_OR_RETURN(FileSink sink, FileSink::Open(std::move(path)));
  RETURN_IF_ERROR(sink.Write(bytes));
  const SampleTotals totals = TotalsOf(profile);
  fmt::print(stderr, "samples={} stacks={} cut={}\n", totals.samples, profile.samples.size(),
             totals.cut);
  return {};
}

}  // namespace
}  // namespace pyrometer

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: make_profile STACKS html|faults.html|pprof OUTPUT\n");
    return 2;
  }
  const pyrometer::Result<void> done =
      pyrometer::Run(std::strtoul(argv[1], nullptr, 10), argv[2], argv[3]);
  if (done) return 0;
  fmt::print(stderr, "make_profile: {}\n", done.error().message());
  return 1;
}
