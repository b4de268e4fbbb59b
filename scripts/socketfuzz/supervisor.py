# SPDX-License-Identifier: Apache-2.0
"""A torpord in a folder of its own, and the invariants that must always hold for it."""

import contextlib
import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

from . import proc
from .app import ask
from .client import Fault, Gone
from .messages import Hints

PARTS = os.path.dirname(os.path.realpath(__file__))
BYSTANDER = "bystander"
# Apps that never run: they make costs per app visible.
CROWD = 300
# The longest wait for anything, in seconds.
BOUND = 60.0
# How many more descriptors, threads and KiB torpord and the keeper may have after all clients have left. Some
# descriptors may be stored for the next launch of an app that was ended before it took them back.
MORE_DESCRIPTORS = 40
MORE_THREADS = 4
MORE_MEMORY = 96 << 10
BAD_WORDS = (
    "fatal", "Fatal", "crash", "quarantine", "set aside", "Sanitizer", "runtime error", "was ended by signal",
    "starting it again",
)  # fmt: skip

HEAD = """
[supervisor]
runtime_directory = "@D/r"
state_directory = "@D/s"
log_directory = "@D/l"
log_level = "warning"
session = "none"
sleep = false
@GROUPS
[supervisor.memory]
enabled = false
"""
PYTHON = 'exec = ["@PYTHON", "-S", "-m", "socketfuzz.app", "@D/driver"]\ndirectory = "@D"'
BUSY = """
@USER
restart = "always"
restart_backoff = { initial = "20ms", cap = "200ms", limit = 10000 }
grace = "500ms"
background_time = "300ms"
task_time = "2s"
event_time = "300ms"
expiry_warning = "500ms"
background_deadline = "1s"
transition_deadline = "1s"
tags = ["victim"]
accepts_from = ["v-app", "v-notify"]
mailbox_limit = 100
"""
CONFIGURATION = f"""
[apps.{BYSTANDER}]
exec = ["@PYTHON", "-S", "-m", "socketfuzz.bystander", "@D/signals"]
directory = "@D"
restart = "never"
grace = "200ms"

[apps.v-app]
{PYTHON}
{BUSY}
topics = {{ "*" = "all", device = {{ coalesce = "net", urgent = true }}, battery = "latest" }}
state_limit = "64KiB"

[apps.v-notify]
{PYTHON}
{BUSY}
ready = "notify"
launch_deadline = "30s"
watchdog = "20s"
answers = true
topics = {{ news = "latest", jobs = {{ urgent = true, keep = true }} }}
[apps.v-notify.signals]
didEnterBackground = "SIGUSR1"
didReceiveEvent = "SIGUSR2"

[apps.v-plain]
exec = ["/bin/sleep", "100000"]
{BUSY}
topics = {{ news = "count", jobs = "all", device = "merge" }}
[apps.v-plain.signals]
settingsDidChange = "SIGURG"

[apps.v-needs]
exec = ["/bin/sleep", "100000"]
{BUSY}
requires = ["v-plain"]
launch = "on-demand"

[apps.v-once]
exec = ["/bin/true"]
type = "oneshot"
launch = "on-demand"
tags = ["victim"]

[apps.v-many]
exec = ["/bin/sh", "-c", "while echo $TORPOR_APP; do sleep 0.5; done"]
{BUSY}
instances = 3
launch = "on-demand"

[apps.v-log]
exec = ["@PYTHON", "-S", "-c", "import time\\nfor _ in range(100): print('a' * 16000, flush=True)\\ntime.sleep(100000)"]
{BUSY}
launch = "on-demand"

[apps.crowd]
exec = ["/bin/sleep", "100000"]
launch = "on-demand"
instances = {CROWD}

[apps.v-socket]
exec = ["@PYTHON", "-S", "-c", "import socket\\nlistener = socket.socket(fileno=3)\\nwhile True: listener.accept()[0].close()"]
{BUSY}
launch = "on-demand"
wake_on_connect = true
[[apps.v-socket.sockets]]
name = "front"
stream = "@D/front"
mode = "0666"
[[apps.v-socket.sockets]]
name = "side"
datagram = "@D/side"
mode = "0666"
"""
QUIET = f"""
[apps.{BYSTANDER}]
exec = ["/bin/sleep", "100000"]
restart = "never"
grace = "200ms"
"""
VICTIMS = ["v-app", "v-notify", "v-plain", "v-needs", "v-once", "v-log", "v-many@1", "v-many@2", "v-many@3", "v-socket"]
HINTS = Hints(
    apps=[*VICTIMS, *VICTIMS, "v-many", "v-nobody"],
    patterns=["v-*", "v-?app", "tag:victim", "tag:none", "v-many@*", "*app", "?-o*"],
    untouched=[BYSTANDER, "crowd", *(f"crowd@{number}" for number in range(1, CROWD + 1))],
)


