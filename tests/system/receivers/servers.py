# SPDX-License-Identifier: Apache-2.0
"""Servers around the protocols: they record what arrived and misbehave when told to."""

import collections
import contextlib
import hashlib
import http.server
import socket
import ssl
import threading
from concurrent import futures

import grpc

import messages
import otlp
import parca
import pyroscope
from rules import Refusal

MODES = ("ok", "refuse", "hang", "429", "500", "503", "413", "close", "bad_certificate", "partial")


class Record:
    """What arrived. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._series = collections.Counter()
        self._rejected = collections.Counter()
        self._misbehaved = collections.Counter()
        self._messages = []
        self._bodies = set()
        self._requests = 0
        self._repeated = 0

    def accepted(self, body, series, ticks):
        digest = hashlib.sha256(body).digest()
        with self._lock:
            self._requests += 1
            self._repeated += digest in self._bodies
            self._bodies.add(digest)
            self._series[series] += ticks

    def rejected(self, refusal):
        with self._lock:
            self._rejected[refusal.reason] += 1
            self._messages = (self._messages + [str(refusal)])[-20:]

    def misbehaved(self, mode):
        with self._lock:
            self._misbehaved[mode] += 1

    def as_json(self):
        """`samples` is by series; `repeated` counts accepted bodies that had come before."""
        with self._lock:
            return {"samples": dict(self._series), "requests": self._requests,
                    "repeated": self._repeated, "rejected": dict(self._rejected),
                    "messages": list(self._messages), "misbehaved": dict(self._misbehaved)}


class Receiver:
    """One protocol on one port, which it keeps while it is stopped and started again."""

    def __init__(self, port=0, tls=None, bad_tls=None):
        """tls, bad_tls: (certificate file, key file, client CA file or None)."""
        self.port = port
        self.record = Record()
        self._tls, self._bad_tls = tls, bad_tls
        self._lock = threading.Lock()
        self._mode, self._left, self._retry_after = "ok", None, None
        self.released = threading.Event()  # set: requests that hang may end

    def set_mode(self, mode, times=None, retry_after=None):
        """From now on, for all requests or the next `times`, until it is told otherwise."""
        if mode not in MODES:
            raise ValueError(f"no such mode: {mode}")
        # Listening or not, and with which certificate, is a matter of the whole server.
        was, self._mode = self._mode, mode
        self._left, self._retry_after = times, retry_after
        self.released.set()
        if {was, mode} & {"refuse", "bad_certificate"}:
            self.stop()
            if mode != "refuse":
                self.start(self._bad_tls if mode == "bad_certificate" else self._tls)
        self.released = threading.Event()

    def next_mode(self):
        """The mode for one request, and how long it shall be told to wait."""
        with self._lock:
            mode = self._mode
            if self._left is not None:
                if self._left == 0:
                    mode = "ok"
                else:
                    self._left -= 1
        if mode != "ok":
            self.record.misbehaved(mode)
        return mode, self._retry_after


class HttpReceiver(Receiver):
    def __init__(self, protocol, **options):
        """protocol: pyroscope, or otlp."""
        super().__init__(**options)
        self._take = protocol.take_http if protocol is otlp else protocol.take
        self._protocol = protocol
        self._serving, self._serving_changed = 0, threading.Condition()
        self.start(self._tls)

    def start(self, tls):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def do_POST(self):
                receiver.serve(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128

            def __init__(self, *arguments):
                super().__init__(*arguments)
                self.connections = set()

            def end_connections(self):
                """As the end of a server's process does."""
                for connection in list(self.connections):
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)

            def handle_error(self, *_):
                pass  # clients that went away, or refused a certificate

            def finish_request(self, request, client_address):
                if tls is not None:
                    request = context.wrap_socket(request, server_side=True)
                self.connections.add(request)
                try:
                    super().finish_request(request, client_address)
                finally:
                    self.connections.discard(request)

        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls[0], tls[1])
            if tls[2]:
                context.load_verify_locations(tls[2])
                context.verify_mode = ssl.CERT_REQUIRED
        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """Answers what it has begun to read; what comes on a kept connection now is in doubt."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            with self._serving_changed:
                self._serving_changed.wait_for(lambda: self._serving == 0, 60)
            self._server.end_connections()
            self._server = None

    def serve(self, handler):
        with self._serving_changed:
            self._serving += 1
        try:
            self.serve_one(handler)
        finally:
            with self._serving_changed:
                self._serving -= 1
                self._serving_changed.notify_all()

    def serve_one(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        mode, retry_after = self.next_mode()
        if mode == "hang":
            self.released.wait()
            handler.close_connection = True
        elif mode == "close":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            handler.close_connection = True
        elif mode.isdigit():
            self.answer(handler, int(mode), "text/plain", f"told to say {mode}".encode(),
                        retry_after)
        else:
            self.judge(handler, body, mode)

    def judge(self, handler, body, mode):
        try:
            series, ticks = self._take(handler.path, handler.headers, body)
        except Refusal as refusal:
            self.record.rejected(refusal)
            self.answer(handler, *self._protocol.failure(refusal.kind, str(refusal)))
            return
        if mode == "partial" and self._protocol is otlp:
            self.answer(handler, 200, "application/x-protobuf", otlp.response(1, "told to"))
            return
        self.record.accepted(body, series, ticks)
        if self._protocol is otlp:
            self.answer(handler, 200, "application/x-protobuf", otlp.success())
        else:
            self.answer(handler, 200, *pyroscope.success())

    @staticmethod
    def answer(handler, status, content_type, body, retry_after=None):
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            handler.send_header("Retry-After", str(retry_after))
        handler.end_headers()
        handler.wfile.write(body)


def retry_details(code, seconds):
    """grpc-status-details-bin with a RetryInfo."""
    def new(name, **fields):
        return messages.message_class("rpc_status", f"pyrometer.rpc.{name}")(**fields)
    info = new("RetryInfo")
    info.retry_delay.seconds = seconds
    status = new("Status", code=code, message="told to")
    detail = status.details.add()
    detail.type_url = "type.googleapis.com/google.rpc.RetryInfo"
    detail.value = info.SerializeToString()
    return status.SerializeToString()


class GrpcReceiver(Receiver):
    def __init__(self, protocol, **options):
        """protocol: parca, or otlp."""
        super().__init__(**options)
        self._protocol = protocol
        self.start(self._tls)

    def start(self, tls):
        handler = grpc.method_handlers_generic_handler(
            self._protocol.SERVICE,
            {self._protocol.METHOD: grpc.unary_unary_rpc_method_handler(self.serve)})
        self._server = grpc.server(
            futures.ThreadPoolExecutor(32), handlers=(handler,),
            options=(("grpc.max_receive_message_length", self._protocol.LARGEST),
                     ("grpc.so_reuseport", 0)))
        address = f"127.0.0.1:{self.port}"
        if tls is None:
            self.port = self._server.add_insecure_port(address)
        else:
            read = [open(file, "rb").read() if file else None for file in tls]
            self.port = self._server.add_secure_port(address, grpc.ssl_server_credentials(
                [(read[1], read[0])], read[2], tls[2] is not None))
        self._server.start()

    def stop(self):
        if self._server is not None:
            self._server.stop(0).wait()
            self._server = None

    def serve(self, body, context):
        mode, retry_after = self.next_mode()
        if mode == "hang":
            released = self.released
            context.add_callback(released.set)
            released.wait()
            context.abort(grpc.StatusCode.UNAVAILABLE, "told to hang")
        if mode == "close":
            # In gRPC there is no other way from here to the connection than to end the server.
            threading.Thread(target=self.restart, daemon=True).start()
            self.released.wait(5)
            context.abort(grpc.StatusCode.UNAVAILABLE, "told to close")
        if mode.isdigit():
            self.fail(context, mode, retry_after)
        try:
            series, ticks = self._protocol.take(body)
        except Refusal as refusal:
            self.record.rejected(refusal)
            code = getattr(grpc.StatusCode, self._protocol.CODES[refusal.kind])
            context.abort(code, str(refusal))
        if mode == "partial" and self._protocol is otlp:
            return otlp.response(1, "told to")
        self.record.accepted(body, series, ticks)
        return self._protocol.success()

    def restart(self):
        self.stop()
        self.start(self._tls)

    @staticmethod
    def fail(context, mode, retry_after):
        code = {"429": grpc.StatusCode.RESOURCE_EXHAUSTED, "503": grpc.StatusCode.UNAVAILABLE,
                "413": grpc.StatusCode.RESOURCE_EXHAUSTED}.get(mode, grpc.StatusCode.INTERNAL)
        if retry_after is not None:
            details = retry_details(code.value[0], retry_after)
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, f"told to say {mode}")


def make(protocol, **options):
    """A running receiver of "pyroscope", "parca", "otlp-http" or "otlp-grpc"."""
    if protocol == "pyroscope":
        return HttpReceiver(pyroscope, **options)
    if protocol == "otlp-http":
        return HttpReceiver(otlp, **options)
    return GrpcReceiver({"parca": parca, "otlp-grpc": otlp}[protocol], **options)
