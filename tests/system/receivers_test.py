# SPDX-License-Identifier: Apache-2.0
"""The strict receivers themselves: they take what is right and name what is wrong."""

import gzip
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import time
import unittest

try:
    import google.protobuf
    import grpc
except ImportError as missing:
    print(f"skipped: {missing}; install python3-grpcio and python3-protobuf")
    sys.exit(77)

RECEIVERS = pathlib.Path(__file__).resolve().parent / "receivers"
sys.path.insert(0, str(RECEIVERS))

import debuginfo  # noqa: E402
import messages  # noqa: E402
import otlp  # noqa: E402
import parca  # noqa: E402
import pyroscope  # noqa: E402
import rules  # noqa: E402
import servers  # noqa: E402


def make_pprof():
    """Two stacks, 3 and 4 ticks."""
    profile = messages.message_class("pprof", "pyrometer.pprof.Profile")()
    profile.string_table.extend(
        ["", "samples", "count", "cpu", "nanoseconds", "main", "work", "/bin/program"])
    profile.sample_type.add(type=1, unit=2)
    profile.sample_type.add(type=3, unit=4)
    profile.period_type.type, profile.period_type.unit = 3, 4
    profile.period = 10_000_000
    profile.time_nanos = time.time_ns()
    profile.duration_nanos = 10_000_000_000
    profile.mapping.add(id=1, filename=7)
    for number, name in ((1, 5), (2, 6)):
        profile.function.add(id=number, name=name, system_name=name)
        profile.location.add(id=number, mapping_id=1, address=number).line.add(function_id=number)
    profile.sample.add(location_id=[2, 1], value=[3, 30_000_000])
    profile.sample.add(location_id=[1], value=[4, 40_000_000])
    return profile


def make_push(profile=None, **changes):
    labels = {"__delta__": "false", "__name__": "process_cpu", "service_name": "nginx"}
    labels.update(changes)
    request = messages.message_class("push", "push.v1.PushRequest")()
    series = request.series.add()
    for name, value in sorted(labels.items()):
        if value is not None:
            series.labels.add(name=name, value=value)
    sample = series.samples.add(ID="01234567-89ab-4cde-8f01-23456789abcd")
    sample.raw_profile = gzip.compress((profile or make_pprof()).SerializeToString())
    return request


def make_write(profile=None, **changes):
    labels = {"__name__": "process_cpu", "service_name": "nginx"}
    labels.update(changes)
    request = messages.message_class("parca", "parca.profilestore.v1alpha1.WriteRawRequest")()
    series = request.series.add()
    for name, value in sorted(labels.items()):
        series.labels.labels.add(name=name, value=value)
    series.samples.add(raw_profile=gzip.compress((profile or make_pprof()).SerializeToString()))
    return request


def make_export():
    request = messages.message_class("otlp_profiles",
                                     f"{otlp.PACKAGE}.ExportProfilesServiceRequest")()
    tables = request.dictionary
    tables.string_table.extend(["", "samples", "count", "cpu", "nanoseconds", "main"])
    for table in otlp.TABLES:
        getattr(tables, table).add()
    tables.function_table.add(name_strindex=5, system_name_strindex=5)
    tables.location_table.add(address=1).lines.add(function_index=1)
    tables.stack_table.add(location_indices=[1])
    resource = request.resource_profiles.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "nginx"
    scope = resource.scope_profiles.add()
    scope.scope.name = "test"
    profile = scope.profiles.add(time_unix_nano=time.time_ns(), duration_nano=1, period=10)
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
    profile.period_type.type_strindex, profile.period_type.unit_strindex = 3, 4
    profile.samples.add(stack_index=1, values=[7])
    return request


PUSH_HEADERS = {"Content-Type": "application/proto"}


def push(request):
    return pyroscope.take("/push.v1.PusherService/Push", PUSH_HEADERS, request.SerializeToString())


class RefusalTest(unittest.TestCase):
    def assert_refused(self, reason, take, *arguments):
        with self.assertRaises(rules.Refusal) as caught:
            take(*arguments)
        self.assertEqual(caught.exception.reason, reason, caught.exception)
        return caught.exception


