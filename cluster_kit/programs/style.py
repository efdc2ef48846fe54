"""Which tasks run the program and which are servers: the manifest's `style`, resolved. Pure.

coordinator   the chief runs the program; ps and workers are servers that wait for its work
all-tasks     the chief, if there is one, and every worker run it; ps serve, or run it too
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster_kit.manifest.field_types import OWN_IMAGE
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import HintText, Problem, Setting
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.roles import CHIEF, PS, ROLES, WORKER, Style

ALL_TASKS = Setting("style", "all-tasks")
ONE_CHIEF, ONE_PS = Setting(CHIEF.name, 1), Setting(PS.name, 1)


def style_of(manifest: Manifest) -> Style:
    """The style that the manifest gives, or, for "auto", the one that its counts imply.

    In TensorFlow 1 no chief coordinates servers: each task runs the program.
    """
    if manifest.style != "auto":
        return manifest.style
    if manifest.tf1:
        return "all-tasks"
    coordinated = manifest.count(CHIEF.name) > 0 and manifest.count(PS.name) > 0
    return "coordinator" if coordinated else "all-tasks"


def runs_program(manifest: Manifest, role: str) -> bool:
    """Whether tasks of this role run the program; otherwise they are servers."""
    row = ROLES[role]
    if row.runs_program_if:
        return bool(getattr(manifest, row.runs_program_if) == "program")
    return style_of(manifest) in row.runs_program_in


def check_style(manifest: Manifest) -> Iterator[Problem]:
    """Yields counts that do not fit the style, and keys that need another style."""
    yield from _check_counts(manifest)
    coordinated = style_of(manifest) == "coordinator"
    reads = (CHIEF.name, PS.name, "program")
    program = PROGRAMS.get(manifest.program)
    if program is not None and coordinated and "coordinator" not in program.styles:
        rule = f"every replica of {manifest.program} runs the program: no chief coordinates them"
        yield Problem("style", f'"{manifest.style}"', rule, ("write ", ALL_TASKS), reads)
    if manifest.ps_runs == "program" and coordinated:
        rule = "under a coordinator every ps is a server"
        server = Setting("ps_runs", "server")
        hint = ("write ", server, ", or ", ALL_TASKS, " if each task runs the program")
        yield Problem("ps_runs", '"program"', rule, hint, ("style", CHIEF.name, PS.name))
    if manifest.tf1:
        yield from _check_tf1(manifest)


def _check_tf1(manifest: Manifest) -> Iterator[Problem]:
    """Yields what a program for TensorFlow 1 cannot be."""
    off = Setting("tf1", False)
    if manifest.program in PROGRAMS:
        rule = f"{manifest.program} is written for TensorFlow 2"
        hint = ("write ", off, ", or name a program of yours")
        yield Problem("tf1", "true", rule, hint, ("program",))
    elif manifest.style == "coordinator":
        rule = "in TensorFlow 1 no chief coordinates servers: every task runs the program"
        yield Problem("style", '"coordinator"', rule, ("write ", ALL_TASKS, ", or ", off), ("tf1",))


def _check_counts(manifest: Manifest) -> Iterator[Problem]:
    """Yields the first rule about chief, ps and style that the counts break."""
    reads = (CHIEF.name, WORKER.name, "style", "program", "tf1")
    auto = manifest.style == "auto" and not manifest.tf1
    chief, ps = manifest.count(CHIEF.name), manifest.count(PS.name)
    replicas = max(chief, 0) + manifest.count(WORKER.name)
    program = PROGRAMS.get(manifest.program)
    if program is not None and program.between_graph and ps == 0 and replicas > 1:
        rule = "At least 1 ps task is needed for distributed training"
        alone = (Setting(CHIEF.name, 0), ", ", Setting(WORKER.name, 1))
        yield Problem(
            PS.name, "0", rule, ("write ", ONE_PS, "; one replica alone: ", *alone), reads
        )
    elif manifest.style == "coordinator":
        if chief == 0:
            rule = "the style coordinator needs a chief that runs the program"
            hint = ("write ", ONE_CHIEF, ", or ", ALL_TASKS)
            yield Problem(CHIEF.name, "0", rule, hint, ("style",))
        if ps == 0:
            rule = "at least 1 ps task is needed under a chief that coordinates workers"
            yield Problem(PS.name, "0", rule, ("write ", ONE_PS, ", or ", ALL_TASKS), reads)
    elif auto and ps > 0 and chief == 0:
        rule = "ps tasks need a chief that coordinates them, or workers that run the program"
        ways = ("write ", ONE_CHIEF, ", or ", Setting(PS.name, 0), ", or ", ALL_TASKS)
        yield Problem(PS.name, str(ps), rule, (*ways, " if each worker runs the program"), reads)
    elif auto and ps == 0 and chief == 1:
        rule = "at least 1 ps task is needed under a chief that coordinates workers"
        ways = ("write ", ONE_PS, ", or ", Setting(CHIEF.name, 0), ", or ", ALL_TASKS)
        yield Problem(PS.name, "0", rule, (*ways, " if each worker trains, too"), reads)


OWN_VERSION = "2.21.0"
"""Of the kit's own lock files."""
OLDEST = (2, 15)
LAST_WITH_ESTIMATORS = (2, 15)
"""tf.estimator went in the next one."""
NIGHTLY = "nightly"
_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)?(rc\d+|\.post\d+)?")
_PIN = re.compile(
    r"tensorflow(?:[-_]cpu|[-_]gpu)?(?:\[[^]]*\])?\s*===?\s*([^\s;,*]+)$", re.IGNORECASE
)


