// SPDX-License-Identifier: Apache-2.0
#include "sampler/kernel_features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>

#include "base/unique_fd.h"

namespace pyrometer {
namespace {

// What an attempt ended with, 0 or a positive errno, says about a feature.
Support FromErrno(int errnum) {
  if (errnum == 0) return Support::kYes;
  return errnum == EPERM || errnum == EACCES ? Support::kDenied : Support::kNo;
}

// libbpf's probes: 1 yes, 0 no, negative: the attempt failed. Without privileges they guess (maps
// "no", helpers "yes"), so `denied`, known from a real load, comes first.
Support FromProbe(int outcome, bool denied) {
  if (denied || outcome < 0) return Support::kDenied;
  return outcome > 0 ? Support::kYes : Support::kNo;
}

// `r0 = 0; exit`: the smallest program the verifier accepts.
constexpr std::array<bpf_insn, 2> kReturnZero = {{
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
    {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
}};

UniqueFd LoadProgram(bpf_prog_type type, const bpf_prog_load_opts& options) {
  return UniqueFd(
      bpf_prog_load(type, nullptr, "GPL", kReturnZero.data(), kReturnZero.size(), &options));
}

Support ProbeBtf() {
  struct FreeBtf {
    void operator()(btf* types) const { btf__free(types); }
  };
  errno = 0;
  const std::unique_ptr<btf, FreeBtf> types(btf__load_vmlinux_btf());
  return types != nullptr ? Support::kYes : FromErrno(errno != 0 ? errno : ENOENT);
}

Support ProbePerfEventProgram() {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  const UniqueFd program = LoadProgram(BPF_PROG_TYPE_PERF_EVENT, options);
  return FromErrno(program ? 0 : errno);
}

// A link to no event: a kernel that knows such links complains of the event.
Support ProbePerfLink() {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  const UniqueFd program = LoadProgram(BPF_PROG_TYPE_PERF_EVENT, options);
  if (!program) return FromErrno(errno);
  const int link = bpf_link_create(program.get(), -1, BPF_PERF_EVENT, nullptr);
  return FromErrno(link == -EBADF ? 0 : -link);
}

Support ProbeTaskIterator() {
  const int type_id = libbpf_find_vmlinux_btf_id("task", BPF_TRACE_ITER);
  if (type_id < 0) return FromErrno(-type_id);
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_ITER,
              .attach_btf_id = static_cast<__u32>(type_id));
  const UniqueFd program = LoadProgram(BPF_PROG_TYPE_TRACING, options);
  return FromErrno(program ? 0 : errno);
}

Support ProbeBatchOperations() {
  const UniqueFd map(
      bpf_map_create(BPF_MAP_TYPE_HASH, nullptr, sizeof(uint32_t), sizeof(uint32_t), 1, nullptr));
  if (!map) return FromErrno(errno);
  uint32_t next = 0;
  uint32_t key = 0;
  uint32_t value = 0;
  uint32_t count = 1;
  const int error = bpf_map_lookup_batch(map.get(), nullptr, &next, &key, &value, &count, nullptr);
  // The map is empty: a kernel that knows the operation finds no entry.
  return FromErrno(error == -ENOENT ? 0 : -error);
}

perf_event_attr Attribute(uint32_t type, uint64_t config) {
  perf_event_attr attribute{};
  attribute.size = sizeof(attribute);
  attribute.type = type;
  attribute.config = config;
  attribute.disabled = 1;
  return attribute;
}

Support ProbePerfEvent(perf_event_attr attribute, pid_t pid, int cpu) {
  const UniqueFd event(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attribute, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  return FromErrno(event ? 0 : errno);
}

Support ProbeMmap2BuildId() {
  perf_event_attr attribute = Attribute(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  attribute.mmap = 1;
  attribute.mmap2 = 1;
  attribute.build_id = 1;
  attribute.exclude_kernel = 1;  // so that no privilege is asked for
  return ProbePerfEvent(attribute, 0, -1);
}

void ProbeBpf(KernelFeatures& features) {
  features.btf = ProbeBtf();
  features.perf_event_program = ProbePerfEventProgram();
  features.perf_link = ProbePerfLink();
  features.task_iterator = ProbeTaskIterator();
  features.batch_operations = ProbeBatchOperations();

  const bool denied = features.perf_event_program == Support::kDenied;
  const auto map = [&](bpf_map_type type) {
    return FromProbe(libbpf_probe_bpf_map_type(type, nullptr), denied);
  };
  features.map_in_map = map(BPF_MAP_TYPE_ARRAY_OF_MAPS);
  features.ring_buffer = map(BPF_MAP_TYPE_RINGBUF);
  features.raw_tracepoint =
      FromProbe(libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, nullptr), denied);
  const auto function = [&](bpf_func_id id) {
    return FromProbe(libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, id, nullptr), denied);
  };
  features.task_pt_regs = function(BPF_FUNC_task_pt_regs);
}

}  // namespace

std::optional<KernelVersion> ParseKernelVersion(std::string_view release) {
  KernelVersion version;
  const char* const end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc()) return std::nullopt;
  return version;
}

KernelFeatures ProbeKernelFeatures() {
  KernelFeatures features;
  utsname machine{};
  ::uname(&machine);
  features.release = machine.release;
  features.machine = machine.machine;

  const libbpf_print_fn_t print = libbpf_set_print(nullptr);
  ProbeBpf(features);
  libbpf_set_print(print);

  features.mmap2_build_id = ProbeMmap2BuildId();
  features.cpu_clock =
      ProbePerfEvent(Attribute(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK), -1, 0);
  features.cycles = ProbePerfEvent(Attribute(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES), -1, 0);
  return features;
}

std::string LibbpfVersion() {
  // "v1.1"; some builds add a patch level.
  const std::string_view version = libbpf_version_string();
  return std::string(version.starts_with('v') ? version.substr(1) : version);
}

}  // namespace pyrometer