class PprofTest(RefusalTest):
    def check(self, **changes):
        """Applies each change to a good profile and checks that it is refused."""
        for name, change in changes.items():
            with self.subTest(name):
                profile = make_pprof()
                said = change(profile)
                reason = said if isinstance(said, str) else "malformed_profile"
                self.assert_refused(reason, rules.check_pprof, profile.SerializeToString(), 1000)

    def test_takes_a_good_profile(self):
        profile = rules.check_pprof(make_pprof().SerializeToString(), 1000)
        self.assertEqual(rules.ticks_of(profile), 7)

    def test_names_what_is_wrong_with_the_others(self):
        def labelled(profile):
            profile.sample[0].label.add(key=5, str=6)
            return "sample_labels"

        def old(profile):
            profile.time_nanos -= 3700 * 10**9
            return "not_in_ingestion_window"

        self.check(
            first_string=lambda p: p.string_table.__setitem__(0, "x"),
            same_strings=lambda p: p.string_table.append("main"),
            sparse_ids=lambda p: setattr(p.location[1], "id", 3),
            id_order=lambda p: setattr(p.function[0], "id", 2),
            dangling_location=lambda p: p.sample[0].location_id.append(9),
            dangling_function=lambda p: setattr(p.location[0].line[0], "function_id", 9),
            nameless_function=lambda p: setattr(p.function[0], "name", 0),
            frame_without_function=lambda p: p.location[0].ClearField("line"),
            address_without_mapping=lambda p: setattr(p.location[0], "mapping_id", 0),
            no_frames=lambda p: p.sample[0].ClearField("location_id"),
            too_few_values=lambda p: p.sample[0].value.pop(),
            zero_value=lambda p: p.sample[0].value.__setitem__(0, 0),
            no_samples=lambda p: p.ClearField("sample"),
            no_period=lambda p: p.ClearField("period"),
            no_duration=lambda p: p.ClearField("duration_nanos"),
            too_deep=lambda p: p.sample[0].location_id.extend([1] * 1000),
            same_stack_twice=lambda p: p.sample.add().CopyFrom(p.sample[0]),
            sample_labels=labelled, too_old=old)

    def test_takes_no_strings_that_are_not_utf8(self):
        data = make_pprof().SerializeToString().replace(b"main", b"m\xffin")
        self.assert_refused("malformed_profile", rules.check_pprof, data)


class PyroscopeTest(RefusalTest):
    def test_takes_a_good_request(self):
        self.assertEqual(push(make_push()), ('{service_name="nginx"}', 7))

    def test_wants_labels_as_the_server_does(self):
        for reason, changes in (
                ("missing_labels", {"__name__": None}), ("invalid_labels", {"a.b": "x"}),
                ("invalid_labels", {"0a": "x"}), ("empty_label_value", {"a": ""}),
                ("reserved_label", {"__session_id__": "x"}),
                ("label_name_too_long", {"n" * 1025: "x"}),
                ("label_value_too_long", {"a": "v" * 2049}),
                ("max_label_names_per_series", {f"l{i}": "x" for i in range(28)})):
            with self.subTest(reason, changes=list(changes)):
                self.assert_refused(reason, push, make_push(**changes))
        push(make_push(**{f"l{i}": "x" for i in range(27)}))

    def test_wants_one_profile_in_a_request(self):
        request = make_push()
        request.series.add().CopyFrom(request.series[0])
        self.assert_refused("one_series", push, request)

    def test_says_what_the_server_says_of_sizes(self):
        profile = make_pprof()
        profile.string_table.extend("s" * 60_000 + str(i) for i in range(34))
        self.assertEqual(self.assert_refused("rate_limited", push, make_push(profile)).kind,
                         "too_fast")
        profile.string_table.extend("t" * 60_000 + str(i) for i in range(40))
        self.assert_refused("profile_size_limit", push, make_push(profile))

    def test_wants_no_functions_claimed(self):
        profile = make_pprof()
        profile.mapping[0].has_functions = True
        self.assert_refused("malformed_profile", push, make_push(profile))

    def test_answers_500_to_what_it_cannot_decode(self):
        request = make_push()
        request.series[0].samples[0].raw_profile = b"\x1f\x8bno gzip"
        refusal = self.assert_refused("malformed_profile", push, request)
        self.assertEqual(pyroscope.failure(refusal.kind, str(refusal))[0], 500)

    def test_ingests_a_raw_profile(self):
        body = gzip.compress(make_pprof().SerializeToString())
        path = "/ingest?name=nginx%7Bzone%3Db%7D&format=pprof"
        self.assertEqual(pyroscope.take(path, {}, body), ('{service_name="nginx",zone="b"}', 7))
        self.assert_refused("nothing_stored", pyroscope.take, path, {}, b"")
        self.assert_refused("content_encoding", pyroscope.take, path,
                            {"Content-Encoding": "gzip"}, body)


