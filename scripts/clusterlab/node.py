# SPDX-License-Identifier: Apache-2.0
"""A node of the lab: a container with a booted Debian, a network of its own, and a switch for its power."""

import os
import queue
import subprocess
import threading
import time
from pathlib import Path

BRIDGE = "lab0"
CONTAINER = Path(__file__).resolve().parents[1] / "systemd-container"
# How often something is looked at, in seconds: it takes processor time from what is measured.
MOMENT = 0.05
SLOWLY = 0.5
# What must come is waited for so many seconds: a machine may have much else to do. Nothing is judged by it.
PATIENCE = 300.0
# How the cgroups of the nodes are called.
PREFIX = "torpor-cluster"


class Trouble(Exception):
    """The lab cannot go on."""


def until(what: str, condition, every: float = MOMENT):
    """Waits until a condition is true, and returns what it returned."""
    end = time.monotonic() + PATIENCE
    while True:
        if found := condition():
            return found
        if time.monotonic() > end:
            raise Trouble(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(every)


def shell(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Trouble(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


class Node:
    def __init__(self, name: str, number: int, root: str, shared: Path) -> None:
        self.name, self.number, self.shared = name, number, shared
        self.init: int | None = None
        self.is_on = False
        self.lines: queue.Queue[str] = queue.Queue()
        self.power = threading.Lock()
        self.errors = open(shared / f"container.{name}", "w", encoding="utf-8")
        self.container = subprocess.Popen(
            [CONTAINER, "run", root, "--bind", str(shared), f"--network-bridge={BRIDGE}", f"--hostname={name}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True,
            env=os.environ | {"CONTAINER_PREFIX": PREFIX, "SECONDS_TO_BOOT": f"{PATIENCE:.0f}"},
        )  # fmt: skip
        threading.Thread(target=self.read, daemon=True).start()

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    def read(self) -> None:
        for line in self.container.stdout or ():
            self.lines.put(line.strip())
        self.lines.put("failed: its script has ended")

    def wait(self, word: str) -> list[str]:
        try:
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise Trouble(f"{self.name}: no answer of its container within {PATIENCE:.0f} s") from None
        if line.split()[:1] != [word]:
            raise Trouble(f"{self.name}: {line}")
        return line.split()[1:]

    def booted(self) -> None:
        pid, _ = self.wait("ready")
        self.init, self.is_on = int(pid), True

    def tell(self, word: str) -> None:
        assert self.container.stdin
        self.container.stdin.write(word + "\n")
        self.container.stdin.flush()

    def cut(self) -> None:
        """Takes the power away, and returns when nothing of the node runs."""
        with self.power:
            if self.is_on:
                self.is_on = False
                self.tell("cut")
                self.wait("off")

    def boot(self) -> None:
        with self.power:
            if not self.is_on:
                self.tell("boot")
                self.booted()

    def end(self) -> None:
        if self.container.stdin:
            self.container.stdin.close()
        try:
            self.container.wait(40)
        except subprocess.TimeoutExpired:
            self.container.terminate()
            self.container.wait(40)
        self.errors.close()

    # Inside.

    def enter(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self.init), "-a", "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command]  # fmt: skip

    def run(self, *command: str) -> str:
        return shell(*self.enter(*command))

    def demand(self, *command: str) -> None:
        """As `run`, again and again: what talks to the cluster fails while that is busy with something else."""
        problems: list[str] = []

        def is_done() -> bool:
            try:
                self.run(*command)
                return True
            except Trouble as trouble:
                problems.append(str(trouble))
                return False

        try:
            until(" ".join(command), is_done, SLOWLY)
        except Trouble as trouble:
            raise Trouble(f"{trouble}: {problems[-1]}") from None

    def asks(self, *command: str) -> str:
        """As `run`, and what it says also where it fails."""
        done = subprocess.run(self.enter(*command), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return done.stdout

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        command = self.enter("sh", "-c", f'mkdir -p "$(dirname {path})" && cat >{path} && chmod {mode:o} {path}')
        subprocess.run(command, input=text, text=True, check=True)

    def pid(self, app: str) -> int | None:
        """The main process of an app, as this machine numbers it."""
        inside = self.asks("torpor", "list", app, "--json")
        found = [line for line in inside.splitlines() if '"pid"' in line]
        number = found[0].split(":")[1].strip(" ,") if found else "null"
        return None if number == "null" else self.outside(int(number))

    def outside(self, inside: int) -> int | None:
        """The number here of a process of the node."""
        mine = os.stat(f"/proc/{self.init}/ns/pid").st_ino
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.stat(folder / "ns/pid").st_ino != mine:
                    continue
                numbers = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("NSpid"))
            except (OSError, StopIteration):
                continue
            if numbers.split()[-1] == str(inside):
                return int(folder.name)
        return None

    # The network.

    def interface(self) -> str:
        """The end of the node's network that is here."""
        index = self.run("cat", "/sys/class/net/host0/iflink").strip()
        for line in shell("ip", "-o", "link").splitlines():
            number, name = line.split(": ")[:2]
            if number == index:
                return name.split("@")[0]
        raise Trouble(f"{self.name}: it has no network")

    def unplug(self) -> None:
        shell("ip", "link", "set", self.interface(), "nomaster")

    def plug(self) -> None:
        shell("ip", "link", "set", self.interface(), "master", BRIDGE, "up")
