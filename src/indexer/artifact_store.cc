// SPDX-License-Identifier: Apache-2.0
#include "indexer/artifact_store.h"

#include <algorithm>
#include <chrono>

#include "foreign/source_trust.h"
#include "indexer/mapped_content.h"
#include "indexer/spilled_rows.h"

namespace pyrometer {
namespace {

// Of 140 programs and libraries of 2 to 16 MiB none took more than 14 ms, while 100 MiB took up to
// 100 ms and 750 MiB 0.4 s: of an optimized build on an idle machine.
bool IsLarge(uint64_t size) {
  return size > uint64_t{16} << 20;
}

// Families that nobody belongs to any more are forgotten once there are twice as many families as
// after the last time, and twice this.
constexpr size_t kSweptAt = 1024;

// In memory.
size_t BytesOf(const UnwindTable& table, size_t of_rows) {
  size_t of_exotic = 0;
  for (const ExoticRule& rule : table.exotic) {
    of_exotic += sizeof(rule) + rule.cfa.expression.size();
    for (const ExoticRule::OfRegister& of : rule.registers) {
      of_exotic += sizeof(of) + of.rule.expression.size();
    }
  }
  return sizeof(table) + of_rows + of_exotic + table.pages.size() * sizeof(UnwindTable::Page) +
         table.rules.size() * sizeof(pyro_unwind_rule);
}

// One table gets no more than a quarter of the file, so that none keeps others out.
SymbolTableOptions OptionsFor(const std::shared_ptr<SpillFile>& spill, bool with_debug_info) {
  return {.with_debug_info = with_debug_info,
          .spill = spill,
          .most_spilled = spill == nullptr ? 0 : spill->most() / 4};
}

int FdOf(const ArtifactStore::File& file) {
  return file == nullptr ? -1 : file->get();
}

// Of all files of a source.
uint64_t SizeOf(const ArtifactStore::Source& source) {
  uint64_t size = source.size;
  for (const ArtifactStore::File& other : {source.debug, source.alternate}) {
    if (other == nullptr) continue;
    const Result<FileIdentity> identity = IdentityOf(other->get());
    size += identity ? identity->size : 0;
  }
  return size;
}

// For one that looks whether a file has its content still, compares it with so many others, and
// then reads it.
std::chrono::nanoseconds JobTime(uint64_t size, size_t known) {
  return Indexer::kMostOfHeaders +
         (ReadingTime(size) + std::chrono::seconds(1)) * static_cast<int64_t>(known + 1);
}

FilesToRead FilesOf(const ArtifactStore::Source& source, bool is_large) {
  return {.own = source.own->get(),
          .debug = FdOf(source.debug),
          .alternate = FdOf(source.alternate),
          .is_large = is_large};
}

}  // namespace

// What was made of files with the same content. The store's mutex guards all but the constants.
class ArtifactStore::Content {
 public:
  Content(uint64_t number_, Reading reading_) : number(number_), reading(std::move(reading_)) {}

