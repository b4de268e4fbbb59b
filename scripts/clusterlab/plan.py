# SPDX-License-Identifier: Apache-2.0
"""Enters into the cluster what torpor-cluster plans, and its fence device."""

import subprocess

from .cluster import MANY, NAMES, Cluster
from .node import Trouble


def fence(cluster: Cluster) -> None:
    cluster.configure(
        "property stonith-enabled=true stonith-timeout=60s\n"
        f"primitive power stonith:fence_lab params path={cluster.folder}/switch "
        f'pcmk_host_list="{" ".join(NAMES)}" op start interval=0 timeout=60s op monitor interval=600s timeout=60s\n'
    )


def enter(cluster: Cluster, kind: str, *apps: str, nodes: tuple[str, ...] = NAMES) -> None:
    """Plans apps, and does what the plan says."""
    node = cluster.any()
    command = node.enter(
        "torpor-cluster", "plan", *apps, "--kind", kind, "--nodes", ",".join(nodes), "--ssh", f"{cluster.folder}/ssh_lab"
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble(f"torpor-cluster says: {done.stderr}")
    # Where an app begins there already, crm_resource fails at the move.
    node.put("/tmp/plan", done.stdout)
    said = node.run("sh", "/tmp/plan")
    for line in done.stdout.splitlines():
        if line.startswith("primitive "):
            cluster.instances[line.split()[1]] = line.split()[1]
    if "ERROR" in said:
        raise Trouble(f"crm says: {said}")


def remove_many(cluster: Cluster) -> None:
    node = cluster.any()
    node.run("crm", "--force", "configure", "delete", *(f"many-{number}" for number in range(1, MANY + 1)))
