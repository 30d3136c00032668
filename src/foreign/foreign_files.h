// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct OpenedFile {
  UniqueFd fd;  // for reading; neither reading nor closing it waits for a server
  // It is a copy, made because the file lies on a file system that may stop answering: fstat()
  // tells of the copy.
  bool is_copy = false;
};

// Who may not answer, as a number that nobody can have another's be: those of devices (st_dev)
// stand for themselves, and these are none of them.
enum class Asked : uint8_t { kPath, kProcess, kEnvironment, kDebugFiles, kPayer };
uint64_t NumberOf(Asked what, std::span<const uint64_t> which, std::string_view path = {});

// How long to wait for an answer, and from whom: st_dev or NumberOf(); 0 if that is not known.
struct FilePatience {
  std::chrono::nanoseconds limit;
  uint64_t file_system = 0;
};

// Opens files of profiled programs. That may hang for ever where a file system waits for a server
// (FUSE, NFS), and a thread that hangs so keeps its whole process from ending; or where a file of
// /proc waits for a lock of a process, which that process holds for as long as it likes. What this
// takes and gives out does not: O_PATH descriptors, whose closing calls no file system, OpenedFile,
// and copies of text. Thread-safe; each caller waits for its own question, no longer than its
// limit.
class ForeignFiles {
 public:
  virtual ~ForeignFiles() = default;

  // The file that `path_fd` (O_PATH) is. Errors: kInvalid if it is not a regular file; kLate if
  // there was no answer within the limit; kExhausted if there is no room for a copy, or nobody to
  // be asked; kPermission, kNotFound, kIo.
  virtual Result<OpenedFile> OpenForReading(int path_fd, const FilePatience& patience) = 0;

  // What `path` leads to inside the directory `root_fd` (O_PATH), out of which neither it nor
  // symbolic links in it lead: an O_PATH descriptor. `flags`: O_DIRECTORY, O_NOFOLLOW or 0. Errors:
  // kLate, kExhausted as above; kNotFound, kPermission, kInvalid, kIo.
  virtual Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags,
                                  const FilePatience& patience) = 0;

  // The text of the file `name` of `directory_fd`, a directory of /proc (O_PATH), as it is now: the
  // first `most` bytes of it, to be read from their beginning. Errors: kLate if there was no
  // answer within the limit; kNotFound if the process is gone; kPermission, kIo.
  virtual Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most,
                                    const FilePatience& patience) = 0;

  // The file that the link `name` of `directory_fd`, a directory of /proc (O_PATH), stands for: an
  // O_PATH descriptor. Errors: those of ReadText().
  virtual Result<UniqueFd> Follow(int directory_fd, const std::string& name,
                                  const FilePatience& patience) = 0;

  // Nobody is waited for beyond `when`, whatever the limit of the question, not even who is asked
  // just now; but a moment for each that is asked later, which is enough for all that answer. For
  // the end, which must come whatever hangs.
  virtual void GiveUpAt(MonotonicTime /*when*/) {}

  // How many processes that were asked hang, now or a little before: waits for nobody.
  virtual size_t stuck() { return 0; }
};

}  // namespace pyrometer
