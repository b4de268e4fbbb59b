# SPDX-License-Identifier: Apache-2.0
"""One of the forty apps, and numbers of many requests."""
import math


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
        #: In the run, answers of a process that had not answered before: when it was asked, and how long it took, in ms.
        self.returns = []
        #: Of the roll call; None: no answer.
        self.counter = None

    def is_right(self):
        """Whether its counter has each answer that somebody got; a request without an answer may be in it or not."""
        return self.counter is not None and self.answered <= self.counter <= self.sent
