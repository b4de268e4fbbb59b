"""The two who look after the forty apps, and what is seen of it from outside."""
import collections
import concurrent.futures
import http.client
import json
import math
import os
import re
import subprocess
import threading
import time

from machine import Trouble

APPS, RATE, PAUSE, LIMIT = 40, 100, (5, 25), 5
#: How long a request of the set-up or of the roll call may take, in seconds.
PATIENCE = 12
#: An app that has less than so many MiB has not read its data yet.
LOADED = 30


def duration(milliseconds):
    if milliseconds is None:
        return "-"
    if math.isinf(milliseconds):
        return "no answer"
    return "%.3g s" % (milliseconds / 1000) if milliseconds >= 1000 else "%.3g ms" % milliseconds


def percentile(times, part):
    """None of nothing."""
    return sorted(times)[math.ceil(len(times) * part) - 1] if times else None


class App:
    """One of the forty: how it is, and what it was asked."""

    def __init__(self, slot):
        self.name = "app %d" % (slot + 1)
        self.address = "127.0.1.%d" % (slot + 1)
        #: active, runs, starts, asleep, or gone; evicted, where it is gone and comes back when it is asked.
        self.state = "gone"
        #: When it was ended last.
        self.ended = None
        self.sent = self.answered = self.endings = 0
        #: The process that answered last.
        self.pid = None
        #: In the run: when it was ended and somebody asked for it again, and how long that answer took, in ms.
        self.returns = []
        #: Of the roll call; None: no answer.
        self.counter = None

    def is_right(self):
        """Whether its counter has each answer that somebody got; a request without an answer may be in it or not."""
        return self.counter is not None and self.answered <= self.counter <= self.sent


