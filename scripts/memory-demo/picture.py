# SPDX-License-Identifier: Apache-2.0
"""Draws both sides beside each other in a terminal of 100 columns and 30 rows."""
import math
import sys
import time

from apps import duration

WIDTH, PLOT, ROWS = 48, 40, 8
#: The plot's lower and upper limit, as powers of ten of a millisecond.
LOW, HIGH = 0, 4
#: Colours that the colour-blind can tell apart (Okabe and Ito), each with a shape of its own.
VERMILION, BLUE, SKY, GREEN, YELLOW, GREY = 202, 32, 74, 36, 220, 244
STATES = {
    "active": ("◆", YELLOW, "hot"), "runs": ("■", BLUE, "run"), "starts": ("□", BLUE, "start"),
    "asleep": ("▄", SKY, "asleep"), "evicted": ("·", GREY, "evicted"), "gone": ("·", GREY, "gone"),
}


def paint(text, colour, bold=False):
    return "\x1b[%s38;5;%dm%s\x1b[0m" % ("1;" if bold else "", colour, text)


class Line:
    """A row of cells."""

    def __init__(self):
        self.parts, self.length = [], 0

    def add(self, text, colour=None, bold=False):
        self.length += len(text)
        if colour is not None:
            text = paint(text, colour, bold)
        elif bold:
            text = "\x1b[1m%s\x1b[0m" % text
        self.parts.append(text)
        return self

    def fill(self, width):
        return "".join(self.parts) + " " * max(0, width - self.length)


def plot(side, seconds):
    """The hot app's 99th percentile, two columns per second, on a logarithmic scale."""
    values = [side.p99(second) for second in range(seconds)]
    lines = []
    for row in range(ROWS):
        bottom = (ROWS - 1 - row) * 8
        line = Line()
        power = HIGH - row * (HIGH - LOW) / ROWS
        is_power = power == int(power)
        line.add("%6s %s" % (duration(10 ** power) if is_power else "", "┤" if is_power else "│"), GREY)
        for value in values:
            if value is None:
                line.add(" " * (PLOT // seconds))
                continue
            part = 1 if math.isinf(value) else (math.log10(max(value, 1)) - LOW) / (HIGH - LOW)
            level = max(1, min(ROWS * 8, round(part * ROWS * 8)))
            height = max(0, min(8, level - bottom))
            colour = VERMILION if value >= 100 else YELLOW if value >= 20 else GREEN
            if math.isinf(value) and row == 0:
                line.add("✗ ", VERMILION, True)
            else:
                line.add(" ▁▂▃▄▅▆▇█"[height] * (PLOT // seconds - 1) + " ", colour)
        lines.append(line)
    lines.append(Line().add("%6s └" % duration(10 ** LOW) + "─" * PLOT, GREY))
    lines.append(Line().add("        0" + "%*s" % (PLOT - 1, "%d s" % seconds), GREY))
    return lines


def cells(side):
    """A shape for each app; a cross for one that ended a moment ago."""
    lines = []
    for first in range(0, len(side.apps), 20):
        line = Line().add("        ")
        for app in side.apps[first:first + 20]:
            shape, colour, _ = STATES[app.state]
            if app.ended is not None and time.monotonic() - app.ended < 0.9:
                shape, colour = "✗", VERMILION
            line.add(shape + " ", colour)
        lines.append(line)
    return lines


def panel(side, seconds):
    if side is None:
        return []
    lines = [Line()]
    running = "%d s of %d" % (min(side.now(), seconds), seconds)
    state = {"run": running, "set-up": "setting up", "done": ""}
    lines[0].add("        " + side.name, None, True).add("  " + state.get(side.phase, side.phase), GREY)
    lines += plot(side, seconds) + [Line()] + cells(side)
    line = Line().add("        ")
    for name, (shape, colour, word) in STATES.items():
        if name != "active" and side.count(name):
            line.add(shape + " ", colour).add("%d %s  " % (side.count(name), word))
    lines += [line, Line()]
    for name, kind, word, took in (("hot", "hot", "p99", side.p99()), ("others", "cold", "median", side.median())):
        failed = side.failures[kind]
        line = Line().add("%6s  " % name, GREY).add("%d answers, " % (side.requests[kind] - failed))
        line.add("%d failed" % failed, VERMILION if failed else None, failed > 0)
        lines.append(line.add("; %s %s" % (word, duration(took))))
    lines.append(Line().add("        %d times one was %s" % (side.endings(), side.ending)))
    for at, text in side.story[-3:]:
        lines.append(Line().add("%6s  " % ("" if at is None else "%.1f s" % at), GREY).add(text[:PLOT - 1]))
    return lines


class Picture:
    """The display while it runs; without a terminal, a line each second."""

    def __init__(self, title, seconds, out=sys.stdout):
        self.title, self.seconds, self.out = title, seconds, out
        self.sides, self.is_live, self.said = [], out.isatty(), None
        if self.is_live:
            out.write("\x1b[?25l\x1b[2J")

    def draw(self):
        if not self.is_live:
            return self.say()
        left, right = [panel(self.sides[index] if index < len(self.sides) else None, self.seconds) for index in (0, 1)]
        rows = ["\x1b[1m  %s\x1b[0m" % self.title, paint("  the hot app's 99th percentile, each second", GREY)]
        for index in range(22):
            parts = [half[index].fill(WIDTH) if index < len(half) else " " * WIDTH for half in (left, right)]
            rows.append("  ".join(parts).rstrip())
        self.out.write("\x1b[H" + "\n".join(row + "\x1b[K" for row in rows) + "\x1b[J")
        self.out.flush()

    def say(self):
        side = self.sides[-1]
        second = int(side.now())
        if side.phase != "run" or (side, second) == self.said or not 1 <= second <= self.seconds:
            return
        self.said = (side, second)
        counts = [(side.count(name), word) for name, (_, _, word) in STATES.items()]
        states = ", ".join("%d %s" % count for count in counts if count[0])
        words = (side.name, second, duration(side.p99(second - 1)), states, side.endings())
        print("%s, %d s: hot p99 %s; %s; %d ended" % words, file=self.out, flush=True)

    def close(self):
        if self.is_live:
            self.out.write("\x1b[?25h\n\n")
            self.out.flush()
