"""The verbs that measure a training, and predict its speed on more machines."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from cluster_kit import roles
from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, err, out, print_json, say, short
from cluster_kit.errors import HostError, UsageError
from cluster_kit.manifest.command_line import Caller
from cluster_kit.manifest.field_types import rate, short_duration
from cluster_kit.observe.progress import without_values
from cluster_kit.observe.usage import Sample
from cluster_kit.predict import picture
from cluster_kit.predict.answer import Answer, Point, as_json, predict
from cluster_kit.predict.measure import (
    Alone,
    Figures,
    Moved,
    TooShort,
    figures_of,
    moved_of,
    profile_of,
    sentences,
)
from cluster_kit.predict.plan import Change
from cluster_kit.predict.profile import (
    FILE_NAME,
    LEAST_SPEED,
    MOST_PS,
    MOST_WORKERS,
    PS_WAYS,
    WAYS,
    Profile,
    load,
    text,
)
from cluster_kit.predict.question import PS, WORKERS, Question, counts, failures
from cluster_kit.report.page import entries_of, samples_of
from cluster_kit.run.history import run_named
from cluster_kit.run.known_secrets import known_of
from cluster_kit.run.run_directory import Record, read_record
from cluster_kit.util.nearest import proposal
from cluster_kit.util.paths import PACKAGE, extra
from cluster_kit.util.stdio import outlive_readers
from cluster_kit.util.terminal import duration, harmless
from cluster_kit.workspace import RunDirectory, here, write_atomically

EXAMPLE = PACKAGE / "predict" / "example.toml"
PLACEMENTS = ("round-robin", "greedy", "split", "explicit")
MOST_MACHINES = 512
USUAL_S, LONGEST_S = 60, 3600
"""Of a short run."""
WRITTEN = (
    "# Measured by `cluster-kit measure`, which replaces this file; docs/predict.md has all keys.\n"
)


@app.command("predict")
def predict_(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="[PROFILE]",
            help="A profile (a .toml file), or a run: its directory, CLUSTER/RUN, or a cluster's "
            "name for its newest run.",
            autocompletion=manifest_options.runs,
        ),
    ] = "",
    workers: Annotated[
        str | None,
        typer.Option("--workers", help="Counts of workers: 8, or 1,2,8, or 1,2,4,...,256."),
    ] = None,
    ps: Annotated[str | None, typer.Option("--ps", help="Counts of ps, in the same form.")] = None,
    way: Annotated[
        str | None,
        typer.Option(
            "--way",
            help=f"Another way of training: {', '.join(WAYS)}.",
            autocompletion=manifest_options.one_of(WAYS),
        ),
    ] = None,
    cpus: Annotated[
        float | None, typer.Option("--cpus", min=0.01, max=1e6, help="CPUs of each machine.")
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            "--speed", min=0.001, max=1e6, help="How many times as fast the workers' devices are."
        ),
    ] = 1.0,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", help="Of each host's link: 10gbit, 100mbit.")
    ] = None,
    latency: Annotated[
        str | None, typer.Option("--latency", help="From host to host, one way: 100us, 2ms.")
    ] = None,
    devices_per_host: Annotated[
        int | None,
        typer.Option("--devices-per-host", min=1, max=1024, help="Workers that share a link."),
    ] = None,
    ps_on: Annotated[
        str | None,
        typer.Option(
            "--ps-on",
            help="Where ps are: apart, or beside the workers.",
            autocompletion=manifest_options.one_of(["apart", "beside"]),
        ),
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(
            "--placement",
            help=f"Which ps has a variable: {', '.join(PLACEMENTS)}.",
            autocompletion=manifest_options.one_of(PLACEMENTS),
        ),
    ] = None,
    overlap: Annotated[
        float | None,
        typer.Option(
            "--overlap", min=0, max=1, help="Part of the communication that can be hidden."
        ),
    ] = None,
    straggler: Annotated[
        float | None,
        typer.Option(
            "--straggler", min=LEAST_SPEED, max=1, help="The speed of one slower worker: 0.5."
        ),
    ] = None,
    backup: Annotated[
        int, typer.Option("--backup", min=0, help="Backup workers, with synchronous ps.")
    ] = 0,
    failing: Annotated[
        str | None,
        typer.Option("--failures", help="How often each machine fails: 1/day, 2/week."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", min=1, max=MOST_MACHINES, help="Find the best counts for these machines."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=5, max=10_000, help="Steps of each worker to simulate."),
    ] = None,
    picture_file: Annotated[
        Path | None, typer.Option("--picture", help="Draw it: FILE.png, FILE.svg or FILE.pdf.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a commented profile, to begin with.")
    ] = False,
    json_: manifest_options.Json = False,
) -> None:
    """Predict the speed with more workers, ps, or other machines, and what limits it."""
    outlive_readers()
    if example:
        typer.echo(EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return
    if picture_file is not None:
        _refuse_picture(picture_file)
    found = _profile(profile)
    change = Change(
        way=_one_of(way, WAYS, "--way"),
        cpus=cpus,
        speed=speed,
        bandwidth=_value(rate, bandwidth, "--bandwidth"),
        latency=_value(short_duration, latency, "--latency"),
        devices_per_host=devices_per_host,
        straggler=straggler,
        backup=backup,
        failures=0.0 if failing is None else failures(failing),
        placement=_one_of(placement, PLACEMENTS, "--placement"),
        ps=_one_of(ps_on, ("apart", "beside"), "--ps-on"),
        overlap=overlap,
    )
    by_ps = (change.way or found.way) in PS_WAYS
    if not by_ps and (ps is not None or ps_on or placement):
        option = "--ps" if ps is not None else "--ps-on" if ps_on else "--placement"
        raise UsageError(
            f"{option}: an all-reduce ({change.way or found.way}) has no ps",
            "leave it out, or give --way async-ps",
        )
    question = Question(
        workers=_counts_of(found, WORKERS, backup)
        if workers is None
        else counts(workers, "--workers", MOST_WORKERS),
        ps=PS if ps is None else counts(ps, "--ps", MOST_PS),
        change=change,
        budget=budget,
        steps=steps,
    )
    answer = predict(found, question)
    if json_:
        print_json(as_json(answer))
    else:
        _print(answer)
    if picture_file is not None:
        _draw(answer, picture_file)


def _profile(reference: str) -> Profile:
    """The profile that a command line names: a file, or what a run measured; raises UsageError."""
    if not reference:
        raise UsageError(
            "a profile is missing: it says what one step costs, and on which machines",
            "name a run; or `cluster-kit predict --example > profile.toml` writes one to fill in",
        )
    path = Path(reference).expanduser()
    if path.is_file() or path.suffix == ".toml":
        return load(path)
    run = run_named(reference, here())
    if (file := run.path / FILE_NAME).is_file():
        return load(file)
    return profile_of([figures_of_run(run)])


def figures_of_run(run: RunDirectory, way: str | None = None, batch: int | None = None) -> Figures:
    """What a run's files say; raises UsageError if `up` did not start it, or it is too short."""
    record = _record(run)
    output, cluster = run.output, record.cluster
    entries = entries_of(output, cluster, record.since, record.sizes)
    mask = known_of(run).mask
    return figures_of(
        cluster,
        [without_values(entry, mask) for entry in entries],
        _samples(run, record),
        name=f"{cluster.name}/{run.path.name}",
        way=way,
        batch=batch,
    )


