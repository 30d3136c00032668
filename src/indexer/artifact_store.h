// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/file_identity.h"
#include "base/lifeline.h"
#include "base/spill_file.h"
#include "base/unique_fd.h"
#include "foreign/indexer.h"
#include "foreign/question_threads.h"
#include "foreign/source_trust.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Unwind tables and symbol tables by the content of the files that they were made from, made when
// asked for by QuestionThreads. Whoever asks gets an answer later, or learns that the file does not
// answer; nobody waits.
//
// Files that have the same build id, the same size and the same bytes wherever one of them was
// read (see Reading) share what was made, if they have one owner, too. So a file with another's
// build id can mislead nobody about that one, even if it takes over the process that reads it.
// Files with one build id are read one after the other, so nothing is made twice.
//
// All that is kept has one budget of memory: beyond it what was least recently used is dropped, and
// made again when asked for again.
//
// Thread-safe.
class ArtifactStore {
 public:
  class Content;
  using ContentRef = std::shared_ptr<Content>;
  using File = std::shared_ptr<const UniqueFd>;

  // A file to read, and how long that may take.
  struct Source {
    File own;
    File debug{};                          // its separate debug file; null: none
    File alternate{};                      // what that or `own` refers to (dwz); null: none
    BuildId build_id;                      // empty: what is made is shared with no other file
    uint64_t account = 0;                  // of `own`, see AccountOf(): whose turn it is
    uint64_t size = 0;                     // of `own`, in bytes
    std::optional<FileIdentity> mapped{};  // as it was when it was mapped; none: as it is now
  };
  // Called once, perhaps before Ask returns, else on another thread. Must not wait for anything.
  // The errors are those of Indexer; kIo also if its reader is late, or too much is
  // waiting; kInternal if it changed while it was read, twice; kNotFound if it was overwritten
  // since it was mapped.
  using OnAnswer = std::function<void(Result<ContentRef>)>;

  struct Counters {
    uint64_t tables_made = 0;    // including repeats
    uint64_t symbols_made = 0;   // likewise
    uint64_t shared = 0;         // answers that needed only a comparison with what was there
    uint64_t failed = 0;         // answers: files that could not be read or understood
    uint64_t unanswered = 0;     // files that were not read, since too many wait
    uint64_t pending = 0;        // questions now
    uint64_t tables_kept = 0;    // now
    uint64_t symbols_kept = 0;   // likewise
    uint64_t bytes = 0;          // of these, in memory
    uint64_t spilled_bytes = 0;  // likewise, in the spill file
    uint64_t spills_failed = 0;  // tables with rows in memory: the spill file is full or absent
  };

  struct Parts {
    std::shared_ptr<Indexer> indexer;
    QuestionThreads& workers;            // must outlive this
    std::shared_ptr<SpillFile> spill{};  // null: there is none
  };

  ArtifactStore(Parts parts, size_t budget);
  ~ArtifactStore();
  ArtifactStore(const ArtifactStore&) = delete;
  ArtifactStore& operator=(const ArtifactStore&) = delete;

  void AskUnwindTable(Source source, OnAnswer on_answer);
  void AskSymbols(Source source, OnAnswer on_answer);
  // Symbols, and what debug information says of the source: in the file or in its debug file. Takes
  // long, so whatever its size it waits among the large ones. Of a file with thousands of units
  // nothing is shared: more places are read of it than a Reading has.
  void AskSources(Source source, OnAnswer on_answer);

  // Null if it has been dropped: to be asked for again. REQUIRES: an answer to the question for it.
  std::shared_ptr<const UnwindTable> UnwindTableOf(const ContentRef& content);
  std::shared_ptr<const SymbolTable> SymbolsOf(const ContentRef& content);

  // Drops all that is kept in memory but the last, as if it had long not been used: for when memory
  // is short.
  void DropKept();

  // No more unwind tables are made, and those being made are not finished: the answers are errors.
  void StopUnwindTables();

  Counters counters() const;

  // Contents of one build id that are told apart; beyond that nothing is shared. More than one
  // means that somebody made a build id up, or has edited files.
  static constexpr size_t kMostOfOneBuildId = 8;

 private:
  using Table = std::shared_ptr<const UnwindTable>;
  using Symbols = std::shared_ptr<const SymbolTable>;
  using Value = std::variant<std::monostate, Table, Symbols>;
  enum class Kind : uint8_t { kTable, kSymbols, kSources };
  using Contents = std::list<ContentRef>;

  // Of what may be equal.
  struct Family {
    Kind kind = Kind::kTable;
    bool with_debug_file = false;
    bool with_alternate = false;
    BuildId build_id;
    SourceTrust trust;
    bool operator==(const Family&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Family& f) {
      return H::combine(std::move(h), f.kind, f.with_debug_file, f.with_alternate, f.build_id,
                        f.trust);
    }
  };
  struct Question {
    Family family;
    Source source;
    OnAnswer on_answer;
    bool is_large = false;   // may take much time and memory
    bool is_second = false;  // asked again since its reader died
  };
  struct Members {
    std::vector<std::weak_ptr<Content>> contents;
    bool is_busy = false;  // a member is being read
    std::deque<Question> waiting;
  };
  struct NewTable {
    UnwindTable table;
    size_t bytes = 0;
    uint64_t spilled = 0;
  };
  // What a worker finds out; its own until it has ended.
  struct Outcome;
  struct Work;

  void Ask(Kind kind, Source source, OnAnswer on_answer);
  void Begin(Question question);
  std::optional<Question> Post(Question question);
  static std::optional<Question> AnotherTry(const Question& question, ErrorCode failure);
  std::optional<Question> End(const Question& question, QuestionEnd work, Outcome& outcome);
  Result<ContentRef> Enter(const Question& question, Outcome& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ContentRef Find(const Family& family, const Reading& reading)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<ContentRef> Known(const Family& family) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Question> NextOf(const Family& family) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool IsTable(const Content& content);
  void Keep(const ContentRef& content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Value> TakeLeastUsed(size_t budget) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Value ValueOf(const ContentRef& content);

  static void Read(const Work& work, Outcome& outcome);
  static Result<void> ReadMapped(const Work& work, Outcome& outcome);
  static Result<void> ReadContent(const Work& work, Outcome& outcome);
  static Result<NewTable> MakeTable(const Work& work, Reading& reading);

  const Parts parts_;
  const size_t budget_;
  std::stop_source stopping_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Family, Members> families_ ABSL_GUARDED_BY(mutex_);
  size_t swept_families_ ABSL_GUARDED_BY(mutex_) = 0;
  Contents kept_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  Lifeline<ArtifactStore> lifeline_{*this};
};

}  // namespace pyrometer
