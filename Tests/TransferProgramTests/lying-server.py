#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that lies: what it does is in the query of each request.

    lying-server.py ADDRESS PORT FOLDER [OTHER-ADDRESS]

Files are those of FOLDER. Each request is written to FOLDER/requests as a line of JSON, and the bytes of bodies that went out
to FOLDER/bytes when POST /count comes. The server says "ready" on standard output.
"""

import base64
import hashlib
import json
import os
import random
import socket
import socketserver
import struct
import sys
import threading
import urllib.parse
import urllib.request

FOLDER = sys.argv[3]
OTHER = sys.argv[4] if len(sys.argv) > 4 else sys.argv[1]
LOCK = threading.Lock()
SEEN = {}
SENT = 0
OLD = "Sun, 06 Nov 1994 08:49:37 GMT"


class Gone(Exception):
    """The client went, or is to be cut off."""


class Handler(socketserver.BaseRequestHandler):
    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            more = self.request.recv(65536)
            if not more:
                raise Gone
            self.buffer += more
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.fields = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            self.fields[name.lower()] = value.strip()

    def read_body(self, limit=None):
        length = int(self.fields.get("content-length", "0"))
        if self.fields.get("expect", "").lower() == "100-continue":
            self.request.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self.buffer) < length and (limit is None or len(self.buffer) < limit):
            more = self.request.recv(65536)
            if not more:
                raise Gone
            self.buffer += more
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return body

    def head(self, status, *fields, length=None):
        lines = ["HTTP/1.1 %s X" % status] + list(fields)
        if length is not None:
            lines.append("Content-Length: %d" % length)
        self.request.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def body(self, data, cut=None):
        """Sends it; after `cut` bytes the connection is reset."""
        global SENT
        if cut is not None and cut < len(data):
            self.request.sendall(data[:cut])
            with LOCK:
                SENT += cut
            # What was sent is read by the client before the end comes.
            self.request.shutdown(socket.SHUT_WR)
            raise Gone
        self.request.sendall(data)
        with LOCK:
            SENT += len(data)

    def handle(self):
        self.buffer = b""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                self.read_head()
                self.answer()
        except (Gone, OSError):
            pass

    def answer(self):
        url = urllib.parse.urlsplit(self.target)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        with LOCK:
            count = SEEN[self.target] = SEEN.get(self.target, 0) + 1
            with open(FOLDER + "/requests", "a") as log:
                log.write(json.dumps({"method": self.method, "target": self.target, "fields": self.fields}) + "\n")
        mode = query.get("mode", "plain")
        act = getattr(self, "do_" + mode)
        act(url.path.rsplit("/", 1)[-1], query, count)

    # Whole files

    def do_plain(self, name, query, count):
        self.serve(self.content(name), query)

    def content(self, name):
        with open(FOLDER + "/" + name, "rb") as file:
            return file.read()

    def serve(self, data, query, cut=None, tag=None, lie=0, total=None, fields=()):
        tag = tag or '"%s"' % hashlib.sha256(data).hexdigest()[:16]
        known = ["ETag: " + tag] if "notag" not in query else []
        wanted = self.fields.get("range")
        condition = self.fields.get("if-range")
        if wanted and (condition is None or condition == tag):
            first = int(wanted.split("=")[1].split("-")[0])
            if first >= len(data):
                self.head(416, "Content-Range: bytes */%d" % (total or len(data)), length=0)
                return
            part = data[first:]
            says = "Content-Range: bytes %d-%d/%d" % (first + lie, len(data) - 1, total or len(data))
            self.head(206, says, *known, *fields, length=len(part))
            self.body(part, cut)
        else:
            self.head(200, *known, *fields, length=len(data))
            self.body(data, cut)

    def do_once(self, name, query, count):
        """The first answer is cut after so many bytes."""
        self.serve(self.content(name), query, cut=int(query["at"]) if count == 1 else None)

    def do_random(self, name, query, count):
        """Cut at random, mostly."""
        data = self.content(name)
        cut = random.randrange(len(data) + 1) if random.random() < 0.7 else None
        self.serve(data, query, cut=cut)

    def do_every(self, name, query, count):
        """The whole answer, head included, is cut after `at` bytes."""
        self.read_body()
        data = self.content(name) if self.method == "GET" else b""
        answer = b"HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: %d\r\n\r\n" % len(data) + data
        if "informed" in query:
            answer = b"HTTP/1.1 103 Early Hints\r\n\r\n" + answer
        self.body(answer, int(query["at"]))

    def do_held(self, name, query, count):
        """One chunk, and no end of it until the client goes."""
        data = self.content(name)
        self.head(200, "Transfer-Encoding: chunked")
        self.request.sendall(b"%x\r\n" % len(data) + data + b"\r\n")
        self.request.recv(1)
        raise Gone

    def do_norange(self, name, query, count):
        self.fields.pop("range", None)
        self.do_once(name, query, count)

    def do_offset(self, name, query, count):
        """What it says of the offset is wrong."""
        self.serve(self.content(name), query, cut=int(query["at"]) if count == 1 else None, lie=1)

    def do_total(self, name, query, count):
        """The whole is longer each time, it says."""
        data = self.content(name)
        self.serve(data, query, cut=int(query["at"]) if count == 1 else None, total=len(data) + count)

    def do_changed(self, name, query, count):
        """The file is another one after the first answer."""
        data = self.content(name if count == 1 else name + ".new")
        self.serve(data, query, cut=int(query["at"]) if count == 1 else None)

    def do_othertag(self, name, query, count):
        """The file is another one, and If-Range is not heeded."""
        self.fields.pop("if-range", None)
        self.do_changed(name, query, count)

    def do_beyond(self, name, query, count):
        """The part of a file that is shorter now; 416 without a thought."""
        if count == 1:
            self.serve(self.content(name), query, cut=int(query["at"]))
        elif "range" in self.fields:
            self.head(416, "Content-Range: bytes */%s" % query["total"], length=0)
        else:
            self.serve(self.content(name), query)

    def do_long(self, name, query, count):
        """More than it said: the rest of a file of 100 bytes that has more."""
        if "range" not in self.fields:
            self.head(200, 'ETag: "x"', length=100)
            self.body(b"a" * 100, 50)
        self.head(206, 'ETag: "x"', "Content-Range: bytes 50-99/100", "Connection: close")
        self.body(b"a" * 1000)
        raise Gone

    # Bodies that are none

    def do_gzip(self, name, query, count):
        self.head(200, "Content-Encoding: gzip", length=3)
        self.body(b"abc")

    def do_chunked(self, name, query, count):
        data = self.content(name)
        self.head(200, "Transfer-Encoding: chunked")
        for start in range(0, len(data), 1000):
            part = data[start : start + 1000]
            self.body(b"%x\r\n" % len(part) + part + b"\r\n", 5 if "cut" in query and start else None)
        self.body(b"0\r\n\r\n")

    def do_endless(self, name, query, count):
        self.head(200)
        while True:
            self.body(b"x" * 65536)

    def do_endlesshead(self, name, query, count):
        self.request.sendall(b"HTTP/1.1 200 X\r\n")
        while True:
            self.request.sendall(b"X-Endless: " + b"x" * 1000 + b"\r\n")

    def do_stall(self, name, query, count):
        """Nothing comes after so many bytes, until the client goes."""
        self.head(200, 'ETag: "x"', length=1 << 20)
        self.body(b"x" * int(query["at"]))
        self.request.recv(1)
        raise Gone

    def do_gate(self, name, query, count):
        """The second half comes once the file FOLDER/gate is there."""
        data = self.content(name)
        self.head(200, length=len(data))
        self.body(data[: len(data) // 2])
        while not os.path.exists(FOLDER + "/gate"):
            if self.wait(0.01):
                raise Gone
        self.body(data[len(data) // 2 :])

    def wait(self, seconds):
        """Whether the client went within that time."""
        self.request.settimeout(seconds)
        try:
            return not self.request.recv(1, socket.MSG_PEEK)
        except socket.timeout:
            return False
        finally:
            self.request.settimeout(None)

    def do_garbage(self, name, query, count):
        self.request.sendall(b"\x00\xff" * 500)
        raise Gone

    def do_reset(self, name, query, count):
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.request.close()
        raise Gone

    # Statuses

    def do_status(self, name, query, count):
        fields = ["Retry-After: " + query["after"]] if "after" in query else []
        self.read_body()
        self.head(query["status"], *fields, length=5)
        self.body(b"sorry")

    def do_refuse(self, name, query, count):
        """Says no, and resets the connection in the middle of the body."""
        self.head(403, length=1 << 20)
        raise Gone

    def do_to(self, name, query, count):
        """Leads to `url`, by `status`; @OTHER stands for another address of this server."""
        self.read_body()
        target = query["url"].replace("@OTHER", "%s:%s" % (OTHER, sys.argv[2]))
        self.head(query.get("status", "302"), "Location: " + target, length=5)
        self.body(b"there")

    def do_loop(self, name, query, count):
        self.head(302, "Location: " + self.target, length=0)

    def do_basic(self, name, query, count):
        wanted = "Basic " + base64.b64encode(query["login"].encode()).decode()
        if self.fields.get("authorization") == wanted:
            if self.method == "GET":
                self.do_plain(name, query, count)
            else:
                self.do_put(name, query, count)
        else:
            self.read_body()
            self.head(401, 'WWW-Authenticate: Basic realm="files of mine"', length=0)

    def do_digest(self, name, query, count):
        user, password = query["login"].split(":")
        given = urllib.request.parse_keqv_list(
            urllib.request.parse_http_list(self.fields.get("authorization", "").removeprefix("Digest "))
        ) if self.fields.get("authorization", "").startswith("Digest ") else {}
        md5 = lambda text: hashlib.md5(text.encode()).hexdigest()
        one = md5("%s:%s:%s" % (user, "vault", password))
        two = md5("%s:%s" % (self.method, self.target))
        if given and given["response"] == md5("%s:%s:%s" % (one, "nonsense", two)):
            if self.method == "GET":
                self.do_plain(name, query, count)
            else:
                self.do_put(name, query, count)
        else:
            self.read_body()
            self.head(401, 'WWW-Authenticate: Digest realm="vault", nonce="nonsense"', length=0)

    # What comes here

    def do_put(self, name, query, count):
        body = self.read_body()
        with open(FOLDER + "/" + name, "wb") as file:
            file.write(body)
        self.head(201, length=0)

    def do_early(self, name, query, count):
        """Refuses before it has all."""
        self.read_body(limit=1000)
        self.head(413, "Connection: close", length=0)
        self.request.shutdown(socket.SHUT_WR)
        # With bytes unread a close would reset the connection, and take the answer along before it is read.
        while self.request.recv(1 << 16):
            pass
        raise Gone

    def do_slowput(self, name, query, count):
        """Reads on once FOLDER/gate is there."""
        self.read_body(limit=1)
        open(FOLDER + "/begun", "w").close()
        while not os.path.exists(FOLDER + "/gate"):
            threading.Event().wait(0.01)
        self.read_body()
        self.head(201, length=0)

    def do_count(self, name, query, count):
        with LOCK:
            with open(FOLDER + "/bytes", "w") as file:
                file.write(str(SENT))
        self.read_body()
        self.head(200, length=0)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


def serve(address):
    server = Server((address, int(sys.argv[2])), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


serve(sys.argv[1])
if OTHER != sys.argv[1]:
    serve(OTHER)
print("ready", flush=True)
# Until the test's end of standard input is closed.
sys.stdin.read()
