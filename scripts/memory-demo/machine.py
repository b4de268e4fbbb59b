# SPDX-License-Identifier: Apache-2.0
"""A machine made small, and a booted systemd in it, as for make bench-density."""
import ctypes
import os
import subprocess
import threading
import time

MCL_CURRENT, MCL_FUTURE = 1, 2
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


class Trouble(Exception):
    """Why the demonstration cannot continue, as a sentence."""


def wait_until(seconds, condition, step=0.02):
    """Polls until the condition is true; false on timeout."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


class SmallMachine:
    """Benchmarks/density/bound: leaves `memory` MiB of memory, with `swap` MiB of swap."""

    def __init__(self, program, memory, swap, seconds, output):
        self.output = output
        with open(output, "w") as said, open(output + "-errors", "w") as errors:
            self.process = subprocess.Popen(
                [program, str(memory), str(swap), "lzo-rle", str(seconds)],
                stdin=subprocess.PIPE, stdout=said, stderr=errors,
            )
        # This process must not wait for memory itself. Locking also populates the threads' stacks: keep them small.
        threading.stack_size(512 << 10)
        libc.mlockall(MCL_CURRENT | MCL_FUTURE)
        try:
            wait_until(60, lambda: self.words("ready") or self.process.poll() is not None)
            if not self.words("ready"):
                raise Trouble((self.words("broken-off") or ["the balloon did not come to its size"])[0])
        except BaseException:
            self.end()
            raise

    def words(self, first):
        """The rest of each line that begins with a word."""
        with open(self.output) as file:
            return [line[len(first) + 1:].strip() for line in file if line.startswith(first + " ")]

    def check(self):
        for sentence in self.words("broken-off"):
            raise Trouble("the machine was made large again: " + sentence)

    def stalls(self):
        """How often all tasks have waited for memory for most of 8 s."""
        return len(self.words("stalled"))

    def given(self):
        """The most MiB that other processes on the machine have needed."""
        return max([int(word) for word in self.words("given")] + [0]) >> 20

    def end(self):
        libc.munlockall()
        self.process.stdin.close()
        self.process.wait()


class Container:
    """scripts/systemd-container: the pid of its systemd, and commands in it."""

    def __init__(self, script, root, folders, errors):
        options = [word for folder in folders for word in ("--bind", folder)]
        with open(errors, "a") as file:
            self.process = subprocess.Popen(
                [script, "run", root] + options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
                # The container's default filter would forbid system calls that apps may use on a real machine.
                env=dict(os.environ, SYSTEMD_SECCOMP="0"),
            )
        try:
            words = self.process.stdout.readline().split()
        except BaseException:
            self.process.stdin.close()
            self.process.wait()
            raise
        if len(words) != 3 or words[0] != "ready":
            self.process.stdin.close()
            self.process.wait()
            raise Trouble("the container did not come up: " + " ".join(words[1:]))
        self.systemd, self.group = int(words[1]), words[2]

    def write(self, name, text):
        """Writes a unit."""
        path = "/proc/%d/root/run/systemd/system/%s" % (self.systemd, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def run(self, *command):
        words = ["nsenter", "-t", str(self.systemd), "-a"] + list(command)
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise Trouble("%s: %s" % (" ".join(command), done.stderr.strip() or "status %d" % done.returncode))
        return done.stdout

    def enter_network(self):
        """Moves the calling thread into the container's network namespace."""
        with open("/proc/%d/ns/net" % self.systemd) as file:
            if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def end(self):
        # SIGKILL at once: processes that wait for memory cannot end cleanly.
        try:
            with open(self.group + "/payload/cgroup.kill", "w") as file:
                file.write("1")
        except OSError:
            pass
        self.process.stdin.close()
        self.process.wait()
