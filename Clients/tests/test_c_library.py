# SPDX-License-Identifier: Apache-2.0
"""The C library in a program of its own, built with sanitizers, driven by its poll loop and by its own thread."""

import errno
import json
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from typing import Any, List

from support import SupervisedTestCase, build_c

BOUND = 10.0


def setUpModule() -> None:
    global FOLDER, PROBE, READER
    FOLDER = tempfile.mkdtemp(prefix="tc-build-")
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    PROBE = build_c(FOLDER, "probe", "probe.c")
    READER = build_c(FOLDER, "json", "json.c")


class Probe:
    """The program: what it says, a line at a time."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [PROBE, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.lines: "queue.Queue[str]" = queue.Queue()
        self.seen: List[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line.decode("utf-8", "replace").rstrip("\n"))
        self.lines.put("(end)")

    def say(self, line: str) -> None:
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def do(self, line: str) -> str:
        """Has it done, and gives what came of it."""
        self.say(line)
        return self.until("did " + line.split()[0])

    def until(self, line: str) -> str:
        """Reads up to a line; gives the one before the last that is about a call."""
        before = ""
        while True:
            try:
                got = self.lines.get(timeout=BOUND)
            except queue.Empty:
                raise AssertionError(f"no line {line!r}; it said {self.seen}") from None
            self.seen.append(got)
            if got.startswith(line):
                return before
            if got == "(end)":
                raise AssertionError(f"it ended before {line!r}: {self.seen} {self.process.stderr.read()!r}")
            if not got.startswith(("message", "problem", "attached")):
                before = got

    def messages(self) -> List[str]:
        return [line.split(" ", 2)[2] for line in self.seen if line.startswith("message")]

    def finish(self) -> None:
        self.say("quit")
        self.until("closed")
        status = self.process.wait(BOUND)
        errors = self.process.stderr.read().decode()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        if status or "Sanitizer" in errors or "runtime error" in errors:
            raise AssertionError(f"it ended with {status}: {errors}")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


class CLibraryTests(SupervisedTestCase):
    options: List[str] = []

    def probe(self, *options: str) -> Probe:
        probe = Probe(*self.options, *options)
        self.addCleanup(probe.kill)
        return probe

    def test_messages_come_in_order_and_are_answered(self) -> None:
        probe = self.probe()
        self.supervisor.wait_attached()
        names = ["willFinishLaunching", "didFinishLaunching", "didBecomeActive", "willResignActive", "unheardOf"]
        numbers = [self.supervisor.tell(name) for name in names]
        for number in numbers:
            self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        self.assertEqual(self.supervisor.told("openURL", url="x:ä", source="shop"), {"result": "done"})
        self.assertEqual(self.supervisor.told("resumed", gap_s=1.5), {"result": "done"})
        probe.until("gap 1.50")
        self.assertEqual(probe.messages(), names + ["openURL", "resumed"])
        self.assertIn("url x:ä shop -", probe.seen)
        self.assertEqual(probe.seen.count("attached inactive"), 1)
        probe.finish()

    def test_what_a_fetch_found_is_part_of_the_answer(self) -> None:
        probe = self.probe()
        self.assertEqual(self.supervisor.told("performFetch"), {"result": "done"})
        for number, name in enumerate(["new-data", "no-data", "failed"], 1):
            probe.do(f"fetched {number}")
            self.assertEqual(self.supervisor.told("performFetch"), {"result": "done", "fetch": name})
        probe.finish()

    def test_what_belongs_to_a_message_has_its_type(self) -> None:
        probe = self.probe()
        told = self.supervisor.told
        for name, parameters, lines in [
            ("didReceiveMemoryWarning", {"level": "critical"}, ["level 2"]),
            ("didReceiveMemoryWarning", {"level": "unheardOf"}, ["level 1"]),
            ("didReceiveMemoryWarning", {"level": "limit"}, ["level 3"]),
            ("didReceiveMemoryWarning", {"level": 4}, ["level 1"]),
            ("willTerminate", {"reason": "stopped"}, ["reason stopped"]),
            ("taskExpiring", {"token": 3, "name": "upload", "remaining_ms": 1500}, ["task 3 upload 1500"]),
            ("taskExpiring", {}, ["task 0 - -1"]),
            ("settingsDidChange", {"payload": {"changed": ["port", "theme"]}},
             ["changed port", "changed theme", "path -"]),
            ("settingsDidChange", {"payload": {"path": "/etc/web.conf"}}, ["path /etc/web.conf"]),
            ("identityDidChange", {"payload": {"changed": "port"}}, ["path -"]),
            ("identityDidChange", {"payload": [1]}, ["path -"]),
            ("significantTimeChange", {"payload": {"clock": True, "time_zone": "Europe/Berlin", "utc_offset_s": 3600,
                                                   "day": "2026-11-23"}}, ["clock 1 Europe/Berlin 3600 2026-11-23"]),
            ("significantTimeChange", {}, ["clock 0 - -1 -"]),
            ("refresh", {"payload": {"names": ["inbox", "to do"]}}, ["refresh inbox", "refresh to do", "refresh -"]),
            ("refresh", {"payload": {"names": 4}}, ["refresh -"]),
            ("willContinueActivity", {"type": "t"}, ["activity t  -1 - - - -"]),
            ("continueActivity", {"type": "t", "title": "T", "payload": {"line": 7}, "url": "a:b", "source": "shop"},
             ["activity t T 7 a:b shop - -"]),
            ("continueActivity", {"type": 4, "title": None, "payload": None, "url": None, "source": None},
             ["activity   -1 - - - -"]),
            ("didFailToContinueActivity", {"type": "t", "reason": "ended"}, ["activity t  -1 - - ended -"]),
            ("activityWasContinued", {"type": "t", "by": "editor"}, ["activity t  -1 - - - editor"]),
            ("handleEventsForBackgroundTransfer", {"session": "mine"}, ["transfer 0 mine - - 0 -1", "end - - - -"]),
            ("transferDidFinish", {"transfer": 1 << 40, "session": "mine", "url": "http://h/a", "path": "/s/a",
                                   "bytes": 7, "status": 200, "sha256": "00", "error": None},
             ["transfer 1099511627776 mine http://h/a /s/a 7 200", "end 00 - - -"]),
            ("transferNeedsLogin", {"transfer": 2, "session": 4, "url": "http://h/a", "realm": "the garden",
                                    "scheme": "basic"}, ["transfer 2 - http://h/a - 0 -1", "end - - the garden basic"]),
            ("didReceiveLocalNotification", {"id": 9, "alert": "tea", "scheduled_at": 5, "payload": "x",
                                             "action": "later", "activation_token": "t"}, ["alert tea 5 x later t"]),
            ("didReceiveLocalNotification", {"alert": 4, "action": None}, ["alert - 0 - - -"]),
            ("didReceiveEvent", {"id": 7, "topic": "jobs", "key": "k", "payload": "x", "sender": "web", "count": 2,
                                 "first_at": 1, "last_at": 2}, ["mail 7 jobs k web 2 1 2", "payload x"]),
            ("didReceiveRemoteNotification", {"payload": {}}, ["mail 0 - - - 1 0 0", "payload -"]),
            ("openURL", {"url": 4}, ["url - - -"]),
            ("openURL", {"url": "file:///a", "type": "text/plain"}, ["url file:///a - text/plain"]),
        ]:
            seen = len(probe.seen)
            self.assertEqual(told(name, **parameters), {"result": "done"})
            probe.until(lines[-1])
            self.assertEqual([line for line in probe.seen[seen:] if not line.startswith("message")][-len(lines):], lines)
        probe.finish()

    def test_what_must_be_refreshed_is_named(self) -> None:
        probe = self.probe()
        self.supervisor.wait_attached()
        probe.do("needs-refresh in \"box")
        self.assertIn("needs refresh 0 ", probe.seen)
        self.assertEqual(self.supervisor.refreshed, ["in \"box", "more"])
        probe.finish()

    def test_activities_are_set_and_ended(self) -> None:
        probe = self.probe()
        self.supervisor.wait_attached()
        probe.do("activity org.example.note")
        self.assertEqual(
            self.supervisor.activity,
            {"type": "org.example.note", "title": 'a "title"', "payload": {"line": 12}, "url": "notes:1", "state": True},
        )
        probe.do("bare-activity a")
        self.assertEqual(self.supervisor.activity, {"type": "a"})
        probe.do("end-activity")
        self.assertIsNone(self.supervisor.activity)
        probe.finish()

    def test_what_there_is_no_function_for_is_unhandled(self) -> None:
        probe = self.probe("--bare")
        self.supervisor.wait_attached()
        for name in ["openURL", "continueActivity", "didReceiveEvent", "didReceiveNotification",
                     "didReceiveRemoteNotification", "unheardOf"]:
            self.assertEqual(self.supervisor.told(name), {"result": "unhandled"}, name)
        for name in ["didBecomeActive", "settingsDidChange", "identityDidChange", "significantTimeChange",
                     "sceneWillConnect", "sceneDidEnterBackground", "didDiscardScenes", "refresh"]:
            self.assertEqual(self.supervisor.told(name), {"result": "done"}, name)
        probe.finish()

    def test_unhandled_is_done_for_a_supervisor_that_does_not_know_it(self) -> None:
        probe = self.probe()
        probe.do("leaves didReceiveEvent")
        probe.do("later didReceiveNotification")
        for results, expected in [(set(), "unhandled"), ({"unhandled"}, "done")]:
            self.supervisor.results -= results
            self.assertEqual(self.supervisor.told("didReceiveEvent"), {"result": expected})
            self.assertEqual(self.supervisor.told("didReceiveEvent"), {"result": expected})
            number = self.supervisor.tell("didReceiveNotification")
            probe.until(f"message {number}")
            probe.do(f"unhandled {number}")
            self.assertEqual(self.supervisor.answer(number), {"result": expected})
        probe.do("leaves settingsDidChange")
        self.assertEqual(self.supervisor.told("settingsDidChange"), {"result": "done"})
        self.assertFalse([line for line in probe.seen if line.startswith("problem")])
        probe.finish()

    def test_failed_declined_and_later_answers(self) -> None:
        probe = self.probe()
        probe.do("fails openURL")
        probe.do("declines willFinishLaunching 3")
        probe.do("later didEnterBackground")
        self.assertEqual(
            self.supervisor.told("willFinishLaunching"), {"result": "done", "declines": ["url", "restoration"]}
        )
        self.assertEqual(self.supervisor.told("openURL", url="u"), {"result": "failed", "text": 'It "failed".'})
        number = self.supervisor.tell("didEnterBackground")
        probe.until(f"message {number}")
        probe.do(f"pending {number} 2500")
        self.supervisor.wait_until(lambda: self.supervisor.pending, "it asks for time")
        self.assertEqual(
            self.supervisor.pending, [{"result": "pending", "text": "It \ufffd takes.", "expected_ms": 2500}]
        )
        probe.do(f"answer {number}")
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        probe.finish()

    def test_an_answer_that_comes_too_late_is_a_problem_and_no_more(self) -> None:
        probe = self.probe()
        self.supervisor.told("didBecomeActive")
        probe.do("answer 77")
        probe.until("problem The answer to message 77 was not taken")
        self.assertEqual(self.supervisor.told("willResignActive"), {"result": "done"})
        probe.finish()

    def test_tasks_begin_end_and_know_their_time(self) -> None:
        probe = self.probe()
        self.supervisor.wait_attached()
        self.supervisor.remaining = 29000
        self.assertEqual(probe.do('begin up"load'), "remaining 29000")
        self.assertEqual([name for name, _ in self.supervisor.tasks.values()], ['up"load'])
        self.supervisor.remaining = None
        self.assertEqual(probe.do("time"), "remaining -1")
        self.assertEqual(probe.do("end 1"), "ended 0 ")
        self.assertEqual(self.supervisor.tasks, {})
        self.assertEqual(probe.do("end 1"), "ended -2 There is no task 1 of this process.")
        probe.do("begin last")
        probe.finish()
        self.supervisor.wait_until(lambda: not self.supervisor.tasks, "the task ends with the app")

    def test_other_apps_open_urls(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do("open notes:ä \"1\""), "opened 0 ")
        self.assertEqual(probe.do("open notes:2"), "opened 0 ")
        self.assertEqual([url for url, _ in self.supervisor.opened], ["notes:ä \"1\"", "notes:2"])
        self.assertEqual({len(token) for _, token in self.supervisor.opened}, {16})
        self.assertEqual(len({token for _, token in self.supervisor.opened}), 2)
        self.assertTrue(probe.do("open x:").startswith("opened -2 no app opens x:"))
        self.assertEqual(probe.do("can-open notes"), "can 1 ")
        self.assertEqual(probe.do("can-open none"), "can 0 ")
        self.assertTrue(probe.do("can-open secret").startswith("can -1 it may not"))
        probe.finish()

    def test_other_apps_get_messages(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do('post a "ä"'), "posted 1 ")
        self.assertEqual(probe.do("post-to notes"), "posted 2 ")
        self.assertEqual(probe.do("post net"), "posted 0 ")
        first, second, _ = self.supervisor.posted
        self.assertEqual({len(first.pop("token")), len(second.pop("token"))}, {16})
        self.assertEqual(first, {"app": "notes", "topic": 'a "ä"', "payload": {"a": [1]}, "urgent": True})
        self.assertEqual(second, {"app": "notes", "topic": "a"})
        self.assertEqual(probe.do("post-to none"), f"posted {-errno.ENOENT} there is no app none")
        self.assertTrue(probe.do("post other").startswith(f"posted {-errno.EOPNOTSUPP} notes does not accept"))
        self.assertTrue(probe.do("post much").startswith(f"posted {-errno.ENOSPC} the mailbox of notes is full"))
        self.assertEqual(probe.do('post-text {"a"'), f"posted {-errno.EINVAL} The payload is not JSON.")
        self.assertEqual(len(self.supervisor.posted), 3)
        self.assertEqual(probe.do("take 0"), "took 2 1 news")
        self.assertEqual(probe.do("take 1"), "took 2 3 news")
        self.assertEqual(probe.do("take 3"), "took 0 -1 -")
        self.assertEqual(probe.do("subscribe dev.*"), "subscribed 0 ")
        self.assertEqual(probe.do("unsubscribe dev.*"), "unsubscribed 0 ")
        self.assertTrue(probe.do("subscribe torpor.url").startswith(f"subscribed {-errno.EINVAL} "))
        self.assertEqual(
            self.supervisor.subscribed, [{"topic": "dev.*", "coalesce": "count", "keep": True}, {"topic": "dev.*", "end": True}]
        )
        probe.finish()

    def test_files_are_transferred(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do("download http://h/ä"), "begun 1 ")
        self.assertEqual(probe.do("upload http://h/b"), "begun 2 ")
        download, upload = [dict(transfer) for transfer in self.supervisor.transfers.values()]
        self.assertEqual({len(download.pop("token")), len(upload.pop("token"))}, {16})
        self.assertEqual(
            download,
            {"id": 1, "direction": "download", "url": "http://h/ä", "file": 'a "b"', "discretionary": False, "events": True},
        )
        self.assertEqual(
            upload,
            {"id": 2, "direction": "upload", "url": "http://h/b", "file": "b", "session": "mine", "discretionary": True,
             "events": False},
        )
        self.assertEqual(probe.do("login 1"), "answered 0 ")
        self.assertEqual(probe.do("no-login 1"), "answered 0 ")
        self.assertEqual(
            self.supervisor.logins, [(1, {"user": "me", "password": 'tu"lip'}), (1, {"cancel": True})]
        )
        self.assertEqual(probe.do("cancel 2"), "cancelled 0 ")
        self.assertEqual(list(self.supervisor.transfers), [1])
        self.assertRegex(probe.do("cancel 2"), "^cancelled -[0-9]+ there is no transfer 2")
        self.assertRegex(probe.do("download gopher:a"), "^begun -[0-9]+ gopher:a is of neither")
        self.assertEqual(self.supervisor.told("transferDidFinish", transfer=1), {"result": "done"})
        probe.finish()

    def test_alerts_are_scheduled_and_cancelled(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do('alert Tea "is" ready'), "scheduled 0 ")
        self.assertEqual(probe.do("alert-late Later"), "scheduled 0 ")
        first, second = [dict(alert) for alert in self.supervisor.alerts]
        self.assertEqual({len(first.pop("token")), len(second.pop("token"))}, {16})
        self.assertEqual(
            first,
            {"title": 'Tea "is" ready', "id": "tea", "body": 'a "b"', "calendar": "daily", "wake": True,
             "payload": {"a": [1]}, "actions": [{"id": "later", "label": "Later"}]},
        )
        self.assertEqual(
            second, {"title": "Later", "after_ms": 60000, "url": "notes:1", "urgency": "low", "wake": False}
        )
        self.assertEqual(probe.do("badge 7"), "badged 0 ")
        self.assertEqual(self.supervisor.badge, 7)
        self.assertRegex(probe.do("no-alert coffee"), f"^cancelled {-errno.ENOENT} there is no alert coffee")
        self.assertEqual(probe.do("no-alert tea"), "cancelled 0 ")
        self.assertEqual([alert["title"] for alert in self.supervisor.alerts], ["Later"])
        self.assertEqual(probe.do("no-alert"), "cancelled 0 ")
        self.assertEqual(self.supervisor.alerts, [])
        self.assertRegex(probe.do("alert "), f"^scheduled {-errno.EIO} title must be")
        self.assertEqual(probe.do("alert-text [{"), f"scheduled {-errno.EINVAL} The actions are not JSON.")
        self.assertEqual(probe.do('alert-text [],"wake":true'), f"scheduled {-errno.EINVAL} The actions are not JSON.")
        probe.finish()

    def test_permissions_are_read_and_requested(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do("permission camera"), "permission 2 ")
        self.assertEqual(probe.do("permission files:/a b"), "permission 1 ")
        self.assertEqual(probe.do("permission gpu"), "permission 0 ")
        self.assertEqual(probe.do("last-error"), "last error: ")
        self.assertRegex(probe.do("permission camer"), "^permission -[0-9]+ .*no such permission")
        self.assertEqual(probe.do("request camera"), "requested 2 1 0 ")
        self.assertEqual(probe.do("request camera"), "requested 2 0 7 ")
        self.assertEqual(probe.do("request gpu"), "requested 0 0 0 ")
        self.assertRegex(probe.do("request netwrk"), "^requested -[0-9]+ 0 0 fake asks for no permission netwrk")
        probe.finish()

    def test_settings_are_read_and_set(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do("settings"), "settings 3 8000 light null")
        self.assertEqual(probe.do('set-theme "da\\"rk"'), "set 1 ")
        self.assertEqual(probe.do("settings"), 'settings 3 8000 da"rk null')
        self.assertEqual(probe.do('set-theme "da\\"rk"'), "set 0 ")
        self.assertEqual(probe.do("set-theme -"), "set 1 ")
        self.assertRegex(probe.do("set-theme dark"), f"^set {-errno.EINVAL} The value is not JSON")
        self.assertRegex(probe.do("set-port 1"), f"^set {-errno.EPERM} port is not for the app to set")
        self.assertEqual(probe.do("settings"), "settings 3 8000 light null")
        probe.finish()

    def test_states_are_saved_restored_and_discarded(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do("save what it is"), "saved 0 ")
        self.assertEqual(self.supervisor.archive, b"what it is")
        for size in (0, 1, 2, 3, (384 << 10), (384 << 10) + 1, 3 << 20):
            self.assertEqual(probe.do(f"save-size {size}"), "saved 0 ")
            self.assertEqual(self.supervisor.archive, bytes(i % 251 for i in range(size)))
        self.supervisor.limit = 100
        self.assertTrue(probe.do("save-size 500000").startswith("saved -27 TooLarge"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["app"])
        with open(self.folder + "/mine", "w") as file:
            file.write("a file")
        self.assertEqual(probe.do("save-file mine"), "saved 0 ")
        self.supervisor.told("restoreState", path=self.folder + "/mine", bytes=6)
        self.assertEqual(probe.do("discard"), "discarded 0 ")
        self.assertIn("state a file", probe.seen)
        self.assertIsNone(self.supervisor.archive)
        probe.finish()

    def test_each_message_to_a_scene_has_its_function(self) -> None:
        probe = self.probe()
        with open(self.folder + "/mine", "w") as file:
            file.write("a file")
        state = {"path": self.folder + "/mine", "bytes": 6}
        for name, parameters, lines in [
            ("willFinishLaunching", {"options": {"scene": "alice", "session": {"tab": 2}, "foreground": True}},
             ["scene alice 2 1 0 - 0"]),
            ("didFinishLaunching", {"options": {"scene": None}}, ["scene - -1 0 0 - 0"]),
            ("sceneWillConnect", {"scene": "alice", "state": None,
                                  "options": {"session": {"tab": 2}, "foreground": False, "new": True}},
             ["scene alice 2 0 1 - 0"]),
            ("sceneWillConnect", {"scene": "bob", "state": state, "options": {"session": None, "foreground": True}},
             [f"scene bob -1 1 0 {self.folder}/mine 6", "state a file"]),
            ("sceneWillConnect", {"scene": "odd", "state": "no", "options": 4}, ["scene odd -1 0 0 - 0"]),
            ("sceneDidBecomeActive", {"scene": "alice"}, ["scene alice -1 0 0 - 0"]),
            ("sceneWillResignActive", {"scene": "alice"}, ["scene alice -1 0 0 - 0"]),
            ("sceneDidEnterBackground", {"scene": 4}, ["scene - -1 0 0 - 0"]),
            ("sceneWillEnterForeground", {"scene": "alice"}, ["scene alice -1 0 0 - 0"]),
            ("sceneDidDisconnect", {"scene": "alice"}, ["scene alice -1 0 0 - 0"]),
            ("didDiscardScenes", {"id": 9, "payload": {"names": ["bob", "carol"]}},
             ["discarded scene bob", "discarded scene carol"]),
        ]:
            seen = len(probe.seen)
            self.assertEqual(self.supervisor.told(name, **parameters), {"result": "done"}, name)
            probe.until(lines[-1])
            self.assertEqual([line for line in probe.seen[seen:] if line.startswith(("scene", "state", "discarded"))], lines)
        self.assertEqual(self.supervisor.told("didDiscardScenes", payload={"names": "bob"}), {"result": "done"})
        probe.do("fails sceneWillConnect")
        probe.do("declines sceneDidEnterBackground 4")
        self.assertEqual(self.supervisor.told("sceneWillConnect"), {"result": "failed", "text": 'It "failed".'})
        self.assertEqual(self.supervisor.told("sceneDidEnterBackground"), {"result": "done", "declines": ["snapshot"]})
        probe.finish()

    def test_state_and_snapshot_of_a_scene_are_its_own(self) -> None:
        probe = self.probe()
        with open(self.folder + "/mine", "w") as file:
            file.write("a file")
        kept = lambda: (self.supervisor.scene_archives, self.supervisor.scene_snapshots)  # noqa: E731
        probe.do('scene al"ice')
        self.assertEqual([probe.do("save what it is"), probe.do("show a text")], ["saved 0 ", "shown 0 "])
        self.assertEqual(kept(), ({'al"ice': b"what it is"}, {'al"ice': b"a text"}))
        self.assertEqual([probe.do("save-file mine"), probe.do("show-file mine")], ["saved 0 ", "shown 0 "])
        self.assertEqual(kept(), ({'al"ice': b"a file"}, {'al"ice': b"a file"}))
        self.assertEqual(probe.do("save-size 500000"), "saved 0 ")
        self.assertEqual(len(self.supervisor.scene_archives['al"ice']), 500000)
        self.assertEqual([probe.do("discard"), probe.do("hide")], ["discarded 0 ", "hidden 0 "])
        self.assertEqual((*kept(), self.supervisor.archive, self.supervisor.snapshot), ({}, {}, None, None))
        probe.do("scene -")
        self.assertEqual(probe.do("save x"), "saved 0 ")
        self.assertEqual((*kept(), self.supervisor.archive), ({}, {}, b"x"))
        probe.finish()

    def test_snapshots_are_given_and_taken_back(self) -> None:
        probe = self.probe()
        self.assertEqual(probe.do("show what it is"), "shown 0 ")
        self.assertEqual(self.supervisor.snapshot, b"what it is")
        with open(self.folder + "/mine", "w") as file:
            file.write("a file")
        self.assertEqual(probe.do("show-file mine"), "shown 0 ")
        self.assertEqual(self.supervisor.snapshot, b"a file")
        self.assertEqual(probe.do("hide"), "hidden 0 ")
        self.assertIsNone(self.supervisor.snapshot)
        self.assertIsNone(self.supervisor.archive)
        probe.finish()

    def test_a_replaced_supervisor_loses_and_repeats_nothing(self) -> None:
        probe = self.probe()
        probe.do("later willResignActive")
        probe.do("begin upload")
        self.supervisor.told("didBecomeActive")
        number = self.supervisor.tell("willResignActive")
        probe.until(f"message {number}")
        self.supervisor.stop()
        # Nobody is there to hear it now.
        probe.do(f"answer {number}")
        self.supervisor.start()
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        self.assertEqual(self.supervisor.told("didEnterBackground"), {"result": "done"})
        self.supervisor.wait_until(lambda: self.supervisor.count("ClaimTasks"), "the task is claimed")
        self.assertEqual([name for name, _ in self.supervisor.tasks.values()], ["upload"])
        attached = [parameters for member, parameters in self.supervisor.calls if member == "Attach"]
        self.assertEqual(attached[0], {})
        self.assertEqual(attached[-1], {"incarnation": 1, "after": 2, "tasks": [1]})
        self.assertEqual(probe.do("end 1"), "ended 0 ")
        self.assertEqual(probe.messages(), ["didBecomeActive", "willResignActive", "didEnterBackground"])
        probe.finish()

    def test_every_moment_is_one_to_be_replaced_in(self) -> None:
        probe = self.probe()
        dice = random.Random(7)
        sent = []
        for _ in range(40):
            sent.append(self.supervisor.tell(dice.choice(["didBecomeActive", "willResignActive"])))
            if dice.random() < 0.3:
                probe.say("begin t")
            if dice.random() < 0.5:
                self.supervisor.replace(dice.choice([0, 0, 0.02]))
        for number in sent:
            self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        probe.finish()
        self.assertEqual(
            [int(line.split()[1]) for line in probe.seen if line.startswith("message")], list(range(1, 41))
        )

    def test_an_answer_that_was_taken_before_the_break_counts_as_taken(self) -> None:
        probe = self.probe()
        self.supervisor.deaf.add("Answer")
        number = self.supervisor.tell("didBecomeActive")
        self.supervisor.answer(number)
        self.supervisor.deaf.clear()
        self.supervisor.replace()
        self.supervisor.wait_until(lambda: self.supervisor.count("Answer") == 2, "it is said again")
        self.assertEqual(self.supervisor.told("willResignActive"), {"result": "done"})
        probe.finish()
        self.assertFalse([line for line in probe.seen if line.startswith("problem")])

    def test_a_second_answer_is_a_problem(self) -> None:
        probe = self.probe()
        number = self.supervisor.tell("didBecomeActive")
        self.supervisor.answer(number)
        probe.do(f"answer {number}")
        probe.until(f"problem Message {number} was answered twice")
        probe.finish()

    @unittest.skipUnless(os.geteuid() == 0, "another user is needed")
    def test_a_process_that_has_changed_its_user_says_why_it_does_not_attach(self) -> None:
        os.chmod(FOLDER, 0o755)
        os.chmod(self.supervisor.path, 0o600)
        process = subprocess.Popen(
            [PROBE, "--mute", *self.options], user=65534,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        self.addCleanup(process.kill)
        line = process.stderr.readline().decode()
        self.assertIn("cannot be opened (Permission denied): this process is user 65534", line)
        process.communicate(timeout=BOUND)

    def test_a_forked_child_takes_nothing_from_its_parent(self) -> None:
        if "--thread" in self.options:
            self.skipTest("a child that is forked from the library's thread ends with it")
        probe = self.probe()
        self.supervisor.wait_attached()
        probe.do("forks didReceiveEvent")
        # The second one is there before the child looks again.
        first, second = self.supervisor.tell("didReceiveEvent"), self.supervisor.tell("didBecomeActive")
        probe.until("child ends")
        self.assertEqual([self.supervisor.answer(first), self.supervisor.answer(second)], [{"result": "done"}] * 2)
        sentence = f"This torpor_app belongs to process {probe.process.pid}, from which this one was forked"
        self.assertEqual(len([line for line in probe.seen if line.startswith("problem " + sentence)]), 1)
        for line in ["child dispatch -10", "child save -10", "child readable 0"]:
            self.assertIn(line, probe.seen)
        for _ in range(3):
            self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
        probe.do("save of the parent")
        self.assertEqual(probe.messages().count("didBecomeActive"), 4)
        probe.finish()

    def test_a_child_keeps_no_connection_of_a_process_that_ends(self) -> None:
        probe = self.probe()
        probe.do("begin copy")
        probe.do("keeps didReceiveEvent")
        self.assertEqual(self.supervisor.told("didReceiveEvent"), {"result": "done"})
        probe.until("child ")
        child = int(probe.seen[-1].split()[1])
        self.addCleanup(os.kill, child, signal.SIGKILL)
        probe.process.kill()
        self.supervisor.wait_until(lambda: not self.supervisor.connections, "all connections are closed")
        self.assertEqual(self.supervisor.tasks, {})

    def test_a_number_that_is_no_result_is_said_and_loses_nothing(self) -> None:
        probe = self.probe()
        probe.do("returns didReceiveEvent 77")
        self.assertEqual(self.supervisor.told("didReceiveEvent", id=1, topic="jobs"), {"result": "unhandled"})
        probe.until("problem The function for didReceiveEvent returned 77, which is no torpor_result.")
        probe.do("returns didEnterBackground -1")
        self.assertEqual(
            self.supervisor.told("didEnterBackground"),
            {"result": "failed", "text": "The function for didEnterBackground returned -1, which is no torpor_result."},
        )
        probe.finish()

    def test_only_a_worker_has_no_delegate(self) -> None:
        self.probe("--null").until("Invalid argument")
        worker = self.probe("--null", "--worker")
        worker.do("begin resize")
        self.assertEqual(worker.do("save hi"), "saved 0 ")
        self.assertEqual(self.supervisor.archive, b"hi")
        worker.finish()

    def test_a_program_can_ask_whether_its_tasks_expire(self) -> None:
        probe = self.probe("--worker")
        for remaining, warning, expires in [(None, 2000, 0), (2001, 2000, 0), (2000, 2000, 1), (0, 2000, 1),
                                            (5001, None, 0), (5000, None, 1)]:
            self.supervisor.remaining, self.supervisor.expiry_warning = remaining, warning
            self.assertEqual(probe.do("expiring"), f"expiring {expires} ", (remaining, warning))
        probe.finish()

    def test_without_a_function_for_problems_they_are_on_standard_error(self) -> None:
        self.supervisor.refuse_next("Attach", "NotPermitted")
        probe = self.probe("--mute")
        self.supervisor.wait_until(lambda: self.supervisor.count("Attach"), "it attaches")
        line = probe.process.stderr.readline().decode()
        self.assertIn("torpor: The supervisor does not take this process as the app's delegate: NotPermitted", line)
        probe.finish()

    def test_a_refused_attach_is_said_and_tried_again_only_where_it_makes_sense(self) -> None:
        self.supervisor.refuse_next("Attach", "AlreadyAttached", pid=1)
        probe = self.probe()
        probe.until("problem The supervisor does not take this process as the app's delegate: AlreadyAttached")
        self.supervisor.wait_attached()
        self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
        self.supervisor.refuse_next("Attach", "NotPermitted")
        self.supervisor.replace()
        probe.until("problem The supervisor does not take this process as the app's delegate: NotPermitted")
        count = self.supervisor.count("Attach")
        self.supervisor.replace(0.1)
        probe.do("begin x")
        self.assertEqual(self.supervisor.count("Attach"), count)
        probe.finish()

    def test_a_worker_gets_no_messages_but_has_tasks_that_outlive_a_supervisor(self) -> None:
        probe = self.probe("--worker")
        probe.do("begin resize")
        self.assertEqual(self.supervisor.count("Attach"), 0)
        self.supervisor.replace()
        self.supervisor.wait_until(lambda: self.supervisor.count("ClaimTasks"), "the task is claimed")
        self.assertEqual(probe.do("end 1"), "ended 0 ")
        probe.finish()

    def test_without_a_supervisor_it_is_launched_into_the_foreground(self) -> None:
        self.set_environment("TORPOR_APP_SOCKET", "")
        probe = self.probe()
        probe.until("message 3 didBecomeActive")
        self.assertEqual(probe.messages(), ["willFinishLaunching", "didFinishLaunching", "didBecomeActive"])
        self.assertEqual(probe.do("begin x"), "remaining -1")
        self.assertEqual(probe.do("end 1"), "ended 0 ")
        self.assertTrue(probe.do("save x").startswith("saved -107 The program runs without a supervisor"))
        probe.finish()

    def test_a_stop_in_the_middle_of_a_task_is_no_break(self) -> None:
        probe = self.probe()
        probe.do("begin x")
        probe.process.send_signal(signal.SIGSTOP)
        number = self.supervisor.tell("resumed", gap_s=0.1)
        probe.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.supervisor.answer(number), {"result": "done"})
        self.assertEqual(probe.do("end 1"), "ended 0 ")
        self.assertEqual(self.supervisor.count("Attach"), 1)
        probe.finish()

    def test_garbage_ends_a_connection_and_not_the_app(self) -> None:
        dice = random.Random(11)
        good = json.dumps({"parameters": {"message": {"id": 5, "name": "x"}}, "continues": True}).encode()
        texts: List[bytes] = [
            b"\0\0\0", b"nonsense\0", b"[]\0", b"null\0", b"{}\0", b'{"error":7}\0', b'{"error":"x"}\0',
            b'{"parameters":{"message":7},"continues":true}\0',
            b'{"parameters":{"message":{"id":-1,"name":"x"}},"continues":true}\0',
            b"[" * 100000 + b"\0",
        ]
        for _ in range(40):
            text = bytearray(good)
            for _ in range(dice.randrange(1, 6)):
                text[dice.randrange(len(text))] = dice.randrange(256)
            texts.append(bytes(text) + b"\0")
        probe = self.probe()
        for text in texts:
            self.supervisor.wait_attached()
            with self.supervisor.changed:
                if self.supervisor.delegate is not None:
                    self.supervisor.delegate.send_bytes(text)
            if dice.random() < 0.3:
                self.supervisor.replace()
        self.supervisor.replace()
        self.supervisor.wait_attached()
        probe.do("begin x")
        probe.finish()

    def test_a_reply_without_an_end_is_not_kept(self) -> None:
        probe = self.probe()
        self.supervisor.wait_attached()
        first = self.supervisor.delegate
        threading.Thread(target=first.send_bytes, args=(b"x" * (9 << 20),), daemon=True).start()
        # It is refused while the supervisor still reads what the first connection left behind.
        self.supervisor.wait_until(lambda: self.supervisor.delegate not in (None, first), "it attaches again")
        self.assertEqual(self.supervisor.told("didBecomeActive"), {"result": "done"})
        probe.finish()

    def test_notifications_go_to_the_notify_socket(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(self.folder + "/notify")
            receiver.settimeout(BOUND)
            self.set_environment("NOTIFY_SOCKET", self.folder + "/notify")
            probe = self.probe()
            self.assertEqual(probe.do("notify STATUS=well"), "notified 0 ")
            self.assertEqual(receiver.recv(100), b"STATUS=well")
            probe.finish()


class CLibraryThreadTests(CLibraryTests):
    """The same with the library's own thread."""

    options = ["--thread"]


