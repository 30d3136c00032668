// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "foreign/foreign_files.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Reads of processes' environment which service they are, for OpenTelemetry: see OtelServiceName().
// On a thread of its own, through openers and with a limit, since a process can make the reading of
// its memory last: those of the same user and mount namespace are left out for a while then.
// Nothing else of an environment is kept. Thread-safe.
class EnvironmentReader {
 public:
  struct Options {
    // After a process was seen. Most that a build or a shell starts are gone by then, and what they
    // inherit says the same.
    std::chrono::nanoseconds delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds limit = std::chrono::milliseconds(200);  // for one process
    // For so long those like one that did not answer are left out; twice as long the next time, up
    // to a minute.
    std::chrono::nanoseconds pause = std::chrono::seconds(1);
    size_t most_waiting = 20'000;
  };
  struct Counters {
    uint64_t read = 0;
    uint64_t gone = 0;      // ended before
    uint64_t refused = 0;   // may not be read, or is too large
    uint64_t late = 0;      // did not answer in time, or one like it had not
    uint64_t left_out = 0;  // too many were waiting
  };
  // What a process with these labels is, once that is known; "" if its environment says nothing.
  using Tell = std::function<void(const ProcessKey&, const LabelSet&, const std::string& service)>;

  // `clock`, by which the delay passes, outlives it.
  EnvironmentReader(Procfs procfs, const Clock& clock, std::shared_ptr<ForeignFiles> files,
                    Options options);
  EnvironmentReader(Procfs procfs, const Clock& clock, std::shared_ptr<ForeignFiles> files)
      : EnvironmentReader(std::move(procfs), clock, std::move(files), Options()) {}
  ~EnvironmentReader();
  EnvironmentReader(const EnvironmentReader&) = delete;
  EnvironmentReader& operator=(const EnvironmentReader&) = delete;

  // Calls `tell` from now on for each process that was wanted, also before, on one thread, until
  // Stop() returns.
  void Start(Tell tell);
  void Stop();

  void Want(const ProcessKey& process, LabelSet labels);

  // What its environment names now; nothing: it was not read in time. Not counted.
  using Answer = std::optional<Result<std::string>>;
  Answer Ask(const ProcessKey& process);

  Counters counters() const;

 private:
  struct Wanted {
    MonotonicTime due;
    ProcessKey process;
    LabelSet labels;
  };

  struct LeftOut {
    MonotonicTime until;
    std::chrono::nanoseconds pause{};  // the last one
  };

  void Run(const Tell& tell);
  bool IsLeftOut(uint64_t group);
  void LeaveOut(uint64_t group);
  // Waits until the first is due. False: stopping.
  bool AwaitNext(Wanted& next);
  void Count(const Answer& answer);

  const Procfs procfs_;
  const Clock& clock_;
  const std::shared_ptr<ForeignFiles> files_;
  const Options options_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, LeftOut> left_out_ ABSL_GUARDED_BY(mutex_);  // by group
  std::deque<Wanted> waiting_ ABSL_GUARDED_BY(mutex_);
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pyrometer
