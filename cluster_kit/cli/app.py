"""The table of the command line's verbs: each verb's help line, group and module.

A command imports only the module of its verb, which saves a third of its start. Help and the hints
for mistyped verbs read this table, and import no module. Tab is answered by `completion`, which
does not even import typer.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from typer.core import TyperArgument, TyperCommand, TyperGroup

from cluster_kit.errors import KitError, UsageError
from cluster_kit.manifest.command_line import name_where_expected
from cluster_kit.roles import ROLES
from cluster_kit.run.request import DEFAULT_MANIFEST, unnamed
from cluster_kit.util import debug_log
from cluster_kit.util.nearest import did_you_mean, nearest, proposal
from cluster_kit.util.paths import is_directory
from cluster_kit.util.terminal import harmless, in_json
from cluster_kit.workspace import here

if TYPE_CHECKING:
    from cluster_kit.host import Host
    from cluster_kit.platforms.engine import Engine


@dataclass(frozen=True)
class Verb:
    """A verb, its module in this package, and its first line of help.

    A hidden one is another name for a verb: it works, but help does not list it.
    """

    name: str
    module: str
    summary: str
    hidden: bool = False


GROUPS = {
    "Run": (
        Verb(
            "up", "up", "Run a cluster to its end: plan, build, start, watch, judge, save, remove."
        ),
        Verb("down", "stop", "End a cluster and remove its containers and network."),
        Verb(
            "stop", "stop", "Stop a cluster's tasks until `start`; their addresses and files stay."
        ),
        Verb(
            "start", "stop", "Start the tasks of a stopped cluster again, with the same addresses."
        ),
        Verb(
            "attach",
            "up",
            "Watch a cluster that runs unwatched: judge, save, remove, as `up` does.",
        ),
        Verb("wait", "up", "Wait for the end of a cluster, without the live view."),
    ),
    "Look": (
        Verb(
            "status",
            "status",
            "Show every task of the clusters that are up: IP, GPU, state, step, loss.",
        ),
        Verb("ps", "status", "The same as `status`.", hidden=True),
        Verb("logs", "logs", "Print the logs of tasks, merged by time."),
        Verb("serve", "serve", "Show clusters and runs as live pages in a browser, until Ctrl-C."),
        Verb(
            "report",
            "results",
            "Write report.html: the tasks over time, curves, the cluster's picture.",
        ),
        Verb("runs", "runs", "Past runs: list them, compare two, prune old ones."),
        Verb(
            "tensorboard",
            "inside",
            "Show runs in TensorBoard, also while they train, until Ctrl-C.",
        ),
        Verb(
            "profile",
            "inside",
            "Trace the tasks of a running cluster at once: where the time goes.",
        ),
        Verb("metrics", "results", "Print runs as Prometheus metrics."),
        Verb(
            "summary",
            "results",
            "Print how a run went: a page for CI, a text, or values for scripts.",
        ),
        Verb("bug-report", "results", "Write one archive of a run for a bug report."),
    ),
    "Work inside": (
        Verb("exec", "inside", "Run a command inside a running task; its exit code is returned."),
        Verb("shell", "inside", "Open a shell inside a running task."),
        Verb("restart", "stop", "End a task and start it again; with the leader, all tasks."),
        Verb("stacks", "logs", "Print the stacks of all threads of tasks: where each one waits."),
    ),
    "Break": (
        Verb(
            "drill", "drill", "Run a cluster and break tasks on purpose: does the training survive?"
        ),
        Verb("matrix", "drill", "Break each role of five systems in nine ways."),
    ),
    "Compare": (
        Verb("compare", "compare", "Train one model in every way: speed, accuracy, traffic."),
        Verb(
            "speedup",
            "compare",
            "Measure how more workers speed up training, on emulated machines.",
        ),
        Verb("measure", "predict", "Write a profile of a finished run, for `predict`."),
        Verb(
            "predict",
            "predict",
            "Predict the speed with more workers, ps, or other machines, and what limits it.",
        ),
    ),
    "Prepare": (
        Verb("new", "new", "Write a commented manifest and a starter program that trains at once."),
        Verb("init", "new", "The same as `new`.", hidden=True),
        Verb(
            "render",
            "render",
            "Write a cluster's file: for Docker Compose, or what `engine` names.",
        ),
        Verb(
            "doctor",
            "doctor",
            "Check this host, or what a manifest needs, with a fix for each problem.",
        ),
        Verb("gpus", "provision", "Show this host's GPUs, and which cluster has them."),
        Verb(
            "image", "provision", "The training image: build, tag, push, check, list its packages."
        ),
        Verb("data", "provision", "Convert data sets for the built-in programs."),
        Verb("engine", "provision", "Install and start a Docker engine if none answers."),
        Verb("schema", "new", "Print the manifest's JSON Schema, for editors."),
    ),
}
"""The verbs in the groups and the order in which help shows them: the most used first."""
VERBS = {verb.name: verb for verbs in GROUPS.values() for verb in verbs}
GROUP_OF = {verb.name: group for group, verbs in GROUPS.items() for verb in verbs}


def load(words: Sequence[str]) -> None:
    """Import the module of the verb in these words; nothing if there is no verb (`--help`)."""
    verb = VERBS.get(next((word for word in words if not word.startswith("-")), ""))
    if verb is not None:
        importlib.import_module(f"cluster_kit.cli.{verb.module}")


def load_all() -> None:
    """Import the modules of all verbs, for callers that need the whole command line."""
    for module in dict.fromkeys(verb.module for verb in VERBS.values()):
        importlib.import_module(f"cluster_kit.cli.{module}")


PIPED_WIDTH = int(os.environ.get("COLUMNS") or 200)
"""The width of a table that is not printed on a terminal, so that nothing is cut off."""

VERBOSE = "Print requests to the engine and started programs, with times."


PATH = "cluster-kit.path"
"""Key of a context's data: the words of the verb, which some of typer's errors do not name."""


class Group(TyperGroup):
    """Verbs below a word, such as `runs list`; the error for a mistyped verb names the nearest."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The verb of a command line, and the words after it; raises UsageError if unknown."""
        known = self.list_commands(ctx)
        unknown = not args[0].startswith("-") and args[0] not in known
        if unknown and not ctx.resilient_parsing:  # as a shell completes a line
            if "list" in known and is_directory(here().runs(args[0])):
                return super().resolve_command(ctx, ["list", *args])
            near = (
                "" if args[0] == "help" else _meant(args[0], known) or did_you_mean(args[0], known)
            )
            raise UsageError(
                f"no such verb: {args[0]}", f"{near}`{ctx.command_path} --help` lists all"
            )
        name, command, words = super().resolve_command(ctx, args)
        ctx.meta[PATH] = f"{ctx.command_path} {name}"
        return name, command, words


