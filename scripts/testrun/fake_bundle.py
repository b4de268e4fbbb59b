#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces a test bundle in test_runner.py: each test does what its name says."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

NAMES = os.environ["FAKE_TESTS"].split()
STATE = os.environ["FAKE_STATE"]


def option(name: str) -> str | None:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def main() -> int:
    if "--list-tests" in sys.argv:
        print("\n".join(NAMES))
        return 0
    pattern = re.compile(option("--filter") or "")
    chosen = [name for name in NAMES if pattern.search(f"{name}/File.swift:1:1")]
    failed = False
    with open(option("--event-stream-output-path") or "", "w", encoding="utf-8", buffering=1) as events:

        def tell(kind: str, name: str, **more: object) -> None:
            payload = {"kind": kind, "testID": f"{name}/File.swift:1:1", "instant": {"absolute": time.monotonic()}, **more}
            events.write(json.dumps({"kind": "event", "payload": payload}) + "\n")

        for name in chosen:
            if "Skipped/" in name:
                suite = {"kind": "testSkipped", "testID": name.partition("/")[0], "instant": {"absolute": time.monotonic()}}
                suite["messages"] = [{"text": 'Suite "it" skipped: "there is a reason"'}]
                events.write(json.dumps({"kind": "event", "payload": suite}) + "\n")
                continue
            if "lost" in name:
                continue
            tell("testStarted", name)
            with open(os.path.join(STATE, "tries." + re.sub(r"\W", "-", name)), "a+", encoding="utf-8") as file:
                file.seek(0)
                tries = len(file.read())
                file.write("x")
            if "thread" in name and tries == 0:
                failed = True
                # Swift Testing cannot assign an issue to a test if a thread outside of tasks records it.
                issue = {"kind": "issueRecorded", "instant": {"absolute": time.monotonic()}, "issue": {}}
                issue["messages"] = [{"text": "a thread says that it is not so"}]
                events.write(json.dumps({"kind": "event", "payload": issue}) + "\n")
            elif "fails" in name or "once" in name and tries == 0:
                failed = True
                tell("issueRecorded", name, issue={}, messages=[{"text": "it is not so"}])
            elif "inSuite" in name:
                failed = True
                at = {"absolute": time.monotonic()}
                suite = {"kind": "issueRecorded", "testID": name.partition("/")[0], "instant": at, "issue": {}}
                suite["messages"] = [{"text": "the suite is not so"}]
                events.write(json.dumps({"kind": "event", "payload": suite}) + "\n")
            elif "hangs" in name:
                time.sleep(1000)
            elif "dies" in name:
                os.kill(os.getpid(), signal.SIGSEGV)
            elif "leavesProcess" in name:
                subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
            elif "leavesBacktrace" in name:
                program = os.path.join(STATE, "swift-backtrace")
                shutil.copy("/bin/sleep", program)
                with open(os.path.join(os.environ["TMPDIR"], "said.lock"), "wb") as said:
                    process = subprocess.Popen([program, "1000"], stdout=said, env={}, start_new_session=True)
                with open(os.path.join(STATE, "pid"), "w", encoding="utf-8") as file:
                    file.write(str(process.pid))
            elif "leavesFile" in name:
                open(os.path.join(os.environ["TMPDIR"], "rest"), "w", encoding="utf-8").close()
            tell("testEnded", name)
    return 1 if failed else 0 if chosen else 69


if __name__ == "__main__":
    sys.exit(main())
