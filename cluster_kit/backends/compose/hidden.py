"""The file beside a compose file that has the values of secrets, for its owner's eyes only."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.backends.compose.sidecars import HIDDEN
from cluster_kit.backends.container_spec import container_specs
from cluster_kit.backends.sidecar_spec import sidecar_specs
from cluster_kit.backends.yaml import key, pairs
from cluster_kit.cluster import Cluster
from cluster_kit.workspace import RENDERED, ignore_in_git, write_atomically

_TOP = """\
# cluster-kit wrote this: values that look like secrets, which compose.yaml takes from here.
# Only you may read it, and Git leaves it out. Do not edit: change the manifest.
services:
"""


def render_hidden(cluster: Cluster) -> str:
    """The file's text: an environment for each container with anything to hide; "" without one."""
    lines = []
    hidden = [(spec.hostname, spec.hidden) for spec in container_specs(cluster)]
    hidden += [(spec.hostname, spec.hidden) for spec in sidecar_specs(cluster)]
    for name, variables in hidden:
        if variables:
            lines += [f"  {key(name)}:", "    environment:"]
            lines += [f"      {pair.name}: {pair.value}" for pair in pairs(variables)]
    return _TOP + "".join(f"{line}\n" for line in lines) if lines else ""


def write_hidden(folder: Path, cluster: Cluster) -> None:
    """Write the file, for its owner alone, or remove an old one; raises OSError."""
    text = render_hidden(cluster)
    if text:
        ignore_in_git(folder, RENDERED)
        write_atomically(folder / HIDDEN, text, mode=0o600)
    else:
        (folder / HIDDEN).unlink(missing_ok=True)


def is_current(folder: Path, cluster: Cluster) -> bool:
    """Whether the file is as it would be written."""
    try:
        return (folder / HIDDEN).read_text(encoding="utf-8") == render_hidden(cluster)
    except FileNotFoundError:
        return not render_hidden(cluster)
    except (OSError, ValueError):
        return False