class JSONTests(unittest.TestCase):
    def read(self, texts: List[bytes]) -> List[bytes]:
        given = b"".join(b"%d\n" % len(text) + text for text in texts)
        result = subprocess.run([READER], input=given, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        read = result.stdout.split(b"\n")[:-1]
        self.assertEqual(len(read), len(texts))
        return read

    def test_what_is_json_is_read_as_others_read_it(self) -> None:
        dice = random.Random(3)

        def value(depth: int) -> Any:
            kind = dice.randrange(8 if depth < 4 else 6)
            if kind == 0:
                return dice.choice([None, True, False])
            if kind == 1:
                return dice.randrange(-(2**63), 2**63)
            if kind == 2:
                return dice.uniform(-1e9, 1e9)
            if kind < 6:
                return "".join(chr(dice.choice([0x20, 0x22, 0x5C, 0x41, 0xE9, 0x20AC, 0x1F600, 10])) for _ in range(5))
            items = [value(depth + 1) for _ in range(dice.randrange(1, 5))]
            return items if kind == 6 else {f"k{index}\u00e4": item for index, item in enumerate(items)}

        expected = [value(0) for _ in range(500)]
        for ascii in (True, False):
            texts = [json.dumps(one, ensure_ascii=ascii, indent=ascii or None).encode() for one in expected]
            self.assertEqual([json.loads(text) for text in self.read(texts)], expected)

    def test_what_is_not_json_is_refused(self) -> None:
        texts = [
            b"", b" ", b"{", b"}", b"[1,]", b"[,1]", b'{"a"}', b'{"a":}', b'{a:1}', b'"', b'"\\x"', b'"\\u12g4"',
            b'"\\ud800"', b'"\\udc00"', b'"\\ud800\\u0041"', b"01", b"-", b"1.", b".5", b"1e", b"+1", b"nul", b"truex",
            b'"\n"', b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b"1 2", b"[1]\0",
            b"NaN", b"Infinity", b"'a'", b"[" * 65 + b"]" * 65, b"\xef\xbb\xbf1", b"1" * 500,
        ]
        for text, read in zip(texts, self.read(texts)):
            self.assertEqual(read, b"invalid", text)
        self.assertNotIn(b"invalid", self.read([b"[" * 64 + b"]" * 64, b" 0 ", b"-0", b'"\x7f"', b"{}", b"1e5", b"2E-3"]))

    def test_changed_texts_do_no_harm(self) -> None:
        result = subprocess.run([READER, "--random", "20", "100000"], capture_output=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
