# SPDX-License-Identifier: Apache-2.0
"""The same with keepalived, which has no fencing: how long an app is away, and how long two nodes run it."""

import time

from .cases import Lab, case, insist
from .cluster import Cluster
from .judge import faults
from .node import Node, until

CONFIGURATION = """global_defs {{
    script_user root
    router_id {name}
}}
vrrp_instance lab {{
    state BACKUP
    nopreempt
    interface host0
    virtual_router_id 77
    priority {priority}
    advert_int 1
    virtual_ipaddress {{
        10.77.0.100/24
    }}
    notify_master "/usr/bin/torpor own kept"
    notify_backup "/usr/bin/torpor disown kept"
    notify_fault "/usr/bin/torpor disown kept"
}}
"""


def set_up(cluster: Cluster) -> None:
    """Takes Pacemaker away, and has keepalived own an app."""
    cluster.each(lambda node: node.run("systemctl", "disable", "--now", "pacemaker.service", "corosync.service"))
    for node in cluster.nodes.values():
        node.put("/etc/keepalived/keepalived.conf", CONFIGURATION.format(name=node.name, priority=100 - node.number))
        node.run("torpor", "start", "kept", "--standby")
    cluster.each(lambda node: node.run("systemctl", "enable", "--now", "keepalived.service"))


def owner(lab: Lab) -> Node:
    return lab.cluster.nodes[until("kept works somewhere", lambda: lab.cluster.owner("kept"))]


@case("keepalived: power of the node off")
def off(lab: Lab) -> dict[str, float]:
    set_up(lab.cluster)
    node = owner(lab)
    time.sleep(3)
    lab.begin()
    node.cut()
    lab.elsewhere("kept", node)
    found = lab.outage("kept")
    node.boot()
    node.run("torpor", "start", "kept", "--standby")
    time.sleep(3)
    return {"hot": found}


@case("keepalived: network of the node cut for 10 s: so long two nodes run the app")
def cut(lab: Lab) -> dict[str, float]:
    node = owner(lab)
    lab.begin()
    node.unplug()
    lab.elsewhere("kept", node)
    time.sleep(10 - (time.monotonic_ns() - lab.began) / 1e9)
    node.plug()
    time.sleep(5)
    text = "".join(
        line for line in lab.cluster.log.text("kept").splitlines(keepends=True) if int(line.split()[3]) >= lab.began
    )
    said = faults("kept", text, False)
    insist(said, "keepalived has fencing after all")
    return {"hot": float(said[0].split()[-2])}
