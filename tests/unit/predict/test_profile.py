"""A profile is read, refused with every problem, and written so that it is read again."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cluster_kit.errors import HostError, ManifestError, UsageError
from cluster_kit.predict import models, plan
from cluster_kit.predict.profile import (
    _TABLES,
    Profile,
    Variable,
    json_schema,
    load,
    parse,
    text,
)
from cluster_kit.util.paths import PACKAGE
from tests.make import ROOT
from tests.unit.predict.profiles import VARIABLES, profile, raw

EXAMPLE = PACKAGE / "predict" / "example.toml"
ALL: dict[str, Any] = raw(
    name="all keys",
    source="a page",
    epoch_images=1000,
    placement="split",
    min_shard="1m",
    step={"seconds": "300ms", "backward": 0.5, "parallel": 0.9},
    exchange={"per": "host", "push": 0.5, "pull": 1},
    machines={
        "devices_per_host": 2,
        "device_bandwidth": "1.2tbit",
        "cpus": 4,
        "numa_nodes": 2,
        "ps": "beside",
        "input": "network",
    },
    ps={"apply": "5ms", "bandwidth": "25gbit"},
    chief={"dispatch": "400us"},
    transport={
        "connection": "4gbit",
        "ps": "5gbit",
        "cpu_per_gb": "800ms",
        "cpu_per_tensor": "30us",
    },
    failures={"checkpoint": "5s", "restart": 12},
    variable=[
        {"name": "kernel", "shape": [3, 3, 64]},
        {"name": "rows", "bytes": "4m", "pull": 1000, "push": "2k", "count": 3},
        {"name": "mean", "shape": [64], "dtype": "float16", "trained": False},
    ],
    measured=[{"workers": 1, "ps": 1, "images_per_s": 100, "calibrate": True}],
)


def test_units_are_those_of_the_kit() -> None:
    found = parse(ALL, "x")
    assert found.step.seconds == 0.3
    assert found.machines.device_bandwidth == 1.2e12
    assert found.chief.dispatch == pytest.approx(0.0004)
    assert found.min_shard == 2**20
    assert [one.size for one in found.variables] == [2304, 4 * 2**20, 128]
    assert [one.pulled for one in found.variables] == [2304, 1000, 0]
    assert found.bytes == 2304 + 3 * 2048


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for found in (parse(ALL, "x"), profile(), load(EXAMPLE)):
        file = tmp_path / "profile.toml"
        file.write_text(text(found), encoding="utf-8")
        assert load(file) == found


def test_the_schema_accepts_what_is_accepted() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(ALL)
    validator.validate(tomllib.loads(EXAMPLE.read_text(encoding="utf-8")))
    assert not validator.is_valid({**ALL, "way": "magic"})
    assert not validator.is_valid({**ALL, "extra": 1})


HUGE = 10**400
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"speeed": 1}, "speeed = 1: no such key"),
    "a key near a known one": ({"machines": {"bandwith": "1gbit"}}, "did you mean `bandwidth`?"),
    "a number for a table": ({"ps": 2}, "ps = 2: must be a table"),
    "an endless time": ({"ps": {"apply": float("inf")}}, "at most a year"),
    "a time of ages": ({"chief": {"dispatch": 1e308}}, "at most a year"),
    "a rate without unit": ({"machines": {"bandwidth": 10}}, "a rate is a number with a unit"),
    "a time of 0": ({"step": {"seconds": 0}}, "a duration is more than 0 seconds"),
    "a batch of 0": ({"batch": 0}, "batch = 0: must be greater than or equal to 1"),
    "no variables": ({"variable": []}, "needs either a model or its variables"),
    "both": ({"model": "vgg-16"}, "needs either a model or its variables"),
    "an unknown model": ({"model": "vgg16", "variable": None}, "did you mean `vgg-16`?"),
    "no size": ({"variable": [{"name": "v"}]}, "needs either shape or bytes"),
    "no bytes": ({"variable": [{"name": "v", "bytes": 0}]}, "no variable has any bytes to send"),
    "no step": ({"step": None}, "step.seconds: is required"),
    "quantiles and seconds": (
        {"step": {"quantiles": [1, 2, 3]}},
        "`quantiles` has seconds and spread in it",
    ),
    "quantiles that fall": (
        {"step": {"seconds": None, "spread": None, "quantiles": [3, 2, 1]}},
        "quantiles increase",
    ),
    "relative quantiles and spread": (
        {"step": {"relative_quantiles": [0.9, 1, 1.2]}},
        "says what `spread` says",
    ),
    "explicit, without a ps": ({"placement": "explicit"}, "features/kernel has none"),
    "a ps, not explicit": (
        {"variable": [{**VARIABLES[0], "ps": 0}, VARIABLES[1]]},
        "counts only with explicit placement",
    ),
    "a row without ps": (
        {"measured": [{"workers": 2, "images_per_s": 10}]},
        "`ps` is missing in the row of 2 workers",
    ),
    "three that calibrate": (
        {
            "measured": [
                {"workers": n, "ps": 1, "images_per_s": 10, "calibrate": True} for n in (1, 2, 3)
            ]
        },
        "at most 2 rows calibrate",
    ),
    "another format": ({"format": 2}, "format = 2: must be 1"),
    "a huge number of seconds": ({"step": {"seconds": HUGE}}, "at most a year"),
    "a huge share": ({"step": {"spread": HUGE}}, "a number is less than 10^308"),
    "a huge epoch": ({"epoch_images": HUGE}, "must be less than or equal to"),
    "a huge side": ({"variable": [{"name": "v", "shape": [HUGE]}]}, "must be less than or equal"),
    "huge sides": ({"variable": [{"name": "v", "shape": [10**9] * 9}]}, "at most 10^15 bytes"),
    "many sides": ({"variable": [{"name": "v", "shape": [1] * 99}]}, "at most 32 items"),
    "a long name": ({"name": "n" * 999}, "at most 200 items"),
    "a link that carries nothing": (
        {"transport": {"goodput": 1e-300}},
        "must be greater than or equal to 0.01",
    ),
    "a row with too many ps": (
        {"measured": [{"workers": 1, "ps": 10**9, "images_per_s": 10, "calibrate": True}]},
        "must be less than or equal to 1024",
    ),
    "a row that is too large to calibrate": (
        {"measured": [{"workers": 64, "ps": 64, "images_per_s": 10, "calibrate": True}]},
        "workers times ps of a row that calibrates are at most 1024",
    ),
    "a speed of nearly 0": (
        {"measured": [{"workers": 1, "ps": 1, "images_per_s": 5e-324}]},
        "must be greater than or equal to 0.000000001",
    ),
    "many rows": (
        {"measured": [{"workers": n, "ps": 1, "images_per_s": 1} for n in range(1, 99)]},
        "at most 64 items",
    ),
}


def test_each_problem_names_value_rule_and_hint(subtests: pytest.Subtests) -> None:
    for name, (changes, words) in WRONG.items():
        with subtests.test(name=name):
            tables = raw(**changes)
            step = tables.get("step", {})
            if isinstance(step, dict):
                tables["step"] = {k: v for k, v in step.items() if v is not None}
            with pytest.raises(ManifestError) as error:
                parse(tables, "profile.toml")
            assert words in error.value.message
            assert "→" in error.value.message


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ManifestError) as error:
        parse(raw(batch=0, way="x", machines={"latency": "soon"}), "profile.toml")
    assert len(error.value.problems) == 3
    with pytest.raises(ManifestError) as error:
        parse(raw(**{f"key{n}": 1 for n in range(1000)}), "profile.toml")
    assert len(error.value.problems) == 21
    assert "980 more problems" in error.value.message


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no profile"):
        load(tmp_path / "missing.toml")
    with pytest.raises(HostError, match="is not a file"):
        load(tmp_path)
    file = tmp_path / "broken.toml"
    file.write_text("way = ", encoding="utf-8")
    with pytest.raises(ManifestError, match="not valid TOML"):
        load(file)
    for slow in ("a." * 5000 + "a = 1", "[" + "a." * 100 + "a]", ("a." * 500 + "a = 1\n") * 500):
        file.write_text("a = 1\n" + slow + "\n", encoding="utf-8")
        with pytest.raises(ManifestError, match="a key has too many parts"):
            load(file)
    file.write_text('format = 1\nname = "small"\nworker = 2\n', encoding="utf-8")
    with pytest.raises(UsageError, match="is a manifest, not a profile") as error:
        load(file)
    assert f"`cluster-kit measure {file}`" in error.value.hint
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestError, match="not valid TOML"):
        load(file)


PUBLISHED = {
    "inception-v3": 95.3, "resnet-50": 102, "resnet-101": 178, "resnet-152": 241, "vgg-16": 553,
    "bert-base": 438,
}  # fmt: skip
"""Megabytes in float32."""


@pytest.mark.parametrize("model", models.MODELS)
def test_the_models_have_their_published_sizes(model: str) -> None:
    found = profile(model=model, variable=None)
    assert found.bytes / 1e6 == pytest.approx(PUBLISHED[model], rel=0.005)


def held(found: Profile, ps: int) -> list[float]:
    return [shard.size for shard in plan.shards(found, ps)]


def test_round_robin_takes_the_variables_in_their_order() -> None:
    variables = [{"name": f"v{n}", "bytes": size} for n, size in enumerate((50, 1, 40, 1, 30))]
    assert held(profile(variable=variables), 2) == [120, 2]
    assert held(profile(variable=variables, placement="greedy"), 2) == [50, 72]


def test_what_is_not_trained_is_placed_and_does_not_travel() -> None:
    variables = [
        {"name": "a", "bytes": 100},
        {"name": "mean", "bytes": 7, "trained": False},
        {"name": "b", "bytes": 100},
    ]
    first, second = plan.shards(profile(variable=variables), 2)
    assert (first.pull, second.pull, second.size) == (200, 0, 7)


def test_large_variables_are_split_as_the_partitioner_does() -> None:
    found = profile(variable=[{"name": "v", "bytes": 1000}], placement="split", min_shard=300)
    assert [shard.size for shard in plan.shards(found, 2)] == [500, 500]
    assert [shard.size for shard in plan.shards(found, 8)][:4] == [pytest.approx(1000 / 3)] * 3 + [
        0
    ]
    assert plan.shards(found, 2)[0].is_part
    narrow = Variable(name="v", shape=(2, 1000))
    assert narrow.size == 8000


def test_explicit_placement_needs_as_many_ps() -> None:
    variables = [{"name": "a", "bytes": 3, "ps": 0}, {"name": "b", "bytes": 5, "ps": 1}]
    found = profile(variable=variables, placement="explicit")
    assert held(found, 2) == [3, 5]
    with pytest.raises(UsageError, match="b has ps 1 in the profile, and there are 1 ps"):
        plan.shards(found, 1)


def test_the_page_has_every_key_and_is_read() -> None:
    page = (ROOT / "docs" / "predict.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shown = tomllib.loads(block)
    parse(shown, "docs/predict.md")
    for table, keys in {
        "": shown,
        **{k: v for k, v in shown.items() if isinstance(v, dict)},
    }.items():
        known = _TABLES[table].model_fields if table else Profile.model_fields
        not_both = {"model"} if not table else set[str]()
        if table == "step":
            not_both = {"quantiles", "relative_quantiles"}
        assert known.keys() - keys.keys() <= not_both, table
    for key in ("variable", "measured"):
        written = {name for row in shown[key] for name in row}
        assert _TABLES[key].model_fields.keys() - written <= {"ps"}
