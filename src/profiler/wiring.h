// SPDX-License-Identifier: Apache-2.0
// Joins the modules that know of each other only through interfaces: what the symbolizer asks is
// answered by the process tracker and the indexer, what the tracker needs by the indexer and the
// sampler.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "indexer/indexer.h"
#include "process/address_space_sink.h"
#include "process/object_inspector.h"
#include "process/process_tracker.h"
#include "sampler/sampler.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// Headers of newly mapped files, read by the indexer.
class IndexedHeaders : public ObjectInspector {
 public:
  explicit IndexedHeaders(Indexer& indexer) : indexer_(indexer) {}
  Result<ObjectFacts> Inspect(int fd) override { return indexer_.Inspect(fd); }

 private:
  Indexer& indexer_;
};

// Mapping arrays on their way into the kernel.
class KernelMappings : public AddressSpaceSink {
 public:
  explicit KernelMappings(Sampler& sampler) : sampler_(sampler) {}
  void Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
               std::span<const PublishedMapping> sorted) override {
    sampler_.mappings().Publish(process, exec, exec_pages, sorted);
  }
  void Withdraw(Pid pid) override { sampler_.mappings().Withdraw(pid); }
  void ReleaseWithdrawn() override { sampler_.mappings().ReleaseWithdrawn(); }

 private:
  Sampler& sampler_;
};

// Objects as the process tracker knows them, their symbols read by the indexer.
class TrackedObjects : public ObjectSource {
 public:
  TrackedObjects(ProcessTracker& tracker, Indexer& indexer)
      : tracker_(tracker), indexer_(indexer) {}
  std::optional<ObjectDescription> Describe(ObjectId id) override;
  Result<SymbolTable> Symbols(ObjectId id) override;

 private:
  ProcessTracker& tracker_;
  Indexer& indexer_;
};

class TrackedPerfMaps : public PerfMapSource {
 public:
  explicit TrackedPerfMaps(ProcessTracker& tracker) : tracker_(tracker) {}
  Result<UniqueFd> Open(ProcessKey process) override { return tracker_.OpenPerfMap(process); }

 private:
  ProcessTracker& tracker_;
};

}  // namespace pyrometer
