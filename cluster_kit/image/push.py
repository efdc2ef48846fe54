"""Copies an image to other engines without a registry, by `docker save` and `docker load`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.docker.docker_connection import disk_hint, may_not
from cluster_kit.util.process import CUT_OFF

TELL_S = 2.0
NO_IMAGE = "No such image"
HERE = "`docker info` has to work on this host"
ADDRESS = re.compile(r"(ssh|tcp|unix)://.+")
CONTEXT = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)
WHAT = "{{.Id}} {{.Size}} {{json .RootFS.Layers}}"
NO_SSH = re.compile(
    r"exit status 255|Could not resolve|Host key verification|Permission denied \(|No route to host"
)


@dataclass(frozen=True)
class Pushed:
    """The result of pushing an image to one target; `hint` is "" unless it failed."""

    target: str
    state: Literal["present", "loaded", "failed"]
    bytes: int = 0
    seconds: float = 0.0
    message: str = ""
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """The target as `image push --json` prints it, where the hint is called `cure`."""
        facts = asdict(self)
        return {**facts, "cure": facts.pop("hint")}


def check_targets(targets: Sequence[str]) -> None:
    """Raises UsageError if a target is neither an engine's address nor a Docker context's name."""
    for target in targets:
        if not ADDRESS.fullmatch(target) and not CONTEXT.fullmatch(target):
            raise UsageError(
                f"--to {target!r} is neither an engine nor a context",
                "write ssh://USER@NODE, unix:///PATH, tcp://NODE:PORT, or a name that "
                "`docker context ls` lists",
            )


def push(
    host: Host, image: str, targets: Sequence[str], say: Callable[[str], None], absent: str = ""
) -> list[Pushed]:
    """Copy an image to each of these engines that lacks it; a failure does not stop the others.

    Args:
        absent: the hint if this host's engine does not have the image.
    Raises:
        EngineError: this host's engine does not have the image.
    """
    here = _ask(host, [], image)
    if isinstance(here, str) and NO_IMAGE in here:
        raise EngineError(f"{image} is not here: {here}", absent)
    if isinstance(here, str):
        raise EngineError(f"this host's engine: {here}", f"{HERE} (`docker context show`: which)")
    done = []
    for target in dict.fromkeys(targets):
        pushed = _to(host, target, image, here, say)
        words = {"present": "has it already", "loaded": f"loaded in {pushed.seconds:.0f} s"}
        say(f"{target}: {words.get(pushed.state, 'failed')}")
        done.append(pushed)
    return done


def refuse_if_failed(done: Sequence[Pushed], image: str) -> None:
    """Raises EngineError with the message of each failed target."""
    failed = [one for one in done if one.state == "failed"]
    if failed:
        lines = "\n".join(f"  {one.target}: {one.message}" for one in failed)
        hints = "\n    ".join(dict.fromkeys(f"{one.target}: {one.hint}" for one in failed))
        reached = f"{len(done) - len(failed)} of {len(done)} engines have {image}"
        raise EngineError(f"{reached}:\n{lines}", hints)


def _to(host: Host, target: str, image: str, here: _Image, say: Callable[[str], None]) -> Pushed:
    engine = ["-H", target] if ADDRESS.fullmatch(target) else ["--context", target]
    there = _ask(host, engine, image)
    if isinstance(there, str) and NO_IMAGE not in there:
        return _failed(target, there)
    if not isinstance(there, str) and there.is_as(here):
        return Pushed(target, "present", here.size)
    began = told = time.monotonic()

    def tell(passed: int) -> None:
        nonlocal told
        if time.monotonic() - told > TELL_S:
            told = time.monotonic()
            say(f"{target}: {passed / 1e6:.0f} MB of about {here.size / 1e6:.0f} MB")

    saved, loaded = host.processes.pass_on(
        ["docker", "save", image], ["docker", *engine, "load", "--quiet"], tell
    )
    if saved.code not in (0, CUT_OFF):  # the loading command then reports the truncated input
        failure = f"docker save ended here with exit code {saved.code}: {saved.tail(3)}"
        return Pushed(target, "failed", message=failure, hint=disk_hint(failure) or HERE)
    if not loaded.ok:
        return _failed(target, loaded.tail(3))
    there = _ask(host, engine, image)
    if isinstance(there, str):
        return _failed(target, f"it was loaded, but is not there: {there}")
    return Pushed(target, "loaded", here.size, round(time.monotonic() - began, 3))


@dataclass(frozen=True)
class _Image:
    number: str
    size: int
    layers: str

    def is_as(self, other: _Image) -> bool:
        """Whether it is the same image; an engine's id is the digest of its manifest or its
        configuration."""
        return self.number == other.number or self.layers == other.layers


def _ask(host: Host, engine: Sequence[str], image: str) -> _Image | str:
    """The image of an engine, or the error message if it has none or does not answer."""
    done = host.processes.run(["docker", *engine, "image", "inspect", "--format", WHAT, image])
    parts = done.output.strip().split(" ", 2)
    if not done.ok or len(parts) != 3:
        return done.tail(3) or f"docker image inspect ended with exit code {done.code}"
    return _Image(parts[0], int(parts[1]), parts[2])


def _failed(target: str, said: str) -> Pushed:
    """The error with the relevant part of Docker's output, such as ssh's message."""
    words = said.rpartition("stderr=")[2].partition(": open /")[0].strip()
    message = (words or said).replace("\n", " ")
    return Pushed(target, "failed", message=message, hint=_hint(target, said))


def _hint(target: str, said: str) -> str:
    if full := disk_hint(said):
        return full
    if target.startswith("ssh://") and (NO_SSH.search(said) or "error during connect" in said):
        return (
            f"`docker -H {target} info` has to work without a question: a key for ssh, the host "
            "known, and Docker's command line there"
        )
    if "context" in said and "not found" in said:
        return "`docker context ls` lists those that there are"
    if may_not(said):
        return "use a user there who has access to the engine (the group docker)"
    return (
        f"`docker {'-H' if ADDRESS.fullmatch(target) else '--context'} {target} info` has to work"
    )
