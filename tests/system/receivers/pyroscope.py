# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's push.v1 over Connect, and /ingest, at the server's default limits."""

import json
import re
import urllib.parse

import messages
import rules
from rules import Refusal, want

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
# How Connect says what a Refusal's kind means.
ANSWERS = {"invalid": (400, "invalid_argument"), "undecodable": (500, "unknown"),
           "too_fast": (429, "resource_exhausted"), "type": (415, "unknown"),
           "encoding": (501, "unimplemented"), "path": (404, "unimplemented"),
           "unprocessable": (422, "unknown")}


def check_profile(data):
    plain = rules.unpack(data)
    want(len(plain) <= 4 << 20, "profile_size_limit", str(len(plain)))
    want(len(plain) < 2_000_000, "rate_limited", str(len(plain)), kind="too_fast")
    profile = rules.check_pprof(plain, deepest=1000)
    want(len(profile.sample) <= 16_000, "samples_limit", str(len(profile.sample)))
    want(not any(mapping.has_functions for mapping in profile.mapping), "malformed_profile",
         "has_functions makes the server forget addresses")
    return profile


def push(headers, body):
    want(headers.get("Content-Type") == "application/proto", "content_type", kind="type")
    encoding = headers.get("Content-Encoding", "identity")
    want(encoding in ("identity", "gzip"), "content_encoding", encoding, kind="encoding")
    if encoding == "gzip":
        body = rules.unpack(body)
    try:
        request = messages.parse("push", "push.v1.PushRequest", body)
    except messages.BadMessage as error:
        raise Refusal("invalid", "bad_request", str(error)) from error
    want(len(request.series) == 1, "one_series", str(len(request.series)))
    series = request.series[0]
    want(len(series.samples) == 1, "one_profile", str(len(series.samples)))
    pairs = [(label.name, label.value) for label in series.labels]
    rules.check_labels(pairs, own=("__name__", "__delta__"), most=30)
    want(("__name__", "process_cpu") in pairs and ("__delta__", "false") in pairs,
         "invalid_labels", str(pairs))
    want(UUID.match(series.samples[0].ID), "bad_id", series.samples[0].ID)
    return rules.series_text(pairs), rules.ticks_of(check_profile(series.samples[0].raw_profile))


def ingest(query, headers, body):
    arguments = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
    want(arguments.get("format") == "pprof", "format", kind="unprocessable")
    want("Content-Encoding" not in headers, "content_encoding", kind="unprocessable")
    want(not headers.get("Content-Type", "").startswith("multipart"), "multipart",
         kind="unprocessable")
    want(body, "nothing_stored", kind="unprocessable")
    match = re.fullmatch(r"([^{}=,]+)\{(.*)\}", arguments.get("name", ""))
    want(match, "name", arguments.get("name", ""), kind="invalid")
    pairs = [("__name__", "process_cpu"), ("service_name", match[1])]
    for pair in filter(None, match[2].split(",")):
        name, equals, value = pair.partition("=")
        want(equals, "invalid_labels", pair)
        pairs.append((name, value))
    rules.check_labels(sorted(pairs), own=("__name__",), most=30)
    return rules.series_text(pairs), rules.ticks_of(check_profile(body))


def take(path, headers, body):
    """(series, ticks) of an accepted request; else Refusal."""
    path, _, query = path.partition("?")
    if path == "/ingest":
        return ingest(query, headers, body)
    want(path == "/push.v1.PusherService/Push", "path", path, kind="path")
    return push(headers, body)


def success():
    return "application/proto", b""


def failure(kind, message):
    status, code = ANSWERS[kind]
    return status, "application/json", json.dumps({"code": code, "message": message}).encode()
