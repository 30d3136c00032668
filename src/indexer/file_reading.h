// SPDX-License-Identifier: Apache-2.0
// What is made of a file's bytes, whichever process reads them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/byte_writer.h"
#include "base/helper_thread.h"
#include "base/keyed_digest.h"
#include "binary/byte_source.h"
#include "binary/debug_links.h"
#include "indexer/reading.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

// See FilesToRead. All but `own` may be null.
struct FileSources {
  std::unique_ptr<ByteSource> own;
  std::unique_ptr<ByteSource> debug{};
  std::unique_ptr<ByteSource> supplement{};
  std::vector<std::unique_ptr<ByteSource>> splits{};

  // Those that are there.
  std::vector<std::unique_ptr<ByteSource>> All() &&;
};

// See Indexer::Inspect().
Result<ObjectFacts> InspectFile(std::unique_ptr<ByteSource> file);

// See Indexer::Links() and Checksum().
Result<DebugLinks> ReadLinksOf(std::unique_ptr<ByteSource> file);
Result<uint32_t> ChecksumOf(const ByteSource& file);

// Gives the table's bytes to `bytes`. `reading` gets what was read.
Result<SymbolTableShape> ReadSymbolsOf(FileSources files, ByteWriter& bytes,
                                       ReadingRecorder& reading);

// Gives the bytes of a SourceMap to `bytes`. `reading` gets what was read. Errors: kExhausted if
// there is no room; those of reading the file. That nothing is told is none. `helper` reads a half
// of what is large; null: there is none.
Result<void> ReadSourcesOf(FileSources files, ByteWriter& bytes, ReadingRecorder& reading,
                           HelperThread* helper = nullptr);

Result<UnwindTable> CompileTableOf(FileSources files, const UnwindTableOptions& options,
                                   ReadingRecorder& reading);

// See Indexer::Bytes().
Result<std::vector<std::byte>> ReadSome(const ByteSource& file, FileOffset offset, size_t size);

}  // namespace pyrometer
