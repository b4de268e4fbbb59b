# SPDX-License-Identifier: Apache-2.0
"""Lists the tests and splits them into shards."""

import dataclasses
import os
import re
import subprocess

# The most tests in one process: enough that its start costs little, and few enough that the last one to end does not
# take long.
SHARD_SIZE = 24

# These tests measure times that a busy machine distorts: they run last, and alone.
MEASURED = "MeasurementTests"


@dataclasses.dataclass
class Shard:
    """Tests of one target that run in one process, one after the other."""

    name: str
    tests: list[str]
    alone: bool = False
    # Whether these are all tests of their suites.
    whole: bool = True

    @property
    def target(self) -> str:
        return target_of(self.tests[0])

    def filter(self) -> str:
        names = sorted({suite_of(test) if self.whole else test for test in self.tests})
        return "^(" + "|".join(re.escape(name) for name in names) + ")(/|$)"


def target_of(test: str) -> str:
    """The module of `Module.Suite/function()`."""
    return test.partition(".")[0]


def suite_of(test: str) -> str:
    """`Module.Suite` of `Module.Suite/function()`; a function outside of suites counts as its own suite."""
    return test.partition("/")[0]


def short(test_id: str) -> str:
    """`Module.Suite/function()` of an ID, which may end with a source location."""
    head, _, tail = test_id.rpartition("/")
    return head if head and ".swift:" in tail else test_id


class Bundle:
    """The program that SwiftPM links from all test targets."""

    def __init__(self, program: str):
        self.program = program

    def command(self, events: str, filter: str) -> list[str]:
        """The command that runs the tests matching the filter, and writes events to `events` as lines of JSON."""
        return [
            self.program, "--testing-library", "swift-testing", "--no-parallel", "--filter", filter,
            "--event-stream-output-path", events, "--event-stream-version", "0",
        ]  # fmt: skip

    def tests(self) -> list[str]:
        """Every test, as `Module.Suite/function()`."""
        if not os.path.exists(self.program):
            raise RuntimeError(f"{self.program} is not there: build it first (make build, or without --no-build)")
        run = subprocess.run(
            [self.program, "--testing-library", "swift-testing", "--list-tests"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        # Functions that share a name are listed with their location.
        names = list(dict.fromkeys(short(line) for line in run.stdout.splitlines() if re.match(r"\w+\.\S", line)))
        if run.returncode != 0 or not names:
            raise RuntimeError(f"{self.program} does not list its tests (exit {run.returncode}): {run.stderr[-2000:]}")
        return names


def shards(tests: list[str], times: dict[str, float], whole: bool = True) -> list[Shard]:
    """Splits by target and suite: the longest first, by the times of an earlier run, else whole daemons first."""
    found: list[Shard] = []
    by_target: dict[str, dict[str, list[str]]] = {}
    for test in tests:
        by_target.setdefault(target_of(test), {}).setdefault(suite_of(test), []).append(test)
    for target, suites in by_target.items():
        parts: list[list[str]] = [[]]
        for suite in suites.values():
            if parts[-1] and len(parts[-1]) + len(suite) > SHARD_SIZE:
                parts.append([])
            parts[-1] += suite
        for number, part in enumerate(parts, 1):
            name = target if len(parts) == 1 else f"{target}-{number}"
            found.append(Shard(name, part, alone=target == MEASURED, whole=whole))

    def expected(shard: Shard) -> float:
        guess = 1.0 if shard.target.endswith("IntegrationTests") else 0.1
        return sum(times.get(test, guess) for test in shard.tests)

    return sorted(found, key=lambda shard: (shard.alone, -expected(shard)))