  const uint64_t number;
  const Reading reading;
  Value value;  // none: it was dropped
  size_t bytes = 0;
  uint64_t spilled = 0;
  Contents::iterator in_kept;  // while there is a value
};

struct ArtifactStore::Outcome {
  ContentRef equal;  // that of the file, if it is known
  // Else, or if nothing is kept of it, this was made.
  std::optional<NewTable> table;
  std::optional<SymbolTable> symbols;
  Reading reading;
  std::optional<Error> error;
};

// What a worker needs, which may go on when all else is gone.
struct ArtifactStore::Work {
  Kind kind;
  Source source;
  bool is_large;
  std::vector<std::pair<ContentRef, bool>> known;  // and whether something is kept of it
  std::shared_ptr<Indexer> indexer;
  std::shared_ptr<SpillFile> spill;
  std::stop_token stop;
};

ArtifactStore::ArtifactStore(Parts parts, size_t budget)
    : parts_(std::move(parts)), budget_(budget) {}

ArtifactStore::~ArtifactStore() {
  stopping_.request_stop();
}

void ArtifactStore::AskUnwindTable(Source source, OnAnswer on_answer) {
  Ask(Kind::kTable, std::move(source), std::move(on_answer));
}

void ArtifactStore::AskSymbols(Source source, OnAnswer on_answer) {
  Ask(Kind::kSymbols, std::move(source), std::move(on_answer));
}

void ArtifactStore::AskSources(Source source, OnAnswer on_answer) {
  Ask(Kind::kSources, std::move(source), std::move(on_answer));
}

void ArtifactStore::Ask(Kind kind, Source source, OnAnswer on_answer) {
  const SourceTrust trust =
      TrustOf(source.own->get(), {FdOf(source.debug), FdOf(source.alternate)});
  const Family family{
      .kind = kind,
      .with_debug_file = source.debug != nullptr,
      .with_alternate = source.alternate != nullptr,
      .build_id = trust.owner == SourceTrust::kNameless ? BuildId() : source.build_id,
      .trust = trust};
  const bool is_large = kind == Kind::kSources || IsLarge(source.size);
  Question question{.family = family,
                    .source = std::move(source),
                    .on_answer = std::move(on_answer),
                    .is_large = is_large};
  {
    const absl::MutexLock lock(&mutex_);
    ++counters_.pending;
    if (!question.family.build_id.empty()) {
      Members& members = families_[question.family];
      if (std::exchange(members.is_busy, true)) {
        members.waiting.push_back(std::move(question));
        return;
      }
    }
  }
  Begin(std::move(question));
}

// Of a whole family that is refused one begins after the other: not one within the other.
void ArtifactStore::Begin(Question question) {
  for (std::optional<Question> next = std::move(question); next;) next = Post(*std::move(next));
}

// The question to begin next, if this one was refused.
std::optional<ArtifactStore::Question> ArtifactStore::Post(Question question) {
  const auto work = std::make_shared<Work>(Work{.kind = question.family.kind,
                                                .source = question.source,
                                                .is_large = question.is_large,
                                                .known = {},
                                                .indexer = parts_.indexer,
                                                .spill = parts_.spill,
                                                .stop = stopping_.get_token()});
  {
    const absl::MutexLock lock(&mutex_);
    for (ContentRef& content : Known(question.family)) {
      const bool is_kept = content->value.index() != 0;
      work->known.emplace_back(std::move(content), is_kept);
    }
  }
  const auto outcome = std::make_shared<Outcome>();
  const auto shared = std::make_shared<Question>(std::move(question));
  const bool is_stopped = shared->family.kind == Kind::kTable && stopping_.stop_requested();
  const bool posted =
      !is_stopped &&
      parts_.workers.Post(shared->source.account,
                          JobTime(SizeOf(shared->source), work->known.size()),
                          {[work, outcome] { Read(*work, *outcome); },
                           shared->is_large ? Effort::kLarge : Effort::kSmall},
                          lifeline_.To([shared, outcome](ArtifactStore& self, QuestionEnd ended) {
                            if (auto next = self.End(*shared, ended, *outcome))
                              self.Begin(*std::move(next));
                          }));
  return posted ? std::nullopt : End(*shared, QuestionEnd::kRefused, *outcome);
}

// On a worker's thread.
void ArtifactStore::Read(const Work& work, Outcome& outcome) {
  if (const Result<void> read = ReadMapped(work, outcome); !read) outcome.error = read.error();
}

// What is made is of the content that was mapped.
Result<void> ArtifactStore::ReadMapped(const Work& work, Outcome& outcome) {
  const Source& source = work.source;
  const int fd = source.own->get();
  if (!source.mapped) return ReadContent(work, outcome);
  ASSIGN_OR_RETURN(const FileIdentity before, IdentityOf(fd));
  std::vector<std::pair<int, FileIdentity>> others;
  for (const File& other : {source.debug, source.alternate}) {
    if (other == nullptr) continue;
    ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(other->get()));
    others.emplace_back(other->get(), identity);
  }
  ASSIGN_OR_RETURN(const bool is_mapped,
                   HasContent(*work.indexer, fd, {*source.mapped, source.build_id}));
  if (!is_mapped) return Fail(ErrorCode::kNotFound, "overwritten since it was mapped");
  Result<void> read = ReadContent(work, outcome);
  const bool others_are_unchanged = std::ranges::all_of(
      others, [](const auto& other) { return IsUnchanged(other.first, other.second); });
  if (!IsUnchanged(fd, before) || !others_are_unchanged) {
    return Fail(ErrorCode::kInternal, "it changes while it is read");
  }
  return read;
}

