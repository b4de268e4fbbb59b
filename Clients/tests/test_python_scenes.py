# SPDX-License-Identifier: Apache-2.0
"""Scenes inside an app: the Python library with threads and on asyncio."""

import asyncio
import logging
import unittest
from typing import Any, Dict, List

from support import SupervisedTestCase

import torpor
import torpor.aio

BOUND = 20.0
CONNECTING: Dict[str, Any] = {
    "scene": "alice", "options": {"session": {"tab": 2}, "foreground": False, "new": True}, "state": None,
}
MESSAGES = [
    "sceneDidBecomeActive", "sceneWillResignActive", "sceneDidEnterBackground", "sceneWillEnterForeground",
    "sceneDidDisconnect",
]
logging.getLogger("torpor").setLevel(logging.CRITICAL)


class Desk(torpor.Delegate):
    """Writes down what it is told of its scenes, and saves one when it enters the background."""

    def __init__(self) -> None:
        self.heard: List[Any] = []
        self.situations: List[torpor.Situation] = []

    def attached(self, situation: torpor.Situation) -> None:
        self.situations.append(situation)

    def scene_will_connect(self, message: torpor.Message) -> None:
        state = None if message.path is None else message.read_state()
        options = message.options
        self.heard.append((message.scene, message.scene_session, options.get("foreground"), options.get("new"), state))
        if message.scene == "mallory":
            raise RuntimeError("there is no desk for mallory")
        if message.scene == "late":
            message.decline("restoration")

    def note(self, message: torpor.Message) -> None:
        self.heard.append((message.name, message.scene))

    scene_did_become_active = scene_will_resign_active = scene_will_enter_foreground = scene_did_disconnect = note

    def scene_did_enter_background(self, message: torpor.Message) -> Any:
        self.note(message)
        message.app.save_state(b"of alice", scene=message.scene)
        message.decline("snapshot")

    def did_discard_scenes(self, message: torpor.Message) -> None:
        self.heard.append(message.discarded)


class AsyncDesk(Desk):
    """The same, with a coroutine."""

    async def scene_did_enter_background(self, message: torpor.Message) -> Any:
        self.note(message)
        await message.app.save_state(b"of alice", scene=message.scene)
        message.decline("snapshot")


