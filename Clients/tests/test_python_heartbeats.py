# SPDX-License-Identifier: Apache-2.0
"""The heartbeats that both Python clients send for an app with a watchdog."""

import asyncio
import os
import socket
import threading
import time
import unittest
from typing import Any

from support import SupervisedTestCase

import torpor
import torpor.aio
from torpor import _session

BOUND = 60.0
#: What the app is given as its watchdog; heartbeats come twice as often.
WATCHDOG = 0.2


class HeartbeatTests(SupervisedTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(self.folder + "/notify")
        self.set_environment("NOTIFY_SOCKET", self.folder + "/notify")
        self.set_environment("WATCHDOG_USEC", str(round(WATCHDOG * 1e6)))
        self.set_environment("WATCHDOG_PID", str(os.getpid()))

    def beat(self, timeout: float = BOUND) -> bool:
        """Waits for a datagram; whether one came."""
        self.socket.settimeout(timeout)
        try:
            self.assertEqual(self.socket.recv(100), b"WATCHDOG=1")
        except (socket.timeout, BlockingIOError):
            return False
        return True

    def drain(self) -> None:
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(100)
        except BlockingIOError:
            pass

    def check(self, began: threading.Event, go: threading.Event) -> None:
        """They come, stop while a method blocks, and come again."""
        for _ in range(3):
            self.assertTrue(self.beat())
        number = self.supervisor.tell("didBecomeActive")
        self.assertTrue(began.wait(BOUND))
        self.drain()
        self.assertFalse(self.beat(WATCHDOG * 3))
        go.set()
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        for _ in range(3):
            self.assertTrue(self.beat())

    def blocking(self) -> Any:
        began, go = threading.Event(), threading.Event()

        class Blocking(torpor.Delegate):
            def did_become_active(self, message: torpor.Message) -> None:
                began.set()
                go.wait(BOUND)

        return Blocking(), began, go

    def test_threads(self) -> None:
        delegate, began, go = self.blocking()
        with torpor.App(delegate):
            self.check(began, go)
        self.drain()
        self.assertFalse(self.beat(WATCHDOG * 3))

    def test_asyncio(self) -> None:
        delegate, began, go = self.blocking()

        async def main() -> None:
            async with torpor.aio.App(delegate):
                await asyncio.to_thread(self.check, began, go)
            self.drain()

        asyncio.run(main())
        self.assertFalse(self.beat(WATCHDOG * 3))

    def test_asyncio_sends_them_while_a_coroutine_waits(self) -> None:
        class Waiting(torpor.Delegate):
            async def did_become_active(self, message: torpor.Message) -> None:
                began.set()
                await asyncio.to_thread(go.wait, BOUND)

        def check() -> None:
            self.supervisor.tell("didBecomeActive")
            self.assertTrue(began.wait(BOUND))
            self.drain()
            for _ in range(3):
                self.assertTrue(self.beat())
            go.set()

        began, go = threading.Event(), threading.Event()

        async def main() -> None:
            async with torpor.aio.App(Waiting()):
                await asyncio.to_thread(check)

        asyncio.run(main())

    def test_they_come_again_when_the_supervisor_is_back(self) -> None:
        with torpor.App(torpor.Delegate()):
            self.assertTrue(self.beat())
            os.unlink(self.folder + "/notify")
            self.socket.close()
            time.sleep(WATCHDOG)
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(self.socket.close)
            self.socket.bind(self.folder + "/notify")
            self.assertTrue(self.beat())

    def test_a_supervisor_that_reads_nothing_does_not_block_the_app(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        self.set_environment("WATCHDOG_USEC", "2000")
        with torpor.App(torpor.Delegate()):
            for _ in range(300):
                self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})

    def test_they_can_be_left_to_the_program(self) -> None:
        for make in (
            lambda: torpor.App(torpor.Delegate(), heartbeats=False), lambda: torpor.App(),
            lambda: torpor.aio.App(torpor.Delegate(), heartbeats=False), lambda: torpor.aio.App(),
        ):
            self.assertIsNone(make()._heartbeat_interval)
        self.assertEqual(torpor.App(torpor.Delegate())._heartbeat_interval, WATCHDOG / 2)

    def test_they_are_for_the_process_that_is_meant(self) -> None:
        for name, value, expected in [
            ("WATCHDOG_PID", str(os.getpid()), 0.1), ("WATCHDOG_PID", "", 0.1), ("WATCHDOG_PID", str(os.getpid() + 1), None),
            ("WATCHDOG_USEC", "30000000", 15.0), ("WATCHDOG_USEC", "0", None), ("WATCHDOG_USEC", "-5", None),
            ("WATCHDOG_USEC", "", None), ("WATCHDOG_USEC", "soon", None), ("WATCHDOG_USEC", "9" * 5000, None),
            ("NOTIFY_SOCKET", "", None),
        ]:
            with self.subTest(name=name, value=value[:20]):
                before = os.environ[name]
                os.environ[name] = value
                self.assertEqual(_session.heartbeat_interval(), expected)
                os.environ[name] = before


if __name__ == "__main__":
    unittest.main()