def _record(run: RunDirectory) -> Record:
    record = read_record(run)
    if record is None:
        raise UsageError(
            f"{short(run.path)} has no {run.record.name}: `cluster-kit up` has started no tasks "
            "there",
            "name a run of `cluster-kit runs`, or a profile (docs/predict.md#the-profile)",
        )
    return record


def _samples(run: RunDirectory, record: Record) -> list[Sample]:
    return samples_of(run.output, record.cluster, record.since, record.sizes)


@app.command()
def measure(
    run: Annotated[
        str,
        typer.Argument(
            metavar="[RUN|MANIFEST]",
            help="A run's directory, CLUSTER/RUN, or a cluster's name for its newest run; or a "
            "manifest's file (.toml), which is trained for a short time. Default: the newest run "
            "of all.",
            autocompletion=manifest_options.runs,
        ),
    ] = "",
    way: Annotated[
        str | None,
        typer.Option(
            "--way",
            help=f"How it trained, if not as it seems: {', '.join(WAYS)}.",
            autocompletion=manifest_options.one_of(WAYS),
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=1,
            max=100_000,
            help="Images of one worker's step, if the program does not report them.",
        ),
    ] = None,
    seconds: Annotated[
        int | None,
        typer.Option(
            "--seconds",
            min=20,
            max=LONGEST_S,
            help=f"The longest time of each run of a manifest. Default: {USUAL_S}.",
        ),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option("--args", help="Further arguments of a manifest's program: --epochs 100."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output file (default: in the run's directory)."),
    ] = None,
) -> None:
    """Write a profile of a finished run, or of short runs of a manifest, for `predict`."""
    if run.endswith(".toml"):
        further = manifest_options.values({"args": args}, (), Caller.of(os.environ))
        profile, directory = _short_runs(run, way, batch, seconds or USUAL_S, further)
    elif seconds or args:
        raise UsageError(
            f"{'--seconds' if seconds else '--args'}: {run or 'the newest run'} has ended",
            "leave it out, or name a manifest's file (.toml), which is trained anew",
        )
    else:
        selected = run_named(run, here())
        figures = figures_of_run(selected, way, batch)
        profile, directory = profile_of([figures]), selected.path
        for line in sentences(figures):
            say(line)
    _write(profile, output or directory / FILE_NAME)


def _short_runs(
    manifest: str, way: str | None, batch: int | None, seconds: int, further: Mapping[str, Any]
) -> tuple[Profile, Path]:
    """The profile of a manifest, and the directory of its last run."""
    from cluster_kit.compare import short_runs as short
    from cluster_kit.run.prepare import read
    from cluster_kit.run.request import Request
    from cluster_kit.show.view import QuietView

    host, workspace = current_host(), here()
    given = read(Request(manifest, further), workspace).manifest
    by_ps = given.count(roles.PS.name) > 0
    measured: list[Figures] = []
    directories: list[Path] = []

    def one(what: short.Short) -> None:
        say(f"training for at most {seconds} s: {what.title}")
        keys = short.overrides(what, seconds, given.count(roles.CHIEF.name) > 0)
        outcome = short.run(host, manifest, {**keys, **further}, workspace, lambda: QuietView(err))
        directory = short.directory(outcome)
        directories.append(directory.path)
        try:
            figures = figures_of_run(directory, way, batch)
        except TooShort as error:
            if outcome.success:  # it made all its steps, and more time is of no use
                more = 'its program has ended: give it more steps, such as --args "--epochs 100"'
                raise TooShort(error.message, f"{more}; {error.hint}") from error
            longer = min(LONGEST_S, 2 * seconds)
            hint = f"give each run more time: --seconds {longer}; or {error.hint}"
            raise TooShort(error.message, hint) from error
        measured.append(figures)
        for line in sentences(figures):
            say(line)

    fewer, more = short.first_runs(by_ps)
    try:
        one(fewer)
    except Alone as error:
        say(error.message)
        fewer, more = short.first_runs(by_ps, least=2)
        one(fewer)
    one(more)
    try:
        one(short.slower(measured[0 if by_ps else 1]))
    except TooShort as error:  # the runs before it are enough for a profile
        say(f"{error.message}: how much communication hides stays unknown")
        say(f"  → {error.hint}")
    last = directories[-1]  # the newest run, so that `predict CLUSTER` finds it
    moved = Moved()
    if by_ps:
        say("moving tensors between servers")
        outcome = short.transfer(host, workspace, lambda: QuietView(err))
        ended = short.directory(outcome)
        moved = moved_of(outcome.metrics, _samples(ended, _record(ended)))
        for name, bits in (("connection", moved.connection), (roles.PS.name, moved.ps)):
            if bits:
                say(f"the most of one {name}: {bits / 1e9:.3g} Gbit/s")
        if moved.cpu_per_gb:
            say(
                f"serialisation: {moved.cpu_per_gb:.3g} s of a ps's CPU for each GB, "
                f"{moved.cpu_per_tensor * 1e6:.0f} us for each tensor"
            )
    return profile_of(measured, moved), last


def _write(profile: Profile, file: Path) -> None:
    """Write a measured profile; one that a person wrote is kept."""
    try:
        with contextlib.suppress(FileNotFoundError):
            if not file.read_text(encoding="utf-8", errors="replace").startswith(WRITTEN):
                raise UsageError(
                    f"{short(file.absolute())} exists, and `measure` did not write it",
                    "remove it, or name another file: --output FILE.toml",
                )
        write_atomically(file, WRITTEN + text(profile))
    except OSError as error:
        raise HostError(
            f"{file} cannot be written: {error.strerror}",
            "name a file that you may write: --output FILE.toml",
        ) from error
    say(f"written: {short(file.absolute())}")


def _counts_of(profile: Profile, usual: tuple[int, ...], backup: int) -> tuple[int, ...]:
    """The usual counts, and those that were measured, as far as they are more than `backup`."""
    counts = {*usual, *(row.workers for row in profile.measured)}
    return tuple(sorted(count for count in counts if count > backup)) or (backup + 1,)


def _one_of(value: str | None, known: tuple[str, ...], option: str) -> str | None:
    if value is not None and value not in known:
        raise UsageError(f"{option} {value}: not known", proposal(value, known))
    return value


def _value(parse: Callable[[object], float], text: str | None, option: str) -> float | None:
    """The option's value; raises UsageError with the rule that it breaks."""
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        examples = {"--bandwidth": "--bandwidth 10gbit", "--latency": "--latency 100us"}
        raise UsageError(f"{option} {text}: {error}", f"write {examples[option]}") from None


def _print(answer: Answer) -> None:
    say(f"{answer.name or 'profile'} ({answer.way})", to=out)
    out.print(_table(answer))
    for line in answer.advice:
        say(f"→ {line}", to=out)
    for line in answer.sure:
        say(f"  how sure: {line}", to=out)


def _table(answer: Answer) -> Table:
    """A row for each point; columns without any figure are left out."""
    columns: list[tuple[str, Callable[[Point], str], bool]] = [
        ("workers", lambda p: str(p.workers), True),
        ("ps", lambda p: "" if p.ps is None else str(p.ps), True),
        ("machines", lambda p: str(p.machines), True),
        (answer.unit, lambda p: _figure(p.images_per_s), True),
        ("from … to", _band, True),
        ("efficiency", lambda p: _share(p.efficiency), True),
        ("epoch", lambda p: "" if p.epoch_s is None else duration(p.epoch_s), True),
        ("staleness", _staleness, True),
        ("useful time", lambda p: "" if p.goodput is None else _share(p.goodput.share), True),
        ("save every", _save_every, True),
        ("measured", _measured, True),
        ("what limits", lambda p: p.unknown or (p.limit.text if p.limit else ""), False),
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown = [column for column in columns if any(column[1](point) for point in answer.points)]
    for heading, _, is_number in shown:
        side: JustifyMethod = "right" if is_number else "left"
        table.add_column(heading, justify=side, no_wrap=is_number, overflow="fold")
    for point in answer.points:
        table.add_row(*(Text(harmless(value(point))) for _, value, _ in shown))
    return table


def _figure(number: float | None) -> str:
    if number is None:
        return "no figure"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _share(number: float | None) -> str:
    return "" if number is None else f"{number:.0%}"


def _band(point: Point) -> str:
    if point.low is None or point.high is None or point.low == point.high:
        return ""
    return f"{_figure(point.low)} … {_figure(point.high)}"


def _staleness(point: Point) -> str:
    found = point.staleness
    return "" if found is None else f"{found.mean:.1f} (95 %: {found.p95})"


def _save_every(point: Point) -> str:
    return "" if point.goodput is None else duration(point.goodput.checkpoint_every_s, 0)


def _measured(point: Point) -> str:
    if point.measured is None:
        return ""
    if point.calibrates:
        return f"{_figure(point.measured)} (calibrates)"
    return f"{_figure(point.measured)} ({point.error:+.1%})"


def _refuse_picture(file: Path) -> None:
    known = (".png", ".svg", ".pdf")
    if file.suffix not in known:
        raise UsageError(
            f"--picture {file}: not a picture", f"name a file: FILE{' or FILE'.join(known)}"
        )
    if find_spec("matplotlib") is None:
        raise HostError(
            f"--picture {file}: matplotlib, which draws it, is not installed",
            extra("compare", "compare"),
        )


def _draw(answer: Answer, file: Path) -> None:
    try:
        picture.draw(answer, file)
    except OSError as error:
        raise HostError(
            f"{file} cannot be written: {error.strerror}", "name a file that you may write"
        ) from error
    say(f"written: {short(file.absolute())}")
