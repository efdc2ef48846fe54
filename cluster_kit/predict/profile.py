"""A profile: what one step of a training costs, as a TOML file that a person can read and write.

A profile comes from a measurement of one's own, or from a publication. All sizes are bytes, all
times seconds, all rates bits per second once they are read.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from cluster_kit.errors import HostError, ManifestError, Problem, UsageError, shortened
from cluster_kit.manifest.field_types import (
    Amount,
    Rate,
    ShortSeconds,
    Strict,
    Text,
    short_duration,
    whole,
)
from cluster_kit.predict.models import MODELS, NOT_TRAINED
from cluster_kit.util.nearest import proposal
from cluster_kit.util.toml_text import document, to_toml

FORMAT = 1
FILE_NAME = "profile.toml"
"""A profile's name in a run's directory."""
OF_MANIFESTS = {"program", "args", "worker", "evaluator", "data"}
"""Keys of manifests, of which a file that lacks `way` is taken for one."""
MOST_BYTES = 4 * 2**20
MOST_VARIABLES = 20_000
MOST_CALIBRATING = 2
MOST_WORKERS, MOST_PS, MOST_ROWS = 4096, 1024, 64
MOST_CALIBRATED = 1024
"""The maximum workers times ps of a row that calibrates, which is simulated hundreds of times."""
LEAST_SPEED = 0.001
"""The least speed of a slower worker, by that of the others."""
MOST_SIZE = 10**15
"""The maximum bytes of one variable."""
LONGEST_NAME = 200
MOST_PROBLEMS = 20
MOST_DOTS, MOST_DOTS_TOGETHER = 32, 4_000_000
"""The maximum dots of a table's name, and of the squares of all lines' dots: Python's parser takes
time in proportion to the square of a key's parts."""
LONGEST = 60
ASYNC, SYNC, RING, HIERARCHICAL = "async-ps", "sync-ps", "ring", "hierarchical"
WAYS = (ASYNC, SYNC, RING, HIERARCHICAL)
PS_WAYS = (ASYNC, SYNC)
Way = Literal["async-ps", "sync-ps", "ring", "hierarchical"]
Placement = Literal["round-robin", "greedy", "split", "explicit"]
DTYPES: Mapping[str, int] = MappingProxyType(
    {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int8": 1}
)
HINT = "docs/predict.md#the-profile lists all keys"
BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
"""How the fields' bounds are named in a hint."""
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "bandwidth": '"10gbit"', "device_bandwidth": '"80gbit"', "connection": '"5gbit"',
        "transport.ps": '"8gbit"', "latency": '"100us"', "seconds": '"398ms"', "apply": '"40ms"',
        "dispatch": '"400us"', "work": '"10ms"', "cpu_per_gb": '"800ms"',
        "cpu_per_tensor": '"30us"', "checkpoint": '"5s"', "restart": '"12s"',
        "min_shard": '"256k"', "bytes": '102_000_000', "shape": "[25088, 4096]",
        "quantiles": "[0.38, 0.4, 0.5]", "relative_quantiles": "[0.95, 1.0, 1.25]",
    }
)  # fmt: skip
"""A valid value for keys whose values have a form, by their name."""


def _number(value: Any) -> Any:
    """A whole number as a float; other values unchanged. Raises ValueError for a huge one."""
    try:
        return float(value) if type(value) is int else value
    except OverflowError:
        raise ValueError("a number is less than 10^308") from None


