# SPDX-License-Identifier: Apache-2.0
"""One side of the demonstration: forty apps in a container, requests to them, and the results."""
import collections
import concurrent.futures
import http.client
import math
import os
import subprocess
import threading
import time

from apps import App, duration, percentile
from machine import Trouble

APPS, RATE, PAUSE, LIMIT = 40, 100, (5, 25), 5
#: The longest time for a request of the set-up or the roll call, in seconds.
PATIENCE = 12


class Side:
    """One of the two sides, in its own container."""

    name = ending = ""
    #: In seconds.
    set_up_time = 60
    #: Apps asked at a time in the roll call.
    at_once = 4

    def __init__(self, container, folder, files):
        self.container, self.folder, self.files = container, folder, files
        self.apps = [App(slot) for slot in range(APPS)]
        self.phase, self.began, self.load = "", time.monotonic(), None
        #: For each second, the hot app's response times in ms; infinite for a failure.
        self.seconds, self.others = collections.defaultdict(list), []
        self.requests, self.failures = collections.Counter(), collections.Counter()
        #: Failed requests to the other apps by result: refused, broken, late.
        self.outcomes = collections.Counter()
        self.story, self.trouble = [], None
        self.pool = concurrent.futures.ThreadPoolExecutor(self.at_once, initializer=container.enter_network)
        self.counting = threading.Lock()

    # What the two sides do differently.

    def start(self):
        """Writes the configuration into the container and starts the supervisor."""

    def bring_forward(self):
        """Marks the hot app as in use."""

    def look(self):
        """Reads the states of the apps."""

    # What both sides share.

    def now(self):
        return time.monotonic() - self.began

    def ask(self, app):
        """The app's counter; None without an answer."""
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
        """Sends each app some requests, which launch it; four at a time, within the set-up time."""
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
        """Whether all work finished in time."""
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
        """Runs the load for `seconds` seconds."""
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
        """What the load generator has written since, complete lines only."""
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
            # An app may be evicted while it is asked: retry.
            end = time.monotonic() + PATIENCE / 2
            while app.counter is None and time.monotonic() < end:
                app.counter = self.ask(app)

        self.wait([self.pool.submit(visit, app) for app in self.apps], draw)
        self.phase = "done"

    def p99(self, second=None):
        """The hot app's 99th percentile, of one second or of all."""
        return percentile(self.seconds.get(second, []) if second is not None else sum(self.seconds.values(), []), 0.99)

    def median(self):
        """The median of the other apps."""
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
