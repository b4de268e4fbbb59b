#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An app of the fleet: uses memory, writes output, and answers requests. For screenshots and for trying things out.

app.py --memory MIB [--busy PART] [--say FILE-OF-LINES] [--every S] [--children N] [--fail AFTER] [--status TEXT]
"""
import argparse
import os
import random
import signal
import socket
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("--memory", type=int, default=8)
options.add_argument("--busy", type=float, default=0)
options.add_argument("--say", default="idle")
options.add_argument("--every", type=float, default=1.5)
options.add_argument("--children", type=int, default=0)
options.add_argument("--fail", type=float, default=0)
options.add_argument("--status", default="")
options.add_argument("--grow", type=float, default=0)
options = options.parse_args()

SAYINGS = {
    "http": ["GET /api/orders/{n} 200 {m}ms", "GET /static/app.{n}.css 304 1ms", "POST /api/cart 201 {m}ms",
             "GET /api/users/{n}/avatar 200 {m}ms", "GET /healthz 200 0ms", "GET /api/search?q=lamp 200 {m}ms"],
    "sql": ["checkpoint complete: wrote {n} buffers; write={m} ms", "duration: {m}.{n} ms  execute fetch_orders",
            "automatic vacuum of table \"shop.public.carts\": pages: {m} removed", "connection authorized: user=api"],
    "jobs": ["job {n} resize-image done in {m} ms", "job {n} send-receipt done in {m} ms", "queue: {m} waiting, 4 running",
             "job {n} rebuild-index 37 %", "WARN job {n} retried: upstream timed out after {m} ms"],
    "mail": ["queued as {n}", "{n}: to=<orders@example.org>, relay=mx.example.org, delay=0.{m}, status=sent"],
    "idle": ["tick {n}"],
}


def notify(text):
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect("\0" + path[1:] if path.startswith("@") else path)
            channel.send(text.encode())


signal.signal(signal.SIGTERM, lambda *_: (print("shutting down", flush=True), sys.exit(0)))
for _ in range(options.children):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        block = bytearray(os.urandom(1 << 20) * max(1, options.memory // 4))
        while True:
            time.sleep(3600)
block = bytearray(os.urandom(1 << 20) * options.memory)
time.sleep(random.uniform(0.05, 0.3))
print("ready", flush=True)
notify("READY=1" + (f"\nSTATUS={options.status}" if options.status else ""))
random.seed(os.getpid())
began = time.monotonic()
extra = []
while True:
    if options.fail and time.monotonic() - began > options.fail:
        print("Traceback (most recent call last):\n  File \"importer.py\", line 88, in <module>\n    "
              "feed = fetch(url, timeout=5)\nConnectionRefusedError: [Errno 111] Connection refused", file=sys.stderr, flush=True)
        sys.exit(1)
    line = random.choice(SAYINGS[options.say]).format(n=random.randint(1000, 9999), m=random.randint(1, 90))
    print(line, flush=True)
    end = time.monotonic() + options.every * random.uniform(0.5, 1.5)
    if options.grow and len(extra) < 60:
        extra.append(bytearray(os.urandom(1 << 16) * int(16 * options.grow)))
    elif options.grow:
        extra.clear()
    while time.monotonic() < end:
        if options.busy and random.random() < options.busy:
            until = time.monotonic() + 0.02
            while time.monotonic() < until:
                pass
        time.sleep(0.05)
