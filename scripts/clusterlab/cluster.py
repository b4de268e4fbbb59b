# SPDX-License-Identifier: Apache-2.0
"""Three nodes with Torpor, corosync and Pacemaker, a switch for their power, and the apps that they share."""

import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .judge import Log, faults
from .node import BRIDGE, PREFIX, SLOWLY, Node, Trouble, shell, until

HERE = Path(__file__).resolve().parent
NAMES = ("north", "east", "south")
# How many apps are moved at once.
MANY = 30
# Seconds that the apps of the lab need to start.
LOAD = 1.0

COROSYNC = """totem {{
    version: 2
    cluster_name: lab
    transport: knet
    crypto_cipher: none
    crypto_hash: none
    token: {token}
}}
nodelist {{
{nodes}}}
quorum {{
    provider: corosync_votequorum
}}
logging {{
    to_syslog: yes
}}
"""

NETWORK = """[Unit]
Before=corosync.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ip link set lo up; ip address replace {address}/24 dev host0; ip link set host0 up'
[Install]
WantedBy=multi-user.target
"""

APP = """[apps.{name}]
exec = ["/usr/bin/python3", "-S", "{shared}/app.py", "{name}", "{shared}/log"{options}]
ready = "{ready}"
owner = "external"
launch = "foreground"
tags = ["ha"]
background_time = "1s"
restart_backoff = {{ initial = "0s", limit = 1 }}
topics = {{ handover = "latest" }}
"""


def configuration(shared: Path) -> str:
    """hot: knows its lifecycle. cold: knows nothing, and works as soon as it runs. The others are as hot."""
    apps = [
        APP.format(name="hot", shared=shared, ready="delegate", options=f', "--load", "{LOAD}"'),
        # Owned as keepalived says, not Pacemaker.
        APP.format(name="kept", shared=shared, ready="delegate", options=f', "--load", "{LOAD}"'),
        APP.format(name="cold", shared=shared, ready="exec", options=f', "--plain", "--load", "{LOAD}"'),
    ]
    apps += [
        APP.format(name=f"many-{number}", shared=shared, ready="delegate", options=', "--every", "0.02"')
        for number in range(1, MANY + 1)
    ]
    return "\n".join(apps)


def make_later(package: Path, later: Path, folder: Path) -> None:
    """The same programs as a later version."""
    tree = folder / "later"
    shell("dpkg-deb", "-R", str(package), str(tree))
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", r"\g<0>+1", control.read_text()))
    shell("dpkg-deb", "--root-owner-group", "-b", "-Znone", str(tree), str(later))
    shutil.rmtree(tree)


class Switch:
    """The nodes' power, as their fence devices reach it."""

    def __init__(self, path: Path, nodes: dict[str, Node]) -> None:
        self.nodes = nodes
        self.cuts: list[tuple[str, int]] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                asked, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(asked,), daemon=True).start()

    def answer(self, asked: socket.socket) -> None:
        with asked, asked.makefile() as lines:
            action, _, name = lines.readline().strip().partition(" ")
            if action == "run":
                asked.sendall(self.run(*name.split(" ", 1)))
                return
            try:
                asked.sendall(f"{self.do(action, self.nodes.get(name))}\n".encode())
            except (OSError, Trouble) as trouble:
                print(f"the switch: {action} {name}: {trouble}")

    def run(self, name: str, command: str) -> bytes:
        """What stands for ssh: the status of a command on a node, and its output."""
        done = subprocess.run(self.nodes[name].enter("sh", "-c", command), capture_output=True, check=False)
        return f"{done.returncode}\n".encode() + done.stdout + done.stderr

    def do(self, action: str, node: Node | None) -> str:
        if action in ("monitor", "list"):
            return "ok " + " ".join(self.nodes)
        if node is None:
            return "unknown"
        if action in ("off", "reboot"):
            # A node that is fenced stays off until the lab switches it on again.
            node.cut()
            self.cuts.append((node.name, time.monotonic_ns()))
        elif action == "status":
            return "ok " + ("on" if node.is_on else "off")
        return "ok"


