# SPDX-License-Identifier: Apache-2.0
"""What the apps of the lab have written, judged: at no time may two nodes run one app."""

import bisect
import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns

SECOND = 1_000_000_000
# A process that says nothing for so long may have been stopped meanwhile. The apps speak every 5 or 20 ms.
SILENCE = SECOND // 4
# A standby runs until it has been launched and suspended. That it sleeps in the end is waited for (Log.stirs).
LAUNCH = 60 * SECOND


@dataclass
class Span:
    """A time in which a process worked without a break."""

    process: tuple[str, str]
    begin: int
    end: int

    @property
    def node(self) -> str:
        return self.process[0]


@dataclass
class Life:
    """All that a process said: the times at which it worked or loaded, and at which it only ran."""

    first: int
    works: list[int]
    runs: list[int]


def lives(text: str, is_plain: bool) -> dict[tuple[str, str], Life]:
    """The processes of an app. Of a plain app each line counts as work: nothing of it may run where it is not owned."""
    found: dict[tuple[str, str], Life] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 4:
            continue
        node, pid, what, time = words[0], words[1], words[2], int(words[3])
        life = found.setdefault((node, pid), Life(time, [], []))
        (life.works if what == "work" or is_plain else life.runs).append(time)
    return found


def spans(of: dict[tuple[str, str], Life]) -> list[Span]:
    found = []
    for process, life in of.items():
        interrupted = sorted(life.runs)
        last: Span | None = None
        for time in sorted(life.works):
            if last and time - last.end <= SILENCE and not between(interrupted, last.end, time):
                last.end = time
            else:
                last = Span(process, time, time)
                found.append(last)
    return sorted(found, key=lambda span: span.begin)


def between(times: list[int], begin: int, end: int) -> bool:
    at = bisect.bisect_right(times, begin)
    return at < len(times) and times[at] < end


def faults(app: str, text: str, is_plain: bool) -> list[str]:
    """Where two processes of an app worked at a time, or a standby ran while another node worked."""
    of = lives(text, is_plain)
    all_spans = spans(of)
    found = []
    latest: Span | None = None
    for span in all_spans:
        if latest and span.begin <= latest.end and span.process != latest.process:
            both = (min(latest.end, span.end) - span.begin) / 1e6
            found.append(f"{app} worked on {latest.node} and on {span.node} for {both:.0f} ms")
        if latest is None or span.end > latest.end:
            latest = span
    for process, life in of.items():
        others = [span for span in all_spans if span.node != process[0]]
        late = [
            time for time in life.runs
            if time > life.first + LAUNCH and any(span.begin < time < span.end for span in others)
        ]  # fmt: skip
        if late:
            found.append(f"{app} ran on {process[0]} {len(late)} times although it stood by")
    return found


def outage(text: str, after: int) -> tuple[float, str, str] | None:
    """The longest pause in which no process worked, from a time on: milliseconds, the node before and the one after."""
    # Without what a plain app says while it loads: it serves nobody then.
    worked = sorted(
        (int(words[3]), words[0]) for line in text.splitlines() if len(words := line.split()) == 4 and words[2] == "work"
    )
    longest: tuple[int, str, str] | None = None
    for (time, node), (later, other) in zip(worked, worked[1:]):
        if later >= after and (longest is None or later - time > longest[0]):
            longest = (later - time, node, other)
    return longest and (longest[0] / 1e6, longest[1], longest[2])


class Log:
    """The folder to which the apps of all nodes write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def text(self, app: str) -> str:
        try:
            return (self.folder / app).read_text()
        except FileNotFoundError:
            return ""

    def tail(self, app: str, size: int = 1000) -> str:
        try:
            with open(self.folder / app, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - size))
                return file.read().decode().partition("\n")[2]
        except FileNotFoundError:
            return ""

    def until(self, app: str, since: int, node: str) -> float:
        """After how many milliseconds the app worked on another node."""
        lines = (line.split() for line in self.text(app).splitlines())
        times = [int(words[3]) for words in lines if len(words) == 4 and words[2] == "work" and words[0] != node]
        return (min(time for time in times if time > since) - since) / 1e6

    def last(self, app: str, since: int) -> tuple[str, str] | None:
        """The node and process of the app that worked last, if it did so since."""
        for line in reversed(self.tail(app).splitlines()):
            words = line.split()
            if len(words) == 4 and words[2] == "work":
                return (words[0], words[1]) if int(words[3]) > since else None
        return None

    def stirs(self, app: str) -> bool:
        """Whether a process of the app runs without being the one that works, or did so within the last second."""
        since = monotonic_ns() - SECOND
        lines = [line.split() for line in self.tail(app, 100_000).splitlines()]
        return any(len(words) == 4 and words[2] != "work" and int(words[3]) > since for words in lines)

    def works_at(self, app: str, since: int) -> str | None:
        """The node on which the app worked last, if it did so since."""
        found = self.last(app, since)
        return found and found[0]
