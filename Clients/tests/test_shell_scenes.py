# SPDX-License-Identifier: Apache-2.0
"""Scenes inside an app whose delegate is `torpor app delegate`: TORPOR_PROGRAM names the torpor to test."""

import os
import subprocess
import unittest
from typing import List

from support import SupervisedTestCase

BOUND = 10.0
PROGRAM = os.environ.get("TORPOR_PROGRAM", "")
HOOK = """set -u
case $TORPOR_MESSAGE in
sceneWillConnect)
    echo "connect $TORPOR_SCENE $TORPOR_SESSION,$TORPOR_MESSAGE_PATH,$TORPOR_MESSAGE_BYTES" >>heard
    [ "$TORPOR_SCENE" != mallory ] || echo "failed there is no desk for mallory" >&3
    [ "$TORPOR_SCENE" != late ] || echo "decline restoration" >&3
    ;;
sceneDidEnterBackground)
    echo "of $TORPOR_SCENE" | "$TORPOR_PROGRAM" app state save - --scene "$TORPOR_SCENE"
    echo "seen of $TORPOR_SCENE" | "$TORPOR_PROGRAM" snapshot --save - --scene "$TORPOR_SCENE"
    echo "decline snapshot" >&3
    ;;
didDiscardScenes) echo "discard" $TORPOR_MESSAGE_SCENES >>heard ;;
*) echo "$TORPOR_MESSAGE ${TORPOR_SCENE:--} ${TORPOR_SESSION:--}" >>heard ;;
esac
"""


@unittest.skipUnless(PROGRAM, "TORPOR_PROGRAM names no torpor")
class ShellSceneTests(SupervisedTestCase):
    def start(self, *options: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([PROGRAM, "app", "delegate", *options], cwd=self.folder, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.supervisor.wait_attached()
        return process

    def heard(self) -> List[str]:
        with open(self.folder + "/heard") as file:
            return file.read().splitlines()

    def test_a_command_is_told_of_its_scene(self) -> None:
        with open(self.folder + "/hook", "w") as file:
            file.write(HOOK)
        self.start("--on", "*=sh ./hook")
        told = self.supervisor.told
        alice = {"session": {"tab": 2}, "foreground": True, "new": True}
        none = {"session": None, "foreground": False, "new": False}
        state = {"path": "/saved", "bytes": 8}
        self.assertEqual(told("didFinishLaunching"), {"result": "done"})
        self.assertEqual(told("sceneWillConnect", scene="alice", options=alice, state=None), {"result": "done"})
        self.assertEqual(
            told("sceneWillConnect", scene="late", options=none, state=state),
            {"result": "done", "declines": ["restoration"]},
        )
        self.assertEqual(
            told("sceneWillConnect", scene="mallory", options=none, state=None),
            {"result": "failed", "text": "there is no desk for mallory"},
        )
        self.assertEqual(told("sceneDidBecomeActive", scene="alice"), {"result": "done"})
        self.assertEqual(
            told("sceneDidEnterBackground", scene="alice"), {"result": "done", "declines": ["snapshot"]}
        )
        self.assertEqual(told("didDiscardScenes", id=9, payload={"names": ["bob", "carol"]}), {"result": "done"})
        self.assertEqual(
            self.heard(),
            [
                "didFinishLaunching - -", 'connect alice {"tab":2},,', "connect late ,/saved,8", "connect mallory ,,",
                "sceneDidBecomeActive alice -", "discard bob carol",
            ],
        )
        self.assertEqual(self.supervisor.scene_archives, {"alice": b"of alice\n"})
        self.assertEqual(self.supervisor.scene_snapshots, {"alice": b"seen of alice\n"})
        self.assertEqual((self.supervisor.archive, self.supervisor.snapshot), (None, None))
        subprocess.run([PROGRAM, "app", "state", "discard", "--scene", "alice"], check=True, timeout=BOUND)
        self.assertEqual(self.supervisor.scene_archives, {})

    def test_what_no_command_is_for_is_done(self) -> None:
        self.start("--on", "willTerminate=true")
        for name in ["sceneWillConnect", "sceneDidEnterBackground", "sceneDidDisconnect", "didDiscardScenes"]:
            self.assertEqual(self.supervisor.told(name, scene="alice"), {"result": "done"}, name)

    def test_an_app_that_is_a_scene_keeps_its_own_variables(self) -> None:
        self.set_environment("TORPOR_SCENE", "alice")
        self.set_environment("TORPOR_SESSION", '{"tab":2}')
        with open(self.folder + "/hook", "w") as file:
            file.write(HOOK)
        self.start("--on", "*=sh ./hook")
        self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
        self.assertEqual(self.heard(), ['didBecomeActive alice {"tab":2}'])


if __name__ == "__main__":
    unittest.main()
