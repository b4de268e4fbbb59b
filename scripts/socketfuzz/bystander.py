# SPDX-License-Identifier: Apache-2.0
"""Runs as an app that must not be affected: records each signal that it gets."""

import os
import signal
import sys


def main() -> None:
    def heard(number: int, _: object) -> None:
        with open(sys.argv[1], "a", encoding="ascii") as file:
            file.write(f"{number}\n")

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, heard)
    # Runs handlers of signals that have already arrived: they would wait until pause() returns.
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with open(sys.argv[1], "x", encoding="ascii"):
        pass
    while True:
        signal.pause()


if __name__ == "__main__":
    os.umask(0o22)
    main()