_REMOVE = ("prune", "down")
_ELSEWHERE = {
    "run": ("up",), "kill": ("down",), "rm": _REMOVE, "remove": _REMOVE, "delete": _REMOVE,
}  # fmt: skip
"""Verbs by the names that other programs have for them, and that look like others or like none."""


def _meant(name: str, known: Collection[str]) -> str:
    """``did you mean `runs diff`? `` for a verb that is below another word, or for one of `known`
    that has the name elsewhere; else ""."""
    for verb in _ELSEWHERE.get(name, ()):
        if verb in known:
            return f"did you mean `{verb}`? "
    load_all()
    for group in app.registered_groups:
        verbs = group.typer_instance.registered_commands if group.typer_instance else []
        if any(verb.name == name for verb in verbs):
            return f"did you mean `{group.name} {name}`? "
    return ""


class Verbs(Group):
    """The verbs. Each takes the name of a cluster as its first word or as `--name`.

    A verb whose module is not imported has only its line of help (see `verbs`).
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all verbs, in the order of help."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb with this name, None if there is none."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command: Any = super().get_command(ctx, cmd_name) or TyperCommand(cmd_name)
        command.short_help, command.hidden = verb.summary, verb.hidden
        command.rich_help_panel = GROUP_OF[cmd_name]
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The verb of a command line, and the words after it; raises UsageError if unknown."""
        name, command, words = super().resolve_command(ctx, args)
        if not command:
            return name, command, words
        option = next(parameter for parameter in self.params if parameter.name == "verbose")
        _accept_below(command, option)
        takes_option = any("--name" in parameter.opts for parameter in command.params)
        arguments = [str(one.name) for one in command.params if isinstance(one, TyperArgument)]
        return name, command, name_where_expected(words, arguments, takes_option=takes_option)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options that all verbs have, and return the words after them; raises UsageError
        for an unknown option."""
        with _options_are_proposed(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; raises UsageError for an option that the verb does not have."""
        with _options_are_proposed(ctx):
            return super().invoke(ctx)


