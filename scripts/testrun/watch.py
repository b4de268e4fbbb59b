# SPDX-License-Identifier: Apache-2.0
"""One process with tests: starts it, reads its output, and ends it when it hangs."""

import json
import os
import shutil
import signal
import subprocess
import time

from .bundle import Bundle, short

# How long processes started by a shard may take to exit, in seconds.
GONE_SECONDS = 10


class Result:
    """The result of one test."""

    def __init__(self, name: str):
        self.name = name
        self.seconds = 0.0
        # Processor time in seconds, of the processes that it started too; good to some hundredths.
        self.processor = 0.0
        self.issues: list[str] = []
        self.skipped: str | None = None
        self.ended = False

    @property
    def failed(self) -> bool:
        return bool(self.issues)


class Run:
    """Tests that run in one process with a temporary folder of its own."""

    def __init__(self, bundle: Bundle, name: str, filter: str, temporary: str, logs: str, hang: float):
        self.name = name
        self.results: dict[str, Result] = {}
        # Faults of no single test: how the process died, what it left behind.
        self.faults: list[str] = []
        self.folder = temporary
        # Seconds without output after which it counts as hung.
        self.hang = hang
        self.log_path = os.path.join(logs, name + ".txt")
        self.events_path = os.path.join(logs, name + ".json")
        self.current: str | None = None
        self.titles: dict[str, str] = {}
        self._rest = b""
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o755)
        with open(self.events_path, "wb"):
            pass
        self._events = open(self.events_path, "rb")
        self._heard = time.monotonic()
        self._began: dict[str, float] = {}
        # Processor time of the process, and of those that it has started and seen end, in seconds.
        self.processor = 0.0
        self._all = 0.0
        # The tests that have ended since processor time was shared last.
        self._over: list[str] = []
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                bundle.command(self.events_path, filter),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "TMPDIR": self.folder, "NO_COLOR": "1"},
            )  # fmt: skip

    def poll(self) -> bool:
        """Reads new output; true when the process has ended and everything is evaluated."""
        code = self._end()
        self._read()
        self._share(processor_time(self.process.pid) if code is None else self._all)
        if code is None:
            if time.monotonic() - self._heard < self.hang:
                return False
            self._hung()
            code = self.process.wait()
        self._events.close()
        self._judge_end(code)
        self._judge_rest()
        return True

    def _end(self) -> int | None:
        """The exit status once it has ended, with the processor time of all that it started."""
        if self.process.returncode is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid == self.process.pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self._all = usage.ru_utime + usage.ru_stime
        return self.process.returncode

    def _share(self, seconds: float) -> None:
        """Shares what was spent since the last time between the tests that ran since then."""
        spent, names = seconds - self.processor, self._over + ([self.current] if self.current else [])
        self._over = []
        if spent <= 0:
            return
        self.processor = seconds
        for name in names:
            self.result(name).processor += spent / len(names)

    def end(self) -> None:
        """Kills the process and all processes it has started."""
        for pid in [self.process.pid, *self._own_processes()]:
            kill(pid)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def skip_lines(self) -> list[str]:
        """The reasons for skipped parts, as tests print them."""
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return [line.strip() for line in log if line.startswith("skipped: ")]

    # --- the output of the process

    def _read(self) -> None:
        data = self._rest + self._events.read()
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            self._heard = time.monotonic()
            try:
                record = json.loads(line)
            except ValueError:
                continue
            payload = record.get("payload", {})
            if record.get("kind") == "test":
                self.titles[short(payload["id"])] = payload.get("displayName") or payload["name"]
            elif record.get("kind") == "event":
                self._take(payload)

    def _take(self, event: dict) -> None:
        kind, name = event["kind"], short(event.get("testID", ""))
        at = event["instant"]["absolute"]
        is_function = name.endswith(")")
        if kind == "issueRecorded":
            self._take_issue(event, name)
        elif not is_function:
            if kind == "testSkipped":
                self.result(name).skipped = text_of(event)
        elif kind == "testStarted":
            self.result(name)
            self.current = name
            self._began[name] = at
        elif kind == "testSkipped":
            self.result(name).skipped = text_of(event)
        elif kind == "testEnded":
            result = self.result(name)
            result.seconds = at - self._began.get(name, at)
            result.ended = True
            self._over.append(name)
            self.current = None

    def _take_issue(self, event: dict, name: str) -> None:
        issue = event.get("issue", {})
        if issue.get("isKnown") or issue.get("isFailure") is False or issue.get("severity") == "warning":
            return
        place = issue.get("sourceLocation") or {}
        where = f"{place.get('fileID', '')}:{place.get('line', '')}: " if place else ""
        text = where + " ".join(message["text"] for message in event.get("messages", []))
        # The tests of a process run one after the other: what a thread records belongs to the running one.
        name = name or self.current or ""
        if name.endswith(")"):
            self.result(name).issues.append(text)
        else:
            # An issue of a suite, or of no test: there is no test that could be run again.
            self.faults.append(f"{name}: {text}" if name else text)

    def result(self, name: str) -> Result:
        return self.results.setdefault(name, Result(name))

    # --- the end of the process

    def _judge_end(self, code: int) -> None:
        failed = any(result.failed for result in self.results.values())
        where = f" in {self.titles.get(self.current, self.current)}" if self.current else ""
        if code < 0:
            name = signal.Signals(-code).name
            self._fault(f"the process died of {name}{where}{self._last_words()}")
        elif code != 0 and not failed and not self.faults:
            self._fault(f"the process ended with {code}{where}, though no test failed{self._last_words()}")

    def _fault(self, text: str) -> None:
        if self.current:
            self.result(self.current).issues.append(text)
        self.faults.append(text)

    def _last_words(self) -> str:
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            lines = [line.rstrip() for line in log if not line.startswith(("◇", "✔", "➜", "↳"))]
        return "".join("\n      " + line for line in lines[-12:])

    def _judge_rest(self) -> None:
        """Checks that no process and no file is left."""
        end = time.monotonic() + GONE_SECONDS
        while (left := self._own_processes()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            self.faults.append(f"a process was left behind: {pid} {command_of(pid)}")
            kill(pid)
        self._end_backtraces()
        names = [name for name in os.listdir(self.folder) if not name.startswith("TemporaryDirectory.")]
        names = [name for name in names if not name.endswith(".lock")]
        if names:
            self.faults.append("left behind in the temporary folder: " + " ".join(sorted(names)[:8]))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_backtraces(self) -> None:
        """Kills Swift's backtrace program if its target was killed: it would wait forever, since it holds both ends of
        their socket. That is no test's fault, and it has no environment by which it could be found."""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/comm", encoding="utf-8") as file:
                    is_one = file.read().strip() == "swift-backtrace"
                if is_one and os.readlink(f"/proc/{name}/fd/1").startswith(self.folder + "/"):
                    kill(int(name))
            except OSError:
                continue

    def _own_processes(self) -> list[int]:
        """Every living process with the temporary folder in its environment, whatever its parent is now."""
        # Processes of a test's daemon have TPTEST; some programs get a subfolder as TMPDIR.
        marks = tuple(name + os.fsencode(self.folder) + b"/" for name in (b"TMPDIR=", b"TPTEST="))
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if any((word + b"/").startswith(marks) for word in file.read().split(b"\0")):
                        found.append(int(name))
            except OSError:
                continue
        return found

    def _hung(self) -> None:
        """Records the stacks of all processes of the shard, then kills them."""
        path = self.log_path.removesuffix(".txt") + "-stacks.txt"
        with open(path, "w", encoding="utf-8") as file:
            for pid in self._own_processes():
                file.write(f"== {pid} {command_of(pid)}\n{stack_of(pid)}\n")
        name = self.titles.get(self.current or "", self.current or "no test")
        self._fault(f"nothing was heard for {self.hang:.0f} s in {name}: ended; where its processes were:\n{head(path)}")
        for pid in [self.process.pid, *self._own_processes()]:
            kill(pid)


def processor_time(pid: int) -> float:
    """Of a process and those of its children that it has seen end, in seconds; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def text_of(event: dict) -> str:
    return " ".join(message["text"] for message in event.get("messages", []))


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def command_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()[:200]
    except OSError:
        return "(gone)"


def stack_of(pid: int) -> str:
    """The stacks of its threads: from eu-stack, or else what the kernel reports of each."""
    if shutil.which("eu-stack"):
        try:
            run = subprocess.run(
                ["eu-stack", "-p", str(pid)], capture_output=True, text=True, errors="replace", timeout=60, check=False
            )
            if run.stdout:
                return run.stdout
        except subprocess.TimeoutExpired:
            pass
    lines = []
    for task in sorted(os.listdir(f"/proc/{pid}/task")) if os.path.exists(f"/proc/{pid}/task") else []:
        try:
            with open(f"/proc/{pid}/task/{task}/wchan", encoding="utf-8") as file:
                lines.append(f"thread {task} waits in {file.read() or 'nothing'}")
        except OSError:
            continue
    return "\n".join(lines)


def head(path: str, lines: int = 120) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.readlines()
    more = f"      … {len(text) - lines} more lines in {path}\n" if len(text) > lines else ""
    return "".join("      " + line for line in text[:lines]) + more