class Side:
    """One of the two, in a container of its own."""

    name = ending = ""
    #: In seconds.
    set_up_time = 60
    #: So many are asked at once in the roll call.
    at_once = 4

    def __init__(self, container, folder, files):
        self.container, self.folder, self.files = container, folder, files
        self.apps = [App(slot) for slot in range(APPS)]
        self.phase, self.began, self.load = "", time.monotonic(), None
        #: Of each second, how long the hot app's answers took, in ms; infinite where there was none.
        self.seconds, self.others = collections.defaultdict(list), []
        self.requests, self.failures = collections.Counter(), collections.Counter()
        #: What became of the others' requests that failed: refused, broken, late.
        self.outcomes = collections.Counter()
        self.story, self.trouble = [], None
        self.pool = concurrent.futures.ThreadPoolExecutor(self.at_once, initializer=container.enter_network)
        self.counting = threading.Lock()

    # What it is about.

    def start(self):
        """Puts the configuration into the container and starts who looks after the apps."""

    def bring_forward(self):
        """The hot app is in use."""

    def look(self):
        """Finds out how the apps are."""

    # What is done with both.

    def now(self):
        return time.monotonic() - self.began

    def ask(self, app):
        """Its counter, as it says; None without an answer."""
        connection = http.client.HTTPConnection(app.address, 8000, timeout=PATIENCE)
        counter = None
        try:
            connection.request("GET", "/")
            words = connection.getresponse().read().split()
            counter = int(words[3])
            self.did_answer(app, words[1].decode())
        except (OSError, http.client.HTTPException, IndexError, ValueError):
            pass
        finally:
            connection.close()
        with self.counting:
            app.sent += 1
            app.answered += counter is not None
        return counter

    def did_answer(self, app, pid, at=None, took=None):
        if app.pid not in (None, pid) and took is not None:
            app.returns.append((at, took))
            self.tell(app, "is back after %s" % duration(took))
        app.pid = pid

    def set_up(self, draw):
        """Asks each app some times, which launches it; four at a time, and for no longer than there is."""
        self.phase, self.began = "set-up", time.monotonic()
        waiting = list(self.apps[1:])

        def visit(app):
            for _ in range(3 + self.apps.index(app) * 7 % 23):
                if self.phase == "set-up":
                    self.ask(app)

        def visit_waiting():
            while waiting and self.phase == "set-up":
                visit(waiting.pop(0))

        self.wait([self.pool.submit(visit, self.apps[0])], draw)
        self.bring_forward()
        self.wait([self.pool.submit(visit_waiting) for _ in range(4)], draw, self.set_up_time)

    def wait(self, work, draw, seconds=60):
        """Whether they all came to their end."""
        end = time.monotonic() + seconds
        while not all(one.done() for one in work):
            self.look()
            draw()
            concurrent.futures.wait(work, timeout=0.25)
            if time.monotonic() > end:
                return False
        for one in work:
            one.result()
        return True

    def run(self, program, seconds, machine, draw):
        """The load, for so many seconds."""
        self.phase, self.began = "run", time.monotonic()
        results = self.folder + "/requests"
        stalls = machine.stalls()
        with open(self.folder + "/load-errors", "w") as errors:
            self.load = subprocess.Popen(
                ["nsenter", "-t", str(self.container.systemd), "-n", program, "1", str(APPS - 1), str(RATE)]
                + [str(word) for word in PAUSE] + [str(seconds), "127.0.1.*:8000", "1", str(LIMIT), results],
                stderr=errors,
            )
        try:
            place = 0
            while True:
                ended = self.load.poll() is not None
                place = self.read(results, place)
                self.look()
                draw()
                machine.check()
                if ended:
                    break
                if machine.stalls() > stalls:
                    self.trouble = "the machine stood still: all tasks waited for memory for most of 8 s"
                    break
                if self.now() > seconds + LIMIT + 20:
                    raise Trouble("the load does not end")
                time.sleep(0.25)
            if ended and self.load.returncode != 0:
                raise Trouble("the load failed: see %s/load-errors" % self.folder)
        finally:
            if self.load.poll() is None:
                self.load.kill()
                self.load.wait()

    def read(self, path, place):
        """What the load has written since, whole lines alone."""
        if not os.path.exists(path):
            return place
        with open(path) as file:
            file.seek(place)
            text = file.read()
        whole = text.rfind("\n") + 1
        for line in text[:whole].splitlines():
            words = line.split()
            if len(words) != 6:
                continue
            slot, is_ok = int(words[1]), words[4] == "ok"
            with self.counting:
                self.apps[slot].sent += 1
                self.apps[slot].answered += is_ok
            if is_ok:
                self.did_answer(self.apps[slot], words[5], int(words[2]) / 1e6, int(words[3]) / 1000)
            kind = "hot" if words[0] == "h" else "cold"
            self.requests[kind] += 1
            self.failures[kind] += not is_ok
            if not is_ok and kind == "cold":
                self.outcomes[words[4]] += 1
                self.tell(self.apps[slot], "was asked, and the answer was " + words[4])
            took = int(words[3]) / 1000 if is_ok else math.inf
            (self.seconds[int(words[2]) // 1_000_000] if kind == "hot" else self.others).append(took)
        return place + whole

    def roll_call(self, draw):
        """Asks each app for its counter."""
        self.phase = "roll call"

        def visit(app):
            # Who is ended while it is asked may be asked again.
            end = time.monotonic() + PATIENCE / 2
            while app.counter is None and time.monotonic() < end:
                app.counter = self.ask(app)

        self.wait([self.pool.submit(visit, app) for app in self.apps], draw)
        self.phase = "done"

    def p99(self, second=None):
        """The hot app's, of a second or of all of them."""
        return percentile(self.seconds.get(second, []) if second is not None else sum(self.seconds.values(), []), 0.99)

    def median(self):
        """That of the others."""
        return percentile(self.others, 0.5)

    def count(self, *states):
        return sum(app.state in states for app in self.apps)

    def endings(self):
        return sum(app.endings for app in self.apps)

    def tell(self, app, text):
        self.story.append((self.now() if self.phase == "run" else None, "%s %s" % (app.name, text)))

    def did_end(self, app, text):
        app.endings += 1
        app.ended = time.monotonic()
        self.tell(app, text)

    def end(self):
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.container.end()


class Earlyoom(Side):
    name, ending = "systemd and earlyoom", "killed"
    # It may never be that all of them have come up. All are running or starting: asking launches none.
    set_up_time, at_once = 10, APPS

    def start(self):
        for name in ("app@.socket", "app@.service"):
            self.container.write(name, self.files[name])
        log = self.folder + "/earlyoom.log"
        self.container.write(
            "earlyoom.service.d/memory.conf",
            self.files["earlyoom.conf"] + "StandardOutput=file:%s\nStandardError=file:%s\n" % (log, log),
        )
        self.container.run("systemctl", "daemon-reload")
        self.container.run("systemctl", "start", "earlyoom", *["app@%d.socket" % (slot + 1) for slot in range(APPS)])
        self.container.run("systemctl", "is-active", "earlyoom")
        self.slots, self.log, self.place = {}, log, 0

    def look(self):
        for slot, app in enumerate(self.apps):
            path = "%s/payload/system.slice/system-app.slice/app@%d.service/cgroup.procs" % (self.container.group, slot + 1)
            try:
                with open(path) as file:
                    pid = file.read().split()[0]
                with open("/proc/%s/status" % pid) as file:
                    status = file.read()
                self.slots[re.search(r"NSpid:.*\s(\d+)\n", status)[1]] = slot
                has = sum(int(number) for number in re.findall(r"(?:RssAnon|VmSwap):\s+(\d+)", status))
                app.state = "starts" if has < LOADED << 10 else "active" if slot == 0 else "runs"
            except (OSError, IndexError, TypeError):
                app.state = "gone"
        with open(self.log) as file:
            file.seek(self.place)
            text = file.read()
        whole = text.rfind("\n") + 1
        self.place += len(text[:whole].encode())
        for pid in re.findall(r"sending SIG\w+ to process (\d+)", text[:whole]):
            slot = self.slots.pop(pid, None)
            if slot is not None:
                self.did_end(self.apps[slot], "is killed by earlyoom")


class Torpor(Side):
    name, ending = "Torpor", "evicted"

    def __init__(self, container, folder, files, programs):
        super().__init__(container, folder, files)
        self.programs, self.lines, self.follower = programs, collections.deque(), None

    def start(self):
        with open(self.folder + "/torpor.toml", "w") as file:
            file.write(self.files["torpor.toml"])
        # As torpord.service has it.
        self.container.write(
            "torpord.service",
            "[Service]\nType=notify\nNotifyAccess=main\nExecStart={0}/torpord --config {1}/torpor.toml\n"
            "Environment=RUNTIME_DIRECTORY={1}/run STATE_DIRECTORY={1}/state LOGS_DIRECTORY={1}/log\n"
            "KillMode=mixed\nOOMPolicy=continue\nDelegate=yes\nTasksMax=infinity\nOOMScoreAdjust=-900\n"
            "LimitNOFILE=32768:524288\nLimitMEMLOCK=infinity\nStandardError=file:{1}/torpord.log\n".format(
                self.programs, self.folder
            ),
        )
        self.container.run("systemctl", "daemon-reload")
        self.container.run("systemctl", "start", "torpord")
        self.follower = subprocess.Popen(
            self.command("events", "-f", "--json"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=lambda: self.lines.extend(self.follower.stdout), daemon=True).start()

    def command(self, *words):
        return [self.programs + "/torpor"] + list(words) + ["--socket", self.folder + "/run/io.torpor"]

    def bring_forward(self):
        subprocess.run(self.command("foreground", "app@1"), check=True, stdout=subprocess.DEVNULL)

    def look(self):
        while self.lines:
            event = json.loads(self.lines.popleft())
            name = event.get("app") or ""
            if not name.startswith("app@"):
                continue
            app = self.apps[int(name[4:]) - 1]
            if event["kind"] == "transition" and event["to"] == "launching":
                app.state = "starts"
            if event["kind"] == "state" and event["to"] != "not-running":
                app.state = {"active": "active", "suspended": "asleep"}.get(event["to"], "runs")
            if event["kind"] == "exit":
                app.state = "evicted" if event["reason"] == "evicted" else "gone"
                self.did_end(app, "is evicted" if event["reason"] == "evicted" else "has ended: %s" % event["reason"])

    def end(self):
        if self.follower is not None:
            self.follower.kill()
            self.follower.wait()
        super().end()
