# SPDX-License-Identifier: Apache-2.0
"""Started by torpor-keeper instead of torpord: passes its socket to scripts/fuzz-sockets, and exits as told.

    stand_in SOCKET [TORPORD'S ARGUMENTS]
"""

import array
import os
import signal
import socket
import sys


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(sys.argv[1])
    end = int(os.environ["TORPOR_KEEPER_FD"])
    driver.sendmsg([str(os.getpid()).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [end]))])
    os.close(end)
    sys.exit(int(driver.recv(16) or b"99"))


if __name__ == "__main__":
    main()