Result<void> ArtifactStore::ReadContent(const Work& work, Outcome& outcome) {
  const FilesToRead files = FilesOf(work.source, work.is_large);
  for (const auto& [content, is_kept] : work.known) {
    const Result<bool> equal = work.indexer->Repeats(files, content->reading);
    if (!equal || !*equal) continue;
    outcome.equal = content;
    if (is_kept) return {};
    break;
  }
  if (work.kind == Kind::kTable) {
    ASSIGN_OR_RETURN(outcome.table, MakeTable(work, outcome.reading));
    return {};
  }
  ASSIGN_OR_RETURN(
      Made<SymbolTable> made,
      work.indexer->Symbols(files, OptionsFor(work.spill, work.kind == Kind::kSources)));
  outcome.symbols = std::move(made.value);
  outcome.reading = std::move(made.reading);
  return {};
}

// With its rows in the spill file, as far as there is room.
Result<ArtifactStore::NewTable> ArtifactStore::MakeTable(const Work& work, Reading& reading) {
  const auto rows = std::make_shared<SpilledRows>(work.spill);
  ASSIGN_OR_RETURN(Made<UnwindTable> made,
                   work.indexer->Unwind(FilesOf(work.source, work.is_large),
                                        {.stop = work.stop, .rows = rows.get()}));
  reading = std::move(made.reading);
  UnwindTable& table = made.value;
  if (!table.empty()) table.stored = rows;
  return NewTable{.table = std::move(table), .bytes = rows->bytes(), .spilled = rows->spilled()};
}

// If that may end otherwise.
std::optional<ArtifactStore::Question> ArtifactStore::AnotherTry(const Question& question,
                                                                 ErrorCode failure) {
  Question again = question;
  // A small file may take much memory to read; then it waits for its turn among the large ones.
  again.is_large |= failure == ErrorCode::kExhausted;
  // Who read it was killed, which may have had another reason.
  again.is_second |= failure == ErrorCode::kInternal;
  const bool differs = again.is_large != question.is_large || again.is_second != question.is_second;
  return differs ? std::optional(std::move(again)) : std::nullopt;
}

// The question to begin next.
std::optional<ArtifactStore::Question> ArtifactStore::End(const Question& question,
                                                          QuestionEnd work, Outcome& outcome) {
  if (work == QuestionEnd::kDone && outcome.error) {
    if (auto again = AnotherTry(question, outcome.error->code())) return again;
  }
  Result<ContentRef> answer = Fail(ErrorCode::kIo, "too many files wait to be read");
  std::vector<Value> dropped;
  std::optional<Question> next;
  {
    const absl::MutexLock lock(&mutex_);
    --counters_.pending;
    if (work == QuestionEnd::kDone) {
      answer = Enter(question, outcome);
      counters_.failed += answer ? 0 : 1;
      dropped = TakeLeastUsed(budget_);
    } else {
      ++counters_.unanswered;
    }
    next = NextOf(question.family);
  }
  question.on_answer(std::move(answer));
  return next;
}

// What the answer is, with what was made kept.
Result<ArtifactStore::ContentRef> ArtifactStore::Enter(const Question& question, Outcome& outcome) {
  if (outcome.error) return *std::move(outcome.error);
  if (!outcome.table && !outcome.symbols) {
    ++counters_.shared;
    return outcome.equal;
  }
  ContentRef content = Find(question.family, outcome.reading);
  if (content == nullptr) {
    content = std::make_shared<Content>(++last_number_, std::move(outcome.reading));
    if (!question.family.build_id.empty() && content->reading.is_complete) {
      families_[question.family].contents.push_back(content);
    }
  }
  if (content->value.index() != 0) return content;
  if (outcome.table) {
    ++counters_.tables_made;
    counters_.spills_failed += outcome.table->bytes > 0 ? 1 : 0;
    content->bytes = BytesOf(outcome.table->table, outcome.table->bytes);
    content->spilled = outcome.table->spilled;
    outcome.table->table.content = content->number;
    content->value = std::make_shared<const UnwindTable>(std::move(outcome.table->table));
  } else {
    ++counters_.symbols_made;
    content->bytes = sizeof(SymbolTable) + outcome.symbols->bytes();
    content->spilled = outcome.symbols->spilled_bytes();
    content->value = std::make_shared<const SymbolTable>(*std::move(outcome.symbols));
  }
  Keep(content);
  return content;
}

ArtifactStore::ContentRef ArtifactStore::Find(const Family& family, const Reading& reading) {
  if (!reading.is_complete) return nullptr;
  for (ContentRef& content : Known(family)) {
    if (content->reading.digest == reading.digest) return std::move(content);
  }
  return nullptr;
}

