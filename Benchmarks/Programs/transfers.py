#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# For the measurement of transfers: as `transfers.py serve FOLDER PORT` a server, as `transfers.py SLOT` an app.
#
# The server gives /big (FOLDER/big, by sendfile), /last/NAME (64 KiB, whose last byte comes 20 ms after the others; when
# it went is written into FOLDER/sent) and /slow/NAME (1 MiB, of which nothing but the first 4 KiB ever comes).
#
# The app has downloaded what is written into the FIFO `ask` below BENCH_TRANSFERS, a line "URL FILE" each, and writes when
# it was told into `told` there. All times are nanoseconds of CLOCK_MONOTONIC.
import http.server
import os
import sys
import threading
import time


def append(path, text):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, text.encode())
    os.close(file)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without, the last byte waits for the client's delayed acknowledgement of those before it.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def head(self, length):
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.flush()

    def do_GET(self):
        kind, _, name = self.path[1:].partition("/")
        if kind == "big":
            with open(self.server.folder + "/big", "rb") as file:
                size = os.fstat(file.fileno()).st_size
                self.head(size)
                offset = 0
                while offset < size:
                    offset += os.sendfile(self.connection.fileno(), file.fileno(), offset, size - offset)
        elif kind == "last":
            self.head(1 << 16)
            self.wfile.write(bytes((1 << 16) - 1))
            time.sleep(0.02)
            self.wfile.write(b"x")
            append(self.server.folder + "/sent", "%s %d\n" % (name, time.monotonic_ns()))
        else:
            self.head(1 << 20)
            self.wfile.write(bytes(4096))
            self.wfile.flush()
            self.connection.settimeout(600)
            self.connection.recv(1)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 4096


def serve(folder, port):
    threading.stack_size(128 << 10)
    server = Server(("127.0.0.1", port), Handler)
    server.folder = folder
    append(folder + "/serving", "\n")
    server.serve_forever()


def app():
    folder = os.environ["BENCH_TRANSFERS"]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../../Clients/python")
    import torpor

    class Delegate(torpor.Delegate):
        def transfer_did_finish(self, message):
            name = os.path.basename(message.path)
            append(folder + "/told", "%s %d %s\n" % (name, time.monotonic_ns(), message.error or "-"))

    app = torpor.App(Delegate())

    def listen():
        append(folder + "/listening", "\n")
        while True:
            with open(folder + "/ask") as fifo:
                for line in fifo:
                    url, file = line.split()
                    app.download(url, file)
                    append(folder + "/asked", file + "\n")

    threading.Thread(target=listen, daemon=True).start()
    app.run()


if sys.argv[1] == "serve":
    serve(sys.argv[2], int(sys.argv[3]))
else:
    app()
