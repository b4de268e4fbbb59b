# SPDX-License-Identifier: Apache-2.0
"""A service that speaks sd_notify with nothing but a socket: ready, status, heartbeat, stopping."""

import os
import signal
import socket
import sys
import time

address = os.environ.get("NOTIFY_SOCKET", "")
channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def notify(text):
    if address:
        channel.sendto(text.encode(), "\0" + address[1:] if address[0] == "@" else address)


def stop(number, frame):
    notify("STOPPING=1\nSTATUS=going")
    print("asked to stop", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
interval = int(os.environ.get("WATCHDOG_USEC", "2000000")) / 2_000_000
notify("READY=1\nSTATUS=beating")
print("ready, a beat every %.1f s" % interval, flush=True)
beats = 0
while True:
    beats += 1
    notify("WATCHDOG=1\nSTATUS=%d beats" % beats)
    time.sleep(interval)
