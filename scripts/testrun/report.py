# SPDX-License-Identifier: Apache-2.0
"""Reports a run's results at a terminal or in CI."""

import re
import sys
import time

from .watch import Result, Run

# More tests than this that fail once and then pass are a fault of the suite, not bad luck.
MOST_FLAKY = 3


class Progress:
    """Progress: one line that is updated on a terminal, or a line every half minute elsewhere."""

    def __init__(self, total: int):
        self.total = total
        self.began = time.monotonic()
        self._told = self.began
        self._width = 0

    def show(self, done: int, failed: int, names: list[str]) -> None:
        now = time.monotonic()
        passed = f"{int(now - self.began)} s: {done} of {self.total} done, {failed} failed, {self.total - done} left"
        if sys.stdout.isatty():
            if now - self._told < 0.2:
                return
            line = f"{passed} ({', '.join(names)})"[:118]
            sys.stdout.write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif now - self._told < 30:
            return
        else:
            print(passed)
        self._told = now
        sys.stdout.flush()

    def clear(self) -> None:
        if sys.stdout.isatty() and self._width:
            sys.stdout.write("\r" + " " * self._width + "\r")
            sys.stdout.flush()
            self._width = 0


def title(run_titles: dict[str, str], name: str) -> str:
    shown = run_titles.get(name)
    return f"{shown} ({name})" if shown and shown != name.rpartition("/")[2] else name


def print_failure(name: str, result: Result, limit: int = 1500) -> None:
    print(f"✘ {name}")
    for issue in result.issues[:5]:
        text = issue if len(issue) <= limit else issue[:limit] + " …"
        print("    " + text.replace("\n", "\n    "))
    if len(result.issues) > 5:
        print(f"    … {len(result.issues) - 5} more issues")


def print_slowest(results: list[Result], titles: dict[str, str], count: int = 20) -> None:
    slowest = sorted(results, key=lambda result: -result.seconds)[:count]
    print(f"The slowest {len(slowest)} (seconds, and of these on a processor):")
    for result in slowest:
        print(f"  {result.seconds:7.1f} {result.processor:7.1f}  {title(titles, result.name)}"[:150])
    # Most tests wait: how long a run takes depends on these.
    dearest = sorted(results, key=lambda result: -result.processor)[:count]
    total = sum(result.processor for result in results)
    print(f"The {len(dearest)} that take most processor time (seconds), of {total:.0f} s altogether:")
    for result in dearest:
        print(f"  {result.processor:7.1f}  {title(titles, result.name)}"[:150])


def print_skipped(results: list[Result], runs: list[Run]) -> int:
    """Each reason once, with the number of tests it skipped."""
    reasons: dict[str, int] = {}
    for result in results:
        if result.skipped is not None and result.name.endswith(")"):
            reason = re.sub(r'^(Test|Suite) (".*?"|\S+) skipped:? ?', "", result.skipped).strip('". ') or "no reason is given"
            reasons[reason] = reasons.get(reason, 0) + 1
    lines: dict[str, int] = {}
    for run in runs:
        for line in run.skip_lines():
            lines[line] = lines.get(line, 0) + 1
    if reasons or lines:
        print("Left out here:")
    for reason, count in sorted(reasons.items()):
        print(f"  {count} tests: {reason}")
    for line, count in sorted(lines.items()):
        print(f"  a part of {count} tests: {line.removeprefix('skipped: ')}"[:200])
    return sum(reasons.values())
