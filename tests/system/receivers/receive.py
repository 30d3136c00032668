#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A strict receiver of profiles on 127.0.0.1, see README.md in the directory above.

    receive.py PROTOCOL [--port N] [--control-port N] [--cert F --key F [--client-ca F]]
               [--bad-cert F --bad-key F]

PROTOCOL: pyroscope, parca, otlp-http, otlp-grpc. Prints one line, `READY {"port": N, "control": N}`,
and serves until its standard input ends or it is killed. Its control port speaks HTTP:
    GET /record   what arrived: {"samples": {SERIES: TICKS}, "requests", "repeated", "rejected": ...}
    POST /mode    {"mode": M, "times": N, "retry_after": S}: misbehave, for N requests or until told
                  otherwise; M: ok, refuse, hang, 429, 500, 503, 413, close, bad_certificate, partial
"""

import argparse
import http.server
import json
import sys
import threading

import servers


def control_server(receiver, port):
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path != "/record":
                self.answer(404, "no such path")
                return
            self.answer(200, receiver.record.as_json())

        def do_POST(self):
            try:
                wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.set_mode(**wanted)
            except (TypeError, ValueError) as error:
                self.answer(400, str(error))
                return
            self.answer(200, "ok")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("protocol", choices=("pyroscope", "parca", "otlp-http", "otlp-grpc"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control-port", type=int, default=0)
    for name in ("cert", "key", "client-ca", "bad-cert", "bad-key"):
        parser.add_argument(f"--{name}")
    arguments = parser.parse_args()
    tls = (arguments.cert, arguments.key, arguments.client_ca) if arguments.cert else None
    bad_tls = (arguments.bad_cert, arguments.bad_key, None) if arguments.bad_cert else None
    receiver = servers.make(arguments.protocol, port=arguments.port, tls=tls, bad_tls=bad_tls)
    control = control_server(receiver, arguments.control_port)
    print("READY", json.dumps({"port": receiver.port, "control": control}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
