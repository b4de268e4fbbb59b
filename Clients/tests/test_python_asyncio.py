# SPDX-License-Identifier: Apache-2.0
"""torpor.aio.App: the Python library on asyncio."""

import asyncio
import logging
import random
import unittest
from datetime import timedelta
from typing import Any, Callable, Dict, List

from support import SupervisedTestCase

import torpor
import torpor.aio

BOUND = 10.0
logging.getLogger("torpor").setLevel(logging.CRITICAL)


class Recorder(torpor.Delegate):
    def __init__(self) -> None:
        self.heard: List[torpor.Message] = []
        self.problems: List[str] = []
        self.on: Dict[str, Callable[[torpor.Message], Any]] = {}

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)

    async def hear(self, message: torpor.Message) -> Any:
        self.heard.append(message)
        await asyncio.sleep(0)
        action = self.on.get(message.name)
        result = action(message) if action else None
        return await result if asyncio.iscoroutine(result) else result

    will_finish_launching = did_finish_launching = open_url = did_become_active = hear
    will_resign_active = did_enter_background = task_expiring = perform_fetch = other = hear

    def restore_state(self, message: torpor.Message) -> None:
        self.heard.append(message)

    @property
    def names(self) -> List[str]:
        return [message.name for message in self.heard]


class AsyncioTests(SupervisedTestCase):
    def run_app(self, delegate: Any, work: Callable[[torpor.aio.App], Any]) -> None:
        async def main() -> None:
            async with torpor.aio.App(delegate) as app:
                await asyncio.wait_for(work(app), BOUND * 2)

        asyncio.run(main())

    async def told(self, name: str, /, **parameters: Any) -> Any:
        return await asyncio.to_thread(self.supervisor.told, name, **parameters)

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        await asyncio.to_thread(self.supervisor.wait_until, condition, what)

    def test_messages_come_in_order_to_coroutines_and_functions(self) -> None:
        recorder = Recorder()
        names = ["willFinishLaunching", "restoreState", "didFinishLaunching", "unheardOf"]

        async def work(app: torpor.aio.App) -> None:
            for name in names:
                self.assertEqual(await self.told(name), {"result": "done"})

        self.run_app(recorder, work)
        self.assertEqual(recorder.names, names)

    def test_a_wrong_result_and_what_is_no_delegate_are_sentences(self) -> None:
        recorder = Recorder()

        async def work(app: torpor.aio.App) -> None:
            recorder.on = {"openURL": lambda message: "failed", "didEnterBackground": lambda message: app.save_state("x")}
            self.assertIn("returned 'failed'", (await self.told("openURL"))["text"])
            self.assertIn("bytes, not str", (await self.told("didEnterBackground"))["text"])

        self.run_app(recorder, work)
        with self.assertRaisesRegex(TypeError, "not its class"):
            torpor.aio.App(Recorder)  # type: ignore[arg-type]

    def test_what_nobody_handles_is_said(self) -> None:
        class Notes(torpor.Delegate):
            async def did_receive_event(self, message: torpor.Message) -> Any:
                return torpor.UNHANDLED if message.topic == "jobs" else None

            async def other(self, message: torpor.Message) -> Any:
                return torpor.UNHANDLED

        async def work(app: torpor.aio.App) -> None:
            self.assertEqual(await self.told("didReceiveEvent", topic="jobs"), {"result": "unhandled"})
            self.assertEqual(await self.told("didReceiveEvent", topic="news"), {"result": "done"})
            self.assertEqual(await self.told("didReceiveNotification"), {"result": "unhandled"})
            self.assertEqual(await self.told("openURL", url="x:"), {"result": "unhandled"})
            self.assertEqual(await self.told("settingsDidChange"), {"result": "done"})
            self.supervisor.results.remove("unhandled")
            self.assertEqual(await self.told("didReceiveEvent", topic="jobs"), {"result": "done"})

        self.run_app(Notes(), work)

    def test_failed_declined_and_later_answers(self) -> None:
        recorder = Recorder()

        async def fails(message: torpor.Message) -> None:
            raise RuntimeError()

        async def work(app: torpor.aio.App) -> None:
            recorder.on = {
                "willFinishLaunching": lambda message: message.decline("url"),
                "openURL": fails,
                "didEnterBackground": lambda message: torpor.LATER,
                "performFetch": lambda message: message.fetched("no-data"),
            }
            self.assertEqual(await self.told("performFetch"), {"result": "done", "fetch": "no-data"})
            self.assertEqual(await self.told("willFinishLaunching"), {"result": "done", "declines": ["url"]})
            self.assertEqual(await self.told("openURL"), {"result": "failed", "text": "RuntimeError"})
            number = self.supervisor.tell("didEnterBackground")
            await self.until(lambda: "didEnterBackground" in recorder.names, "it is heard")
            await app.pending(recorder.heard[-1], 1, "soon")
            await app.answer(recorder.heard[-1])
            self.assertEqual(self.supervisor.answer(number), {"result": "done"})
            self.assertEqual(self.supervisor.pending[0]["expected_ms"], 1000)

        self.run_app(recorder, work)

    def test_what_is_in_a_task_is_cancelled_when_it_expires(self) -> None:
        recorder = Recorder()
        order: List[str] = []

        async def expire() -> None:
            order.append("expiry")

        async def work(app: torpor.aio.App) -> None:
            with self.assertRaises(torpor.TaskExpired):
                async with app.background_task("upload", on_expiry=expire) as task:
                    self.assertEqual(self.supervisor.tasks[task.token][0], "upload")
                    self.supervisor.tell("taskExpiring", token=task.token, name="upload", remaining_ms=10)
                    try:
                        await asyncio.sleep(BOUND)
                    except asyncio.CancelledError:
                        order.append("cancelled")
                        raise
            self.assertEqual(order, ["expiry", "cancelled"])
            self.assertEqual(self.supervisor.tasks, {})
            self.assertEqual(await self.told("didBecomeActive"), {"result": "done"})
            async with app.background_task("patient", cancels=False) as task:
                await self.told("taskExpiring", token=task.token, name="patient", remaining_ms=10)
                self.assertTrue(task.expired)

        self.run_app(recorder, work)

    def test_a_task_in_a_method_expires_though_task_expiring_waits_behind_it(self) -> None:
        order: List[str] = []

        class Uploader(torpor.Delegate):
            async def did_receive_event(self, message: torpor.Message) -> Any:
                try:
                    async with message.app.background_task("upload", on_expiry=lambda: order.append("expiry")) as task:
                        supervisor.remaining = 1_900
                        supervisor.tell("taskExpiring", token=task.token, name="upload", remaining_ms=1_900)
                        await asyncio.sleep(BOUND)
                except torpor.TaskExpired:
                    order.append("expired")
                    return torpor.UNHANDLED

            def task_expiring(self, message: torpor.Message) -> None:
                order.append("told")

        supervisor = self.supervisor
        supervisor.remaining = 60_000

        async def work(app: torpor.aio.App) -> None:
            self.assertEqual(await self.told("didReceiveEvent", id=1, topic="jobs"), {"result": "unhandled"})
            await self.until(lambda: 2 in self.supervisor.answers, "taskExpiring is answered")

        self.run_app(Uploader(), work)
        self.assertEqual(order, ["expiry", "expired", "told"])

    def test_a_cancellation_by_others_is_not_taken_for_an_expiry(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            async def inner() -> None:
                async with app.background_task("x"):
                    await asyncio.sleep(BOUND)

            running = asyncio.ensure_future(inner())
            await self.until(lambda: self.supervisor.tasks, "it has begun")
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running
            await self.until(lambda: not self.supervisor.tasks, "it has ended")

        self.run_app(Recorder(), work)

    def test_other_apps_open_urls(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            self.assertEqual(await app.open_url("notes:1"), "notes")
            self.assertEqual([await app.can_open("notes"), await app.can_open("none")], [True, False])
            with self.assertRaises(torpor.NoHandler):
                await app.open_url("x:")

        self.run_app(Recorder(), work)

    def test_other_apps_get_messages(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            self.assertEqual(await app.post("notes", "a", [1], urgent=True), 1)
            with self.assertRaises(torpor.NotSubscribed):
                await app.post("notes", "other")
            self.assertEqual([message["id"] for message in await app.take(keep=True)], [1, 2, 3, 4])
            self.assertEqual([message["id"] for message in await app.take(done=[1, 2, 3])], [4])
            await app.subscribe("news", wake="none")
            await app.unsubscribe("news")

        self.run_app(Recorder(), work)
        self.assertEqual([post["payload"] for post in self.supervisor.posted], [[1]])
        self.assertEqual(self.supervisor.subscribed, [{"topic": "news", "wake": "none"}, {"topic": "news", "end": True}])

    def test_files_are_transferred(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            numbers = [
                await app.download("http://h/a", "a", headers={"Accept": "x/y"}),
                await app.upload("b", "http://h/b", "mine", method="POST", retry=True),
            ]
            self.assertEqual(numbers, [1, 2])
            self.assertEqual([transfer["id"] for transfer in await app.transfers("mine")], [2])
            await app.cancel_transfer(2)
            self.assertEqual([transfer["direction"] for transfer in await app.transfers()], ["download"])
            await app.answer_login(1, "me", "secret")
            await app.answer_login(1)
            with self.assertRaisesRegex(torpor.TorporError, "neither http nor https"):
                await app.download("gopher:a", "a")

        self.run_app(Recorder(), work)
        self.assertEqual(self.supervisor.transfers[1]["headers"], [{"name": "Accept", "value": "x/y"}])
        self.assertEqual(self.supervisor.logins, [(1, {"user": "me", "password": "secret"}), (1, {"cancel": True})])

    def test_alerts_are_scheduled_and_cancelled(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            self.assertEqual(await app.schedule_alert("Tea", id="tea", after=60), "tea")
            await app.set_badge(3)
            self.assertEqual([alert["title"] for alert in await app.alerts()], ["Tea"])
            await app.cancel_alerts()
            self.assertEqual(len(await app.alerts()), 1)
            await app.cancel_alerts("tea")
            self.assertEqual(await app.alerts(), [])
            self.assertEqual((await app.permissions())["camera"], "ask")
            self.assertEqual((await app.request_permission("camera"))["asked"], True)
            await app.schedule_alert("Tea", after=timedelta(minutes=2))
            self.assertEqual((await app.alerts())[0]["after_ms"], 120_000)
            await app.set_needs_refresh(["inbox"])
            self.assertEqual(self.supervisor.refreshed, ["inbox"])
            await app.set_activity("org.example.note", title="List", payload={"line": 12}, url="notes:1", needs_state=True)
            self.assertEqual(
                self.supervisor.activity,
                {"type": "org.example.note", "title": "List", "payload": {"line": 12}, "url": "notes:1", "state": True},
            )
            await app.end_activity()
            self.assertIsNone(self.supervisor.activity)
            await app.cancel_all_alerts()
            self.assertEqual(await app.alerts(), [])

        self.run_app(Recorder(), work)
        self.assertEqual(self.supervisor.badge, 3)

    def test_states_are_saved(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            for data in (b"a", b"x" * (1 << 20)):
                await app.save_state(data)
                self.assertEqual(self.supervisor.archive, data)
            self.supervisor.limit = 1
            with self.assertRaises(torpor.TooLarge):
                await app.save_state(b"abc")
            self.assertEqual((await app.situation()).state, "inactive")
            self.assertIsNone(await app.background_time())
            await app.discard_state()
            self.assertIsNone(self.supervisor.archive)
            await app.save_snapshot(b"s")
            self.assertEqual(self.supervisor.snapshot, b"s")
            await app.discard_snapshot()
            self.assertIsNone(self.supervisor.snapshot)

        self.run_app(Recorder(), work)

    def test_every_moment_is_one_to_be_replaced_in(self) -> None:
        recorder = Recorder()

        async def work(app: torpor.aio.App) -> None:
            dice = random.Random(9)
            sent = []
            async with app.background_task("all the time"):
                for _ in range(40):
                    sent.append(self.supervisor.tell("didBecomeActive"))
                    if dice.random() < 0.3:
                        async with app.background_task("t"):
                            pass
                    if dice.random() < 0.5:
                        await asyncio.to_thread(self.supervisor.replace, dice.choice([0, 0, 0.02]))
                for number in sent:
                    self.assertEqual(
                        await asyncio.to_thread(self.supervisor.answer, number), {"result": "done"}
                    )
                await self.until(
                    lambda: any(connection for _, connection in self.supervisor.tasks.values()), "it is claimed"
                )
            self.assertEqual(self.supervisor.tasks, {})

        self.run_app(recorder, work)
        self.assertEqual([message.id for message in recorder.heard], list(range(1, 41)))
        self.assertEqual(recorder.problems, [])

    def test_a_worker_has_tasks_that_outlive_a_supervisor(self) -> None:
        async def work(app: torpor.aio.App) -> None:
            async with app.background_task("resize"):
                await asyncio.to_thread(self.supervisor.replace)
                await self.until(lambda: self.supervisor.count("ClaimTasks"), "the task is claimed")
            self.assertEqual((self.supervisor.tasks, self.supervisor.count("Attach")), ({}, 0))

        self.run_app(None, work)

    def test_without_a_supervisor_it_is_launched_into_the_foreground(self) -> None:
        self.set_environment("TORPOR_APP_SOCKET", "")
        recorder = Recorder()

        async def work(app: torpor.aio.App) -> None:
            async with app.background_task("x"):
                while len(recorder.names) < 3:
                    await asyncio.sleep(0.01)
            with self.assertRaises(torpor.NotSupervised):
                await app.save_state(b"x")

        self.run_app(recorder, work)
        self.assertEqual(recorder.names, ["willFinishLaunching", "didFinishLaunching", "didBecomeActive"])

    def test_garbage_ends_a_connection_and_not_the_app(self) -> None:
        texts = [b"\0\0", b"nonsense\0", b"[]\0", b"{}\0", b"\xff\0", b"[" * 100000 + b"\0", b"x" * (5 << 20)]
        texts += [b'{"parameters":{"message":{"id":-1,"name":"x"}},"continues":true}\0', b'{"error":7}\0']

        async def work(app: torpor.aio.App) -> None:
            for index, text in enumerate(texts):
                await self.until(lambda: self.supervisor.count("Attach") > index, "it attaches again")
                if self.supervisor.delegate is not None:
                    await asyncio.to_thread(self.supervisor.delegate.send_bytes, text)
            await self.until(lambda: self.supervisor.count("Attach") > len(texts), "it attaches again")
            self.assertEqual(await self.told("didBecomeActive"), {"result": "done"})

        self.run_app(Recorder(), work)


if __name__ == "__main__":
    unittest.main()
