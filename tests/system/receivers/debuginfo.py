# SPDX-License-Identifier: Apache-2.0
"""Parca's debug information service."""

import hashlib
import re
import threading
import uuid

import grpc
import messages
from rules import Refusal, want

SERVICE = "parca.debuginfo.v1alpha1.DebuginfoService"
PACKAGE = "parca.debuginfo.v1alpha1"
LARGEST = 1_000_000_000
GNU, HASH = 1, 2
ID = re.compile("(?:[0-9a-f]{2}){2,20}")
CODES = {"invalid": "INVALID_ARGUMENT", "precondition": "FAILED_PRECONDITION"}


def parse(name, body):
    try:
        return messages.parse("parca_debuginfo", f"{PACKAGE}.{name}", body)
    except messages.BadMessage as error:
        raise Refusal("invalid", "bad_request", str(error)) from error


def answer(name, **fields):
    return messages.message_class("parca_debuginfo", f"{PACKAGE}.{name}")(**fields)


class Store:
    """What was uploaded. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._asked = {}  # times, by build id
        self._uploads = {}  # by build id

    def as_json(self):
        """By build id: how often the server was asked about it; and what it got."""
        with self._lock:
            return {"asked": dict(self._asked),
                    "uploads": {build_id: {key: value for key, value in upload.items() if key != "id"}
                                for build_id, upload in self._uploads.items()}}

    def has(self, build_id):
        with self._lock:
            return self._uploads.get(build_id, {}).get("finished", False)

    @staticmethod
    def _check_id(request):
        want(ID.fullmatch(request.build_id), "build_id", request.build_id)
        want(request.build_id_type in (GNU, HASH), "build_id_type", str(request.build_id_type))
        want(request.build_id_type == GNU or len(request.build_id) == 32, "hash_length",
             request.build_id)

    def _why_not(self, build_id):
        upload = self._uploads.get(build_id)
        if upload is None:
            return ""
        if upload["finished"]:
            return "Debuginfo already exists and is not marked as invalid."
        return "A previous upload is still in-progress and not stale yet."

    def should_initiate(self, body):
        request = parse("ShouldInitiateUploadRequest", body)
        self._check_id(request)
        with self._lock:
            self._asked[request.build_id] = self._asked.get(request.build_id, 0) + 1
            reason = self._why_not(request.build_id)
        return answer("ShouldInitiateUploadResponse", should_initiate_upload=not reason,
                      reason=reason or "First time we see this Build ID.")

    def initiate(self, body):
        request = parse("InitiateUploadRequest", body)
        self._check_id(request)
        want(0 < request.size <= LARGEST, "size", str(request.size))
        want(request.hash, "no_hash")
        with self._lock:
            if reason := self._why_not(request.build_id):
                raise Refusal("precondition", "not_wanted", reason)
            upload = {"id": str(uuid.uuid4()), "announced": request.size, "hash": request.hash,
                      "type": request.build_id_type, "size": 0, "sha256": "", "finished": False}
            self._uploads[request.build_id] = upload
        response = answer("InitiateUploadResponse")
        response.upload_instructions.upload_id = upload["id"]
        response.upload_instructions.upload_strategy = 1
        return response

    def upload(self, bodies):
        first = parse("UploadRequest", next(bodies))
        want(first.WhichOneof("data") == "info", "no_info")
        with self._lock:
            upload = self._uploads.get(first.info.build_id)
        want(upload is not None and upload["id"] == first.info.upload_id, "upload_id")
        digest, size, start = hashlib.sha256(), 0, b""
        for body in bodies:
            chunk = parse("UploadRequest", body).chunk_data
            want(chunk, "empty_chunk")
            digest.update(chunk)
            size += len(chunk)
            start = start or chunk[:4]
        want(start == b"\x7fELF", "no_elf_file", repr(start))
        want(size == upload["announced"], "size", f"{size} instead of {upload['announced']}")
        with self._lock:
            upload.update(size=size, sha256=digest.hexdigest())
        return answer("UploadResponse", size=size)

    def finish(self, body):
        request = parse("MarkUploadFinishedRequest", body)
        with self._lock:
            upload = self._uploads.get(request.build_id)
            want(upload is not None and upload["id"] == request.upload_id, "upload_id")
            want(upload["size"], "nothing_uploaded")
            upload["finished"] = True
        return answer("MarkUploadFinishedResponse")


def handler(store, record):
    """gRPC's handler of the service, which puts into `record` what it refuses."""
    def serve(method):
        def call(argument, context):
            try:
                return method(argument).SerializeToString()
            except Refusal as refusal:
                record.rejected(refusal)
                context.abort(getattr(grpc.StatusCode, CODES[refusal.kind]), str(refusal))
        return call

    unary = grpc.unary_unary_rpc_method_handler
    return grpc.method_handlers_generic_handler(SERVICE, {
        "ShouldInitiateUpload": unary(serve(store.should_initiate)),
        "InitiateUpload": unary(serve(store.initiate)),
        "Upload": grpc.stream_unary_rpc_method_handler(serve(store.upload)),
        "MarkUploadFinished": unary(serve(store.finish))})