ERRORS = ("NoSuchOption", "UsageError", "MissingParameter", "BadParameter", "BadOptionUsage")
"""Names of typer's classes, whose module depends on its version."""

REPEAT = ("--watch", "-w")
"""What others have to show their state again and again; `up --watch` is something else."""

OF_PROGRAM = "; the program's own are one word: `--args '{}'`"


@contextlib.contextmanager
def _options_are_proposed(ctx: Any) -> Iterator[None]:
    """Turn typer's errors into UsageErrors; one for an unknown option names the nearest option."""
    try:
        yield
    except Exception as error:
        usage_error: Any = error
        if isinstance(error, UsageError) or type(error).__name__ not in ERRORS:
            raise
        command = (
            usage_error.ctx.command_path if usage_error.ctx else ctx.meta.get(PATH, "cluster-kit")
        )
        known = [
            option
            for parameter in (usage_error.ctx.command.params if usage_error.ctx else ())
            for option in parameter.opts
            if option.startswith("-")
        ]
        if type(error).__name__ != "NoSuchOption":
            message = usage_error.format_message().rstrip(".")
            text = f"{command}: {message[:1].lower()}{message[1:]}"
            given = usage_error.ctx.params if usage_error.ctx else {}
            args = given.get("args") or ""
            begun = args if isinstance(args, str) else str(args[-1])
            takes = "--args" in known and type(error).__name__ in ("UsageError", "BadOptionUsage")
            quoted = OF_PROGRAM.format("…") if takes else ""
            if begun:
                quoted = f"; write several words in quotes: `--args '{begun} …'`"
            if given.get("sets") and not begun:
                quoted = "; write `--set` before each key"
            raise UsageError(text, f"`{command} --help` shows what it takes{quoted}") from None
        name = usage_error.option_name
        by_word = {option.lstrip("-"): option for option in known}
        least = 0.6
        if "--args" in known:
            # It is more likely an option of the program: `--seed` is not `--serve`, and `--batch`
            # is not `--watch`.
            least = 0.7
            word = name.lstrip("-")
            by_word = {one: at for one, at in by_word.items() if one[:1] == word[:1] or one in word}
        key = _key_of(name) if "--set" in known else ""
        similar = by_word.get(nearest(name.lstrip("-"), by_word, least) or "")
        if name == "-d":  # as for `docker compose up`
            similar = by_word.get("detach")
        near = f"did you mean `{similar}`? " if similar and not key else ""
        if "--set" in known and not near and (key := key or _key_of(name, least)):
            near = f"`--set {key}=…` sets a key of the manifest; "
        if name in REPEAT and command.endswith((" status", " ps")):
            near = f"`watch {command}` repeats it; "
        if not near and "--args" not in known and (verbs := _verbs_with(name, command)):
            near = f"{', '.join(verbs)} {'has' if len(verbs) == 1 else 'have'} it; "
        hint = f"{near}`{command} --help` lists all"
        if "--args" in known and name.startswith("--"):
            hint += OF_PROGRAM.format(f"{name} …")
        raise UsageError(f"no such option: {name}", hint) from None


def _verbs_with(option: str, command: str) -> list[str]:
    """The verbs that have this option, as in `` `cluster-kit serve` ``; at most three, those with
    the first word of `command` before the others."""
    load_all()
    root: Any = typer.main.get_command(app)
    verbs: list[tuple[str, Any]] = []
    for name, verb in root.commands.items():
        if not VERBS[name].hidden:
            verbs.append((f"cluster-kit {name}", verb))
            of_group = getattr(verb, "commands", {})
            verbs += [(f"cluster-kit {name} {word}", one) for word, one in of_group.items()]
    named = [path for path, verb in verbs if any(option in one.opts for one in verb.params)]
    begins = command.split()[:2]
    return [f"`{path}`" for path in sorted(named, key=lambda path: path.split()[:2] != begins)][:3]


def _key_of(option: str, least: float | None = None) -> str:
    """The key of the manifest that an unknown option such as `--gpu-check` means, for a key of
    roles that of the workers; "" if none. `least` is that of `nearest`; None: no similar key."""
    # Imported only after a mistake.
    from cluster_kit.manifest.load import OTHER_NAMES, keys_in
    from cluster_kit.manifest.schema import Limits, Manifest

    keys = {key: f"role.worker.{key}" for key in Limits.model_fields}
    keys |= {key: f"{keys[key]}.NAME" for key in ("environment", "ulimits")}
    keys |= {key: key for key in Manifest.model_fields}
    keys |= {key: f"{key}.KEY" for key in keys if keys_in([key], Manifest)}
    keys |= {"deadline": "deadline.job", "timeout": "deadline.job"}
    word = option.lstrip("-").replace("-", "_")
    word = OTHER_NAMES.get(word, word)
    if word in keys or least is None:
        return keys.get(word, "")
    return keys.get(nearest(word, keys, least) or "", "")