def group_of(name: str) -> tuple[str, int] | None:
    with contextlib.suppress(KeyError):
        return name, grp.getgrnam(name).gr_gid
    return None


class Supervisor:
    """A torpord with its keeper."""

    def __init__(self, programs: str, configuration: str, name: str):
        self.folder = tempfile.mkdtemp(prefix=f"torpor-sockets-{name}-")
        os.chmod(self.folder, 0o755)
        shutil.copytree(PARTS, os.path.join(self.folder, "socketfuzz"), ignore=shutil.ignore_patterns("__pycache__"))
        self.mark = f"TORPOR_FUZZ={self.folder}"
        self.socket = os.path.join(self.folder, "r/io.torpor")
        self.log_path = os.path.join(self.folder, "torpord.log")
        self.roles = {role: found for role, group in (("operators", "users"), ("readers", "games"), ("posters", "mail"))
                      if (found := group_of(group))} if os.geteuid() == 0 else {}  # fmt: skip
        self.config = os.path.join(self.folder, "torpor.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(self.filled(HEAD + configuration))
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(programs, "torpord"), "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TORPOR_FUZZ": self.folder, "LANG": "C.UTF-8"},
            )  # fmt: skip
        self.keeper = self.process.pid
        try:
            self.wait("torpord answers", self.answers)
        except BaseException:
            self.end()
            raise
        self.pid = int(self.call("Describe")["pid"])
        self.identities = [proc.identity(self.pid), proc.identity(proc.parent(self.pid))]
        self.keeper = proc.parent(self.pid)
        self.baseline: dict[str, int] = {}
        self.read_log = 0

    def filled(self, text: str) -> str:
        user = "nobody" if os.geteuid() == 0 else ""
        groups = "".join(f'{role} = ["{name}"]\n' for role, (name, _) in self.roles.items())
        python = os.path.realpath("/usr/bin/python3")
        text = text.replace("@D", self.folder).replace("@GROUPS", groups).replace("@PYTHON", python)
        return text.replace("@USER", f'user = "{user}"' if user else "")

    def users(self) -> list[tuple[int, int, list[int]] | None]:
        """The users that call in turn: the own one, and for root an operator, a reader and a poster."""
        nobody = pwd.getpwnam("nobody") if self.roles else None
        return [None, None, None, *((nobody.pw_uid, nobody.pw_gid, [number]) for _, number in self.roles.values() if nobody)]

    def strangers(self) -> list[tuple[int, int, list[int]]]:
        return [(4242421, 4242421, [])] if os.geteuid() == 0 else []

    def call(self, method: str, seconds: float = BOUND, **parameters: object) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as stream:
            # Without a timeout, it would block while many others connect too.
            stream.connect(self.socket)
            stream.settimeout(seconds)
            return ask(stream, f"io.torpor.Manager.{method}", parameters)

    def answers(self) -> bool:
        if self.process.poll() is not None:
            raise Fault(f"torpord ended with {self.process.returncode}: {self.log()[-2000:]}")
        with contextlib.suppress(OSError):
            return bool(self.call("List"))
        return False

    def wait(self, what: str, is_so: Callable[[], bool], bound: float = BOUND, detail: Callable[[], str] = str) -> None:
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > bound:
                raise Fault(f"in {bound:.0f} s it did not come to be that {what} {detail()}")
            time.sleep(0.02)

    def log(self) -> str:
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    # Invariants.

    def apps(self, *names: str) -> dict[str, dict[str, Any]]:
        """The reply of List for all apps, or for these."""
        found = self.call("List", apps=list(names)) if names else self.call("List")
        return {app["name"]: app for app in found["apps"]}

    def note_bystander(self) -> None:
        """Waits until the bystander is in the state that it must keep."""
        self.wait("the bystander runs", lambda: self.apps(BYSTANDER)[BYSTANDER]["pid"] is not None
                  and os.path.exists(os.path.join(self.folder, "signals")))  # fmt: skip
        self.bystander = proc.identity(int(self.apps(BYSTANDER)[BYSTANDER]["pid"]))
        self.wait("the bystander sleeps", lambda: proc.stat(self.bystander[0])[:1] == ["S"])

    def check_alive(self) -> None:
        """No process was replaced, and the log has no complaints."""
        for name, one in zip(("torpord", "the keeper"), self.identities, strict=True):
            if proc.identity(one[0]) != one:
                raise Gone(f"{name}, process {one[0]}, is gone: {self.log()[-3000:]}")
        for line in self.log()[self.read_log :].splitlines():
            if any(word in line for word in BAD_WORDS):
                raise Fault(f"it said: {line}")
        self.read_log = len(self.log())

    def check_bystander(self) -> None:
        if proc.identity(self.bystander[0]) != self.bystander:
            raise Fault(f"the bystander, process {self.bystander[0]}, is gone")
        # Something may only have inspected it: then it sleeps again in a moment.
        self.wait("the bystander sleeps", lambda: proc.stat(self.bystander[0])[:1] == ["S"], 10)
        with open(os.path.join(self.folder, "signals"), encoding="ascii") as file:
            if heard := file.read().split():
                raise Fault(f"the bystander got the signals {heard}")
        app = self.apps(BYSTANDER)[BYSTANDER]
        if (app["pid"], app["state"], app["restarts"]) != (self.bystander[0], "active", 0):
            raise Fault(f"the bystander is not as it was: {app}")

    def check_consistent(self) -> None:
        """List has every app, each can be queried, and Describe reports the same instance."""
        names = sorted(self.apps())
        if names != sorted([*VICTIMS, BYSTANDER, *HINTS.untouched[2:]]):
            raise Fault(f"List has {names}")
        for name in [*VICTIMS, BYSTANDER, "crowd@7"]:
            if self.call("Status", app=name)["status"]["name"] != name:
                raise Fault(f"Status of {name} is of another app")
        said = self.call("Describe")
        if said["pid"] != self.pid or said["instance"] != 1 or said["apps"] != len(names) or said["phase"] != "running":
            raise Fault(f"Describe says {said}")

    def quiet(self) -> None:
        """Ends all victims and frees what they had."""
        self.call("Kill", apps=["v-*"], wait=True, timeout_ms=60_000)

        def states() -> dict[str, tuple[str, str | None]]:
            return {name: (app["state"], app["transition"]) for name, app in self.apps(*VICTIMS).items()}

        ended = {("not-running", None)}
        self.wait("the victims are gone", lambda: set(states().values()) == ended, detail=lambda: str(states()))

    def used(self) -> dict[str, int]:
        return {
            "descriptors of torpord": proc.descriptors(self.pid),
            "threads of torpord": proc.status(self.pid, "Threads"),
            "KiB of torpord": proc.status(self.pid, "VmRSS"),
            "descriptors of the keeper": proc.descriptors(self.keeper),
            "KiB of the keeper": proc.status(self.keeper, "VmRSS"),
        }

    def warm_up(self) -> None:
        """Runs each victim once: descriptors that an app keeps from its first launch on exist then."""
        self.call("Start", apps=["v-*"], wait=True, timeout_ms=60_000)
        self.quiet()

    def check_used(self) -> None:
        """Without victims and clients, resources are back to what they were after the first round."""
        more = {"descriptors": MORE_DESCRIPTORS, "threads": MORE_THREADS, "KiB": MORE_MEMORY}

        def excess() -> list[str]:
            return [
                f"{name}: {now}, after the first round {self.baseline[name]}"
                for name, now in self.used().items()
                if now > self.baseline[name] + more[name.split()[0]]
            ]

        if not self.baseline:
            self.baseline = self.used()
            return
        self.wait("what was used is given back:", lambda: not excess(), detail=lambda: "; ".join(
            excess() + proc.descriptor_names(self.pid)[-60:]))  # fmt: skip

    # The end.

    def end(self) -> int | None:
        """Ends it and everything that it started; returns its exit status."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(BOUND)
        until = time.monotonic() + BOUND
        while (left := proc.marked(self.mark)) and time.monotonic() < until:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.02)
        return status

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