class Cluster:
    """`token`: after how many milliseconds of silence corosync takes a node for gone."""

    def __init__(self, root: str, packages: list[Path], token: int) -> None:
        self.token = token
        self.folder = Path(tempfile.mkdtemp(prefix="torpor-cluster-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.log = Log(self.folder / "log")
        self.log.folder.mkdir()
        self.later = self.folder / "later.deb"
        # How Pacemaker calls the resources' instances.
        self.instances: dict[str, str] = {}
        for file in [HERE / "app.py", HERE / "fence_lab", HERE / "ssh_lab", *packages]:
            shutil.copy(file, self.folder)
        self.packages = [self.folder / package.name for package in packages]
        torpor = next(package for package in self.packages if package.name.startswith("torpor_"))
        make_later(torpor, self.later, self.folder)
        shell("ip", "link", "set", "lo", "up")
        shell("ip", "link", "add", BRIDGE, "type", "bridge")
        shell("ip", "link", "set", BRIDGE, "up")
        self.nodes = {name: Node(name, number, root, self.folder) for number, name in enumerate(NAMES, 1)}
        self.switch = Switch(self.folder / "switch", self.nodes)
        self.each(lambda node: node.booted())

    def each(self, work) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(work, self.nodes.values()))

    def end(self) -> list[str]:
        """Ends everything, and returns what is left behind."""
        self.switch.listener.close()
        with ThreadPoolExecutor() as pool:
            list(pool.map(Node.end, self.nodes.values()))
        shutil.rmtree(self.folder, ignore_errors=True)
        # scripts/systemd-container names them after itself.
        groups = [f"{PREFIX}-{node.container.pid}" for node in self.nodes.values()]
        places = shell("findmnt", "-rn", "-t", "cgroup2,cgroup", "-o", "TARGET").split()
        return [f"{place}/{group}" for place in places for group in groups if Path(place, group).exists()]

    # Setting it up.

    def set_up(self) -> None:
        self.each(self.set_up_node)
        until("a cluster of three with a leader", lambda: len(self.online()) == len(self.nodes), SLOWLY)

    def set_up_node(self, node: Node) -> None:
        nodes = "".join(
            f"    node {{\n        ring0_addr: {each.address}\n        name: {each.name}\n        nodeid: {each.number}\n    }}\n"
            for each in self.nodes.values()
        )
        node.put("/etc/corosync/corosync.conf", COROSYNC.format(nodes=nodes, token=self.token))
        node.put("/etc/systemd/system/lab-network.service", NETWORK.format(address=node.address))
        hosts = "".join(f"{each.address} {each.name}\n" for each in self.nodes.values())
        node.put("/etc/hosts", "127.0.0.1 localhost\n" + hosts)
        node.run("install", "-m", "755", str(self.folder / "fence_lab"), "/usr/sbin/fence_lab")
        node.put("/etc/torpor/conf.d/lab.toml", configuration(self.folder))
        node.run("systemctl", "enable", "--now", "lab-network.service")
        node.run("dpkg", "-i", "--force-confold", *map(str, self.packages))
        node.run("systemctl", "enable", "--now", "corosync.service", "pacemaker.service")

    def configure(self, text: str) -> None:
        """Enters lines for crm; what is there already is replaced."""
        node = self.any()
        node.put("/tmp/crm", text)
        node.demand("crm", "configure", "load", "update", "/tmp/crm")

    # How it is.

    def any(self) -> Node:
        return next(node for node in self.nodes.values() if node.is_on)

    def others(self, name: str) -> list[Node]:
        return [node for node in self.nodes.values() if node.name != name]

    def online(self) -> list[str]:
        """The nodes that the others believe to be there."""
        for line in self.any().asks("crm_mon", "-1", "--exclude=all", "--include=nodes").splitlines():
            if "Online: [" in line:
                return line.split("[")[1].split("]")[0].split()
        return []

    def settled(self) -> None:
        """Waits until the cluster has nothing to do."""
        until("a cluster at rest", lambda: self.state() == "S_IDLE", SLOWLY)

    def asleep(self, *apps: str) -> None:
        """Waits until no standby of the apps runs any longer."""
        until(f"standbys of {' and '.join(apps)} asleep", lambda: not any(self.log.stirs(app) for app in apps))

    def state(self) -> str:
        return self.any().asks("crmadmin", "-q", "-S", self.leader()).strip()

    def leader(self) -> str:
        return self.any().asks("crmadmin", "-q", "-D").strip()

    def monitor(self, app: str, node: Node) -> int:
        """What the agent says of the app's instance on a node; the cluster is told of what it does not expect."""
        command = node.enter(
            "env", "OCF_ROOT=/usr/lib/ocf", "HA_RSCTMP=/run/resource-agents", f"OCF_RESOURCE_INSTANCE={self.instances[app]}",
            "OCF_RA_VERSION_MAJOR=1", "OCF_RA_VERSION_MINOR=1", "OCF_RESOURCE_TYPE=app", f"OCF_RESKEY_app={app}",
            "OCF_RESKEY_CRM_meta_interval=20000", f"OCF_RESKEY_kind={'cold' if app == 'cold' else 'hot'}",
            "/usr/lib/ocf/resource.d/torpor/app", "monitor",
        )  # fmt: skip
        return subprocess.run(command, capture_output=True, check=False).returncode

    def owner(self, app: str) -> str | None:
        """The node on which the app works now. On a busy machine it may be silent for a while."""
        return self.log.works_at(app, time.monotonic_ns() - 1_500_000_000)

    def heal(self) -> None:
        """All nodes on, the failures forgotten, everything at rest."""
        for node in self.nodes.values():
            if not node.is_on:
                node.boot()
        until("all nodes", lambda: len(self.online()) == len(self.nodes), SLOWLY)
        self.any().demand("crm_resource", "--cleanup")
        self.settled()

    def keep(self, folder: Path) -> None:
        """Writes down what the nodes have to say, where something was wrong."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.log.folder, folder)
        for file in self.folder.glob("container.*"):
            shutil.copy(file, folder)
        (folder / "processes.txt").write_text(shell("ps", "-eo", "pid,ppid,stat,wchan:32,etime,args"))
        for node in self.nodes.values():
            if not node.is_on:
                continue
            said = ["crm_mon", "-1rfA"], ["torpor", "list"], ["torpor", "history"], ["journalctl", "-b", "-o", "short-precise"]
            text = "".join(f"== {' '.join(command)}\n{node.asks(*command)}" for command in said)
            (folder / f"{node.name}.txt").write_text(text)

    def faults(self) -> list[str]:
        found = []
        for file in sorted(self.log.folder.iterdir()):
            # Without fencing it may work twice: that is measured.
            if file.name == "kept":
                continue
            found += faults(file.name, file.read_text(), file.name == "cold")
        return found