// Its contents that somebody still refers to.
std::vector<ArtifactStore::ContentRef> ArtifactStore::Known(const Family& family) {
  const auto members = families_.find(family);
  if (members == families_.end()) return {};
  std::vector<std::weak_ptr<Content>>& contents = members->second.contents;
  std::erase_if(contents, [](const auto& content) { return content.expired(); });
  std::vector<ContentRef> known;
  for (const std::weak_ptr<Content>& content : contents) {
    if (known.size() == kMostOfOneBuildId) break;
    if (ContentRef alive = content.lock()) known.push_back(std::move(alive));
  }
  return known;
}

// The question that may begin now that one of its family has ended.
std::optional<ArtifactStore::Question> ArtifactStore::NextOf(const Family& family) {
  if (family.build_id.empty()) return std::nullopt;
  Members& members = families_[family];
  if (members.waiting.empty()) {
    members.is_busy = false;
    if (families_.size() > 2 * std::max(kSweptAt, swept_families_)) {
      absl::erase_if(families_, [](auto& entry) {
        auto& [unused, of_family] = entry;
        std::erase_if(of_family.contents, [](const auto& content) { return content.expired(); });
        return !of_family.is_busy && of_family.contents.empty();
      });
      swept_families_ = families_.size();
    }
    return std::nullopt;
  }
  Question next = std::move(members.waiting.front());
  members.waiting.pop_front();
  return next;
}

bool ArtifactStore::IsTable(const Content& content) {
  return std::holds_alternative<Table>(content.value);
}

void ArtifactStore::Keep(const ContentRef& content) {
  counters_.bytes += content->bytes;
  counters_.spilled_bytes += content->spilled;
  counters_.tables_kept += IsTable(*content) ? 1 : 0;
  kept_.push_front(content);
  content->in_kept = kept_.begin();
}

// Returns what is to be destroyed without the lock: that gives room on the disk back. The one used
// last stays, however large.
std::vector<ArtifactStore::Value> ArtifactStore::TakeLeastUsed(size_t budget) {
  std::vector<Value> dropped;
  // A quarter of the spill file stays free for the tables that are being made.
  const uint64_t room = parts_.spill == nullptr ? 0 : parts_.spill->most() / 4 * 3;
  while (kept_.size() > 1 && (counters_.bytes > budget || counters_.spilled_bytes > room)) {
    Content& last = *kept_.back();
    counters_.bytes -= last.bytes;
    counters_.tables_kept -= IsTable(last) ? 1 : 0;
    counters_.spilled_bytes -= last.spilled;
    dropped.push_back(std::exchange(last.value, {}));
    kept_.pop_back();
  }
  return dropped;
}

void ArtifactStore::DropKept() {
  std::vector<Value> dropped;
  {
    const absl::MutexLock lock(&mutex_);
    dropped = TakeLeastUsed(0);
  }
  // Freed outside of the lock.
}

ArtifactStore::Value ArtifactStore::ValueOf(const ContentRef& content) {
  const absl::MutexLock lock(&mutex_);
  if (content->value.index() != 0) kept_.splice(kept_.begin(), kept_, content->in_kept);
  return content->value;
}

std::shared_ptr<const UnwindTable> ArtifactStore::UnwindTableOf(const ContentRef& content) {
  const Value value = ValueOf(content);
  const auto* const table = std::get_if<Table>(&value);
  return table == nullptr ? nullptr : *table;
}

std::shared_ptr<const SymbolTable> ArtifactStore::SymbolsOf(const ContentRef& content) {
  const Value value = ValueOf(content);
  const auto* const symbols = std::get_if<Symbols>(&value);
  return symbols == nullptr ? nullptr : *symbols;
}

void ArtifactStore::StopUnwindTables() {
  stopping_.request_stop();
  std::vector<Question> waiting;
  {
    const absl::MutexLock lock(&mutex_);
    for (auto& [family, members] : families_) {
      if (family.kind != Kind::kTable) continue;
      std::ranges::move(members.waiting, std::back_inserter(waiting));
      members.waiting.clear();
    }
    counters_.pending -= waiting.size();
    counters_.unanswered += waiting.size();
  }
  for (const Question& question : waiting) {
    question.on_answer(Fail(ErrorCode::kExhausted, "nothing is made any more"));
  }
}

ArtifactStore::Counters ArtifactStore::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters now = counters_;
  now.symbols_kept = kept_.size() - now.tables_kept;
  return now;
}

}  // namespace pyrometer
