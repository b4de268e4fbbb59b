# SPDX-License-Identifier: Apache-2.0
"""The framework of checks and findings."""

import argparse
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from .tree import Problem


class Finding(NamedTuple):
    """Something to change: the place, and a sentence that says what to do."""

    text: str
    path: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.text}" if place else self.text


class Note(str):
    """What a check could not do, and why."""


Said = Iterator[Finding | Note]
CHECKS: dict[str, Callable[[], Said]] = {}


def check(name: str) -> Callable[[Callable[[], Said]], Callable[[], Said]]:
    """Registers a check; its docstring is its description for --list."""

    def register(function: Callable[[], Said]) -> Callable[[], Said]:
        CHECKS[name] = function
        return function

    return register


def perform(name: str) -> tuple[str, list[Finding | Note], float]:
    began = time.monotonic()
    said: list[Finding | Note] = []
    try:
        said.extend(CHECKS[name]())
    except Problem as problem:
        said.append(Finding(str(problem)))
    except Exception:
        said.append(Finding(f"correct the check, which failed itself: {traceback.format_exc()}"))
    return name, said, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the sources without building them.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="run only these checks")
    parser.add_argument("--list", action="store_true", help="list the checks")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name:13} {function.__doc__}" for name, function in CHECKS.items()))
        return 0
    for name in options.names:
        if name not in CHECKS:
            parser.error(f"there is no check {name}: name one of {', '.join(CHECKS)}")
    # compile() turns a warning that is an error into a syntax error.
    for category in (DeprecationWarning, SyntaxWarning):
        warnings.simplefilter("error", category)
    failed = False
    names = list(dict.fromkeys(options.names)) or list(CHECKS)
    with ThreadPoolExecutor(len(names)) as pool:
        for future in as_completed(pool.submit(perform, name) for name in names):
            name, said, seconds = future.result()
            failing = any(isinstance(each, Finding) for each in said)
            print(f"FAILED {name}" if failing else f"ok  {name}  {seconds:.1f} s")
            for each in said:
                print(f"    note: {each}" if isinstance(each, Note) else f"    {each}", flush=True)
            failed = failed or failing
    return 1 if failed else 0
