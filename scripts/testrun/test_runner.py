# SPDX-License-Identifier: Apache-2.0
"""Tests scripts/run-tests: each way in which a test can fail makes the run red, or the test FLAKY.

    python3 -m unittest discover -s scripts -p 'test_*.py'
"""

import os
import subprocess
import tempfile
import time
import unittest

FOLDER = os.path.dirname(os.path.realpath(__file__))


class RunnerTests(unittest.TestCase):
    def run_tests(self, names: str, *options: str) -> tuple[int, str]:
        """Runs the runner with a fake bundle; returns its exit status and output."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            self.pid = 0
            run = subprocess.run(
                [os.path.join(FOLDER, "../run-tests"), "--program", os.path.join(FOLDER, "fake_bundle.py"),
                 "--output", folder, "--jobs", "2", *options],
                env={**os.environ, "FAKE_TESTS": names, "FAKE_STATE": folder},
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            if os.path.exists(folder + "/pid"):
                with open(folder + "/pid", encoding="utf-8") as file:
                    self.pid = int(file.read())
            return run.returncode, run.stdout + run.stderr

    def closing(self, text: str) -> str:
        return next(line for line in text.splitlines() if line.endswith(" skipped"))

    def test_all_pass(self) -> None:
        code, text = self.run_tests("A.S/one() A.S/two() B.T/three()")
        self.assertEqual((code, self.closing(text)), (0, "3 passed, 0 failed, 0 skipped"), text)

    def test_one_fails(self) -> None:
        code, text = self.run_tests("A.S/one() A.S/fails()")
        self.assertEqual((code, self.closing(text)), (1, "1 passed, 1 failed, 0 skipped"), text)
        self.assertIn("✘ A.S/fails(): failed, and 5 of 5 times again, alone: it is not so", text)

    def test_suite_fails(self) -> None:
        code, text = self.run_tests("A.S/one() A.S/inSuite()")
        self.assertEqual(code, 1, text)
        self.assertIn("A.S: the suite is not so", text)

    def test_one_is_flaky(self) -> None:
        code, text = self.run_tests("A.S/one() A.S/once()")
        self.assertEqual((code, self.closing(text)), (0, "2 passed, 0 failed, 0 skipped"), text)
        self.assertIn("FLAKY: A.S/once(): failed once, then passed 5 times alone: it is not so", text)

    def test_thread_of_a_test_fails(self) -> None:
        code, text = self.run_tests("A.S/one() A.S/thread() A.S/two()")
        self.assertEqual((code, self.closing(text)), (0, "3 passed, 0 failed, 0 skipped"), text)
        self.assertIn("FLAKY: A.S/thread(): failed once, then passed 5 times alone: a thread says", text)

    def test_four_are_flaky(self) -> None:
        code, text = self.run_tests(" ".join(f"A.S/once{n}()" for n in range(4)))
        self.assertEqual(code, 1, text)
        self.assertIn("4 tests are flaky", text)

    def test_one_hangs(self) -> None:
        code, text = self.run_tests("A.S/hangs() A.S/two() B.T/three()", "--hang", "1")
        self.assertEqual(code, 1, text)
        self.assertIn("nothing was heard for 1 s in A.S/hangs()", text)
        self.assertIn("A.S/two(): did not run, since its process had ended", text)
        self.assertIn("== ", text, "no stack is shown")

    def test_one_dies(self) -> None:
        code, text = self.run_tests("A.S/dies() A.S/two() B.T/three()")
        self.assertEqual((code, self.closing(text)), (1, "1 passed, 2 failed, 0 skipped"), text)
        self.assertIn("the process died of SIGSEGV in A.S/dies()", text)

    def test_skipped_suite_hides_nobody(self) -> None:
        code, text = self.run_tests("A.Skipped/one() A.Skipped/two() A.SkippedOnce/lost() A.S/three()")
        self.assertEqual((code, self.closing(text)), (1, "1 passed, 1 failed, 2 skipped"), text)
        self.assertIn("A.SkippedOnce/lost(): did not run, since its process had ended", text)

    def test_rest_is_left(self) -> None:
        for name, sentence in (("leavesProcess", "a process was left behind"), ("leavesFile", "left behind in the temporary")):
            with self.subTest(name):
                code, text = self.run_tests(f"A.S/{name}()")
                self.assertEqual(code, 1, text)
                self.assertIn(sentence, text)

    def test_backtrace_is_ended(self) -> None:
        code, text = self.run_tests("A.S/leavesBacktrace()")
        self.assertEqual((code, self.closing(text)), (0, "1 passed, 0 failed, 0 skipped"), text)
        end = time.monotonic() + 30
        while self.lives(self.pid) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(self.lives(self.pid))

    def lives(self, pid: int) -> bool:
        """Whether the process runs: one that has ended may still be a zombie."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def test_no_such_test(self) -> None:
        code, text = self.run_tests("A.S/one()", "nothing")
        self.assertEqual((code, "no test fits nothing" in text), (1, True), text)
        code, text = self.run_tests("A.S/one()", "(")
        self.assertEqual((code, "is no regular expression" in text), (2, True), text)

    def test_not_built(self) -> None:
        code, text = self.run_tests("A.S/one()", "--program", "/nowhere/bundle")
        self.assertEqual((code, text), (1, "✘ /nowhere/bundle is not there: build it first (make build, or without --no-build)\n"))

    def test_part_of_a_suite(self) -> None:
        code, text = self.run_tests("A.S/one() A.S/fails()", "one")
        self.assertEqual((code, self.closing(text)), (0, "1 passed, 0 failed, 0 skipped"), text)


if __name__ == "__main__":
    unittest.main()
