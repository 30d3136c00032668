# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles 1.10 by gRPC and HTTP, by the rules of its specification and of portable senders."""

import time

import messages
import rules
from rules import Refusal, want

PACKAGE = "opentelemetry.proto.collector.profiles.v1development"
SERVICE = f"{PACKAGE}.ProfilesService"
METHOD = "Export"
LARGEST = 4 << 20  # gRPC's usual limit, of the message after decompression
LARGEST_HTTP = 20 << 20
CODES = {"invalid": "INVALID_ARGUMENT", "undecodable": "INTERNAL"}
STATUS = {"invalid": 400, "undecodable": 400, "type": 415, "path": 404}
TABLES = ("mapping_table", "location_table", "function_table", "link_table", "attribute_table",
          "stack_table")


class Dictionary:
    """Looks rows up and notes which are used."""

    def __init__(self, tables):
        self.tables = tables
        self.used = {name: {0} for name in (*TABLES, "string_table")}

    def row(self, table, index):
        rows = getattr(self.tables, table)
        want(0 <= index < len(rows), "bad_index", f"{table}[{index}]")
        self.used[table].add(index)
        return rows[index]

    def text(self, index):
        return self.row("string_table", index)

    def check_tables(self):
        strings = self.tables.string_table
        want(strings and strings[0] == "", "zero_row", "string_table")
        want(len(set(strings)) == len(strings), "row_twice", "string_table")
        for table in TABLES:
            rows = [row.SerializeToString(deterministic=True)
                    for row in getattr(self.tables, table)]
            want(rows and rows[0] == b"", "zero_row", table)
            want(len(set(rows)) == len(rows), "row_twice", table)

    def check_all_used(self):
        for table, used in self.used.items():
            unused = set(range(len(getattr(self.tables, table)))) - used
            want(not unused, "unused_row", f"{table} {sorted(unused)[:5]}")

    def attributes(self, indices):
        for index in indices:
            want(index != 0, "bad_index", "attribute 0")
            attribute = self.row("attribute_table", index)
            want(self.text(attribute.key_strindex), "attribute_key")
            want(attribute.value.WhichOneof("value") == "string_value", "attribute_type")
            self.text(attribute.unit_strindex)

    def type_of(self, value_type):
        return self.text(value_type.type_strindex), self.text(value_type.unit_strindex)


def check_stack(dictionary, index):
    want(index != 0, "bad_index", "stack 0")
    stack = dictionary.row("stack_table", index)
    want(stack.location_indices, "empty_stack")
    for location_index in stack.location_indices:
        want(location_index != 0, "bad_index", "location 0")
        location = dictionary.row("location_table", location_index)
        mapping = dictionary.row("mapping_table", location.mapping_index)
        dictionary.text(mapping.filename_strindex)
        dictionary.attributes(mapping.attribute_indices)
        dictionary.attributes(location.attribute_indices)
        want(location.lines, "frame_without_function")
        for line in location.lines:
            function = dictionary.row("function_table", line.function_index)
            want(dictionary.text(function.name_strindex), "frame_without_name")
            dictionary.text(function.system_name_strindex)
            dictionary.text(function.filename_strindex)


def check_profile(dictionary, profile):
    want(profile.HasField("sample_type") and profile.HasField("period_type"), "missing_types")
    want(dictionary.type_of(profile.sample_type) == ("samples", "count"), "sample_type")
    want(dictionary.type_of(profile.period_type) == ("cpu", "nanoseconds"), "period_type")
    want(profile.period > 0, "period")
    want(profile.duration_nano > 0, "duration")
    now = time.time()
    want(now - 3600 < profile.time_unix_nano / 1e9 < now + 600, "not_in_ingestion_window")
    want(len(profile.profile_id) in (0, 16), "profile_id")
    want(0 < len(profile.samples) <= 16_000, "samples_limit", str(len(profile.samples)))
    for sample in profile.samples:
        want(len(sample.values) == 1 and sample.values[0] > 0, "values", str(sample.values))
        want(sample.link_index == 0 and not sample.attribute_indices, "sample_labels")
        check_stack(dictionary, sample.stack_index)
    return sum(sample.values[0] for sample in profile.samples)


def take(body):
    """(series, ticks) of an accepted request; else Refusal."""
    try:
        request = messages.parse("otlp_profiles", f"{PACKAGE}.ExportProfilesServiceRequest", body)
    except messages.BadMessage as error:
        raise Refusal("undecodable", "bad_request", str(error)) from error
    want(request.HasField("dictionary"), "missing_dictionary")
    dictionary = Dictionary(request.dictionary)
    dictionary.check_tables()
    want(len(request.resource_profiles) == 1, "one_resource")
    resource = request.resource_profiles[0]
    want(resource.HasField("resource"), "missing_resource")
    pairs = [(a.key, a.value.string_value) for a in resource.resource.attributes]
    want(all(key and value for key, value in pairs), "empty_attribute", str(pairs))
    want(len({key for key, _ in pairs}) == len(pairs), "attribute_twice", str(pairs))
    want("service.name" in dict(pairs), "missing_service_name")
    want(len(resource.scope_profiles) == 1, "one_scope")
    scope = resource.scope_profiles[0]
    want(scope.HasField("scope") and scope.scope.name, "missing_scope")
    want(len(scope.profiles) == 1, "one_profile")
    ticks = check_profile(dictionary, scope.profiles[0])
    dictionary.check_all_used()
    return rules.series_text(pairs), ticks


def take_http(path, headers, body):
    want(path == "/v1development/profiles", "path", path, kind="path")
    want(headers.get("Content-Type") == "application/x-protobuf", "content_type", kind="type")
    encoding = headers.get("Content-Encoding", "identity")
    want(encoding in ("identity", "gzip"), "content_encoding", encoding)
    plain = rules.unpack(body) if encoding == "gzip" else body
    want(len(plain) <= LARGEST_HTTP, "too_large", str(len(plain)))
    return take(plain)


def response(rejected=0, message=""):
    answer = messages.message_class("otlp_profiles", f"{PACKAGE}.ExportProfilesServiceResponse")()
    if rejected or message:
        answer.partial_success.rejected_profiles = rejected
        answer.partial_success.error_message = message
    return answer.SerializeToString()


def success():
    return response()


def failure(kind, message):
    status = messages.message_class("rpc_status", "pyrometer.rpc.Status")(code=3, message=message)
    return STATUS[kind], "application/x-protobuf", status.SerializeToString()