def _seconds_or_none(value: Any) -> float:
    """Like `short_duration`, but 0 is valid, too; raises ValueError."""
    return 0.0 if value == 0 and type(value) is not bool else short_duration(value)


Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Cpus = Annotated[Number, Field(ge=0.01, le=1e6)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
Many = Field(strict=False)
SecondsOrNone = Annotated[
    float,
    BeforeValidator(_seconds_or_none),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]


class Step(Strict):
    """One step of one worker on its device: no network, no other worker."""

    seconds: ShortSeconds | None = None
    """Mean seconds."""
    spread: Share | None = None
    """Standard deviation by mean, from step to step."""
    quantiles: (
        Annotated[tuple[ShortSeconds, ...], Field(strict=False, min_length=3, max_length=1001)]
        | None
    ) = None
    """Measured instead of `seconds` and `spread`: the quantiles at equal distances, 0 to 100 %."""
    relative_quantiles: (
        Annotated[
            tuple[Annotated[Number, Field(gt=0, le=1e6)], ...],
            Field(strict=False, min_length=3, max_length=1001),
        ]
        | None
    ) = None
    """Measured instead of `spread`: the same, as parts of the mean step."""
    backward: Share = 2 / 3
    """The part of a step in which gradients come out."""
    parallel: Share = 1.0
    """The part of a step that more CPUs speed up."""

    @model_validator(mode="after")
    def _consistent(self) -> Step:
        if self.quantiles is not None and (self.seconds is not None or self.spread is not None):
            raise ValueError("`quantiles` has seconds and spread in it; leave those out")
        if self.relative_quantiles is not None and (self.quantiles or self.spread is not None):
            other = "quantiles" if self.quantiles else "spread"
            raise ValueError(f"`relative_quantiles` says what `{other}` says; leave one out")
        if list(self.shape) != sorted(self.shape):
            raise ValueError("quantiles increase from the fastest step to the slowest")
        return self

    @property
    def shape(self) -> tuple[float, ...]:
        """The quantiles, of any mean; empty if they are not known."""
        return self.quantiles or self.relative_quantiles or ()

    @property
    def mean(self) -> float | None:
        """The mean seconds; None if the profile does not have them."""
        return mean_of_quantiles(self.quantiles) if self.quantiles else self.seconds


def mean_of_quantiles(quantiles: Sequence[float]) -> float:
    """The mean of what has these quantiles at equal distances, 0 to 100 %."""
    inner = quantiles[1:-1]
    return ((quantiles[0] + quantiles[-1]) / 2 + sum(inner)) / (len(inner) + 1)


Length = Annotated[int, Field(ge=0, le=MOST_SIZE)]


class Variable(Strict):
    """A variable, or `count` equal ones; one that is not trained is placed, and does not travel.

    `pull` and `push` are the bytes of a step in each direction if they differ from its size, as
    for rows of an embedding.
    """

    name: Annotated[Name, Field(min_length=1)]
    shape: Annotated[tuple[Length, ...], Field(strict=False, max_length=32)] | None = None
    dtype: Literal["float64", "float32", "float16", "bfloat16", "int64", "int32", "int8"] = (
        "float32"
    )
    bytes: Amount | None = None
    count: Count = 1
    trained: bool = True
    pull: Amount | None = None
    push: Amount | None = None
    ps: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _one_size(self) -> Variable:
        if (self.shape is None) == (self.bytes is None):
            raise ValueError("needs either shape or bytes; a shape is a list such as [3, 3, 64]")
        if self.size > MOST_SIZE:
            raise ValueError("a variable has at most 10^15 bytes; check its shape")
        return self

    @property
    def size(self) -> int:
        """The bytes of one of them."""
        if self.bytes is not None:
            return self.bytes
        return math.prod(self.shape or ()) * DTYPES[self.dtype]

    @property
    def pulled(self) -> int:
        """The bytes of one of them that a worker gets in a step."""
        return self.pull if self.pull is not None else self.size * self.trained

    @property
    def pushed(self) -> int:
        """The bytes of the gradient of one of them."""
        return self.push if self.push is not None else self.size * self.trained


class Exchange(Strict):
    """How variables and gradients travel."""

    per: Literal["worker", "host"] = "worker"
    """Whether each worker sends its own gradient, or a host one sum for all its devices."""
    overlap: Share | None = None
    """The part of the communication that can hide behind computation; not known: 0 to 1."""
    push: Annotated[Number, Field(ge=0, le=10)] = 1.0
    pull: Annotated[Number, Field(ge=0, le=10)] = 1.0
    """Bytes that travel for each byte of a variable: 0.5 for gradients in float16."""
    work: SecondsOrNone = 0.0
    """Of an all-reduce among two, on a worker's own device: it hides behind nothing, and takes
    longer on a slower one."""


class Machines(Strict):
    """A host of workers, and its link."""

    devices_per_host: Count = 1
    bandwidth: Rate | None = None
    """Of a host's link, each direction."""
    latency: ShortSeconds = 100e-6
    """One way."""
    device_bandwidth: Rate | None = None
    """Between the devices of a host; not known: free."""
    cpus: Cpus | None = None
    """Of the machine on which the step was measured."""
    numa_nodes: Count = 1
    ps: Literal["apart", "beside"] = "apart"
    """Whether ps have hosts of their own, or are on the workers' hosts."""
    network: Literal["tcp", "rdma"] = "tcp"
    input: Literal["local", "network"] = "local"
    """Where the images come from."""


class Ps(Strict):
    """The work of a ps."""

    apply: SecondsOrNone = 0.0
    """Seconds of CPU to apply one gradient of all variables; a ps has its share, by bytes."""
    bandwidth: Rate | None = None
    """Of its host's link, if it differs from that of the workers."""


class Chief(Strict):
    """The work of a coordinator."""

    dispatch: SecondsOrNone = 0.0
    """Its seconds to schedule one step of one worker; 0: no coordinator (graph mode)."""


class Transport(Strict):
    """What the transport itself allows (gRPC, or the sockets of an all-reduce)."""

    goodput: Annotated[Share, Field(ge=0.01)] = 0.95
    """The part of a link that carries tensors; the rest are headers."""
    connection: Rate | None = None
    """The most that passes between two tasks."""
    ps: Rate | None = None
    """The most that one ps sends, or receives."""
    cpu_per_gb: SecondsOrNone = 0.0
    """Seconds of CPU for 10^9 bytes, at each end."""
    cpu_per_tensor: SecondsOrNone = 0.0
    """Seconds of CPU for each variable between a worker and a ps, at each end."""


class Failures(Strict):
    """What a failure costs, for `--failures`."""

    checkpoint: ShortSeconds | None = None
    """Seconds that saving a checkpoint holds the training up."""
    restart: ShortSeconds | None = None
    """Seconds from a failure to the first new step."""


class Measured(Strict):
    """A measured speed: at most two rows calibrate, the others are compared with predictions."""

    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)]
    ps: Annotated[int, Field(ge=0, le=MOST_PS)] | None = None
    images_per_s: Annotated[Number, Field(ge=1e-9, le=1e15)]
    bandwidth: Rate | None = None
    slowest: Annotated[Number, Field(ge=LEAST_SPEED, le=1)] | None = None
    """The speed of one slower worker by that of the others."""
    calibrate: bool = False


