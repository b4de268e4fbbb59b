# SPDX-License-Identifier: Apache-2.0
"""torpor.App: the Python library with threads."""

import datetime
import logging
import os
import random
import re
import subprocess
import sys
import threading
import time
import unittest
import warnings
from typing import Any, Callable, Dict, List, Optional

from support import CLIENTS, SupervisedTestCase

import torpor

BOUND = 10.0
logging.getLogger("torpor").setLevel(logging.CRITICAL)


class Recorder(torpor.Delegate):
    def __init__(self) -> None:
        self.heard: List[torpor.Message] = []
        self.situations: List[torpor.Situation] = []
        self.problems: List[str] = []
        self.on: Dict[str, Callable[[torpor.Message], Any]] = {}
        self.changed = threading.Condition()

    def attached(self, situation: torpor.Situation) -> None:
        self.situations.append(situation)

    def problem(self, sentence: str) -> None:
        with self.changed:
            self.problems.append(sentence)
            self.changed.notify_all()

    def hear(self, message: torpor.Message) -> Any:
        with self.changed:
            self.heard.append(message)
            self.changed.notify_all()
        action = self.on.get(message.name)
        return action(message) if action else None

    will_finish_launching = restore_state = did_finish_launching = open_url = did_become_active = hear
    will_resign_active = did_enter_background = will_enter_foreground = resumed = task_expiring = hear
    did_receive_memory_warning = settings_did_change = perform_fetch = will_terminate = other = hear

    @property
    def names(self) -> List[str]:
        return [message.name for message in self.heard]

    def wait(self, condition: Callable[[], Any]) -> None:
        with self.changed:
            if not self.changed.wait_for(condition, BOUND):
                raise AssertionError(f"in vain: {self.names} {self.problems}")