class ParcaTest(RefusalTest):
    def test_takes_a_good_request(self):
        self.assertEqual(parca.take(make_write().SerializeToString()),
                         ('{service_name="nginx"}', 7))

    def test_names_what_is_wrong_with_the_others(self):
        self.assert_refused("invalid_labels", parca.take,
                            make_write(**{"a-b": "x"}).SerializeToString())
        self.assert_refused("bad_request", parca.take, b"\xff\xff")
        request = make_write()
        request.series[0].samples[0].raw_profile = request.series[0].samples[0].raw_profile[:-9]
        refusal = self.assert_refused("malformed_profile", parca.take, request.SerializeToString())
        self.assertEqual(refusal.kind, "unknown")


    def test_takes_frames_without_a_name_only_where_it_can_name_them(self):
        profile = make_pprof()
        profile.string_table.append("abcd")
        profile.mapping[0].build_id = 8
        profile.location[0].ClearField("line")
        body = make_write(profile).SerializeToString()
        self.assert_refused("malformed_profile", parca.take, body)
        self.assertEqual(parca.take(body, names_code_of="abcd".__eq__)[1], 7)
        profile.mapping[0].memory_limit = 1
        self.assert_refused("malformed_profile", parca.take,
                            make_write(profile).SerializeToString(), "abcd".__eq__)


class DebuginfoTest(RefusalTest):
    ID = "0123456789abcdef"
    FILE = b"\x7fELF and more"

    def setUp(self):
        self.store = debuginfo.Store()

    def should_initiate(self, **changes):
        fields = {"build_id": self.ID, "build_id_type": debuginfo.GNU, **changes}
        return self.store.should_initiate(
            debuginfo.answer("ShouldInitiateUploadRequest", **fields).SerializeToString())

    def initiate(self, **changes):
        fields = {"build_id": self.ID, "build_id_type": debuginfo.GNU, "size": len(self.FILE),
                  "hash": "x", **changes}
        return self.store.initiate(
            debuginfo.answer("InitiateUploadRequest", **fields).SerializeToString())

    def upload(self, upload_id, *chunks):
        first = debuginfo.answer("UploadRequest")
        first.info.build_id, first.info.upload_id = self.ID, upload_id
        rest = (debuginfo.answer("UploadRequest", chunk_data=chunk) for chunk in chunks)
        return self.store.upload(message.SerializeToString() for message in (first, *rest))

    def finish(self, upload_id):
        return self.store.finish(debuginfo.answer(
            "MarkUploadFinishedRequest", build_id=self.ID, upload_id=upload_id).SerializeToString())

    def test_takes_a_file_once(self):
        self.assertTrue(self.should_initiate().should_initiate_upload)
        upload_id = self.initiate().upload_instructions.upload_id
        self.assertIn("in-progress", self.should_initiate().reason)
        self.assertEqual(self.upload(upload_id, self.FILE[:5], self.FILE[5:]).size, len(self.FILE))
        self.assertFalse(self.store.has(self.ID))
        self.finish(upload_id)
        self.assertTrue(self.store.has(self.ID))
        self.assertFalse(self.should_initiate().should_initiate_upload)
        refusal = self.assert_refused("not_wanted", self.initiate)
        self.assertEqual(refusal.kind, "precondition")
        record = self.store.as_json()
        self.assertEqual(record["asked"], {self.ID: 3})
        self.assertEqual(record["uploads"][self.ID]["size"], len(self.FILE))

    def test_names_what_is_wrong_with_the_others(self):
        self.assert_refused("build_id", lambda: self.should_initiate(build_id="ab"))
        self.assert_refused("build_id", lambda: self.should_initiate(build_id="ABCDEF"))
        self.assert_refused("build_id_type", lambda: self.should_initiate(build_id_type=0))
        self.assert_refused("hash_length",
                            lambda: self.should_initiate(build_id_type=debuginfo.HASH))
        self.assert_refused("size", lambda: self.initiate(size=0))
        self.assert_refused("no_hash", lambda: self.initiate(hash=""))
        upload_id = self.initiate().upload_instructions.upload_id
        self.assert_refused("nothing_uploaded", self.finish, upload_id)
        self.assert_refused("upload_id", self.upload, "other", self.FILE)
        self.assert_refused("no_elf_file", self.upload, upload_id, b"x" * len(self.FILE))
        self.assert_refused("size", self.upload, upload_id, self.FILE[:-1])


