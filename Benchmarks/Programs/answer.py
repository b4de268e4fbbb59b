#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# As worker.c in the mode `answer once`, as many services in Python are: answers the first connection to the socket that
# it was passed with its pid, in HTTP, and ends.
import http.server
import json
import logging
import os
import socket
import sqlite3
import sys

log = logging.getLogger("answer")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"pid": os.getpid(), "sqlite": sqlite3.sqlite_version}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, form, *arguments):
        log.info(form, *arguments)


class Server(http.server.HTTPServer):
    def get_request(self):
        peer, _ = self.socket.accept()
        return peer, ("", 0)


server = Server(("", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=3)
server.handle_request()
sys.exit(0)
