// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

#include <algorithm>
#include <functional>
#include <string>

#include "doctor/doctor.h"
#include "doctor/doctor_facts.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;

// A machine that leaves nothing to be desired.
MachineFacts GoodMachine() {
  MachineFacts facts;
  facts.kernel.release = "6.1.0-44-amd64";
  facts.kernel.machine = "x86_64";
  for (Support KernelFeatures::*feature :
       {&KernelFeatures::btf, &KernelFeatures::perf_event_program, &KernelFeatures::map_in_map,
        &KernelFeatures::batch_operations, &KernelFeatures::raw_tracepoint,
        &KernelFeatures::task_iterator, &KernelFeatures::ring_buffer, &KernelFeatures::perf_link,
        &KernelFeatures::task_pt_regs, &KernelFeatures::mmap2_build_id, &KernelFeatures::cpu_clock,
        &KernelFeatures::cycles}) {
    facts.kernel.*feature = Support::kYes;
  }
  facts.capabilities = (uint64_t{1} << (CAP_LAST_CAP + 1)) - 1;
  facts.perf_event_paranoid = 2;
  facts.kptr_restrict = 1;
  facts.kernel_addresses_visible = true;
  facts.sample_rate_limit = Hertz{100'000};
  facts.cgroups = {CgroupMount{"/sys/fs/cgroup", true, ""}};
  return facts;
}

uint64_t Bit(int capability) {
  return uint64_t{1} << capability;
}

Check Find(const DoctorReport& report, std::string_view name) {
  const auto found = std::ranges::find(report.checks, name, &Check::name);
  if (found != report.checks.end()) return *found;
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(Examine, FindsNothingWrongWithAGoodMachine) {
  const DoctorReport report = Examine(GoodMachine());
  EXPECT_TRUE(report.CanRecord());
  for (const Check& check : report.checks) {
    EXPECT_EQ(check.status, CheckStatus::kOk) << check.name;
    EXPECT_EQ(check.advice, "") << check.name;
    EXPECT_NE(check.found, "") << check.name;
    EXPECT_NE(check.meaning, "") << check.name;
  }
}

TEST(Examine, JudgesEachFault) {
  using Spoil = std::function<void(MachineFacts&)>;
  const struct {
    const char* check;
    Spoil spoil;
    CheckStatus status;
    const char* advice;
  } cases[] = {
      {"kernel", [](auto& f) { f.kernel.release = "5.9.16"; }, CheckStatus::kFail, "newer kernel"},
      {"kernel", [](auto& f) { f.kernel.release = "odd"; }, CheckStatus::kFail, "newer kernel"},
      {"architecture", [](auto& f) { f.kernel.machine = "s390x"; }, CheckStatus::kFail, ""},
      {"btf", [](auto& f) { f.kernel.btf = Support::kNo; }, CheckStatus::kFail,
       "CONFIG_DEBUG_INFO_BTF"},
      {"perf_event_program", [](auto& f) { f.kernel.perf_event_program = Support::kNo; },
       CheckStatus::kFail, "CONFIG_BPF_EVENTS"},
      {"perf_event_program", [](auto& f) { f.kernel.perf_event_program = Support::kDenied; },
       CheckStatus::kFail, "seccomp"},
      {"cpu_clock", [](auto& f) { f.kernel.cpu_clock = Support::kDenied; }, CheckStatus::kFail,
       "seccomp"},
      {"cpu_clock",
       [](auto& f) {
         f.kernel.cpu_clock = Support::kDenied;
         f.perf_event_paranoid = 4;
         *f.capabilities &= ~Bit(CAP_SYS_ADMIN);
       },
       CheckStatus::kFail, "perf_event_paranoid=2"},
      {"cpu_clock",
       [](auto& f) {
         f.kernel.cpu_clock = Support::kDenied;
         f.perf_event_paranoid = 4;
       },
       CheckStatus::kFail, "seccomp"},
      {"perf_event_paranoid",
       [](auto& f) {
         f.kernel.cpu_clock = Support::kDenied;
         f.perf_event_paranoid = 4;
         *f.capabilities &= ~Bit(CAP_SYS_ADMIN);
       },
       CheckStatus::kFail, "perf_event_paranoid=2"},
      {"task_iterator", [](auto& f) { f.kernel.task_iterator = Support::kNo; }, CheckStatus::kFail,
       "kernel"},
      {"mmap2_build_id", [](auto& f) { f.kernel.mmap2_build_id = Support::kNo; },
       CheckStatus::kWarn, ""},
      {"perf_link", [](auto& f) { f.kernel.perf_link = Support::kNo; }, CheckStatus::kOk, ""},
      {"ring_buffer", [](auto& f) { f.kernel.ring_buffer = Support::kNo; }, CheckStatus::kFail,
       "kernel"},
      {"cycles", [](auto& f) { f.kernel.cycles = Support::kNo; }, CheckStatus::kOk, ""},
      {"cap_bpf", [](auto& f) { f.capabilities = 0; }, CheckStatus::kFail, "run as root"},
      {"cap_bpf", [](auto& f) { f.capabilities = std::nullopt; }, CheckStatus::kFail,
       "grant CAP_BPF"},
      {"cap_perfmon", [](auto& f) { f.capabilities = Bit(CAP_BPF); }, CheckStatus::kFail,
       "grant CAP_PERFMON"},
      {"cap_sys_ptrace", [](auto& f) { *f.capabilities &= ~Bit(CAP_SYS_PTRACE); },
       CheckStatus::kWarn, "grant CAP_SYS_PTRACE"},
      {"cap_dac_read_search",
       [](auto& f) { f.capabilities = Bit(CAP_SYS_ADMIN) | Bit(CAP_SYSLOG) | Bit(CAP_SYS_PTRACE); },
       CheckStatus::kWarn, "grant CAP_DAC_READ_SEARCH"},
      {"cap_checkpoint_restore", [](auto& f) { f.capabilities = Bit(CAP_BPF) | Bit(CAP_PERFMON); },
       CheckStatus::kWarn, "grant CAP_CHECKPOINT_RESTORE"},
      {"cap_syslog", [](auto& f) { *f.capabilities &= ~Bit(CAP_SYSLOG); }, CheckStatus::kWarn,
       "grant CAP_SYSLOG"},
      {"user_namespace", [](auto& f) { f.initial_user_namespace = false; }, CheckStatus::kFail,
       "rootless"},
      {"lockdown", [](auto& f) { f.lockdown = Lockdown::kConfidentiality; }, CheckStatus::kFail,
       "lockdown=integrity"},
      {"lockdown", [](auto& f) { f.lockdown = Lockdown::kIntegrity; }, CheckStatus::kOk, ""},
      {"kptr_restrict",
       [](auto& f) {
         f.kernel_addresses_visible = false;
         f.kptr_restrict = 2;
       },
       CheckStatus::kWarn, "kptr_restrict=1"},
      {"kptr_restrict",
       [](auto& f) {
         f.kernel_addresses_visible = false;
         *f.capabilities &= ~Bit(CAP_SYSLOG);
       },
       CheckStatus::kWarn, "CAP_SYSLOG"},
      {"kptr_restrict",
       [](auto& f) {
         f.kernel_addresses_visible = false;
         f.kptr_restrict = 2;
         *f.capabilities &= ~Bit(CAP_SYSLOG);
       },
       CheckStatus::kWarn, "kptr_restrict=1 (2 hides them from root too); and run as root"},
      {"sample_rate", [](auto& f) { f.sample_rate_limit = Hertz{50}; }, CheckStatus::kWarn,
       "perf_event_max_sample_rate"},
      {"cgroups", [](auto& f) { f.cgroups.clear(); }, CheckStatus::kWarn, "mount"},
      {"pid_namespace",
       [](auto& f) { f.pid_namespace = Fail(ErrorCode::kUnsupported, "run with --pid=host"); },
       CheckStatus::kFail, "--pid=host"},
      {"bpf_stats", [](auto& f) { f.bpf_stats = true; }, CheckStatus::kWarn, "bpf_stats_enabled=0"},
  };
  for (const auto& [name, spoil, status, advice] : cases) {
    MachineFacts facts = GoodMachine();
    spoil(facts);
    const DoctorReport report = Examine(facts);
    const Check check = Find(report, name);
    EXPECT_EQ(check.status, status) << name;
    EXPECT_THAT(check.advice, HasSubstr(advice)) << name;
    EXPECT_EQ(report.CanRecord(), status != CheckStatus::kFail) << name;
  }
}

TEST(Examine, BlamesMissingCapabilitiesOnlyOnce) {
  MachineFacts facts = GoodMachine();
  facts.capabilities = 0;
  facts.kernel.perf_event_program = Support::kDenied;
  facts.kernel.map_in_map = Support::kDenied;
  const DoctorReport report = Examine(facts);
  EXPECT_EQ(Find(report, "cap_bpf").status, CheckStatus::kFail);
  EXPECT_EQ(Find(report, "perf_event_program").status, CheckStatus::kUnknown);
  EXPECT_EQ(Find(report, "map_in_map").status, CheckStatus::kUnknown);
}

TEST(Examine, AcceptsSysAdminForTheNarrowerCapabilities) {
  MachineFacts facts = GoodMachine();
  facts.capabilities =
      Bit(CAP_SYS_ADMIN) | Bit(CAP_SYS_PTRACE) | Bit(CAP_SYSLOG) | Bit(CAP_DAC_OVERRIDE);
  for (const Check& check : Examine(facts).checks) {
    EXPECT_EQ(check.status, CheckStatus::kOk) << check.name;
  }
}

TEST(Examine, LeavesParanoiaToTheCapabilityAboveIt) {
  MachineFacts facts = GoodMachine();
  facts.perf_event_paranoid = 4;
  EXPECT_EQ(Find(Examine(facts), "perf_event_paranoid").status, CheckStatus::kOk);
  facts.kernel.cpu_clock = Support::kDenied;
  EXPECT_EQ(Find(Examine(facts), "perf_event_paranoid").status, CheckStatus::kOk)
      << "CAP_SYS_ADMIN is above any level";
  facts.capabilities = Bit(CAP_BPF);
  facts.perf_event_paranoid = -1;
  EXPECT_THAT(Find(Examine(facts), "perf_event_paranoid").meaning, HasSubstr("need CAP_PERFMON"));
  EXPECT_FALSE(Examine(facts).CanRecord()) << "the lowest level does not make up for it";
}

TEST(Examine, SaysThatRecordRefusesAFrequencyAboveTheLimit) {
  MachineFacts facts = GoodMachine();
  facts.sample_rate_limit = Hertz{50};
  const Check check = Find(Examine(facts), "sample_rate");
  EXPECT_EQ(check.found, "up to 50 Hz");
  EXPECT_THAT(check.meaning, HasSubstr("refuses a higher --frequency"));
}

TEST(Examine, SaysWhatEachCapabilityIsFor) {
  MachineFacts facts = GoodMachine();
  EXPECT_EQ(Find(Examine(facts), "cap_syslog").found,
            "CAP_SYSLOG, which reads the kernel's symbols: present");
  *facts.capabilities &= ~Bit(CAP_SYSLOG);
  const Check check = Find(Examine(facts), "cap_syslog");
  EXPECT_EQ(check.found, "CAP_SYSLOG, which reads the kernel's symbols: missing");
  EXPECT_EQ(check.meaning, "kernel functions may stay unnamed");
}

TEST(Examine, MindsLockedMemoryOnOldKernelsOnly) {
  MachineFacts facts = GoodMachine();
  facts.memlock_limit = 64 << 10;
  EXPECT_EQ(Find(Examine(facts), "memlock").status, CheckStatus::kOk);
  facts.kernel.release = "5.10.0";
  EXPECT_EQ(Find(Examine(facts), "memlock").status, CheckStatus::kOk)
      << "CAP_SYS_RESOURCE raises it";
  *facts.capabilities &= ~Bit(CAP_SYS_RESOURCE);
  EXPECT_EQ(Find(Examine(facts), "memlock").status, CheckStatus::kFail);
  facts.memlock_limit = std::nullopt;
  EXPECT_EQ(Find(Examine(facts), "memlock").status, CheckStatus::kOk);
}

TEST(Examine, NamesTheLayoutOfCgroups) {
  MachineFacts facts = GoodMachine();
  EXPECT_EQ(Find(Examine(facts), "cgroups").found, "v2");
  facts.cgroups.push_back({"/c/cpu", false, "cpu"});
  EXPECT_EQ(Find(Examine(facts), "cgroups").found, "v1 and v2 (hybrid)");
  facts.cgroups.erase(facts.cgroups.begin());
  EXPECT_EQ(Find(Examine(facts), "cgroups").found, "v1");
  facts.cgroups = {{"/c/systemd", false, "name=systemd"}};
  EXPECT_EQ(Find(Examine(facts), "cgroups").status, CheckStatus::kWarn) << "it cannot be used";
}

TEST(Examine, TellsWhatHoldsReaders) {
  MachineFacts facts = GoodMachine();
  facts.sandbox = SandboxLevel{.filter = 1, .no_capabilities = 1};
  EXPECT_EQ(Find(Examine(facts), "sandbox").status, CheckStatus::kOk);
  EXPECT_EQ(Find(Examine(facts), "sandbox").found, "seccomp filter, no capabilities");
  facts.sandbox = Fail(ErrorCode::kUnsupported, "no seccomp here");
  EXPECT_EQ(Find(Examine(facts), "sandbox").status, CheckStatus::kFail);
  EXPECT_EQ(Find(Examine(facts), "sandbox").found, "no seccomp here");
  EXPECT_NE(Find(Examine(facts), "sandbox").advice.find("--no-sandbox"), std::string::npos);
}

TEST(RunDoctor, ExaminesThisMachine) {
  const DoctorReport report = RunDoctor(Procfs{}, AgentSetup{}, Clock());
  EXPECT_NE(Find(report, "kernel").found, "");
  EXPECT_EQ(Find(report, "architecture").status, CheckStatus::kOk);
}

}  // namespace
}  // namespace pyrometer
