# SPDX-License-Identifier: Apache-2.0
"""The files in git, and programs that inspect them."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALL = {
    "cc": "apt-get install gcc",
    "git": "apt-get install git",
    "shellcheck": "apt-get install shellcheck",
    "swift": "install the toolchain (swift.org/install) and put its usr/bin into PATH",
}


class Problem(Exception):
    """Why a check cannot run, as a sentence."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    if not shutil.which(command[0]):
        raise Problem(f"{command[0]} is missing: {INSTALL.get(command[0], 'install it')}")
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace")


def git(*arguments: str) -> str:
    result = run("git", *arguments)
    if result.returncode:
        raise Problem(f"git {' '.join(arguments)} failed, mend that first: {result.stderr.strip()}")
    return result.stdout


@functools.cache
def tracked() -> frozenset[str]:
    return frozenset(filter(None, git("ls-files", "-z").split("\0")))


@functools.cache
def files() -> list[str]:
    """Tracked files, and untracked ones that are not ignored; only existing files, no symlinks."""
    others = filter(None, git("ls-files", "-z", "--others", "--exclude-standard").split("\0"))
    found = sorted(tracked().union(others))
    return [name for name in found if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


@functools.cache
def folders() -> frozenset[str]:
    return frozenset(str(parent) for name in files() for parent in Path(name).parents) - {"."}


@functools.cache
def text(name: str) -> str:
    """The text of a file; empty for a binary file."""
    content = (ROOT / name).read_bytes()
    return "" if b"\0" in content else content.decode(errors="replace")


def ending(*suffixes: str) -> list[str]:
    return [name for name in files() if name.endswith(suffixes)]
