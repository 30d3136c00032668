# SPDX-License-Identifier: Apache-2.0
import unittest
from unittest import mock

import script

check_layers = script.load("check-layers")


class CheckLayersTest(script.TreeTest):
    """Each test breaks one rule in a tree that keeps them all."""

    def setUp(self):
        super().setUp()
        self.module("base")
        self.module("binary", deps="base", source='#include "base/file.h"')
        self.module("symbolize", deps="base binary",
                    source='#include "base/file.h"\n#include "binary/elf.h"\n'
                           '#include "symbolize/symbols.h"\n#include <vector>')
        self.write("include/pyrometer/frame.h", '#include "pyrometer/abi/frame.h"')
        self.write("include/pyrometer/abi/frame.h", "#include <linux/types.h>")
        self.write("bpf/sampler.bpf.c",
                   '#include <bpf/bpf_helpers.h>\n#include "pyrometer/abi/frame.h"')

    def module(self, name, deps="", libs="", source=""):
        self.write(f"src/{name}/CMakeLists.txt",
                   f"pyrometer_module({name}  # DEPS agent\n  SOURCES {name}.cc\n"
                   f"  DEPS {deps}\n  LIBS {libs})\n")
        self.write(f"src/{name}/{name}.cc", source)

    def assert_breach(self, *parts):
        breaches = check_layers.check(self.root)
        self.assertEqual(len(breaches), 1, breaches)
        for part in parts:
            self.assertIn(part, breaches[0])

    def test_accepts_a_tree_that_keeps_the_rules(self):
        self.assertEqual(check_layers.check(self.root), [])

    def test_wants_an_included_module_in_deps(self):
        self.module("binary", source='\n#include "base/file.h"')
        self.assert_breach("src/binary/binary.cc:2", "base in the DEPS of binary")

    def test_does_not_accept_a_dep_of_a_dep(self):
        self.module("symbolize", deps="binary",
                    source='#include "binary/elf.h"\n#include "base/file.h"')
        self.assert_breach("src/symbolize/symbolize.cc:2", "base in the DEPS of symbolize")

    def test_sees_includes_in_headers_and_in_angle_brackets(self):
        self.write("src/base/clock.h", "#  include <binary/elf.h>")
        self.assert_breach("src/base/clock.h:1", "binary in the DEPS of base")

    def test_reports_a_dep_that_nothing_includes(self):
        self.module("binary", deps="base")
        self.assert_breach("src/binary/CMakeLists.txt", "depends on base but includes nothing")

    def test_holds_deps_to_the_table(self):
        self.module("binary", deps="symbolize", source='#include "symbolize/symbols.h"')
        self.assert_breach("src/binary/CMakeLists.txt", "binary must not depend on symbolize")

    def test_confines_network_clients_to_the_module_that_sends(self):
        for header in ("curl/curl.h", "grpcpp/channel.h"):
            with self.subTest(header):
                self.module("binary", deps="base",
                            source=f'#include "base/file.h"\n#include <{header}>')
                self.assert_breach("src/binary/binary.cc:2", header, "only export")

    def test_wants_the_target_of_a_generated_header(self):
        for name, header, target in (("profile", "proto/pprof.pb.h", "pyrometer_proto_pprof"),
                                     ("sampler", "sampler.skel.h", "sampler_skeleton")):
            with self.subTest(header):
                self.module(name, source=f'#include "{header}"')
                self.assert_breach(f"src/{name}/{name}.cc:1", f"needs {target}")
                self.module(name, libs=target, source=f'#include "{header}"')
                self.assertEqual(check_layers.check(self.root), [])

    def test_lets_the_composition_root_use_all_but_the_command_line(self):
        self.module("cli")
        self.module("agent", deps="symbolize", source='#include "symbolize/symbols.h"')
        self.assertEqual(check_layers.check(self.root), [])
        self.module("agent", deps="cli", source='#include "cli/main.h"')
        self.assert_breach("agent must not depend on cli")

    def test_wants_modules_named_through_deps(self):
        self.module("binary", libs="pyrometer_base")
        self.assert_breach("pyrometer_base belongs in DEPS")

    def test_confines_third_parties(self):
        for header, name in (("<bpf/libbpf.h>", "libbpf"), ('"other/sampler.skel.h"', "libbpf"),
                             ('"other/pprof.pb.h"', "protobuf"),
                             ("<google/protobuf/message.h>", "protobuf"),
                             ("<httplib.h>", "cpp-httplib"),
                             ("<prometheus/text_serializer.h>", "prometheus-cpp")):
            with self.subTest(header):
                self.module("base", source=f"#include {header}")
                self.assert_breach("src/base/base.cc:1", name)

    def test_confines_the_libraries_of_third_parties(self):
        for library, name in (("bpf", "libbpf"), ("sampler_skeleton", "libbpf"),
                              ("pyrometer_proto_pprof", "protobuf"),
                              ("protobuf::libprotobuf", "protobuf"),
                              ("PkgConfig::httplib", "cpp-httplib"),
                              ("prometheus-cpp::core", "prometheus-cpp")):
            with self.subTest(library):
                self.module("base", libs=library)
                self.assert_breach("src/base/CMakeLists.txt", library, name)

    def test_lets_the_sampler_use_libbpf(self):
        self.module("sampler", libs="sampler_skeleton",
                    source='#include <bpf/libbpf.h>\n#include "sampler.skel.h"')
        self.assertEqual(check_layers.check(self.root), [])

    def test_confines_the_configuration(self):
        self.module("config")
        self.write("src/base/CMakeLists.txt", "pyrometer_module(base DEPS config)")
        self.write("src/base/base.cc", '#include "config/record_config.h"')
        breaches = check_layers.check(self.root)
        self.assertTrue(any("Config, which only agent, cli, config, record may see" in breach
                            for breach in breaches), breaches)

    def test_wants_paths_from_src(self):
        for path in ("binary.h", "../binary/binary.h"):
            with self.subTest(path):
                self.write("src/binary/binary.h")
                self.module("binary", deps="base",
                            source=f'#include "{path}"\n#include "base/file.h"')
                self.assert_breach("src/binary/binary.cc:1", "write ")

    def test_wants_every_directory_of_src_to_be_a_known_module(self):
        self.write("src/misc/misc.cc")
        self.assert_breach("src/misc", "not in the table")

    def test_wants_a_module_call(self):
        self.write("src/base/CMakeLists.txt", "pyrometer_module(basis SOURCES a.cc)")
        self.assert_breach("src/base", "no pyrometer_module(base ...)")

    def test_keeps_src_out_of_the_contract(self):
        for header in ('"base/file.h"', "<base/file.h>"):
            with self.subTest(header):
                self.write("include/pyrometer/frame.h", f"#include {header}")
                self.assert_breach("include/pyrometer/frame.h:1", "contract")

    def test_keeps_the_abi_free_of_user_space(self):
        for header in ("<stdint.h>", '"pyrometer/frame.h"'):
            with self.subTest(header):
                self.write("include/pyrometer/abi/frame.h", f"#include {header}")
                self.assert_breach("include/pyrometer/abi/frame.h:1", "linux/types.h")

    def test_keeps_user_space_and_generated_types_out_of_the_kernel_side(self):
        for header in ('"pyrometer/frame.h"', '"vmlinux.h"'):
            with self.subTest(header):
                self.write("bpf/sampler.bpf.c", f"#include {header}")
                self.assert_breach("bpf/sampler.bpf.c:1")

    def test_keeps_the_real_clock_to_the_composition_roots(self):
        for code in ("const auto t = std::chrono::steady_clock::now();",
                     "std::chrono::system_clock::now() + timeout;", "Clock::now();",
                     "After(MonotonicNow(), limit);", "clock_gettime(CLOCK_MONOTONIC, &t);",
                     "gpr_now(GPR_CLOCK_REALTIME);", "absl::Now();", "std::time(nullptr);",
                     "using Time = std::chrono::steady_clock;", "timespec_get(&t, TIME_UTC);",
                     'Get("http://x", MonotonicNow());', "  const Clock clock;", "  Clock clock_{};",
                     "inline const Clock k;", "thread_local Clock k;", "Clock const k;", "{ const Clock k; }",
                     "Log log(Clock{});", "const Clock& k = Clock();", "std::make_unique<Clock>()",
                     "std::make_shared<Clock>()"):
            with self.subTest(code):
                self.write("src/base/base.cc", f"\n{code}\n")
                self.assert_breach("src/base/base.cc:2", "take a Clock")

    def test_lets_all_take_a_clock(self):
        self.write("src/base/base.cc",
                   "int f(const Clock& clock, std::chrono::steady_clock::time_point until);\n"
                   "const Clock& clock_;\n"
                   "clock_.Now();\n"
                   "SCMP_SYS(clock_gettime),  // a name of it\n"
                   "std::shared_ptr<const Clock> clock;\n"
                   "clock_.WallNow();  // no system_clock::now()\n"
                   "class Clock {};  \nstruct Clock;\nusing Clock = int;\nstd::chrono::milliseconds time(0);\n"
                   'Say("steady_clock::now()");\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_lets_those_read_the_clock_that_are_listed(self):
        self.module("agent")
        for file in ("src/base/clock.h", "src/agent/agent.cc"):
            self.write(file, "MonotonicNow();")
        self.assertEqual(check_layers.check(self.root), [])

    def test_wants_what_is_converted_off_the_list(self):
        file = "src/base/old.cc"
        with mock.patch.object(check_layers, "CLOCK_LEFT", frozenset({file})):
            self.write(file, "steady_clock::now();")
            self.assertEqual(check_layers.check(self.root), [])
            self.write(file, "clock_.Now();")
            self.assert_breach(file, "remove it from CLOCK_LEFT")

    def test_the_table_has_no_cycles(self):
        done = set()
        while ready := {name for name, deps in check_layers.ALLOWED.items()
                        if name not in done and deps <= done}:
            done |= ready
        self.assertEqual(done, set(check_layers.ALLOWED))


if __name__ == "__main__":
    unittest.main()