class OtlpTest(RefusalTest):
    def test_takes_a_good_request(self):
        self.assertEqual(otlp.take(make_export().SerializeToString()),
                         ('{service.name="nginx"}', 7))

    def test_names_what_is_wrong_with_the_others(self):
        def profile_of(request):
            return request.resource_profiles[0].scope_profiles[0].profiles[0]

        cases = {
            "zero_row": lambda r: r.dictionary.link_table.pop(),
            "row_twice": lambda r: r.dictionary.function_table.add(name_strindex=5,
                                                                  system_name_strindex=5),
            "unused_row": lambda r: r.dictionary.string_table.append("unused"),
            "bad_index": lambda r: setattr(profile_of(r).samples[0], "stack_index", 5),
            "values": lambda r: profile_of(r).samples[0].values.append(1),
            "period": lambda r: profile_of(r).ClearField("period"),
            "missing_types": lambda r: profile_of(r).ClearField("period_type"),
            "missing_resource": lambda r: r.resource_profiles[0].ClearField("resource"),
            "missing_scope": lambda r: r.resource_profiles[0].scope_profiles[0].ClearField("scope"),
            "missing_dictionary": lambda r: r.ClearField("dictionary"),
            "not_in_ingestion_window": lambda r: profile_of(r).ClearField("time_unix_nano"),
            "samples_limit": lambda r: profile_of(r).ClearField("samples"),
            "frame_without_function":
                lambda r: r.dictionary.location_table[1].ClearField("lines"),
        }
        for reason, change in cases.items():
            with self.subTest(reason):
                request = make_export()
                change(request)
                self.assert_refused(reason, otlp.take, request.SerializeToString())

    def test_takes_no_older_layout(self):
        # Sample{values=2}, as of 1.9: a field that 1.10 has under another number and type.
        request = make_export()
        sample = request.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]
        sample.ClearField("values")
        sample.attribute_indices.append(7)
        self.assert_refused("values", otlp.take, request.SerializeToString())


