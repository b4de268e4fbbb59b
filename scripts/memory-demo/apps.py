# SPDX-License-Identifier: Apache-2.0
"""One of the forty apps, and statistics of requests."""
import math


def duration(milliseconds):
    if milliseconds is None:
        return "-"
    if math.isinf(milliseconds):
        return "no answer"
    return "%.3g s" % (milliseconds / 1000) if milliseconds >= 1000 else "%.3g ms" % milliseconds


def percentile(times, part):
    """None for an empty list."""
    return sorted(times)[math.ceil(len(times) * part) - 1] if times else None


class App:
    """The state of one of the forty apps, and its requests."""

    def __init__(self, slot):
        self.name = "app %d" % (slot + 1)
        self.address = "127.0.1.%d" % (slot + 1)
        #: active, runs, starts, asleep, or gone; evicted if it is gone but a request launches it again.
        self.state = "gone"
        #: When it last ended.
        self.ended = None
        self.sent = self.answered = self.endings = 0
        #: The pid of the last answer.
        self.pid = None
        #: During the run, first answers of new processes: when they were requested, and how long they took, in ms.
        self.returns = []
        #: From the roll call; None: no answer.
        self.counter = None

    def is_right(self):
        """Whether its counter includes every answered request; unanswered ones may be included or not."""
        return self.counter is not None and self.answered <= self.counter <= self.sent