class SceneTests(SupervisedTestCase):
    def tell_all(self) -> None:
        """What becomes of a scene, from its connection to its end."""
        with open(self.folder + "/saved", "w") as file:
            file.write("what was")
        told = self.supervisor.told
        returning = {"session": None, "foreground": True, "new": False}
        state = {"path": self.folder + "/saved", "bytes": 8}
        self.assertEqual(told("sceneWillConnect", **CONNECTING), {"result": "done"})
        self.assertEqual(
            told("sceneWillConnect", scene="late", options=returning, state=state),
            {"result": "done", "declines": ["restoration"]},
        )
        self.assertEqual(told("sceneWillConnect", scene="odd", options=4, state="no"), {"result": "done"})
        self.assertEqual(
            told("sceneWillConnect", scene="mallory"), {"result": "failed", "text": "RuntimeError: there is no desk for mallory"}
        )
        for name in MESSAGES:
            declines = {"declines": ["snapshot"]} if name == "sceneDidEnterBackground" else {}
            self.assertEqual(told(name, scene="alice"), {"result": "done", **declines})
        payload = {"names": ["bob", 4, "carol"]}
        self.assertEqual(told("didDiscardScenes", id=9, payload=payload), {"result": "done"})
        self.assertEqual(told("didDiscardScenes", payload=None), {"result": "done"})

    def check(self, desk: Desk) -> None:
        self.assertEqual(
            desk.heard,
            [
                ("alice", {"tab": 2}, False, True, None), ("late", None, True, False, b"what was"),
                ("odd", None, None, None, None), ("mallory", None, None, None, None),
                *((name, "alice") for name in MESSAGES), ["bob", "carol"], [],
            ],
        )
        self.assertEqual((self.supervisor.archive, self.supervisor.scene_archives), (None, {"alice": b"of alice"}))

    def test_each_message_to_a_scene_has_its_method(self) -> None:
        desk = Desk()
        with torpor.App(desk):
            self.tell_all()
        self.check(desk)
        self.assertEqual(desk.situations[0].scenes, {})

    def test_the_same_on_asyncio(self) -> None:
        desk = AsyncDesk()

        async def main() -> None:
            async with torpor.aio.App(desk):
                await asyncio.wait_for(asyncio.to_thread(self.tell_all), BOUND)

        asyncio.run(main())
        self.check(desk)

    def test_what_a_delegate_does_not_override_is_done(self) -> None:
        others: List[str] = []

        class Rest(torpor.Delegate):
            def other(self, message: torpor.Message) -> Any:
                others.append(message.name)
                return torpor.UNHANDLED

        with torpor.App(Rest()):
            for name in ["sceneWillConnect", *MESSAGES, "didDiscardScenes"]:
                self.assertEqual(self.supervisor.told(name, scene="alice"), {"result": "done"}, name)
        self.assertEqual(others, ["didDiscardScenes"])

    def test_state_and_snapshot_of_a_scene_are_its_own(self) -> None:
        large = b"x" * (1 << 20)
        with open(self.folder + "/mine", "w") as file:
            file.write("a file")
        with torpor.App() as app:
            app.save_state(b"of the app")
            for data in (b"of alice", large):
                app.save_state(data, scene="alice")
                app.save_snapshot(data, scene="alice")
            app.save_state_file("mine", scene="bob")
            app.save_snapshot_file("mine", scene="bob")
            kept = {"alice": large, "bob": b"a file"}
            self.assertEqual((self.supervisor.scene_archives, self.supervisor.scene_snapshots), (kept, kept))
            app.discard_state(scene="alice")
            app.discard_snapshot(scene="alice")
            left = {"bob": b"a file"}
            self.assertEqual((self.supervisor.scene_archives, self.supervisor.scene_snapshots), (left, left))
            self.assertEqual((self.supervisor.archive, self.supervisor.snapshot), (b"of the app", None))
            app.discard_state()
            self.assertEqual((self.supervisor.archive, self.supervisor.scene_archives), (None, left))

    def test_state_and_snapshot_of_a_scene_on_asyncio(self) -> None:
        async def main() -> None:
            async with torpor.aio.App() as app:
                await app.save_state(b"s", scene="alice")
                await app.save_snapshot(b"p", scene="alice")
                kept = (dict(self.supervisor.scene_archives), dict(self.supervisor.scene_snapshots))
                self.assertEqual(kept, ({"alice": b"s"}, {"alice": b"p"}))
                await app.discard_state(scene="alice")
                await app.discard_snapshot(scene="alice")

        asyncio.run(main())
        self.assertEqual((self.supervisor.scene_archives, self.supervisor.scene_snapshots), ({}, {}))

    def test_a_delegate_that_comes_back_is_told_which_scenes_are_connected(self) -> None:
        self.supervisor.scenes = {"alice": "active", "bob": "background"}
        desk = Desk()
        with torpor.App(desk) as app:
            self.assertEqual(app.situation().scenes, {"alice": "active", "bob": "background"})
            self.supervisor.wait_attached()
            self.supervisor.scenes = {"bob": "inactive"}
            self.supervisor.replace()
            self.supervisor.wait_until(lambda: len(desk.situations) == 2, "it attaches again")
        self.assertEqual([len(situation.scenes) for situation in desk.situations], [2, 1])

    def test_an_app_that_is_a_scene_finds_its_name_and_its_session(self) -> None:
        options = {"scene": "alice", "session": {"tab": 2}}
        message = torpor.Message(1, "willFinishLaunching", None, {"options": options})
        self.assertEqual((message.scene, message.scene_session), ("alice", {"tab": 2}))
        message = torpor.Message(1, "willFinishLaunching", None, {"options": {"scene": None, "session": None}})
        self.assertEqual((message.scene, message.scene_session, message.discarded), (None, None, []))
        with self.assertRaisesRegex(ValueError, "the scene alice has no state archive"):
            torpor.Message(1, "sceneWillConnect", None, CONNECTING).read_state()


if __name__ == "__main__":
    unittest.main()
