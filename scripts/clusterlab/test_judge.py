# SPDX-License-Identifier: Apache-2.0
"""The judge finds two owners, and finds none where there are none: python3 -m unittest discover scripts/clusterlab"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True

from clusterlab.judge import faults, outage  # noqa: E402

MS = 1_000_000


def lines(node: str, pid: int, what: str, times) -> str:
    return "".join(f"{node} {pid} {what} {time * MS}\n" for time in times)


class JudgeTests(unittest.TestCase):
    def test_moved(self) -> None:
        text = lines("north", 7, "work", range(0, 1000, 5)) + lines("south", 7, "work", range(1100, 2000, 5))
        self.assertEqual(faults("hot", text, False), [])
        self.assertEqual(outage(text, 0), (105.0, "north", "south"))

    def test_both(self) -> None:
        text = lines("north", 7, "work", range(0, 1000, 5)) + lines("south", 7, "work", range(900, 2000, 5))
        self.assertEqual(faults("hot", text, False), ["hot worked on north and on south for 95 ms"])

    def test_one_that_is_continued(self) -> None:
        """A process that was stopped, and works for a moment when it is continued, while another one works."""
        text = lines("north", 7, "work", [*range(0, 1000, 5), 3000]) + lines("south", 7, "work", range(1100, 4000, 5))
        self.assertEqual(len(faults("hot", text, False)), 1)

    def test_two_on_one_node(self) -> None:
        text = lines("north", 7, "work", range(0, 100, 5)) + lines("north", 8, "work", range(50, 200, 5))
        self.assertEqual(len(faults("hot", text, False)), 1)

    def test_a_standby_that_runs(self) -> None:
        owner = lines("north", 7, "work", range(0, 100_000, 20))
        self.assertEqual(faults("hot", owner + lines("south", 7, "idle", range(0, 900, 20)), False), [])
        late = lines("south", 7, "idle", [*range(0, 900, 20), 90_000])
        self.assertEqual(faults("hot", owner + late, False), ["hot ran on south 1 times although it stood by"])

    def test_a_plain_one_must_not_even_load(self) -> None:
        text = lines("north", 7, "work", range(0, 1000, 5)) + lines("south", 7, "load", [500])
        self.assertEqual(len(faults("cold", text, True)), 1)
        self.assertEqual(faults("hot", text, False), [])

    def test_a_pause_of_one_that_lives(self) -> None:
        """A node that is slow is silent for a while: that is an outage, and no second owner."""
        text = lines("north", 7, "work", [*range(0, 1000, 5), *range(1400, 2000, 5)])
        self.assertEqual(faults("hot", text, False), [])
        self.assertEqual(outage(text, 0), (405.0, "north", "north"))


if __name__ == "__main__":
    unittest.main()
