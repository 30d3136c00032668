// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader_pool.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/cpu_time.h"
#include "foreign/in_process_indexer.h"
#include "foreign/reader.h"

namespace pyrometer {
namespace {

// From the fork until the sandbox is closed: some 2 ms.
constexpr std::chrono::seconds kReady(5);
// A stop is looked for so often, and whether it is late.
constexpr std::chrono::milliseconds kLook(50);
constexpr std::chrono::milliseconds kLookForTheGone(1);

// A machine with many CPUs runs more programs.
ReadingBudget::Options ForAllCpus(ReadingBudget::Options options) {
  const int64_t cpus = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  const int64_t times = std::max<int64_t>(cpus / 8, 1);
  options.each_earns *= times;
  options.users_earn *= times;
  return options;
}

Error Died() {
  return Fail(ErrorCode::kInternal, "the process that read a foreign file has died");
}

}  // namespace

struct ReaderPool::Task::Reader {
  ReaderChannel channel;
  pid_t pid = 0;
  SourceTrust trust;
  Room room = Room::kSmall;
  bool is_new = true;  // has not been told yet how much memory it may take
  MonotonicTime idle_since = {};
  Payer payer = {};  // of its last task
  MonotonicTime taken_at = {};
  std::chrono::nanoseconds cpu = {};  // that it has taken, and somebody paid for
};

ReaderPool::Task::Task(ReaderPool& pool, std::unique_ptr<Reader> reader, MonotonicTime until,
                       std::stop_token stop)
    : pool_(pool), reader_(std::move(reader)), until_(until), stop_(std::move(stop)) {}

ReaderPool::Task::~Task() {
  pool_.Return(std::move(reader_), is_fit_);
}

Result<void> ReaderPool::Task::Begin(ReaderTask task, const FilesToRead& files,
                                     std::span<const std::byte> value) {
  task.others = (files.debug < 0 ? 0 : ReaderTask::kDebugFile) |
                (files.alternate < 0 ? 0 : ReaderTask::kAlternate);
  task.value_bytes = value.size();
  const auto send = [&]() -> Result<void> {
    RETURN_IF_ERROR(reader_->channel.SendOne(ReaderMessage::kTask, task, files.own));
    for (const int other : {files.debug, files.alternate}) {
      if (other < 0) continue;
      RETURN_IF_ERROR(reader_->channel.Send(ReaderMessage::kOtherFile, {}, other));
    }
    return reader_->channel.SendAll(ReaderMessage::kValue, value);
  };
  if (send()) return {};
  pool_.Count(&Counters::died);
  return Died();
}

Result<ReaderChannel::Message> ReaderPool::Task::Next() {
  while (true) {
    if (stop_.stop_requested()) return Fail(ErrorCode::kExhausted, "nothing is read any more");
    const auto left = Between(pool_.options_.clock->Now(), until_);
    if (left <= std::chrono::nanoseconds(0)) {
      pool_.Count(&Counters::late);
      return Fail(ErrorCode::kIo, "reading a foreign file took too long");
    }
    if (reader_->channel.WaitUntilReadable(std::min<std::chrono::nanoseconds>(left, kLook))) break;
  }
  Result<ReaderChannel::Message> message = reader_->channel.Receive();
  if (!message) {
    pool_.Count(&Counters::died);
    return Died();
  }
  // After a failure it may be about to end: another one costs less than to find out.
  is_fit_ = message->kind == ReaderMessage::kDone;
  return message;
}

Result<std::unique_ptr<ReaderPool>> ReaderPool::Start(const Options& options) {
  const auto sandbox = std::make_shared<Sandbox>();
  const std::shared_ptr<Indexer> indexer =
      options.indexer != nullptr ? options.indexer : std::make_shared<InProcessIndexer>();
  ASSIGN_OR_RETURN(Nursery nursery,
                   Nursery::Start({.name = "pyrometer-read",
                                   .prepare = [sandbox] { sandbox->LeaveMachine(); },
                                   .serve =
                                       [sandbox, indexer](MessageSocket socket) {
                                         ServeReader(std::move(socket), *sandbox, *indexer);
                                       }}));
  std::unique_ptr<ReaderPool> pool(new ReaderPool(options, std::move(nursery)));
  // The first one tells whether there can be any.
  std::unique_ptr<Reader> first;
  {
    const absl::MutexLock lock(&pool->mutex_);
    ASSIGN_OR_RETURN(first, pool->Reserve({.owner = 0}, Room::kSmall));
  }
  Result<SandboxLevel> level = pool->Prepare(*first);
  if (level) pool->level_ = *level;
  pool->Return(std::move(first), level.has_value());
  if (!level) return level.error();
  return pool;
}

ReaderPool::ReaderPool(const Options& options, Nursery nursery)
    : options_(options),
      nursery_(std::move(nursery)),
      cpu_(ForAllCpus(options.cpu)),
      of_headers_{.memory = options.for_headers},
      of_others_{.memory = options.for_others} {}

ReaderPool::~ReaderPool() = default;

pid_t ReaderPool::nursery() const {
  const absl::MutexLock lock(&mutex_);
  return nursery_.pid();
}

uint64_t ReaderPool::MemoryOf(Room room) const {
  switch (room) {
    case Room::kHeaders:
      return options_.of_headers;
    case Room::kSmall:
      return options_.of_small;
    case Room::kLarge:
      break;
  }
  return options_.of_large;
}

// One that is fit for that, and has no more room than need be.
std::unique_ptr<ReaderPool::Reader> ReaderPool::TakeIdle(const SourceTrust& trust, Room room) {
  EndTheDead();
  auto best = idle_.end();
  for (auto reader = idle_.begin(); reader != idle_.end(); ++reader) {
    if ((*reader)->trust != trust || (*reader)->room < room) continue;
    if (best == idle_.end() || (*reader)->room <= (*best)->room) best = reader;
  }
  if (best == idle_.end()) return nullptr;
  std::unique_ptr<Reader> taken = std::move(*best);
  idle_.erase(best);
  return taken;
}

// Who is idle says nothing of its own accord: there is something to read when it was killed.
void ReaderPool::EndTheDead() {
  const auto dead = std::stable_partition(idle_.begin(), idle_.end(), [](const auto& reader) {
    return !reader->channel.WaitUntilReadable({});
  });
  for (auto reader = dead; reader != idle_.end(); ++reader) End(std::move(*reader));
  idle_.erase(dead, idle_.end());
}

ReaderPool::Share& ReaderPool::ShareOf(Room room) {
  return room == Room::kHeaders ? of_headers_ : of_others_;
}

// Idle ones go for it.
bool ReaderPool::MakeRoom(Room room) {
  CountTheGone();
  const Share& share = ShareOf(room);
  const uint64_t memory = MemoryOf(room);
  uint64_t going = 0;
  for (const auto& reader : ending_) {
    if (&ShareOf(reader->room) == &share) going += MemoryOf(reader->room);
  }
  for (auto idle = idle_.begin(); idle != idle_.end();) {
    if (share.reserved - going + memory <= share.memory) break;
    if (&ShareOf((*idle)->room) != &share) {
      ++idle;
      continue;
    }
    going += MemoryOf((*idle)->room);
    End(std::move(*idle));
    idle = idle_.erase(idle);
  }
  return share.reserved + memory <= share.memory;
}

// It takes its time to give back its memory, some 10 ms for 100 MB.
void ReaderPool::End(std::unique_ptr<Reader> reader) {
  Charge(*reader, {});
  nursery_.Kill(reader->pid);
  ending_.push_back(std::move(reader));
}

void ReaderPool::CountTheGone() {
  const auto gone = std::partition(ending_.begin(), ending_.end(),
                                   [](const auto& reader) { return !reader->channel.IsClosed(); });
  for (auto reader = gone; reader != ending_.end(); ++reader) {
    --counters_.living;
    ShareOf((*reader)->room).reserved -= MemoryOf((*reader)->room);
  }
  ending_.erase(gone, ending_.end());
}

Result<std::unique_ptr<ReaderPool::Task>> ReaderPool::Take(const SourceTrust& trust,
                                                           const Limits& limits) {
  const MonotonicTime until = After(options_.clock->Now(), limits.time);
  ASSIGN_OR_RETURN(std::unique_ptr<Reader> reader, TakeOrReserve(trust, limits, until));
  if (reader->is_new) {
    if (const Result<SandboxLevel> level = Prepare(*reader); !level) {
      Return(std::move(reader), false);
      return Fail(ErrorCode::kIo, "{}", level.error().message());
    }
  }
  Count(&Counters::tasks);
  return std::unique_ptr<Task>(new Task(*this, std::move(reader), until, limits.stop));
}

Result<std::unique_ptr<ReaderPool::Reader>> ReaderPool::TakeOrReserve(const SourceTrust& trust,
                                                                      const Limits& limits,
                                                                      MonotonicTime until) {
  const absl::MutexLock lock(&mutex_);
  const auto what =
      limits.room == Room::kHeaders ? ReadingBudget::What::kHeaders : ReadingBudget::What::kAll;
  if (!cpu_.MayRead(limits.payer, what, options_.clock->Now())) {
    ++counters_.over_cpu;
    return Fail(ErrorCode::kIo, "not read: over the budget of CPU time");
  }
  std::list<char>& waiting = ShareOf(limits.room).waiting;
  const auto turn = waiting.insert(waiting.end(), char{});
  Result<std::unique_ptr<Reader>> taken = nullptr;
  while (true) {
    if ((*taken = TakeIdle(trust, limits.room)) != nullptr) break;
    if (turn == waiting.begin() && MakeRoom(limits.room)) {
      taken = Reserve(trust, limits.room);
      break;
    }
    const auto left = Between(options_.clock->Now(), until);
    if (left <= std::chrono::nanoseconds(0) || limits.stop.stop_requested()) {
      ++counters_.no_room;
      taken = Fail(ErrorCode::kIo, "not read: over budget");
      break;
    }
    // Nobody tells that one is gone.
    const auto look = ending_.empty() ? kLook : kLookForTheGone;
    changed_.WaitWithTimeout(&mutex_,
                             absl::FromChrono(std::min<std::chrono::nanoseconds>(left, look)));
  }
  waiting.erase(turn);
  changed_.SignalAll();
  if (taken) {
    if (!(*taken)->is_new) Charge(**taken, {});  // since its last task
    (*taken)->payer = limits.payer;
    (*taken)->taken_at = options_.clock->Now();
  }
  return taken;
}

// A new one, which has its memory already.
Result<std::unique_ptr<ReaderPool::Reader>> ReaderPool::Reserve(const SourceTrust& trust,
                                                                Room room) {
  Result<Nursery::Process> child = nursery_.Fork();
  if (!child) return Fail(ErrorCode::kIo, "{}", child.error().message());
  ++counters_.started;
  ++counters_.living;
  ShareOf(room).reserved += MemoryOf(room);
  return std::make_unique<Reader>(Reader{.channel = ReaderChannel(std::move(child->socket)),
                                         .pid = child->pid,
                                         .trust = trust,
                                         .room = room});
}

Result<SandboxLevel> ReaderPool::Prepare(Reader& reader) const {
  reader.is_new = false;
  RETURN_IF_ERROR(
      reader.channel.SendOne(ReaderMessage::kSetup, ReaderSetup{MemoryOf(reader.room)}));
  if (!reader.channel.WaitUntilReadable(kReady)) {
    return Fail(ErrorCode::kIo, "a process that is to read foreign files does not begin");
  }
  ASSIGN_OR_RETURN(const ReaderChannel::Message message, reader.channel.Receive());
  if (message.kind == ReaderMessage::kFailed) return FailureIn(message.bytes);
  FlatReader in(message.bytes);
  const auto level = in.Get<SandboxLevel>();
  if (message.kind != ReaderMessage::kReady || !in.ended()) {
    return Fail(ErrorCode::kInternal, "a process that is to read foreign files says nonsense");
  }
  return level;
}

// What it took since it was charged last; `if_gone` if nobody knows any more. (Its socket closes
// before its pid may become another's.)
void ReaderPool::Charge(Reader& reader, std::chrono::nanoseconds if_gone) {
  const std::optional<std::chrono::nanoseconds> cpu = CpuTimeOf(reader.pid);
  const bool is_known = cpu && !reader.channel.IsClosed();
  const std::chrono::nanoseconds more =
      is_known ? std::max(*cpu - reader.cpu, std::chrono::nanoseconds(0)) : if_gone;
  reader.cpu += more;
  counters_.cpu_us += static_cast<uint64_t>(more / std::chrono::microseconds(1));
  cpu_.Charge(reader.payer, more, options_.clock->Now());
}

void ReaderPool::Return(std::unique_ptr<Reader> reader, bool is_fit) {
  const absl::MutexLock lock(&mutex_);
  Charge(*reader, Between(reader->taken_at, options_.clock->Now()));
  // What a file without a name leaves behind nobody else's may meet.
  const bool stays = is_fit && reader->trust.owner != SourceTrust::kNameless &&
                     reader->room != Room::kLarge && options_.max_idle > 0;
  if (stays) {
    if (idle_.size() == options_.max_idle) {
      std::unique_ptr<Reader> oldest = std::move(idle_.front());
      idle_.erase(idle_.begin());
      End(std::move(oldest));
    }
    reader->idle_since = options_.clock->Now();
    idle_.push_back(std::move(reader));
  } else {
    End(std::move(reader));
  }
  changed_.SignalAll();
}

void ReaderPool::EndLongIdle() {
  const absl::MutexLock lock(&mutex_);
  const MonotonicTime now = options_.clock->Now();
  const auto rested = std::ranges::find_if(idle_, [&](const auto& reader) {
    return Between(reader->idle_since, now) < options_.longest_idle;
  });
  for (auto reader = idle_.begin(); reader != rested; ++reader) End(std::move(*reader));
  idle_.erase(idle_.begin(), rested);
}

void ReaderPool::Count(uint64_t Counters::*counter) {
  const absl::MutexLock lock(&mutex_);
  ++(counters_.*counter);
}

ReaderPool::Counters ReaderPool::counters() {
  const absl::MutexLock lock(&mutex_);
  CountTheGone();
  Counters counters = counters_;
  counters.reserved = of_headers_.reserved + of_others_.reserved;
  return counters;
}

Result<SandboxLevel> ProbeSandbox(const Clock& clock) {
  // Which has no thread that could outlive it.
  const std::shared_ptr<const Clock> borrowed(std::shared_ptr<const Clock>(), &clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<ReaderPool> readers,
                   ReaderPool::Start({.clock = borrowed}));
  return readers->level();
}

}  // namespace pyrometer