def _show_requests(wanted: bool) -> None:
    if wanted:
        debug_log.show(say)


def _accept_below(command: Any, option: Any) -> None:
    """Let a verb and its subcommands also accept the options of all verbs after their names."""
    if not any(parameter.name == option.name for parameter in command.params):
        taken = copy.copy(option)
        taken.expose_value = False
        command.params.append(taken)
    for below in getattr(command, "commands", {}).values():
        _accept_below(below, option)


app = typer.Typer(
    cls=Verbs,
    name="cluster-kit",
    help="Local clusters for distributed TensorFlow: one container per task.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def current_host() -> Host:
    """The machine that this command runs on."""
    from cluster_kit.this_host import this_host  # imported only by verbs that need it

    return this_host()


def print_json(facts: Any) -> None:
    """Print facts as JSON on stdout, for scripts."""
    typer.echo(in_json(json.dumps(facts, indent=2, default=str, allow_nan=False)))


def say(text: str, to: Console = err) -> None:
    """Print a line for the user, literally: names and paths may look like markup."""
    to.print(harmless(text), markup=False, soft_wrap=True)


def named(name: str | None, engine: Engine, up: Sequence[str], *, changes: bool = False) -> str:
    """The given name; without one, the name of the default cluster, which is also printed.

    Args:
        up: the names of the engine's clusters.
        changes: whether the command ends or changes the cluster; if so, the default must belong to
            this directory.
    Raises:
        UsageError: several clusters are up, or only clusters of other directories.
        EngineError: the engine does not answer.
    """
    if name is not None:
        return name
    from cluster_kit.run.find import of_workspace  # imported only by verbs that ask an engine

    local = of_workspace(engine.glance(), here(), up)
    chosen = unnamed(up, local, changes=changes)
    if chosen in up and chosen != DEFAULT_MANIFEST:
        of = " of this directory" if local and len(local) < len(up) else ""
        say(f"{chosen}: the only cluster{of} that is up{'' if local else ', started elsewhere'}")
    return chosen


_TASK = re.compile(rf"({'|'.join(ROLES)})-?\d*")
"""A task's name, or a shortened form: `chief`, `worker1`."""


def without_cluster(name: str | None, tasks: list[str]) -> tuple[str | None, list[str]]:
    """The cluster's name and the tasks in words that may begin with a task: `logs chief-0`."""
    if name and _TASK.fullmatch(name) and name not in here().known():
        return None, [name, *tasks]
    return name, tasks


def chosen(known: list[str], tasks: list[str]) -> list[str]:
    """These tasks, or all known tasks if none is given; raises UsageError for an unknown one."""
    unknown = [task for task in tasks if task not in known]
    if unknown:
        raise UsageError(f"task {unknown[0]} was not found", proposal(unknown[0], known))
    return tasks or known


def short(path: Path) -> str:
    """The path relative to the current directory if it is below it, else unchanged."""
    current = Path.cwd()
    return str(path.relative_to(current)) if path.is_relative_to(current) else str(path)


def print_error(error: KitError, as_json: bool = False) -> None:
    """Print an error and its hint: on stderr, or as JSON on stdout."""
    if as_json:
        facts = {"message": error.message, "cure": error.hint, "exit_code": error.exit_code}
        print_json({"success": False, "error": facts, **({"run": error.run} if error.run else {})})
        return
    err.print("error:", style="bold red", end=" ")
    say(error.message)
    if error.hint:
        say(f"  → {error.hint}")


def _print_version(wanted: bool) -> None:
    if wanted:
        from cluster_kit.run.bug_report import versions  # a tenth of a second for this option only

        typer.echo("\n".join(versions(current_host())))
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the versions of kit, engine, Compose and image.",
    ),
    verbose: bool = typer.Option(
        False, "--verbose", "-v", callback=_show_requests, is_eager=True, help=VERBOSE
    ),
) -> None:
    """Local clusters for distributed TensorFlow: one container per task."""