def has_estimators(version: str) -> bool:
    """Returns whether this `tensorflow` of a manifest ("" for the kit's own) has tf.estimator."""
    found = _VERSION.fullmatch(version or OWN_VERSION)
    return found is not None and (int(found[1]), int(found[2])) <= LAST_WITH_ESTIMATORS


def check_version(manifest: Manifest) -> Iterator[Problem]:
    """Yields a `tensorflow` that is no version, is too old, or stands beside another image."""
    hint: HintText
    asked = manifest.tensorflow
    if not asked:
        return
    value, found = f'"{asked}"', _VERSION.fullmatch(asked)
    if found is None and asked != NIGHTLY:
        hint = ("write ", Setting("tensorflow", "2.16"), ', or "2.16.1", or "nightly"')
        yield Problem("tensorflow", value, "not a version of TensorFlow", hint)
    elif found and (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        hint = ("write ", Setting("tensorflow", oldest), " or newer, or take an image of your own")
        yield Problem("tensorflow", value, f"the oldest that the kit installs is {oldest}", hint)
    if manifest.build:
        rule = "the version is installed in the kit's own image only, not in one that `build` makes"
        yield Problem("tensorflow", value, rule, "take it out, and install it in your Dockerfile")
    elif manifest.image != OWN_IMAGE:
        rule = f"the version is installed in the kit's own image only, not in {manifest.image}"
        hint = ("take it out, or write ", Setting("image", OWN_IMAGE))
        yield Problem("tensorflow", value, rule, hint)


def check_pins(manifest: Manifest, requirements: str) -> Iterator[Problem]:
    """Yields a requirement that pins another TensorFlow than the image's."""
    has = manifest.tensorflow or OWN_VERSION
    for line in requirements.splitlines():
        pin = _PIN.fullmatch(line.partition(";")[0].strip())
        if pin and manifest.runs_in_kits_image and pin[1] != has:
            rule = f'"{line}" asks for another TensorFlow than the image has ({has})'
            hint = ("let the image have it: ", Setting("tensorflow", pin[1]))
            yield Problem("requirements", f'"{manifest.requirements}"', rule, hint)
