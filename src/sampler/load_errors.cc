// SPDX-License-Identifier: Apache-2.0
#include "sampler/load_errors.h"

#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "base/system_error.h"
#include "base/text.h"

namespace pyrometer {
namespace {

// Only the first warning: later ones are its consequences.
std::string& FirstWarning() {
  static std::string warning;
  return warning;
}

int Collect(enum libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN || !FirstWarning().empty()) return 0;
  char line[512];
  const int length = std::vsnprintf(line, sizeof(line), format, arguments);
  FirstWarning() = Trim(line);
  return length;
}

int Silence(enum libbpf_print_level, const char*, va_list) {
  return 0;
}

bool HasBtf() {
  return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

}  // namespace

LoadLog::LoadLog() {
  FirstWarning().clear();
  libbpf_set_print(&Collect);
}

LoadLog::~LoadLog() {
  libbpf_set_print(&Silence);
}

Error LoadLog::Explain(int errnum, std::string_view what) const {
  if (errnum == EPERM || errnum == EACCES) {
    if (geteuid() == 0 && FirstWarning().find("memlock") != std::string::npos) {
      return Fail(ErrorCode::kPermission,
                  "{}: the limit on locked memory is too low for BPF maps on this kernel; raise "
                  "it (ulimit -l unlimited, LimitMEMLOCK=infinity)",
                  what);
    }
    return Fail(ErrorCode::kPermission,
                "{}: permission denied; run as root, or grant CAP_BPF, CAP_PERFMON and "
                "CAP_SYS_PTRACE (run pyrometer doctor for details)",
                what);
  }
  if (!HasBtf()) return Fail(ErrorCode::kUnsupported, "{}: {}", what, kNoBtfAdvice);
  Error error = SystemError(errnum, what);
  return Fail(ErrorCode::kUnsupported, "{} ({})", error.message(), FirstWarning());
}

}  // namespace pyrometer
