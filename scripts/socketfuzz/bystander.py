# SPDX-License-Identifier: Apache-2.0
"""Run as an app that nothing may touch: writes down each signal that it gets."""

import os
import signal
import sys


def main() -> None:
    def heard(number: int, _: object) -> None:
        with open(sys.argv[1], "a", encoding="ascii") as file:
            file.write(f"{number}\n")

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, heard)
    # Signals that came in the moment before would wait in a pause.
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with open(sys.argv[1], "x", encoding="ascii"):
        pass
    while True:
        signal.pause()


if __name__ == "__main__":
    os.umask(0o22)
    main()
