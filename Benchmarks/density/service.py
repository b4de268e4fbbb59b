# SPDX-License-Identifier: Apache-2.0
"""One of the apps of the measurement `density`: an HTTP server with a data set in memory, in Python.

service.py SLOT; the environment says where it listens, if that is not passed, and what it loads (see README.md).
"""

import json
import os
import signal
import socket
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

RECORDS = 22_000
FOUND = 40


def load(path, count):
    with open(path, encoding="ascii") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(count))]


def say(what):
    with open(os.environ["DENSITY_STARTS"], "ab", buffering=0) as starts:
        starts.write(f"{what} {SLOT} {os.getpid()}\n".encode())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        # As many records as a page of search results has, anywhere in the data set.
        place = int(self.path.rpartition("=")[2] or 1)
        found = []
        for _ in range(FOUND):
            place = (place * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            record = RECORDS_LOADED[(place >> 33) % RECORDS]
            record["seen"] += 1
            found.append(record["name"])
        body = f"pid {os.getpid()}\n{' '.join(found)}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


class Server(HTTPServer):
    request_queue_size = 64
    swept = 0
    next_sweep = 0.0
    # HTTPServer's own asks for the host's name, which nobody needs.
    server_bind = socketserver.TCPServer.server_bind

    def service_actions(self):
        """Once a second a part of the records is looked through for what has expired, as caches do."""
        now = time.monotonic()
        if SWEEP <= 0 or now < self.next_sweep:
            return
        self.next_sweep = now + 1
        end = min(self.swept + max(1, RECORDS // SWEEP), RECORDS)
        for index in range(self.swept, end):
            record = RECORDS_LOADED[index]
            if record["expires"] < now:
                record["expires"] += 86_400
        self.swept = end if end < RECORDS else 0


SLOT = int(sys.argv[1])
SWEEP = int(os.environ.get("DENSITY_SWEEP", "0"))
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
say("begun")
RECORDS_LOADED = load(os.environ["DENSITY_DATA"], RECORDS)
# Whoever launches it may have listened already.
passed = os.environ.get("LISTEN_PID") == str(os.getpid())
server = Server(("127.0.0.1", int(os.environ["DENSITY_PORT"]) + SLOT), Handler, bind_and_activate=not passed)
if passed:
    server.socket.close()
    server.socket = socket.socket(fileno=3)
say("ready")
server.serve_forever(poll_interval=1)
