// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace pyrometer {

// kDenied: the kernel refused the attempt, so support is unknown.
enum class Support { kYes, kNo, kDenied };

struct KernelVersion {
  int major = 0;
  int minor = 0;
  constexpr auto operator<=>(const KernelVersion&) const = default;
};

// From a release string like "6.1.0-44-amd64"; nothing if it begins otherwise.
std::optional<KernelVersion> ParseKernelVersion(std::string_view release);

// What this kernel and these privileges allow, found by trying. Facts only: `doctor` judges them.
struct KernelFeatures {
  std::string release;
  std::string machine;
  Support btf = Support::kNo;                 // the kernel's own types, for CO-RE
  Support perf_event_program = Support::kNo;  // 4.9
  Support map_in_map = Support::kNo;          // BPF_MAP_TYPE_ARRAY_OF_MAPS, 4.12
  Support batch_operations = Support::kNo;    // BPF_MAP_LOOKUP_BATCH, 5.6
  Support raw_tracepoint = Support::kNo;      // 4.17
  Support task_iterator = Support::kNo;       // BPF_TRACE_ITER over tasks, 5.8
  Support ring_buffer = Support::kNo;         // 5.8
  Support perf_link = Support::kNo;           // bpf_link on perf events, 5.15; else an ioctl
  Support task_pt_regs = Support::kNo;    // bpf_task_pt_regs (with bpf_get_current_task_btf), 5.15
  Support mmap2_build_id = Support::kNo;  // perf_event_attr.build_id, 5.12
  Support cpu_clock = Support::kNo;       // PERF_COUNT_SW_CPU_CLOCK, all processes of CPU 0
  Support cycles = Support::kNo;          // PERF_COUNT_HW_CPU_CYCLES there
};

// Loads a dozen tiny programs and maps and opens some events, all released on return. Takes tens of
// milliseconds, mostly for reading the kernel's BTF. Silences libbpf's messages meanwhile, for the
// whole process: call it before other threads use libbpf.
KernelFeatures ProbeKernelFeatures();

// Of the library in use: "1.1".
std::string LibbpfVersion();

}  // namespace pyrometer
