# SPDX-License-Identifier: Apache-2.0
# A bus whose socket is there before it listens. Arguments: the path of the socket, and the bus's configuration. Each line
# of standard input is Python, as a JSON string, and is answered by one line.
import json
import os
import socket
import subprocess
import sys

path, configuration = sys.argv[1:]
bus = None
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)


def begin():
    """The bus gets the socket as from a service manager (sd_listen_fds(3))."""
    global bus
    listener.listen()
    command = "LISTEN_PID=$$ LISTEN_FDS=1 exec dbus-daemon --config-file=\"$0\" --address=systemd: --nofork --nopidfile"
    os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)
    bus = subprocess.Popen(["/bin/sh", "-c", command, configuration], pass_fds=[3], stdout=sys.stderr)


def end():
    bus.kill()
    bus.wait()


print(json.dumps({"ok": "begun"}), flush=True)
for line in sys.stdin:
    names = globals()
    names["ret"] = None
    try:
        exec(json.loads(line), names)
        answer = {"ok": names["ret"]}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
if bus:
    end()
