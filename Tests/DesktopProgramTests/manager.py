# SPDX-License-Identifier: Apache-2.0
# A window manager's IPC socket. Each line of standard input is Python, as a JSON string, and is answered by one line.
import json
import os
import selectors
import socket
import struct
import sys

selector = selectors.DefaultSelector()
listener = None
clients = []
trees = 0
answers = True
windows = []
commands = []
order = []
focus = None


def tree():
    """One output, one workspace, its windows, and one that floats."""
    nodes = [{"id": 10 + pid, "pid": pid, "focused": pid == focus, "nodes": [], "focus": []} for pid in windows]
    space = {"id": 2, "type": "workspace", "focused": not focus, "nodes": nodes[:1], "floating_nodes": nodes[1:], "focus": [10 + pid for pid in order]}
    return {"id": 0, "focused": False, "nodes": [{"id": 1, "focused": False, "nodes": [space]}]}


def start(path):
    global listener
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    selector.register(listener, selectors.EVENT_READ, accept)


def stop():
    selector.unregister(listener)
    os.unlink(listener.getsockname())
    listener.close()
    for client in list(clients):
        drop(client)


def drop(client):
    selector.unregister(client)
    clients.remove(client)
    client.close()


def accept(_):
    client, _ = listener.accept()
    clients.append(client)
    selector.register(client, selectors.EVENT_READ, read)


def receive(client, count):
    data = b""
    while len(data) < count:
        piece = client.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def read(client):
    global trees
    try:
        magic, length, kind = struct.unpack("=6sII", receive(client, 14))
        assert magic == b"i3-ipc"
        payload = receive(client, length).decode()
    except (EOFError, OSError):
        return drop(client)
    if not answers:
        return None
    if kind == 0:
        commands.append(payload)
        send(client, kind, [{"success": True}])
        return focused(int(payload.split("]")[0].split("=")[1]) - 10)
    if kind == 4:
        trees += 1
    send(client, kind, {"success": True} if kind == 2 else tree())


def send(client, kind, value):
    payload = json.dumps(value).encode()
    client.sendall(struct.pack("=6sII", b"i3-ipc", len(payload), kind) + payload)


def event(kind, value):
    for client in clients:
        send(client, 0x80000000 | kind, value)


def focused(pid):
    global focus
    focus = pid
    event(3, {"change": "focus", "container": {"id": 10 + pid, "pid": pid, "focused": True}})


def hear(_):
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    names = globals()
    names["ret"] = None
    try:
        exec(json.loads(line), names)
        answer = {"ok": names["ret"]}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)


if len(sys.argv) > 1:
    start(sys.argv[1])
selector.register(sys.stdin, selectors.EVENT_READ, hear)
print(json.dumps({"ok": "begun"}), flush=True)
while True:
    for key, _ in selector.select():
        key.data(key.fileobj)
