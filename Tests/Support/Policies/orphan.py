# SPDX-License-Identifier: Apache-2.0
# Starts a host for each library and ends without a word, while the first one loads for ever. Prints their numbers.

import os, socket, struct, sys

program, *libraries = sys.argv[1:]
pids = []
kept = []
for library in libraries:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    view = os.memfd_create("view")
    os.truncate(view, 4096)
    readable = os.open(f"/proc/self/fd/{view}", os.O_RDONLY)
    file = os.open(library, os.O_RDONLY)
    folder = os.open(os.path.dirname(library), os.O_PATH)
    pid = os.fork()
    if pid == 0:
        high = [os.dup(fd) for fd in (theirs.fileno(), readable, file, folder)]
        high = [__import__("fcntl").fcntl(fd, 0, 100) for fd in high]
        for place, fd in enumerate(high):
            os.dup2(fd, 3 + place)
        os.execv(program, [program])
    path = library.encode() + b"\0"
    ours.send(struct.pack("=IIQIIQIIQII", 1, 0, 0, 1, 0, 1 << 28, 2**32 - 1, 2**32 - 1, 4096, 100, 0) + path)
    pids.append(pid)
    kept.append(ours)
# The last one has said that it is there.
assert struct.unpack("=I", kept[-1].recv(40000)[:4])[0] == 101
print(*pids, flush=True)
os._exit(0)
