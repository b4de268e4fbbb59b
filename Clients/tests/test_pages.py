# SPDX-License-Identifier: Apache-2.0
"""The programs in docs/apps.md do what the page says."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
from typing import List

from support import CLIENTS, SupervisedTestCase

BOUND = 60.0
#: What the program in C leaves out.
AROUND = """
#include "torpor_app.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
struct notes { int listener; char *text; size_t size; };
static volatile sig_atomic_t is_terminated;
bool read_notes(struct notes *notes, const char *text, size_t size);
int listen_on(int port);
void serve(torpor_app *app, struct notes *notes);
"""


def blocks(language: str, heading: str) -> List[str]:
    with open(os.path.join(os.path.dirname(CLIENTS), "docs/apps.md")) as file:
        section = file.read().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


class PageTests(SupervisedTestCase):
    def test_the_program_in_python_keeps_its_notes(self) -> None:
        # A loopback address of this process's own: nobody else listens there.
        pid = os.getpid()
        address = f"127.{64 + (pid >> 16) % 64}.{pid >> 8 & 255}.{pid & 255 or 1}"
        program, = blocks("python", "Python")
        self.assertIn('"127.0.0.1", 7070', program)
        environment = {**os.environ, "PYTHONPATH": CLIENTS + "/python"}
        # Who runs the tests may block the signal, and programs inherit that.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        process = subprocess.Popen(
            [sys.executable, "-c", program.replace("127.0.0.1", address)], env=environment, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.kill)
        with open(self.folder + "/saved", "w") as file:
            file.write('["milk"]')
        self.supervisor.told("willFinishLaunching")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection((address, 7070))
        self.supervisor.told("restoreState", path=self.folder + "/saved")
        self.assertEqual(self.supervisor.told("didFinishLaunching"), {"result": "done"})
        with socket.create_connection((address, 7070), BOUND) as client:
            client.sendall(b"tea\n")
            self.assertEqual(client.makefile().read(), "2\n")
        self.assertEqual(self.supervisor.told("didEnterBackground"), {"result": "done"})
        self.assertEqual(self.supervisor.archive, b'["milk", "tea"]')
        # At a shutdown, an app in the foreground is told no other message.
        self.supervisor.told("didBecomeActive")
        with socket.create_connection((address, 7070), BOUND) as client:
            client.sendall(b"rice\n")
            self.assertEqual(client.makefile().read(), "3\n")
        self.assertEqual(self.supervisor.told("willTerminate", reason="shutdown"), {"result": "done"})
        self.assertEqual(self.supervisor.archive, b'["milk", "tea", "rice"]')
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.communicate(timeout=BOUND)[1], "")
        self.assertEqual(process.returncode, 0)

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_the_program_in_c_compiles(self) -> None:
        program, = blocks("c", "C")
        with open(self.folder + "/page.c", "w") as file:
            file.write(AROUND + program)
        result = subprocess.run(
            ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
            + ["-I" + CLIENTS + "/c", "-c", self.folder + "/page.c", "-o", self.folder + "/page.o"],
            capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
