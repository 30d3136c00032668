// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/made_up_window.h"

#include <fmt/format.h>

#include <memory>
#include <random>
#include <utility>

#include "tests/shared/made_up_symbols.h"

namespace pyrometer::bench {
namespace {

constexpr uint64_t kFunctionBytes = 64;
constexpr uint64_t kTextBytes = MadeUp::kFunctions * kFunctionBytes;
constexpr uint64_t kFirstText = 0x1000;  // in every object
constexpr uint64_t kKernelText = 0xffffffff81000000;

uint64_t AddressOf(uint32_t process, uint32_t object) {
  return 0x7f0000000000 + (uint64_t{process} << 32) + (uint64_t{object} << 24);
}

// Callers have few callees, as in real programs: so stacks share their trunks.
class StackMaker {
 public:
  StackMaker(UserFrames frames, uint32_t seed) : form_(frames), random_(seed) {}

  void AddTo(Window& window) {
    const uint32_t process = Draw(MadeUp::kProcesses);
    Stack stack{.first_frame = static_cast<uint32_t>(window.frames.size()),
                .user_frames = MadeUp::kUserFrames,
                .end = StackEnd::kComplete};
    if (window.stacks.size() % 4 == 0) {
      stack.kernel_frames = MadeUp::kKernelFrames;
      for (uint32_t i = 0; i < MadeUp::kKernelFrames; ++i) {
        window.frames.push_back(
            Frame::Kernel(KernelAddress(kKernelText + Draw(MadeUp::kFunctions) * kFunctionBytes)));
      }
    }
    uint32_t function = Draw(MadeUp::kFunctions);
    for (uint32_t i = 0; i < MadeUp::kUserFrames; ++i) {
      window.frames.push_back(UserFrame(process, function % MadeUp::kObjects, function));
      function = (function * 7 + Draw(4)) % MadeUp::kFunctions;
    }
    window.samples.push_back({.process = {Pid(1000 + process), StartTime(1)},
                              .exec = ExecId(1),
                              .comm = fmt::format("server-{}", process),
                              .thread = fmt::format("worker-{}", Draw(8)),
                              .stack = static_cast<uint32_t>(window.stacks.size()),
                              .count = 1,
                              .first_seen = MonotonicTime(1000),
                              .last_seen = MonotonicTime(1000)});
    window.stacks.push_back(stack);
  }

 private:
  Frame UserFrame(uint32_t process, uint32_t object, uint32_t function) const {
    const uint64_t offset = kFirstText + function * kFunctionBytes + 5;
    if (form_ == UserFrames::kNormalized) {
      return Frame::Object(ObjectId(object + 1), ElfAddress(offset));
    }
    return Frame::User(Address(AddressOf(process, object) + offset));
  }

  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }

  UserFrames form_;
  std::mt19937 random_;
};

}  // namespace

std::string MangledName(uint32_t object, uint32_t function) {
  const std::string method = fmt::format("Handle{}", function);
  const std::string type = fmt::format("Service{}", object);
  return fmt::format("_ZN4shop{}{}{}{}ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                     type.size(), type, method.size(), method);
}

SymbolTable MakeSymbolTable(ObjectId object) {
  MadeUpSymbols symbols;
  for (uint32_t i = 0; i < MadeUp::kFunctions; ++i) {
    const DeclaredFunction function{.start = ElfAddress(kFirstText + i * kFunctionBytes),
                                    .size = kFunctionBytes,
                                    .limit = ElfAddress(kFirstText + kTextBytes)};
    symbols.Add(function, MangledName(object.value(), i));
  }
  return symbols.Build().value_or(SymbolTable());
}

ProcessTable MakeProcesses() {
  ProcessTable processes;
  for (uint32_t process = 0; process < MadeUp::kProcesses; ++process) {
    std::vector<CodeMapping> mappings;
    for (uint32_t object = 0; object < MadeUp::kObjects; ++object) {
      const uint64_t bias = AddressOf(process, object);
      mappings.push_back({{Address(bias + kFirstText), Address(bias + kFirstText + kTextBytes),
                           ObjectId(object + 1), bias}});
    }
    ScannedProcess scanned;
    scanned.key = {Pid(1000 + process), StartTime(1)};
    scanned.threads = {Tid(1000 + process)};
    processes.Add(scanned, mappings, nullptr);
  }
  return processes;
}

Window MakeWindow(size_t stacks, UserFrames frames, uint32_t seed) {
  Window window;
  window.end = MonotonicTime(2000);
  window.frequency = Hertz{99};
  StackMaker maker(frames, seed);
  while (window.stacks.size() < stacks) maker.AddTo(window);
  return window;
}

std::vector<LocationRef> MakeLocations() {
  std::vector<LocationRef> locations;
  for (uint32_t i = 0; i < MadeUp::kFunctions; ++i) {
    auto object = std::make_shared<CodeObject>();
    object->path = fmt::format("/usr/lib/libshop{}.so", i % MadeUp::kObjects);
    auto location = std::make_shared<Location>();
    location->origin = CodeOrigin::kUser;
    // One CodeObject per file.
    location->object = i < MadeUp::kObjects ? object : locations[i % MadeUp::kObjects]->object;
    location->address = kFirstText + i * kFunctionBytes;
    location->lines.push_back(
        {.function = fmt::format("shop::Service{}::Handle{}", i % MadeUp::kObjects, i),
         .system_name = MangledName(i % MadeUp::kObjects, i),
         .file = {},
         .line = 0});
    locations.push_back(std::move(location));
  }
  return locations;
}

NamedWindow MakeNamedWindow(size_t stacks, const std::vector<LocationRef>& locations,
                            uint32_t seed) {
  NamedWindow named{.window = MakeWindow(stacks, UserFrames::kNormalized, seed), .locations = {}};
  for (const Frame& frame : named.window.frames) {
    const uint64_t at = frame.kind() == Frame::Kind::kKernel
                            ? frame.kernel_address().value() - kKernelText
                            : frame.offset().value() - kFirstText;
    named.locations.push_back(locations[at / kFunctionBytes]);
  }
  return named;
}

}  // namespace pyrometer::bench
