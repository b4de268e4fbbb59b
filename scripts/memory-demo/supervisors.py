# SPDX-License-Identifier: Apache-2.0
"""The two sides' supervisors, and how they read the states of apps."""
import collections
import json
import re
import subprocess
import threading

from sides import APPS, Side

#: An app with fewer MiB than this has not loaded its data yet.
LOADED = 30


class Earlyoom(Side):
    name, ending = "systemd and earlyoom", "killed"
    # earlyoom may never let all apps come up. All are running or starting: a request launches none.
    set_up_time, at_once = 10, APPS

    def start(self):
        for name in ("app@.socket", "app@.service"):
            self.container.write(name, self.files[name])
        log = self.folder + "/earlyoom.log"
        self.container.write(
            "earlyoom.service.d/memory.conf",
            self.files["earlyoom.conf"] + "StandardOutput=file:%s\nStandardError=file:%s\n" % (log, log),
        )
        self.container.run("systemctl", "daemon-reload")
        self.container.run("systemctl", "start", "earlyoom", *["app@%d.socket" % (slot + 1) for slot in range(APPS)])
        self.container.run("systemctl", "is-active", "earlyoom")
        self.slots, self.log, self.place = {}, log, 0

    def look(self):
        for slot, app in enumerate(self.apps):
            slice = self.container.group + "/payload/system.slice/system-app.slice"
            path = "%s/app@%d.service/cgroup.procs" % (slice, slot + 1)
            try:
                with open(path) as file:
                    pid = file.read().split()[0]
                with open("/proc/%s/status" % pid) as file:
                    status = file.read()
                self.slots[re.search(r"NSpid:.*\s(\d+)\n", status)[1]] = slot
                has = sum(int(number) for number in re.findall(r"(?:RssAnon|VmSwap):\s+(\d+)", status))
                app.state = "starts" if has < LOADED << 10 else "active" if slot == 0 else "runs"
            except (OSError, IndexError, TypeError):
                app.state = "gone"
        with open(self.log) as file:
            file.seek(self.place)
            text = file.read()
        whole = text.rfind("\n") + 1
        self.place += len(text[:whole].encode())
        for pid in re.findall(r"sending SIG\w+ to process (\d+)", text[:whole]):
            slot = self.slots.pop(pid, None)
            if slot is not None:
                self.did_end(self.apps[slot], "is killed by earlyoom")


class Torpor(Side):
    name, ending = "Torpor", "evicted"

    def __init__(self, container, folder, files, programs):
        super().__init__(container, folder, files)
        self.programs, self.lines, self.follower = programs, collections.deque(), None

    def start(self):
        with open(self.folder + "/torpor.toml", "w") as file:
            file.write(self.files["torpor.toml"])
        # As in torpord.service.
        self.container.write(
            "torpord.service",
            "[Service]\nType=notify\nNotifyAccess=main\nExecStart={0}/torpord --config {1}/torpor.toml\n"
            "Environment=RUNTIME_DIRECTORY={1}/run STATE_DIRECTORY={1}/state LOGS_DIRECTORY={1}/log\n"
            "KillMode=mixed\nOOMPolicy=continue\nDelegate=yes\nTasksMax=infinity\nOOMScoreAdjust=-900\n"
            "LimitNOFILE=32768:524288\nLimitMEMLOCK=infinity\nStandardError=file:{1}/torpord.log\n".format(
                self.programs, self.folder
            ),
        )
        self.container.run("systemctl", "daemon-reload")
        self.container.run("systemctl", "start", "torpord")
        self.follower = subprocess.Popen(
            self.command("events", "-f", "--json"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=lambda: self.lines.extend(self.follower.stdout), daemon=True).start()

    def command(self, *words):
        return [self.programs + "/torpor"] + list(words) + ["--socket", self.folder + "/run/io.torpor"]

    def bring_forward(self):
        subprocess.run(self.command("foreground", "app@1"), check=True, stdout=subprocess.DEVNULL)

    def look(self):
        while self.lines:
            event = json.loads(self.lines.popleft())
            name = event.get("app") or ""
            if not name.startswith("app@"):
                continue
            app = self.apps[int(name[4:]) - 1]
            if event["kind"] == "transition" and event["to"] == "launching":
                app.state = "starts"
            if event["kind"] == "state" and event["to"] != "not-running":
                app.state = {"active": "active", "suspended": "asleep"}.get(event["to"], "runs")
            if event["kind"] == "exit":
                app.state = "evicted" if event["reason"] == "evicted" else "gone"
                self.did_end(app, "is evicted" if event["reason"] == "evicted" else "has ended: %s" % event["reason"])

    def end(self):
        if self.follower is not None:
            self.follower.kill()
            self.follower.wait()
        super().end()
