"""What is planned for nodes that this host does not know: those of a swarm. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from cluster_kit.facts import HostFacts

PLENTY = 2**60
"""Cores and bytes: what the hosts have that will run it is not known."""
CONSTRAINT = re.compile(r"([\w./-]+)\s*(==|!=)\s*([\w.:/-]+)", re.ASCII)


def of_other_nodes(facts: HostFacts) -> HostFacts:
    """Returns the facts to plan with if the containers may run on any node, not on this host.

    Networks stay: whatever is taken here cannot be the cluster's.
    """
    return replace(facts, cpus=PLENTY, memory=PLENTY, gpus=())


def constraints(nodes: str) -> tuple[str, ...]:
    """Returns swarm's constraints for the text of the key `nodes`: a bare name is a node's label.

    What is no constraint is left out (each platform refuses it).
    """
    found = (CONSTRAINT.fullmatch(part.strip()) for part in nodes.split(","))
    return tuple(f"{_full(m[1])} {m[2]} {m[3]}" for m in found if m)


def _full(name: str) -> str:
    return name if name.startswith(("node.", "engine.")) else f"node.labels.{name}"