class ThreadsTests(SupervisedTestCase):
    def app(self, delegate: Optional[torpor.Delegate]) -> torpor.App:
        app = torpor.App(delegate)
        app.start()
        self.addCleanup(app.close)
        return app

    def test_every_message_has_its_method(self) -> None:
        recorder = Recorder()
        self.app(recorder)
        names = ["willFinishLaunching", "restoreState", "didFinishLaunching", "openURL", "didBecomeActive"]
        names += ["willResignActive", "didEnterBackground", "willEnterForeground", "resumed", "taskExpiring"]
        names += ["didReceiveMemoryWarning", "settingsDidChange", "willTerminate", "unheardOf"]
        names += ["handleEventsForBackgroundTransfer", "transferDidFinish", "transferNeedsLogin"]
        names += ["didReceiveLocalNotification"]
        for name in names:
            self.assertEqual(self.supervisor.told(name), {"result": "done"})
        self.assertEqual(recorder.names, names)
        self.assertEqual(recorder.situations[0].options, {"reason": "test"})

    def test_an_app_is_started_once(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        for again in (app.run, app.start, app.__enter__):
            with self.assertRaisesRegex(RuntimeError, "was started already"):
                again()
        self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
        self.assertEqual(recorder.names, ["didBecomeActive"])

    def test_what_was_posted_has_its_method(self) -> None:
        heard: List[Any] = []

        class Mail(torpor.Delegate):
            def did_receive_event(self, message: torpor.Message) -> None:
                heard.append((message.topic, message.payload))

            def other(self, message: torpor.Message) -> None:
                heard.append(message.name)

        self.app(Mail())
        self.supervisor.told("didReceiveEvent", topic="jobs", payload=[1])
        self.supervisor.told("didReceiveNotification", topic="power")
        self.assertEqual(heard, [("jobs", [1]), "didReceiveNotification"])

    def test_what_nobody_has_a_method_for_is_unhandled(self) -> None:
        self.app(torpor.Delegate())
        for name in ["didReceiveEvent", "didReceiveNotification", "didReceiveRemoteNotification", "openURL", "continueActivity",
                     "unheardOf"]:
            self.assertEqual(self.supervisor.told(name, topic="jobs"), {"result": "unhandled"}, name)
        for name in ["settingsDidChange", "refresh", "willContinueActivity", "activityWasContinued", "significantTimeChange",
                     "didBecomeActive", "didReceiveMemoryWarning",
                     "handleEventsForBackgroundTransfer", "transferDidFinish", "transferNeedsLogin",
                     "didReceiveLocalNotification"]:
            self.assertEqual(self.supervisor.told(name), {"result": "done"}, name)

    def test_a_method_with_other_parameters_warns_and_loses_no_mail(self) -> None:
        class Notes(torpor.Delegate):
            def did_receive_event(self, topic: str, payload: Any) -> None:  # type: ignore[override]
                pass

            def open_url(self) -> None:  # type: ignore[override]
                pass

            def did_enter_background(self) -> None:  # type: ignore[override]
                pass

            def did_become_active(self, message: Any, more: int = 0, *rest: Any, **named: Any) -> None:
                pass

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.app(Notes())
        said = sorted(str(warning.message).split("Notes.")[-1] for warning in caught)
        self.assertEqual([sentence.split("(")[0] for sentence in said], ["did_enter_background", "did_receive_event", "open_url"])
        self.assertTrue(all("it must take one argument, the message, besides self" in sentence for sentence in said), said)
        self.assertEqual(self.supervisor.told("didReceiveEvent", topic="jobs"), {"result": "unhandled"})
        self.assertEqual(self.supervisor.told("openURL", url="x:"), {"result": "unhandled"})
        # It must not say that the state was saved.
        self.assertEqual(self.supervisor.told("didEnterBackground")["result"], "failed")
        self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})

    def test_a_method_says_that_it_does_not_handle_it(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        recorder.on = {
            "didReceiveEvent": lambda message: torpor.UNHANDLED if message.topic == "jobs" else None,
            "didReceiveNotification": lambda message: torpor.LATER,
        }
        self.assertEqual(self.supervisor.told("didReceiveEvent", topic="jobs"), {"result": "unhandled"})
        self.assertEqual(self.supervisor.told("didReceiveEvent", topic="news"), {"result": "done"})
        number = self.supervisor.tell("didReceiveNotification")
        recorder.wait(lambda: "didReceiveNotification" in recorder.names)
        with self.assertRaises(ValueError):
            app.answer(recorder.heard[-1], "It failed.", unhandled=True)
        app.answer(recorder.heard[-1], unhandled=True)
        self.assertEqual(self.supervisor.answer(number), {"result": "unhandled"})

    def test_a_supervisor_that_does_not_know_the_word_is_told_done(self) -> None:
        recorder = Recorder()
        self.app(recorder)
        recorder.on = {"didReceiveEvent": lambda message: torpor.UNHANDLED}
        self.supervisor.results.remove("unhandled")
        for _ in range(2):
            self.assertEqual(self.supervisor.told("didReceiveEvent", topic="jobs"), {"result": "done"})
        self.assertEqual(self.supervisor.count("Answer"), 4)
        self.assertEqual(recorder.problems, [])

    def test_what_belongs_to_a_message_has_its_type(self) -> None:
        message = lambda **parameters: torpor.Message(1, "x", None, parameters)  # noqa: E731
        self.assertEqual([message(level=level).level for level in ("critical", "limit", "new", 4)],
                         ["critical", "limit", "warning", "warning"])
        self.assertEqual(message().level, "warning")
        settings = message(payload={"changed": ["port", 4, "theme"]}, count=2, first_at=1_500_000, last_at="x", id=7)
        self.assertEqual((settings.changed, settings.path, settings.count, settings.mail_id), (["port", "theme"], None, 2, 7))
        self.assertEqual(settings.first_at and settings.first_at.isoformat(), "1970-01-01T00:00:01.500000+00:00")
        self.assertIsNone(settings.last_at)
        self.assertIsNone(message(first_at=1 << 62).first_at)
        file = message(payload={"path": "/etc/web.conf", "changed": "port"})
        self.assertEqual((file.changed, file.path), ([], "/etc/web.conf"))
        clock = message(payload={"clock": True, "time_zone": "Europe/Berlin", "utc_offset_s": 3600, "day": "2026-11-23"})
        self.assertEqual((clock.clock_was_set, clock.time_zone, clock.utc_offset, clock.day),
                         (True, "Europe/Berlin", 3600, "2026-11-23"))
        for payload in (None, [], "text", {"clock": 1, "time_zone": 4, "utc_offset_s": "1", "day": [], "path": 5}):
            clock = message(payload=payload)
            self.assertEqual((clock.clock_was_set, clock.time_zone, clock.utc_offset, clock.day), (False, None, None, None))
            self.assertEqual((clock.changed, clock.path), ([], None))
        over = message(transfer=4, session="mine", url="http://h/a", path="/data/a", error="It is not there.")
        self.assertEqual((over.transfer, over.session, over.url, over.path, over.error),
                         (4, "mine", "http://h/a", "/data/a", "It is not there."))
        self.assertEqual((message().transfer, message().session, message().url, message().error), (0, None, None, None))
        self.assertEqual((message(transfer="4").transfer, message(session=4).session, message(error=[]).error),
                         (0, None, None))
        alert = message(alert="tea", scheduled_at=1_500_000, payload={"a": 1}, action="later", activation_token="t")
        self.assertEqual((alert.alert, alert.payload, alert.action, alert.activation_token), ("tea", {"a": 1}, "later", "t"))
        self.assertEqual(alert.scheduled_at and alert.scheduled_at.second, 1)
        self.assertEqual((message().alert, message(action=4).action, message().scheduled_at), (None, None, None))
        task = message(token=3, name="upload", remaining_ms=1500)
        self.assertEqual((task.token, task.task, task.remaining), (3, "upload", 1.5))
        self.assertEqual((message().token, message().task, message().remaining), (0, None, None))

    def test_a_wrong_word_or_result_is_a_sentence(self) -> None:
        recorder = Recorder()
        self.app(recorder)
        recorder.on = {
            "willFinishLaunching": lambda message: message.decline("snapshots"),  # type: ignore[arg-type]
            "performFetch": lambda message: message.fetched("new"),  # type: ignore[arg-type]
            "openURL": lambda message: "failed",
            "didEnterBackground": lambda message: message.app.save_state({}),
        }
        for name, part in [
            ("willFinishLaunching", "decline('snapshots'): it takes \"url\", \"restoration\", \"snapshot\""),
            ("performFetch", "fetched('new'): it takes"), ("openURL", "returned 'failed'"),
            ("didEnterBackground", "bytes, not dict"),
        ]:
            answer = self.supervisor.told(name)
            self.assertEqual(answer["result"], "failed")
            self.assertIn(part, answer["text"])

    def program(self, *lines: str) -> "subprocess.Popen[str]":
        """A process with an app, the supervisor's delegate."""
        text = "\n".join(["import os, sys, threading, torpor", *lines])
        environment = {**os.environ, "PYTHONPATH": CLIENTS + "/python"}
        process = subprocess.Popen(
            [sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.kill)
        self.supervisor.wait_attached()
        return process

    def test_exit_in_a_method_ends_the_program_with_its_status(self) -> None:
        threads = "with torpor.App(D()): threading.Event().wait()"
        for raised, run, status, part in [
            ("sys.exit(3)", threads, 3, "SystemExit: 3"), ("sys.exit()", threads, 0, ""),
            ("sys.exit('no disk')", threads, 1, "no disk"), ("raise KeyboardInterrupt", threads, 130, "Traceback"),
            ("sys.exit(3)", "torpor.App(D()).run()", 3, ""),
        ]:
            with self.subTest(raised=raised, run=run):
                body = f"    def will_terminate(self, message): print('ending'); {raised}"
                process = self.program("class D(torpor.Delegate):", body, run)
                number = self.supervisor.tell("willTerminate")
                out, err = process.communicate(timeout=BOUND)
                self.assertEqual((process.returncode, out), (status, "ending\n"))
                self.assertIn(part, err)
                answer = self.supervisor.answer(number)
                self.assertEqual(answer["result"], "failed" if status else "done")
                self.assertEqual(answer.get("text", "")[:11], {0: "", 130: "KeyboardInt"}.get(status, "SystemExit:"))
                self.supervisor.stop()
                self.supervisor.messages, self.supervisor.sent, self.supervisor.answers = [], 0, {}
                self.supervisor.start()

    def test_a_forked_child_is_told_to_make_an_app_of_its_own(self) -> None:
        process = self.program(
            "app = torpor.App(torpor.Delegate())",
            "with app, app.background_task('whole'):",
            "    if os.fork() == 0:",
            "        try:",
            "            app.background_task('child')",
            "        except torpor.TorporError as error:",
            "            print(error, flush=True)",
            "        with torpor.App() as own:",
            "            print(own.situation().app, flush=True)",
            "        sys.exit()",
            "    os.wait()",
            "    print(app.situation().tasks, flush=True)",
        )
        out, err = process.communicate(timeout=BOUND)
        self.assertEqual(err, "")
        first, own, tasks = out.splitlines()
        self.assertIn(f"belongs to process {process.pid}, from which this one was forked", first)
        self.assertEqual((own, tasks), ("fake", "{1: 'whole'}"))
        self.assertEqual(self.supervisor.count("Attach"), 1)

    def test_a_second_app_with_a_delegate_is_told_so(self) -> None:
        first, second = Recorder(), Recorder()
        app = self.app(first)
        self.supervisor.wait_attached()
        self.app(second)
        second.wait(lambda: second.problems)
        self.assertIn("gets no messages while the app has another delegate", second.problems[0])
        self.supervisor.told("didBecomeActive")
        self.assertEqual((first.names, second.names), (["didBecomeActive"], []))
        app.close()
        second.wait(lambda: second.situations)

    def test_a_delegate_that_overrides_nothing_answers(self) -> None:
        self.app(torpor.Delegate())
        self.assertEqual(self.supervisor.told("didEnterBackground"), {"result": "done"})

    def test_failed_declined_and_later_answers(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)

        def fails(message: torpor.Message) -> None:
            raise OSError("The disk is full.")

        recorder.on = {
            "willFinishLaunching": lambda message: message.decline("restoration", "url"),
            "openURL": fails,
            "didEnterBackground": lambda message: torpor.LATER,
            "performFetch": lambda message: message.fetched("new-data"),
        }
        self.assertEqual(self.supervisor.told("performFetch"), {"result": "done", "fetch": "new-data"})
        self.assertEqual(
            self.supervisor.told("willFinishLaunching"), {"result": "done", "declines": ["restoration", "url"]}
        )
        self.assertEqual(self.supervisor.told("openURL"), {"result": "failed", "text": "OSError: The disk is full."})
        number = self.supervisor.tell("didEnterBackground")
        recorder.wait(lambda: "didEnterBackground" in recorder.names)
        app.pending(recorder.heard[-1], 2.5, "It takes \udcff.")
        self.supervisor.wait_until(lambda: self.supervisor.pending, "it asks for time")
        self.assertEqual(
            self.supervisor.pending, [{"result": "pending", "text": "It takes ?.", "expected_ms": 2500}]
        )
        with self.assertRaisesRegex(TypeError, "pending takes the seconds .* such as 20, and not '20s'"):
            app.pending(recorder.heard[-1], "20s")  # type: ignore[arg-type]
        app.answer(recorder.heard[-1], failed="no")
        self.assertEqual(self.supervisor.answer(number), {"result": "failed", "text": "no"})
        with self.assertRaises(torpor.NotInFlight):
            app.answer(torpor.Message(99, "x", None, {}))

    def test_tasks_are_scoped_and_expire(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        self.supervisor.remaining = 1500
        expired = []
        with app.background_task("upload", on_expiry=lambda: expired.append(1)) as task:
            self.assertEqual([name for name, _ in self.supervisor.tasks.values()], ["upload"])
            self.assertEqual(app.background_time(), 1.5)
            self.assertFalse(task.expired)
            self.supervisor.told("taskExpiring", token=task.token, name="upload", remaining_ms=10)
            self.assertTrue(task.wait_for_expiry(BOUND))
        self.assertEqual(expired, [1])
        self.assertEqual(self.supervisor.tasks, {})
        self.supervisor.remaining = None
        self.assertIsNone(app.background_time())
        with self.assertRaises(ZeroDivisionError), app.background_task("b"):
            1 / 0
        self.assertEqual(self.supervisor.tasks, {})
        app.background_task("c")
        app.close()
        self.supervisor.wait_until(lambda: not self.supervisor.tasks, "the task ends with the app")

    def test_a_task_in_a_method_expires_though_task_expiring_waits_behind_it(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        self.supervisor.remaining = 60_000
        expired: List[str] = []

        def work(message: torpor.Message) -> None:
            with app.background_task("upload", on_expiry=lambda: expired.append("upload")) as task:
                self.assertFalse(task.expired)
                self.supervisor.remaining = 1_900
                # The supervisor sends this one when the message is answered.
                self.supervisor.tell("taskExpiring", token=task.token, name="upload", remaining_ms=1_900)
                expired.append(str(task.wait_for_expiry(BOUND)))

        recorder.on["didReceiveEvent"] = work
        self.assertEqual(self.supervisor.told("didReceiveEvent", topic="jobs"), {"result": "done"})
        self.supervisor.wait_until(lambda: 2 in self.supervisor.answers, "taskExpiring is answered")
        self.assertEqual(sorted(expired), ["True", "upload"])

    def test_a_task_expires_while_a_message_is_to_be_answered_later(self) -> None:
        recorder = Recorder()
        recorder.on["didEnterBackground"] = lambda message: torpor.LATER
        app = self.app(recorder)
        self.supervisor.remaining = 60_000
        number = self.supervisor.tell("didEnterBackground")
        recorder.wait(lambda: recorder.heard)
        with app.background_task("upload") as task:
            self.supervisor.remaining = 0
            self.assertTrue(task.wait_for_expiry(BOUND))
        app.answer(recorder.heard[0])
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})

    def test_without_an_unanswered_message_the_time_is_left_to_the_supervisor(self) -> None:
        app = self.app(Recorder())
        self.supervisor.remaining = 0
        with app.background_task("upload") as task:
            self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
            calls = self.supervisor.count("BackgroundTime")
            self.assertLessEqual(calls, 1)
            self.supervisor.told("taskExpiring", token=task.token, name="upload", remaining_ms=0)
            self.assertTrue(task.expired)

    def test_a_task_of_a_worker_expires(self) -> None:
        app = self.app(None)
        self.supervisor.remaining = 60_000
        # As of a supervisor that does not say when it warns.
        self.supervisor.expiry_warning = None
        with app.background_task("resize") as task:
            self.supervisor.wait_until(lambda: self.supervisor.count("BackgroundTime"), "the time is asked")
            self.assertFalse(task.expired)
            self.supervisor.remaining = 4_900
            self.assertTrue(task.wait_for_expiry(BOUND))

    def test_a_child_keeps_no_connection_of_a_process_that_ends(self) -> None:
        """Nobody else could be the delegate, and tasks would last."""
        kinds = {"threads": "torpor.App(D()).run()"}
        kinds["asyncio"] = (
            "async def main():\n    async with torpor.aio.App(D()): await asyncio.Event().wait()\nasyncio.run(main())"
        )
        for kind, run in kinds.items():
            word = "await " if kind == "asyncio" else ""
            body = [
                "import asyncio, os, sys, torpor, torpor.aio", "class D(torpor.Delegate):",
                f"    {'async ' if word else ''}def did_become_active(self, message):",
                "        task = message.app.background_task('copy')",
                f"        {'await task.__aenter__()' if word else ''}",
                "        if os.fork() == 0: sys.stdin.read(); os._exit(0)",
                "    def did_enter_background(self, message): os._exit(0)", run,
            ]
            with self.subTest(kind=kind):
                program = subprocess.Popen(
                    [sys.executable, "-c", "\n".join(body)], env={**os.environ, "PYTHONPATH": CLIENTS + "/python"},
                    stdin=subprocess.PIPE,
                )
                self.addCleanup(program.kill)
                self.addCleanup(program.stdin.close)
                self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
                self.assertEqual(len(self.supervisor.tasks), 1)
                self.supervisor.tell("didEnterBackground")
                self.assertEqual(program.wait(BOUND), 0)
                self.supervisor.wait_until(lambda: not self.supervisor.connections, "all connections are closed")
                self.assertEqual(self.supervisor.tasks, {})
            self.supervisor.stop()
            self.supervisor.messages, self.supervisor.sent, self.supervisor.answers = [], 0, {}
            self.supervisor.start()

    def test_states_are_saved_restored_and_discarded(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        for data in (b"", b"a", bytes(range(256)) * 1536, bytes(range(256)) * 1537, b"x" * (3 << 20)):
            app.save_state(data)
            self.assertEqual(self.supervisor.archive, data)
        self.supervisor.limit = 2
        with self.assertRaises(torpor.TooLarge) as raised:
            app.save_state(b"xyz")
        self.assertEqual(raised.exception.limit, 2)
        with open(self.folder + "/mine", "w") as file:
            file.write("ab")
        app.save_state_file("mine")
        states = []
        recorder.on["restoreState"] = lambda message: states.append(message.read_state())
        self.supervisor.told("restoreState", path=self.folder + "/mine", bytes=2)
        self.assertEqual(states, [b"ab"])
        app.discard_state()
        self.assertIsNone(self.supervisor.archive)
        self.assertEqual(app.situation().app, "fake")

    def test_other_apps_open_urls(self) -> None:
        app = self.app(Recorder())
        self.assertEqual([app.open_url("notes:ä"), app.open_url("notes:2")], ["notes", "notes"])
        self.assertEqual([url for url, _ in self.supervisor.opened], ["notes:ä", "notes:2"])
        self.assertEqual(len({token for _, token in self.supervisor.opened}), 2)
        with self.assertRaisesRegex(torpor.NoHandler, "no app opens x:"):
            app.open_url("x:")
        self.assertEqual([app.can_open("notes"), app.can_open("none")], [True, False])
        with self.assertRaises(torpor.NotPermitted):
            app.can_open("secret")

    def test_other_apps_get_messages(self) -> None:
        app = self.app(Recorder())
        self.assertEqual(app.post("notes", "a", {"ä": [1, None]}), 1)
        self.assertEqual(app.post("notes", "b", coalesce="latest", key="k", urgent=False), 2)
        self.assertIsNone(app.post("notes", "net", 0))
        first, second, third = self.supervisor.posted
        self.assertEqual(len({post.pop("token") for post in (first, second, third)}), 3)
        self.assertEqual(first, {"app": "notes", "topic": "a", "payload": {"ä": [1, None]}})
        self.assertEqual(second, {"app": "notes", "topic": "b", "coalesce": "latest", "key": "k", "urgent": False})
        self.assertEqual(third, {"app": "notes", "topic": "net", "payload": 0})
        for name, topic, error in [
            ("none", "a", torpor.UnknownApp), ("notes", "other", torpor.NotSubscribed), ("notes", "much", torpor.MailboxFull)
        ]:
            with self.assertRaises(error):
                app.post(name, topic)
        self.assertEqual([message["id"] for message in app.take(2, keep=True)], [1, 2])
        self.assertEqual([message["payload"] for message in app.take(1, done=[1, 2])], [[3]])
        self.assertEqual([app.take(only=[9]), len(app.take(only=[4])), app.take()], [[], 1, []])
        app.subscribe("dev.*", coalesce="count", keep=True)
        app.unsubscribe("dev.*")
        self.assertEqual(
            self.supervisor.subscribed, [{"topic": "dev.*", "coalesce": "count", "keep": True}, {"topic": "dev.*", "end": True}]
        )
        with self.assertRaises(torpor.InvalidParameter):
            app.subscribe("torpor.url")
        # What os.listdir says of a name that is not UTF-8 must not become another name on the way.
        with self.assertRaisesRegex(torpor.InvalidParameter, "the payload cannot be posted: .*surrogates not allowed"):
            app.post("notes", "a", {"file": "\udcff.txt"})

    def test_files_are_transferred(self) -> None:
        app = self.app(Recorder())
        first = app.download("http://h/a", "a", sha256="00", headers={"Accept": "x/y"}, discretionary=True, priority=3)
        second = app.upload("b", "http://h/b", "mine", method="POST", retry=True, events=False)
        self.assertEqual([first, second], [1, 2])
        download, upload = [dict(transfer) for transfer in app.transfers()]
        self.assertEqual({len(download.pop("token")), len(upload.pop("token"))}, {16})
        self.assertEqual(
            download,
            {"id": 1, "direction": "download", "url": "http://h/a", "file": "a", "sha256": "00", "session": "default",
             "headers": [{"name": "Accept", "value": "x/y"}], "discretionary": True, "events": True, "priority": 3},
        )
        self.assertEqual(
            upload,
            {"id": 2, "direction": "upload", "url": "http://h/b", "file": "b", "method": "POST", "session": "mine",
             "headers": [], "discretionary": False, "events": False, "retry": True, "priority": 0},
        )
        self.assertEqual([transfer["id"] for transfer in app.transfers("mine")], [2])
        app.cancel_transfer(2)
        self.assertEqual([transfer["id"] for transfer in app.transfers()], [1])
        app.answer_login(1, "me", "secret")
        app.answer_login(1, header="Bearer x")
        app.answer_login(1)
        self.assertEqual(
            self.supervisor.logins,
            [(1, {"user": "me", "password": "secret"}), (1, {"header": "Bearer x"}), (1, {"cancel": True})],
        )
        with self.assertRaisesRegex(torpor.TorporError, "neither http nor https"):
            app.download("gopher:a", "a")
        with self.assertRaisesRegex(torpor.TorporError, "no transfer 2"):
            app.cancel_transfer(2)

    def test_permissions_are_read_and_requested(self) -> None:
        app = self.app(Recorder())
        self.assertEqual(app.permissions(), {"camera": "ask", "files:/a b": "allow", "gpu": "deny"})
        self.assertEqual(app.request_permission("camera")["asked"], True)
        again = app.request_permission("camera")
        self.assertEqual((again["state"], again["asked"], again["next_at"]), ("ask", False, 7))
        self.assertEqual(app.request_permission("gpu")["state"], "deny")
        with self.assertRaisesRegex(torpor.TorporError, "no permission netwrk"):
            app.request_permission("netwrk")

    def test_activities_are_set_and_continued(self) -> None:
        heard: List[Any] = []

        class Notes(torpor.Delegate):
            def will_continue_activity(self, message: torpor.Message) -> None:
                heard.append(("will", message.activity_type))

            def continue_activity(self, message: torpor.Message) -> None:
                heard.append((message.activity_type, message.title, message.payload, message.url, message.source))

            def did_fail_to_continue_activity(self, message: torpor.Message) -> None:
                heard.append((message.activity_type, message.reason))

            def activity_was_continued(self, message: torpor.Message) -> None:
                heard.append((message.activity_type, message.continued_by))

        app = self.app(Notes())
        app.set_activity("org.example.note")
        self.assertEqual(self.supervisor.activity, {"type": "org.example.note"})
        with self.assertRaises(torpor.TorporError):
            app.set_activity("a note")
        app.end_activity()
        self.assertIsNone(self.supervisor.activity)
        self.supervisor.told("willContinueActivity", type="t")
        answer = self.supervisor.told("continueActivity", type="t", title="T", payload={"a": 1}, url=None, source="shop")
        self.assertEqual(answer, {"result": "done"})
        self.supervisor.told("didFailToContinueActivity", type="t", reason="it ended")
        self.supervisor.told("activityWasContinued", type="t", by="editor")
        self.assertEqual(heard, [("will", "t"), ("t", "T", {"a": 1}, None, "shop"), ("t", "it ended"), ("t", "editor")])

    def test_what_must_be_refreshed_is_named_and_told(self) -> None:
        names: List[List[str]] = []

        class Screen(torpor.Delegate):
            def refresh(self, message: torpor.Message) -> None:
                names.append(message.names)

        app = self.app(Screen())
        app.set_needs_refresh(["inbox", "to do"])
        self.assertEqual(self.supervisor.refreshed, ["inbox", "to do"])
        with self.assertRaisesRegex(torpor.TorporError, "empty"):
            app.set_needs_refresh([])
        self.supervisor.told("refresh", payload={"names": ["inbox", 4, "to do"]})
        self.supervisor.told("refresh", payload=None)
        self.assertEqual(names, [["inbox", "to do"], []])

    def test_alerts_are_scheduled_and_cancelled(self) -> None:
        app = self.app(Recorder())
        noon = datetime.datetime(2030, 6, 1, 12, tzinfo=datetime.timezone.utc)
        self.assertEqual(
            [app.schedule_alert("Tea", id="tea", after=1.5, actions={"later": "Later"}, payload=[1], badge=0),
             app.schedule_alert("Lunch", at=noon, wake=True, urgency="low"),
             app.schedule_alert("Stand-up", id="standup", calendar="daily", url="notes:1", sound="bell")],
            ["tea", "alert-1", "standup"],
        )
        tea, lunch, standup = [dict(alert) for alert in app.alerts()]
        self.assertEqual({len(alert.pop("token")) for alert in (tea, lunch, standup)}, {16})
        self.assertEqual(
            tea,
            {"title": "Tea", "body": "", "urgency": "normal", "wake": False, "id": "tea", "badge": 0, "payload": [1],
             "after_ms": 1500, "actions": [{"id": "later", "label": "Later"}]},
        )
        self.assertEqual((lunch["at"], lunch["wake"], lunch["urgency"]), ("2030-06-01T12:00:00+00:00", True, "low"))
        self.assertEqual((standup["calendar"], standup["url"], standup["sound"]), ("daily", "notes:1", "bell"))
        app.set_badge(3)
        self.assertEqual(self.supervisor.badge, 3)
        with self.assertRaisesRegex(torpor.TorporError, "no alert coffee"):
            app.cancel_alerts("coffee")
        app.cancel_alerts("tea", "standup")
        self.assertEqual([alert["title"] for alert in app.alerts()], ["Lunch"])
        app.cancel_alerts()
        self.assertEqual(len(app.alerts()), 1)
        app.cancel_all_alerts()
        self.assertEqual(app.alerts(), [])

    def test_a_download_is_begun_once_also_when_its_reply_is_lost(self) -> None:
        app = self.app(Recorder())
        self.supervisor.deaf.add("StartTransfer")
        numbers: List[int] = []
        asker = threading.Thread(target=lambda: numbers.append(app.download("http://h/a", "a")))
        asker.start()
        self.supervisor.wait_until(lambda: self.supervisor.transfers, "it was asked for")
        self.supervisor.deaf.clear()
        self.supervisor.replace()
        asker.join(BOUND)
        self.assertEqual(numbers, [1])
        self.assertEqual(self.supervisor.count("StartTransfer"), 2)
        self.assertEqual(list(self.supervisor.transfers), [1])

    def test_snapshots_are_given_and_taken_back(self) -> None:
        app = self.app(Recorder())
        for data in (b"a", b"x" * (1 << 20)):
            app.save_snapshot(data)
            self.assertEqual(self.supervisor.snapshot, data)
        with open(self.folder + "/mine", "w") as file:
            file.write("ab")
        app.save_snapshot_file("mine")
        self.assertEqual(self.supervisor.snapshot, b"ab")
        app.discard_snapshot()
        self.assertIsNone(self.supervisor.snapshot)
        self.assertIsNone(self.supervisor.archive)

    def test_a_replaced_supervisor_loses_and_repeats_nothing(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        held = threading.Event()
        recorder.on["willResignActive"] = lambda message: held.wait(BOUND) and None
        task = app.background_task("upload")
        self.supervisor.told("didBecomeActive")
        number = self.supervisor.tell("willResignActive")
        recorder.wait(lambda: "willResignActive" in recorder.names)
        self.supervisor.replace(0.05)
        self.supervisor.wait_until(lambda: self.supervisor.count("ClaimTasks"), "the task is claimed")
        held.set()
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        attached = [parameters for member, parameters in self.supervisor.calls if member == "Attach"]
        self.assertEqual(attached, [{}, {"incarnation": 1, "after": 2, "tasks": [1]}])
        task.end()
        task.end()
        self.assertEqual(self.supervisor.tasks, {})
        self.assertEqual(recorder.names, ["didBecomeActive", "willResignActive"])
        self.assertEqual(recorder.problems, [])

    def test_every_moment_is_one_to_be_replaced_in(self) -> None:
        recorder = Recorder()
        app = self.app(recorder)
        dice = random.Random(5)
        sent = []
        for _ in range(40):
            sent.append(self.supervisor.tell("didBecomeActive"))
            if dice.random() < 0.3:
                with app.background_task("t"):
                    pass
            if dice.random() < 0.5:
                self.supervisor.replace(dice.choice([0, 0, 0.02]))
        for number in sent:
            self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        self.assertEqual([message.id for message in recorder.heard], list(range(1, 41)))
        self.assertEqual(recorder.problems, [])

    def test_an_answer_that_was_taken_before_the_break_counts_as_taken(self) -> None:
        recorder = Recorder()
        self.app(recorder)
        self.supervisor.deaf.add("Answer")
        self.supervisor.answer(self.supervisor.tell("didBecomeActive"))
        self.supervisor.deaf.clear()
        self.supervisor.replace()
        self.supervisor.wait_until(lambda: self.supervisor.count("Answer") == 2, "it is said again")
        self.supervisor.told("willResignActive")
        self.assertEqual(recorder.problems, [])

    def test_a_refused_attach_is_tried_again_only_where_it_makes_sense(self) -> None:
        self.supervisor.refuse_next("Attach", "AlreadyAttached", pid=1)
        recorder = Recorder()
        self.app(recorder)
        self.supervisor.told("didBecomeActive")
        self.assertEqual(len(recorder.problems), 1)
        self.supervisor.refuse_next("Attach", "NotPermitted")
        self.supervisor.replace()
        recorder.wait(lambda: len(recorder.problems) == 2)
        self.assertIn("does not take this process", recorder.problems[1])

    def test_a_worker_has_tasks_that_outlive_a_supervisor(self) -> None:
        app = self.app(None)
        with app.background_task("resize"):
            self.supervisor.replace()
            self.supervisor.wait_until(lambda: self.supervisor.count("ClaimTasks"), "the task is claimed")
        self.assertEqual((self.supervisor.tasks, self.supervisor.count("Attach")), ({}, 0))

    def test_without_a_supervisor_it_is_launched_into_the_foreground(self) -> None:
        self.set_environment("TORPOR_APP_SOCKET", "")
        recorder = Recorder()
        app = self.app(recorder)
        recorder.wait(lambda: len(recorder.names) == 3)
        self.assertEqual(recorder.names, ["willFinishLaunching", "didFinishLaunching", "didBecomeActive"])
        with app.background_task("x"):
            self.assertIsNone(app.background_time())
        for call, part in [
            (lambda: app.save_state(b"x"), "keep its state"), (lambda: app.settings(), "know its settings"),
            (lambda: app.set_badge(1), "show alerts"), (lambda: app.download("http://h/a", "a"), "transfer files"),
            (lambda: app.open_url("notes:1"), "open the URL"), (lambda: app.post("notes", "a"), "post the message"), (lambda: app.save_snapshot(b"x"), "keep its snapshot"),
        ]:
            with self.assertRaisesRegex(torpor.NotSupervised, f"without a supervisor, which would {part}"):
                call()

    def test_garbage_ends_a_connection_and_not_the_app(self) -> None:
        recorder = Recorder()
        self.app(recorder)
        texts = [b"\0\0", b"nonsense\0", b"[]\0", b"{}\0", b'{"error":7}\0', b"\xff\0", b"[" * 100000 + b"\0"]
        texts += [b'{"parameters":7}\0', b'{"parameters":{"message":7},"continues":true}\0']
        texts += [b'{"parameters":{"message":{"id":-1,"name":"x"}},"continues":true}\0', b"x" * (5 << 20)]
        for index, text in enumerate(texts):
            self.supervisor.wait_until(lambda: self.supervisor.count("Attach") > index, "it attaches again")
            delegate = self.supervisor.delegate
            if delegate is not None:
                delegate.send_bytes(text)
        self.supervisor.wait_until(lambda: self.supervisor.count("Attach") > len(texts), "it attaches again")
        self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})

    def test_run_calls_the_delegate_in_the_callers_thread(self) -> None:
        recorder = Recorder()
        app = torpor.App(recorder)
        threads = []
        recorder.on["willTerminate"] = lambda message: (threads.append(threading.current_thread()), app.close())
        self.supervisor.tell("willTerminate", reason="stopped")
        app.run()
        self.assertEqual(threads, [threading.current_thread()])
        self.assertEqual(recorder.heard[0].reason, "stopped")

    def test_a_call_gives_up_when_nobody_is_there(self) -> None:
        app = self.app(None)
        self.supervisor.stop()
        from torpor import threads

        before, threads.CALL_TIMEOUT = threads.CALL_TIMEOUT, 0.2
        self.addCleanup(setattr, threads, "CALL_TIMEOUT", before)
        start = time.monotonic()
        with self.assertRaises(torpor.SupervisorGone):
            app.background_task("x")
        self.assertLess(time.monotonic() - start, BOUND)


class DelegateTests(unittest.TestCase):
    def test_every_message_of_the_lifecycle_has_a_method(self) -> None:
        with open(os.path.join(os.path.dirname(CLIENTS), "Sources/Lifecycle/States.swift")) as file:
            cases = re.findall(r"    case (\w+)$", file.read().split("enum Message")[1].split("}")[0], re.MULTILINE)
        self.assertGreater(len(cases), 20)
        from torpor import _delegate

        self.assertEqual(set(_delegate._METHODS), set(cases))
        for name, method in _delegate._METHODS.items():
            self.assertEqual(method, re.sub("URL$|[A-Z]", lambda match: "_" + match[0].lower(), name))
            self.assertTrue(hasattr(torpor.Delegate, method), method)

    def test_what_is_no_delegate_is_refused_at_once(self) -> None:
        class Notes(torpor.Delegate):
            async def did_enter_background(self, message: torpor.Message) -> None:
                pass

        for delegate, part in [
            (Notes, "not its class: write torpor.App("), (5, "not int"), (Notes(), "use torpor.aio.App"),
        ]:
            with self.assertRaisesRegex(TypeError, re.escape(part)):
                torpor.App(delegate)  # type: ignore[arg-type]

    def warnings_of(self, **methods: Any) -> List[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            type("Notes", (torpor.Delegate,), methods)
        return [str(warning.message) for warning in caught]

    def test_a_misspelled_method_warns(self) -> None:
        def method(self: Any, message: torpor.Message) -> None:
            pass

        for name, meant in [
            ("did_enter_backgroud", "did_enter_background"), ("did_enter_foreground", "will_enter_foreground"),
            ("didEnterBackground", "did_enter_background"), ("will_terminated", "will_terminate"),
            ("didReceiveEvent", "did_receive_event"), ("did_recieve_event", "did_receive_event"),
        ]:
            said = self.warnings_of(**{name: method})
            self.assertEqual(said, [f"Notes.{name} is never called: did you mean {meant}?"])
        helpers = {name: method for name in ("save", "resume", "enter", "load_state", "_did_enter_backgroud")}
        self.assertEqual(self.warnings_of(did_enter_background=method, open_url=method, **helpers), [])


if __name__ == "__main__":
    unittest.main()
