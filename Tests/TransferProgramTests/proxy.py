# SPDX-License-Identifier: Apache-2.0
"""A proxy that wants to know who asks: proxy.py HOST PORT USER:PASSWORD LOG

Each request is a line in LOG: its method, its target, and what it said who asks ("-" for nothing).
"""
import base64
import http.server
import select
import socket
import sys
import threading
import urllib.parse

HOST, PORT, LOGIN, LOG = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
WANTED = "Basic " + base64.b64encode(LOGIN.encode()).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def let_in(self):
        given = self.headers.get("Proxy-Authorization")
        said = base64.b64decode(given.split()[1]).decode() if given else "-"
        with open(LOG, "a") as file:
            file.write("%s %s %s\n" % (self.command, self.path, said))
        if given == WANTED:
            return True
        self.send_response(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="the gate"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def do_GET(self):
        if not self.let_in():
            return
        url = urllib.parse.urlsplit(self.path)
        with socket.create_connection((url.hostname, url.port or 80)) as there:
            lines = ["GET %s HTTP/1.1" % (url.path or "/"), "Host: %s" % url.netloc, "Connection: close"]
            lines += ["%s: %s" % pair for pair in self.headers.items() if pair[0] in ("Authorization", "Range", "If-Range")]
            there.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            while data := there.recv(65536):
                self.wfile.write(data)
        self.close_connection = True

    def do_CONNECT(self):
        if not self.let_in():
            return
        host, port = self.path.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            ends = [self.connection, there]
            while True:
                for end in select.select(ends, [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    (there if end is self.connection else self.connection).sendall(data)


server = http.server.ThreadingHTTPServer((HOST, PORT), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
# Until the test's end of standard input is closed.
sys.stdin.read()
