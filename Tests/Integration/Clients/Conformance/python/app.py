# SPDX-License-Identifier: Apache-2.0
"""The conformance scenario's app in Python: README.md says what it does. With --asyncio on asyncio, else with threads."""

import asyncio
import os
import sys
import time
from typing import Any

import torpor
import torpor.aio

FOLDER = os.environ["CONFORMANCE"]


def record(*words: str) -> None:
    with open(f"{FOLDER}/rec.{os.environ['TORPOR_APP']}", "a") as file:
        file.write(" ".join(words) + "\n")


def is_there(name: str) -> bool:
    return os.path.exists(f"{FOLDER}/{name}")


class Recorder(torpor.Delegate):
    visits = 0

    def will_finish_launching(self, message: torpor.Message) -> None:
        record(message.name, "foreground" if message.options.get("foreground") else "background")

    def restore_state(self, message: torpor.Message) -> None:
        state = message.read_state().decode()
        record(message.name, state)
        self.visits = int(state)

    def resumed(self, message: torpor.Message) -> None:
        record(message.name, "after a gap" if message.gap > 0 else "at once")

    def will_terminate(self, message: torpor.Message) -> None:
        record(message.name, message.reason or "")

    def other(self, message: torpor.Message) -> None:
        record(message.name)

    did_finish_launching = did_become_active = will_enter_foreground = other
    protected_data_will_become_unavailable = protected_data_did_become_available = other

    def open_url(self, message: torpor.Message) -> None:
        record(message.name, message.url or "")

    def did_receive_memory_warning(self, message: torpor.Message) -> None:
        record(message.name, message.level)

    def settings_did_change(self, message: torpor.Message) -> None:
        record(message.name, os.path.basename(message.path or ""))

    identity_did_change = settings_did_change

    def significant_time_change(self, message: torpor.Message) -> None:
        record(message.name, message.time_zone or "none")

    def did_receive_event(self, message: torpor.Message) -> Any:
        record(message.name, message.topic or "", message.payload)
        if message.topic == "fetch":
            return self.fetch(message)
        return torpor.UNHANDLED if message.topic == "left" else None

    def handle_events_for_background_transfer(self, message: torpor.Message) -> None:
        record(message.name, message.session or "")

    def transfer_did_finish(self, message: torpor.Message) -> None:
        record(message.name, os.path.basename(message.path or ""), "failed" if message.error else "done")

    def transfer_needs_login(self, message: torpor.Message) -> Any:
        record(message.name, message.parameters["realm"])
        return message.app.answer_login(message.transfer, "me", "tulip")

    def fetch(self, message: torpor.Message) -> Any:
        raise NotImplementedError

    def scene_will_connect(self, message: torpor.Message) -> None:
        how = "foreground" if message.options["foreground"] else "background"
        age = "new" if message.options["new"] else "known"
        session = message.scene_session
        state = message.read_state().decode() if message.path else "-"
        record(message.name, message.scene or "", how, age, str(session["n"]) if session else "-", state)
        if message.scene == "nobody":
            raise LookupError("there is no nobody")

    def scene_did_enter_background(self, message: torpor.Message) -> Any:
        record(message.name, message.scene or "")
        return message.app.save_state(f"{message.scene} was here".encode(), scene=message.scene)

    def of_scene(self, message: torpor.Message) -> None:
        record(message.name, message.scene or "")

    scene_did_become_active = scene_will_resign_active = of_scene
    scene_will_enter_foreground = scene_did_disconnect = of_scene

    def did_discard_scenes(self, message: torpor.Message) -> None:
        record(message.name, ",".join(message.discarded))

    def did_receive_notification(self, message: torpor.Message) -> None:
        record(message.name, message.topic or "")

    def did_receive_remote_notification(self, message: torpor.Message) -> None:
        record(message.name, message.topic or "", message.payload)

    def problem(self, sentence: str) -> None:
        record("problem", sentence)


class Threads(Recorder):
    def will_resign_active(self, message: torpor.Message) -> None:
        record(message.name)
        while is_there("hold"):
            time.sleep(0.01)

    def did_enter_background(self, message: torpor.Message) -> None:
        record(message.name)
        self.visits += 1
        message.app.save_state(str(self.visits).encode())
        if is_there("long"):
            self.task = message.app.background_task("upload")

    def task_expiring(self, message: torpor.Message) -> None:
        record(message.name, message.parameters["name"])
        assert self.task.expired
        self.task.end()

    def fetch(self, message: torpor.Message) -> None:
        message.app.download(os.environ["CONFORMANCE_SERVER"] + message.payload, message.payload, "files")


class Asyncio(Recorder):
    async def will_resign_active(self, message: torpor.Message) -> None:
        record(message.name)
        while is_there("hold"):
            await asyncio.sleep(0.01)

    async def did_enter_background(self, message: torpor.Message) -> None:
        record(message.name)
        self.visits += 1
        await message.app.save_state(str(self.visits).encode())
        if is_there("long"):
            began = asyncio.Event()
            self.upload = asyncio.ensure_future(self.run(message.app, began))
            await began.wait()

    async def run(self, app: torpor.aio.App, began: asyncio.Event) -> None:
        try:
            async with app.background_task("upload"):
                began.set()
                await asyncio.sleep(1000)
        except torpor.TaskExpired:
            pass

    async def fetch(self, message: torpor.Message) -> None:
        await message.app.download(os.environ["CONFORMANCE_SERVER"] + message.payload, message.payload, "files")

    def task_expiring(self, message: torpor.Message) -> None:
        record(message.name, message.parameters["name"])


async def main() -> None:
    async with torpor.aio.App(Asyncio()):
        await asyncio.Event().wait()


if "--asyncio" in sys.argv:
    asyncio.run(main())
else:
    torpor.App(Threads()).run()
