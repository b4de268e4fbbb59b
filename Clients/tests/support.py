# SPDX-License-Identifier: Apache-2.0
"""What the tests of all client libraries use."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from fake_supervisor import FakeSupervisor

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(CLIENTS, "python"))


class SupervisedTestCase(unittest.TestCase):
    """With a supervisor of its own in a folder of its own, which the environment names."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="tc-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.supervisor = FakeSupervisor(self.folder + "/app")
        self.addCleanup(lambda: self.supervisor.listener and self.supervisor.stop())
        self.set_environment("TORPOR_APP_SOCKET", self.folder + "/app")
        self.set_environment("TORPOR_STATE_DIRECTORY", self.folder)

    def set_environment(self, name: str, value: str) -> None:
        before = os.environ.get(name)
        os.environ[name] = value
        if before is None:
            self.addCleanup(os.environ.pop, name, None)
        else:
            self.addCleanup(os.environ.__setitem__, name, before)


def build_c(folder: str, name: str, *sources: str) -> str:
    """Compiles a test program with the library, where every wrong access ends it."""
    program = os.path.join(folder, name)
    library = os.path.join(CLIENTS, "c")
    command = (
        ["cc", "-std=c99", "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
        + ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
        + [os.path.join(library, "tests", source) for source in sources]
        + [os.path.join(library, "torpor_app.c"), "-o", program, "-pthread"]
    )
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if result.returncode:
        raise AssertionError(result.stderr)
    return program