class ServerTest(unittest.TestCase):
    """The command, over the wire."""

    def start(self, protocol, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-B", str(RECEIVERS / "receive.py"), protocol, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        ready = process.stdout.readline()
        self.assertTrue(ready.startswith("READY "), ready)
        ports = json.loads(ready.removeprefix("READY "))
        self.port, self.control_port = ports["port"], ports["control"]

    def request(self, port, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.addCleanup(connection.close)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()

    def mode(self, **wanted):
        status, _, body = self.request(self.control_port, "POST", "/mode", json.dumps(wanted))
        self.assertEqual(status, 200, body)

    def record(self):
        return json.loads(self.request(self.control_port, "GET", "/record")[2])

    def push(self, request=None):
        return self.request(self.port, "POST", "/push.v1.PusherService/Push",
                            (request or make_push()).SerializeToString(), PUSH_HEADERS)

    def call(self, service, method, request):
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            return channel.unary_unary(f"/{service}/{method}")(request.SerializeToString(),
                                                               timeout=10)

    def code_of(self, *call):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(*call)
        self.error = caught.exception
        return caught.exception.code()

    def test_records_what_arrived_and_what_did_not(self):
        self.start("pyroscope")
        request = make_push()
        self.assertEqual(self.push(request)[0], 200)
        self.assertEqual(self.push(request)[0], 200)
        status, _, body = self.push(make_push(**{"a.b": "x"}))
        self.assertEqual(status, 400)
        self.assertEqual(json.loads(body)["code"], "invalid_argument")
        record = self.record()
        self.assertEqual(record["samples"], {'{service_name="nginx"}': 14})
        self.assertEqual((record["requests"], record["repeated"]), (2, 1))
        self.assertEqual(record["rejected"], {"invalid_labels": 1})

    def test_misbehaves_over_http(self):
        self.start("pyroscope")
        self.mode(mode="429", retry_after=7, times=1)
        status, headers, _ = self.push()
        self.assertEqual((status, headers["Retry-After"]), (429, "7"))
        self.assertEqual(self.push()[0], 200)
        self.mode(mode="close", times=1)
        with self.assertRaises(http.client.IncompleteRead):
            self.push()
        self.mode(mode="refuse")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        self.mode(mode="ok")
        self.assertEqual(self.push()[0], 200)
        self.assertEqual(self.record()["misbehaved"], {"429": 1, "close": 1})

    def test_hangs_until_it_is_told_otherwise(self):
        self.start("pyroscope")
        self.mode(mode="hang")
        connection = socket.create_connection(("127.0.0.1", self.port), 5)
        self.addCleanup(connection.close)
        connection.settimeout(0.2)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        with self.assertRaises(TimeoutError):
            connection.recv(1)
        self.mode(mode="ok")
        connection.settimeout(10)
        self.assertEqual(connection.recv(1), b"")

    def test_speaks_grpc_to_parca_clients(self):
        self.start("parca")
        call = (parca.SERVICE, parca.METHOD)
        self.assertEqual(self.call(*call, make_write()), b"")
        self.assertEqual(self.code_of(*call, make_write(**{"a-b": "x"})),
                         grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.code_of(parca.SERVICE, "Nope", make_write()),
                         grpc.StatusCode.UNIMPLEMENTED)
        self.mode(mode="429", retry_after=3, times=1)
        self.assertEqual(self.code_of(*call, make_write()), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("grpc-status-details-bin", dict(self.error.trailing_metadata()))
        for mode in ("refuse", "close", "503"):
            self.mode(mode=mode, times=1)
            self.assertIn(self.code_of(*call, make_write()),
                          (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED), mode)
        self.mode(mode="ok")
        self.assertEqual(self.record()["samples"], {'{service_name="nginx"}': 7})

    def test_speaks_otlp_both_ways(self):
        self.start("otlp-grpc")
        self.assertEqual(self.call(otlp.SERVICE, otlp.METHOD, make_export()), b"")
        self.mode(mode="partial", times=1)
        answer = messages.parse("otlp_profiles", f"{otlp.PACKAGE}.ExportProfilesServiceResponse",
                                self.call(otlp.SERVICE, otlp.METHOD, make_export()))
        self.assertEqual(answer.partial_success.rejected_profiles, 1)
        self.start("otlp-http")
        body = gzip.compress(make_export().SerializeToString())
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
        self.assertEqual(
            self.request(self.port, "POST", "/v1development/profiles", body, headers)[0], 200)
        headers["Content-Type"] = "application/protobuf"
        self.assertEqual(
            self.request(self.port, "POST", "/v1development/profiles", body, headers)[0], 415)
        self.assertEqual(self.record()["samples"], {'{service.name="nginx"}': 7})

    def test_knows_every_mode_it_is_told(self):
        self.start("otlp-http")
        status, _, _ = self.request(self.control_port, "POST", "/mode", '{"mode": "dance"}')
        self.assertEqual(status, 400)
        self.assertIn("hang", servers.MODES)


if __name__ == "__main__":
    unittest.main()
