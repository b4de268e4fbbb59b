# SPDX-License-Identifier: Apache-2.0
"""What both Python clients answer where a method of the delegate raises."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
import unittest
from typing import Any, List

from support import CLIENTS, SupervisedTestCase

import torpor
import torpor.aio

BOUND = 60.0


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("it has no text")


class Refusal(torpor.TorporError):
    pass


#: Exceptions, and the sentence that the answer has.
RAISED: List[Any] = [
    (KeyError("x"), "KeyError: 'x'"),
    (OSError("The disk is full."), "OSError: The disk is full."),
    (asyncio.CancelledError(), "CancelledError"),
    (asyncio.CancelledError("by hand"), "CancelledError: by hand"),
    (ValueError(), "ValueError"),
    (Unspeakable(), "Unspeakable"),
    (Refusal("There is no desk of this name."), "There is no desk of this name."),
    (GeneratorExit(), "GeneratorExit"),
]


class Recorded(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.kinds: List[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0]:
            self.kinds.append(record.exc_info[0].__name__)


class FailureTests(SupervisedTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = Recorded()
        logger = logging.getLogger("torpor")
        before, logger.propagate = (logger.level, logger.propagate), False
        logger.setLevel(logging.INFO)
        logger.addHandler(self.log)
        self.addCleanup(logger.removeHandler, self.log)
        self.addCleanup(lambda: (logger.setLevel(before[0]), setattr(logger, "propagate", before[1])))

    def check_all(self) -> None:
        """Each is answered and logged, and the next message is heard."""
        for error, text in RAISED:
            with self.subTest(error=type(error).__name__):
                self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "failed", "text": text})
        self.assertEqual(self.log.kinds, [type(error).__name__ for error, _ in RAISED])
        self.assertEqual(self.supervisor.told("didEnterBackground"), {"result": "done"})

    def test_threads_answer_every_exception(self) -> None:
        raised = [error for error, _ in RAISED]

        class Failing(torpor.Delegate):
            def did_become_active(self, message: torpor.Message) -> None:
                raise raised.pop(0)

        with torpor.App(Failing()):
            self.check_all()

    def test_asyncio_answers_every_exception_of_a_function_and_of_a_coroutine(self) -> None:
        for is_coroutine in (False, True):
            raised = [error for error, _ in RAISED]

            class Failing(torpor.Delegate):
                def did_become_active(self, message: torpor.Message) -> Any:
                    if not is_coroutine:
                        raise raised.pop(0)
                    return self.fail()

                async def fail(self) -> None:
                    await asyncio.sleep(0)
                    raise raised.pop(0)

            async def main() -> None:
                async with torpor.aio.App(Failing()):
                    await asyncio.wait_for(asyncio.to_thread(self.check_all), BOUND * 2)

            with self.subTest(is_coroutine=is_coroutine):
                self.log.kinds.clear()
                asyncio.run(main())
            self.supervisor.stop()
            self.supervisor.messages, self.supervisor.sent, self.supervisor.answers = [], 0, {}
            self.supervisor.start()

    def test_a_task_that_was_cancelled_below_a_method_is_a_failure(self) -> None:
        class Waiting(torpor.Delegate):
            async def did_become_active(self, message: torpor.Message) -> None:
                work = asyncio.ensure_future(asyncio.sleep(BOUND))
                asyncio.get_running_loop().call_soon(work.cancel)
                await work

        async def main() -> None:
            async with torpor.aio.App(Waiting()):
                for _ in range(2):
                    answer = await asyncio.to_thread(self.supervisor.told, "didBecomeActive")
                    self.assertEqual(answer, {"result": "failed", "text": "CancelledError"})

        asyncio.run(main())

    def test_an_app_that_ends_cancels_the_method_and_does_not_answer_for_it(self) -> None:
        ended: List[str] = []

        class Waiting(torpor.Delegate):
            async def did_become_active(self, message: torpor.Message) -> None:
                began.set()
                try:
                    await asyncio.sleep(BOUND)
                finally:
                    ended.append("cancelled")

        began = threading.Event()

        async def main() -> None:
            async with torpor.aio.App(Waiting()):
                self.supervisor.tell("didBecomeActive")
                await asyncio.to_thread(began.wait, BOUND)

        asyncio.run(main())
        self.assertEqual((ended, self.supervisor.answers, self.log.kinds), (["cancelled"], {}, []))

    def test_a_loop_that_ends_before_the_app_takes_the_method_along(self) -> None:
        class Waiting(torpor.Delegate):
            async def did_become_active(self, message: torpor.Message) -> None:
                began.set()
                await asyncio.sleep(BOUND)

        began = threading.Event()

        async def main() -> None:
            app = torpor.aio.App(Waiting())
            await app.__aenter__()
            self.supervisor.tell("didBecomeActive")
            await asyncio.to_thread(began.wait, BOUND)

        asyncio.run(main())
        self.assertEqual(self.supervisor.answers, {})

    def program(self, run: str, *body: str) -> "subprocess.Popen[str]":
        text = "\n".join(["import asyncio, sys, threading, torpor, torpor.aio", "class D(torpor.Delegate):", *body, run])
        environment = {**os.environ, "PYTHONPATH": CLIENTS + "/python"}
        process = subprocess.Popen(
            [sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.kill)
        self.supervisor.wait_attached()
        return process

    RUNS = {
        "threads": "with torpor.App(D()): threading.Event().wait()",
        "run": "torpor.App(D()).run()",
        "asyncio": "async def main():\n    async with torpor.aio.App(D()): await asyncio.Event().wait()\nasyncio.run(main())",
    }

    @unittest.skipUnless(os.geteuid() == 0, "another user is needed")
    def test_a_process_that_has_changed_its_user_says_why_it_does_not_attach(self) -> None:
        os.chmod(self.supervisor.path, 0o600)
        for name, run in self.RUNS.items():
            body = [
                "    def problem(self, sentence): print(sentence, flush=True); os._exit(3)", "import os", "os.setuid(65534)"
            ]
            text = "\n".join(["import asyncio, sys, threading, torpor, torpor.aio", "class D(torpor.Delegate):", *body, run])
            result = subprocess.run(
                [sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": CLIENTS + "/python"},
                capture_output=True, text=True, timeout=BOUND,
            )
            self.assertEqual(result.returncode, 3, (name, result))
            self.assertIn("cannot be opened (Permission denied): this process is user 65534", result.stdout, name)
            self.assertIn(result.stdout, result.stderr, name)

    def test_sys_exit_is_answered_and_ends_the_program(self) -> None:
        for kind, run in self.RUNS.items():
            for word, status, answer in [
                ("", 0, {"result": "done"}),
                ("0", 0, {"result": "done"}),
                ("3", 3, {"result": "failed", "text": "SystemExit: 3"}),
                ("'no disk'", 1, {"result": "failed", "text": "SystemExit: no disk"}),
            ]:
                method = "async def" if kind == "asyncio" else "def"
                with self.subTest(kind=kind, word=word):
                    process = self.program(run, f"    {method} did_enter_background(self, message): sys.exit({word})")
                    number = self.supervisor.tell("didEnterBackground")
                    process.communicate(timeout=BOUND)
                    self.assertEqual((process.returncode, self.supervisor.answer(number)), (status, answer))
                self.again()

    def test_sys_exit_leaves_what_would_be_lost(self) -> None:
        """Mail and sessions of scenes are told again if they were not answered."""
        for kind, run in self.RUNS.items():
            for name, parameters in [
                ("didReceiveEvent", {"id": 7, "topic": "jobs"}), ("sceneWillConnect", {"scene": "a", "options": {}}),
            ]:
                with self.subTest(kind=kind, name=name):
                    body = "    def leave(self, message): sys.exit(3)"
                    process = self.program(run, body, "    did_receive_event = scene_will_connect = leave")
                    self.supervisor.tell(name, **parameters)
                    process.communicate(timeout=BOUND)
                    self.assertEqual((process.returncode, self.supervisor.answers), (3, {}))
                self.again()
            with self.subTest(kind=kind, status=0):
                process = self.program(run, "    def did_receive_event(self, message): sys.exit()")
                number = self.supervisor.tell("didReceiveEvent", id=7, topic="jobs")
                process.communicate(timeout=BOUND)
                self.assertEqual(self.supervisor.answer(number), {"result": "done"})
            self.again()

    def test_an_exit_of_a_signal_handler_answers_nothing(self) -> None:
        """It came in the middle of the method, whose message is told again in the next run."""
        handlers = {
            "lambda": "lambda *_: sys.exit(0)",
            "function": "handle",
            "method": "Handler().handle",
            "callable": "Handler()",
            "partial": "functools.partial(handle_for, 'all')",
            "once": "reset",
        }
        body = [
            "    def did_receive_event(self, message): self.wait()",
            "    def did_enter_background(self, message): self.wait()",
            "    def wait(self):",
            "        os.kill(os.getpid(), signal.SIGTERM)",
            "        for _ in range(200): time.sleep(0.05)",
            "import functools, os, signal, time",
            "def handle(number, frame): stop()",
            "def handle_for(whom, number, frame): stop()",
            "def reset(number, frame): signal.signal(number, signal.SIG_DFL); stop()",
            "def stop(): sys.exit()",
            "class Handler:",
            "    def handle(self, number, frame): del number, frame; stop()",
            "    def __call__(self, number, frame): stop()",
        ]
        for kind in ("run", "asyncio"):
            for name, handler in handlers.items():
                for message, parameters in [("didReceiveEvent", {"id": 7, "topic": "jobs"}), ("didEnterBackground", {})]:
                    if name != "lambda" and message == "didEnterBackground":
                        continue
                    with self.subTest(kind=kind, handler=name, message=message):
                        install = f"signal.signal(signal.SIGTERM, {handler})"
                        process = self.program(self.RUNS[kind], *body, install)
                        self.supervisor.tell(message, **parameters)
                        process.communicate(timeout=BOUND)
                        self.assertEqual((process.returncode, self.supervisor.answers), (0, {}))
                    self.again()

    def test_a_method_that_calls_the_handler_itself_ends_as_by_sys_exit(self) -> None:
        stop = ["import signal", "def stop(*_): sys.exit(0)", "signal.signal(signal.SIGTERM, stop)"]
        process = self.program(self.RUNS["run"], "    def did_receive_event(self, message): stop()", *stop)
        number = self.supervisor.tell("didReceiveEvent", id=7, topic="jobs")
        process.communicate(timeout=BOUND)
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})

    def test_sys_exit_does_not_wait_for_a_supervisor_that_takes_no_answer(self) -> None:
        for kind, run in self.RUNS.items():
            with self.subTest(kind=kind):
                self.supervisor.deaf.add("Answer")
                process = self.program(run, "    def did_enter_background(self, message): sys.exit(3)")
                self.supervisor.tell("didEnterBackground")
                process.communicate(timeout=BOUND)
                self.assertEqual(process.returncode, 3)
                self.supervisor.deaf.clear()
                self.again()

    def again(self) -> None:
        self.supervisor.stop()
        self.supervisor.messages, self.supervisor.sent, self.supervisor.answers = [], 0, {}
        self.supervisor.start()


if __name__ == "__main__":
    unittest.main()
