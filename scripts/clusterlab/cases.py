# SPDX-License-Identifier: Apache-2.0
"""What may happen to a cluster, each with what must come of it. A case returns the outage of an app in milliseconds."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from .cluster import MANY, Cluster
from .judge import outage
from .node import SLOWLY, Node, until
from .plan import enter, remove_many

APPS = ("hot", "cold")
# Where the apps begin, and where each goes from there.
HOME = "east"
AWAY = {"hot": "north", "cold": "south"}
# How pgrep finds Torpor's two programs; the keeper has torpord's path among its arguments.
TORPORD = ("-x", "torpord")
KEEPER = ("-f", "torpor-keeper /")
# How long the cluster is watched where nothing must happen.
QUIET = 8.0


class Wrong(Exception):
    """What must not be."""


@dataclass
class Case:
    title: str
    run: Callable[["Lab"], dict[str, float]]
    is_short: bool


CASES: list[Case] = []


def case(title: str, is_short: bool = False):
    def enter(function):
        CASES.append(Case(title, function, is_short))
        return function

    return enter


def insist(condition: object, sentence: str) -> None:
    if not condition:
        raise Wrong(sentence)


class Lab:
    """A cluster, and the moment from which a case measures."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.began = 0

    def begin(self) -> None:
        self.began = time.monotonic_ns()

    def owner(self, app: str) -> Node:
        name = until(f"{app} works somewhere", lambda: self.cluster.owner(app))
        return self.cluster.nodes[name]

    def gather(self) -> Node:
        """Has one node own both apps."""
        name = HOME
        node = self.cluster.nodes[name]
        for app in APPS:
            if self.owner(app) is not node:
                self.move(app, name)
        self.cluster.settled()
        return node

    def move(self, app: str, name: str) -> None:
        any_node = self.cluster.any()
        clone = f"{app}-clone"
        any_node.run("crm_resource", "--move", "--resource", clone, "--promoted", "--node", name)
        until(f"{app} works on {name}", lambda: self.cluster.owner(app) == name)
        self.cluster.settled()
        any_node.demand("crm_resource", "--clear", "--resource", clone)
        self.cluster.settled()

    def elsewhere(self, app: str, node: Node) -> None:
        until(
            f"{app} works on another node than {node.name}",
            lambda: self.cluster.log.works_at(app, self.began) not in (None, node.name),
        )  # fmt: skip

    def outage(self, app: str) -> float:
        # The last word before the pause, and the first one after it, are in the log.
        time.sleep(0.2)
        found = outage(self.cluster.log.text(app), self.began)
        if found is None:
            raise Wrong(f"{app} did not work at all")
        return found[0]

    def restarted(self, app: str, node: Node) -> None:
        """Kills the app, and waits until Torpor has restarted it."""
        before = self.cluster.log.last(app, 0)
        kill(node.pid(app))
        until(f"{app} works again", lambda: self.cluster.log.last(app, 0) != before)
        insist(self.owner(app) is node, f"{app} was moved")

    def stays_without(self, *searches: tuple[str, str]) -> dict[str, float]:
        """Kills programs of the owner, whose apps go on."""
        node = self.gather()
        pids = {app: node.pid(app) for app in APPS}
        killed = []
        for search in searches:
            found = node.asks("pgrep", *search).split()
            insist(len(found) == 1, f"pgrep {search} finds {len(found)} processes")
            killed.append(node.outside(int(found[0])))
        self.begin()
        for pid in killed:
            kill(pid)
        return self.stays(node, pids, 300)

    def outages(self) -> dict[str, float]:
        return {app: self.outage(app) for app in APPS}

    def stays(self, node: Node, pids: dict[str, int | None], most: float) -> dict[str, float]:
        """Nothing moves, no app is another process, and none is away longer than `most` milliseconds."""
        time.sleep(QUIET)
        # As the monitors would.
        for app in APPS:
            code = self.cluster.monitor(app, node)
            insist(code == 8, f"the monitor of {app} says {code}, not 8")
        self.cluster.settled()
        found = self.outages()
        for app in APPS:
            insist(self.owner(app) is node, f"{app} was moved to {self.owner(app).name}")
            insist(node.pid(app) == pids[app], f"{app} is another process")
            insist(found[app] < most, f"{app} was away for {found[app]:.0f} ms")
        return found


