# SPDX-License-Identifier: Apache-2.0
"""Reads /proc about processes."""

import os


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, beginning with the state; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def identity(pid: int) -> tuple[int, str]:
    """The pid and start time; the time is empty if the process is gone or a zombie."""
    fields = stat(pid)
    return (pid, fields[19] if fields and fields[0] not in "ZX" else "")


def parent(pid: int) -> int:
    fields = stat(pid)
    return int(fields[1]) if fields else 0


def descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def descriptor_names(pid: int) -> list[str]:
    """The targets of its open descriptors."""
    found: list[str] = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        pass
    return sorted(found)


def status(pid: int, field: str) -> int:
    """A number in /proc/PID/status: VmRSS in KiB, Threads."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def schedule(tid: int) -> tuple[float, float]:
    """Seconds that a thread ran, and seconds that it was runnable but waited for a CPU (schedstat)."""
    try:
        with open(f"/proc/{tid}/schedstat", encoding="ascii") as file:
            ran, waited, _ = file.read().split()
            return int(ran) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0


def waited(tid: int) -> float:
    """Seconds that a thread was runnable but waited for a CPU; 0 if the kernel does not report it."""
    return schedule(tid)[1]


def marked(mark: str) -> list[int]:
    """Processes with a variable in their environment."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(name))
            except OSError:
                pass
    return found