class Profile(Strict):
    """What one step of a training costs, and the machines on which that was measured."""

    format: Annotated[Literal[1], BeforeValidator(whole)]
    name: Name = ""
    source: Text = ""
    """Where the figures come from."""
    way: Way
    batch: Count
    """Images of one step of one worker."""
    epoch_images: Annotated[int, Field(ge=1, le=10**15)] | None = None
    placement: Placement = "round-robin"
    min_shard: Amount = 256 * 2**10
    """The smallest part of a variable that `split` makes, as TensorFlow's MinSizePartitioner."""
    step: Step = Step()
    exchange: Exchange = Exchange()
    machines: Machines = Machines()
    ps: Ps = Ps()
    chief: Chief = Chief()
    transport: Transport = Transport()
    failures: Failures = Failures()
    model: Text | None = None
    """A model whose variables the kit knows, in place of `variable`."""
    variable: Annotated[tuple[Variable, ...], Many] = ()
    measured: Annotated[tuple[Measured, ...], Field(strict=False, max_length=MOST_ROWS)] = ()

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, in the order in which they are placed."""
        return self.variable or _of_model(self.model or "")

    @property
    def bytes(self) -> int:
        """The size of one gradient of all variables."""
        return sum(one.pushed * one.count for one in self.variables)

    @property
    def calibrating(self) -> tuple[Measured, ...]:
        """The rows that calibrate, the smallest first."""
        rows = (row for row in self.measured if row.calibrate)
        return tuple(sorted(rows, key=lambda row: row.workers))


@functools.cache
def _of_model(name: str) -> tuple[Variable, ...]:
    return tuple(
        Variable(name=one, shape=shape, trained=not one.endswith(NOT_TRAINED))
        for one, shape in MODELS[name]()
    )


def load(path: Path) -> Profile:
    """The profile in a file.

    Raises:
        UsageError: there is no such file.
        HostError: it cannot be read.
        ManifestError: it is not TOML, or invalid: with every problem in it.
    """
    if path.exists() and not path.is_file():
        raise HostError(f"{path} is not a file", "name a profile: FILE.toml")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"no profile {path}", "docs/predict.md shows how to write one") from None
    except OSError as error:
        raise HostError(f"{path} cannot be read: {error.strerror}", "name another file") from error
    if len(content) > MOST_BYTES:
        rule = f"a profile has at most {MOST_BYTES // 2**20} MiB"
        raise ManifestError(str(path), [Problem(path.name, "", rule, HINT)])
    if _is_slow_to_parse(content):
        rule = "a key has too many parts"
        raise ManifestError(str(path), [Problem(path.name, "", rule, HINT)])
    try:
        raw = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        rule = f"not valid TOML: {error}"
        raise ManifestError(str(path), [Problem(path.name, "", rule, HINT)]) from None
    if "way" not in raw and not raw.keys().isdisjoint(OF_MANIFESTS):
        measured = f"`cluster-kit measure {path}` trains it for a short time, and writes one"
        raise UsageError(f"{path} is a manifest, not a profile", measured)
    return parse(raw, str(path))


def _is_slow_to_parse(content: bytes) -> bool:
    """Whether keys with very many parts (`a.a.a = 1`, `[a.a.a]`) would take minutes to parse."""
    together = 0
    for line in content.split(b"\n"):
        dots = line.count(b".")
        together += dots * dots
        if together > MOST_DOTS_TOGETHER or (dots > MOST_DOTS and line.lstrip().startswith(b"[")):
            return True
    return False


def parse(raw: Mapping[str, Any], source: str) -> Profile:
    """The profile in these tables; raises ManifestError with every problem in them."""
    try:
        profile = Profile.model_validate(raw)
    except ValidationError as error:
        problems = [_problem(detail) for detail in error.errors()]
        raise ManifestError(source, shortened(problems, MOST_PROBLEMS)) from None
    if problems := list(_contradictions(profile)):
        raise ManifestError(source, problems)
    return profile


def _contradictions(profile: Profile) -> Iterable[Problem]:
    """Yields what is wrong with valid keys together."""
    rows, steps = profile.calibrating, profile.step
    if steps.seconds is None and steps.quantiles is None and not rows:
        hint = "give the mean seconds of a step on one device, or mark a measured row `calibrate`"
        yield Problem("step.seconds", "", "is required", hint)
    if len(rows) > MOST_CALIBRATING:
        rule = (
            f"at most {MOST_CALIBRATING} rows calibrate, so that a prediction is not its own data"
        )
        yield Problem("measured", "", rule, "keep `calibrate` in the two smallest rows")
    if any(row.workers * (row.ps or 1) > MOST_CALIBRATED for row in rows):
        rule = f"workers times ps of a row that calibrates are at most {MOST_CALIBRATED}"
        hint = "mark a smaller row `calibrate`, or measure a run of fewer tasks"
        yield Problem("measured", "", rule, hint)
    if profile.model is not None and profile.model not in MODELS:
        hint = proposal(profile.model, MODELS)
        yield Problem(
            "model", to_toml(profile.model), "no such model", f"{hint}; or `[[variable]]`"
        )
        return
    if (profile.model is None) == (not profile.variable):
        rule = "needs either a model or its variables"
        hint = 'write `model = "resnet-50"`, or a `[[variable]]` for each tensor'
        yield Problem("variable", "", rule, hint)
        return
    if not profile.bytes:
        yield Problem("variable", "", "no variable has any bytes to send", "give their sizes")
    if sum(one.count for one in profile.variables) > MOST_VARIABLES:
        rule = f"at most {MOST_VARIABLES:,} variables"
        yield Problem("variable", "", rule, "sum up small ones")
    missing = [one.name for one in profile.variables if one.ps is None]
    if profile.placement == "explicit" and missing:
        rule = f'placement = "explicit" needs `ps` in each variable; {missing[0]} has none'
        yield Problem("variable", "", rule, "add `ps = 0`, or choose another placement")
    if profile.placement != "explicit" and len(missing) < len(profile.variables):
        rule = "`ps` of a variable counts only with explicit placement"
        yield Problem("placement", to_toml(profile.placement), rule, 'write `"explicit"`')
    for row in profile.measured:
        if profile.way in PS_WAYS and not row.ps:
            rule = f"`ps` is missing in the row of {row.workers} workers"
            yield Problem("measured", "", rule, "add how many ps it had")


def _problem(detail: Any) -> Problem:
    """The problem for one of pydantic's errors, with the keys of a profile."""
    keys = [part for part in detail["loc"] if part != "constrained-float"]
    key_path = ".".join(str(part + 1) if isinstance(part, int) else part for part in keys)
    kind, value = detail["type"], to_toml(detail.get("input"))
    value = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
    known = list(_table_of(keys).model_fields)
    if kind == "missing":
        return Problem(key_path, "", "is required", HINT)
    if kind == "extra_forbidden":
        return Problem(key_path, value, "no such key", proposal(str(keys[-1]), known))
    rule = str(detail["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    if kind in ("model_type", "dict_type"):
        rule = "must be a table"
    rule, _, hint = rule.partition("; ")
    return Problem(key_path, value, rule, hint or _example(keys, detail.get("ctx") or {}))


def _example(keys: Sequence[Any], bounds: Mapping[str, Any]) -> str:
    """What to write in place of an invalid value."""
    for bound, words in BOUNDS.items():
        if bound in bounds:
            return f"give {words} {bounds[bound]:g}"
    names = [str(part) for part in keys if not isinstance(part, int)]
    example = EXAMPLES.get(".".join(names[-2:])) or EXAMPLES.get(names[-1])
    return f"write for example `{names[-1]} = {example}`" if example else HINT


_TABLES: Mapping[str, type[BaseModel]] = {
    "step": Step,
    "exchange": Exchange,
    "machines": Machines,
    "ps": Ps,
    "chief": Chief,
    "transport": Transport,
    "failures": Failures,
    "variable": Variable,
    "measured": Measured,
}


def _table_of(keys: Iterable[Any]) -> type[BaseModel]:
    """The table that holds the last of these keys."""
    first, *rest = keys or ("",)
    return _TABLES.get(str(first), Profile) if rest else Profile


def text(profile: Profile) -> str:
    """The profile as a file that `load` reads; keys with their default values are left out."""
    tables = profile.model_dump(mode="json", exclude_defaults=True)
    lists = {key: tables.pop(key) for key in ("variable", "measured") if key in tables}
    head = {"format": FORMAT, **tables}
    rows = [f"\n[[{key}]]\n{document(row)}" for key, values in lists.items() for row in values]
    return "".join([document(head), *rows])


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a profile, for editors."""
    return Profile.model_json_schema()