def kill(pid: int | None) -> None:
    insist(pid, "there is no such process")
    os.kill(pid or 0, signal.SIGKILL)


@case("moved by a person", is_short=True)
def moved(lab: Lab) -> dict[str, float]:
    lab.gather()
    found = {}
    for app in APPS:
        lab.begin()
        lab.move(app, AWAY[app])
        found[app] = lab.outage(app)
    return found


@case("kill -9 of the app: Torpor restarts it")
def killed(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    found = {}
    for app in APPS:
        node.run("torpor", "reset", app)
        lab.begin()
        lab.restarted(app, node)
        found[app] = lab.outage(app)
    return found


@case("kill -9 of the app a second time: it is moved", is_short=True)
def given_up(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    found = {}
    for app in APPS:
        node.run("torpor", "reset", app)
        lab.restarted(app, node)
        lab.begin()
        kill(node.pid(app))
        lab.elsewhere(app, node)
        found[app] = lab.outage(app)
    lab.cluster.heal()
    return found


@case("kill -9 of torpord: nothing moves")
def without_torpord(lab: Lab) -> dict[str, float]:
    return lab.stays_without(TORPORD)


@case("kill -9 of torpor-keeper: nothing moves")
def without_keeper(lab: Lab) -> dict[str, float]:
    return lab.stays_without(KEEPER)


@case("kill -9 of torpord and torpor-keeper at once: nothing moves")
def without_both(lab: Lab) -> dict[str, float]:
    return lab.stays_without(KEEPER, TORPORD)


@case("power of the node off", is_short=True)
def node_off(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    lab.begin()
    node.cut()
    for app in APPS:
        lab.elsewhere(app, node)
    found = lab.outages()
    lab.cluster.heal()
    return found


@case("network of the node cut: it is fenced", is_short=True)
def cut_off(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    lab.begin()
    node.unplug()
    for app in APPS:
        lab.elsewhere(app, node)
    # It goes on where nobody reaches it, until it is fenced.
    found = {app: lab.cluster.log.until(app, lab.began, node.name) for app in APPS}
    insist(any(name == node.name and time > lab.began for name, time in lab.cluster.switch.cuts), "nobody was fenced")
    lab.cluster.heal()
    return found


MANY_APPS = [f"many-{number}" for number in range(1, MANY + 1)]


def fill(lab: Lab) -> Node:
    """Has one node own many apps, and the others stand by for them."""
    cluster = lab.cluster
    couple = ("north", "east")
    enter(cluster, "hot", "many-*", nodes=couple)
    until("many apps", lambda: all(cluster.owner(app) for app in MANY_APPS), SLOWLY)
    for name in couple:
        count = sum(cluster.owner(app) == name for app in MANY_APPS)
        insist(count == MANY // 2, f"{name} owns {count} of {MANY} apps: they are not spread")
    stand_by(lab, "east")
    insist(all(cluster.owner(app) == "north" for app in MANY_APPS), "apps have returned by themselves")
    return cluster.nodes["north"]


def stand_by(lab: Lab, name: str) -> None:
    """Has a node give all its apps away, and takes it back."""
    lab.cluster.any().run("crm_standby", "--node", name, "--update", "on")
    until(f"no app on {name}", lambda: all(lab.cluster.owner(app) not in (None, name) for app in MANY_APPS), SLOWLY)
    lab.cluster.settled()
    lab.cluster.any().run("crm_standby", "--node", name, "--update", "off")
    time.sleep(1)
    lab.cluster.settled()


@case(f"{MANY} apps moved at once by a person: the last one")
def many_moved(lab: Lab) -> dict[str, float]:
    node = fill(lab)
    lab.begin()
    stand_by(lab, node.name)
    return {"hot": max(lab.outage(app) for app in MANY_APPS)}


@case(f"power of the node with {MANY} apps off: the last one")
def many_off(lab: Lab) -> dict[str, float]:
    node = lab.cluster.nodes["east"]
    insist(lab.cluster.owner("many-1") == node.name, "it needs what the case before has made")
    lab.begin()
    node.cut()
    for app in MANY_APPS:
        lab.elsewhere(app, node)
    found = {"hot": max(lab.outage(app) for app in MANY_APPS)}
    remove_many(lab.cluster)
    lab.cluster.heal()
    return found


@case("power of all nodes off and on: nothing runs before the cluster says so")
def all_off(lab: Lab) -> dict[str, float]:
    for node in lab.cluster.nodes.values():
        node.run("systemctl", "disable", "corosync.service", "pacemaker.service")
    lab.begin()
    lab.cluster.each(Node.cut)
    off = time.monotonic_ns()
    lab.cluster.each(Node.boot)
    time.sleep(QUIET)
    for app in APPS:
        for node in lab.cluster.nodes.values():
            insist(node.pid(app) is None, f"{app} runs on {node.name} although no cluster has said so")
            said = node.asks("torpor", "list", app)
            insist("not owned" in said, f"{node.name} says of {app}: {said}")
        insist(lab.cluster.log.works_at(app, off) is None, f"{app} worked although no cluster has said so")
    lab.cluster.each(lambda node: node.run("systemctl", "enable", "--now", "corosync.service", "pacemaker.service"))
    for app in APPS:
        lab.owner(app)
    lab.cluster.heal()
    return {}


@case("power of the owner off and on: it comes back as a standby")
def returns(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    lab.begin()
    node.cut()
    for app in APPS:
        lab.elsewhere(app, node)
    now = {app: lab.owner(app) for app in APPS}
    lab.cluster.heal()
    time.sleep(QUIET)
    for app in APPS:
        insist(lab.owner(app) is now[app], f"{app} was moved when {node.name} came back")
    return {}


@case("a standby is evicted, and then promoted")
def evicted_standby(lab: Lab) -> dict[str, float]:
    lab.gather()
    node = lab.cluster.nodes[AWAY["hot"]]
    kill(node.pid("hot"))
    until("it has no process", lambda: node.pid("hot") is None)
    code = lab.cluster.monitor("hot", node)
    insist(code == 190, f"the monitor says {code}, not 190")
    lab.cluster.settled()
    insist(lab.owner("hot").name == HOME, "hot was moved")
    lab.begin()
    lab.move("hot", AWAY["hot"])
    return {"hot": lab.outage("hot")}


@case("the owner sleeps, its app is evicted, and wakes")
def evicted_owner(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    node.run("torpor", "suspend", "hot")
    code = lab.cluster.monitor("hot", node)
    insist(code == 8, f"the monitor of one that sleeps says {code}, not 8")
    kill(node.pid("hot"))
    until("it has no process", lambda: node.pid("hot") is None)
    code = lab.cluster.monitor("hot", node)
    insist(code == 191, f"the monitor says {code}, not 191")
    lab.cluster.settled()
    time.sleep(3)
    insist(lab.cluster.owner("hot") is None, "hot works although it was evicted")
    lab.begin()
    node.run("torpor", "start", "hot")
    insist(lab.owner("hot") is node, "hot was moved")
    return {}


@case("Torpor is upgraded on one node after the other")
def upgraded(lab: Lab) -> dict[str, float]:
    node = lab.gather()
    pids = {app: node.pid(app) for app in APPS}
    lab.begin()
    for each in lab.cluster.nodes.values():
        said = each.run("dpkg", "-i", str(lab.cluster.later))
        insist("untouched" in said, f"the upgrade of {each.name} says: {said}")
    return lab.stays(node, pids, 300)
