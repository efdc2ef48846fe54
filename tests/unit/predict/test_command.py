"""The command: its words, its table, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.cli import app
from cluster_kit.predict.profile import load, text
from tests.schemas import check
from tests.unit.command_line import Cli
from tests.unit.predict.profiles import profile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text(profile(epoch_images=100_000)), encoding="utf-8")
    return path


def test_a_table_with_what_limits_and_how_sure_it_is(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.out, "width", 200)
    said = cli("predict", str(file), "--workers", "1,2,...,4", "--ps", "1", "--steps", "20")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0] == "profile (async-ps)"
    assert lines[1].split()[:4] == ["workers", "ps", "machines", "images/s"]
    assert [line.split()[0] for line in lines[2:6]] == ["1", "2", "3", "4"]
    assert "how sure: from" not in lines[2]
    monkeypatch.setattr(app.out, "width", 80)
    narrow = cli("predict", str(file), "--workers", "8", "--ps", "1", "--steps", "20").out
    assert "…" not in narrow.replace(" … ", ""), "a long word is broken, not cut off"


def test_json_keeps_to_its_schema(cli: Cli, file: Path) -> None:
    said = cli("predict", str(file), "--workers", "2", "--ps", "1", "--steps", "20", "--json")
    facts = json.loads(said.out)
    check("predict", facts)
    assert facts["points"][0]["workers"] == 2


def test_the_example_is_a_profile_that_is_predicted(cli: Cli, tmp_path: Path) -> None:
    said = cli("predict", "--example")
    path = tmp_path / "profile.toml"
    path.write_text(said.out, encoding="utf-8")
    assert load(path).name == "ResNet-50 on V100"
    assert cli("predict", str(path), "--workers", "2", "--ps", "1", "--steps", "10").code == 0


def test_a_count_of_ps_is_called_enough_only_if_it_is(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(cli("predict", "--example").out, encoding="utf-8")
    for workers, words in (("32", "use 14 ps"), ("64", "use 3 ps or more")):
        said = cli("predict", str(file), "--workers", workers, "--ps", "1", "--json")
        assert json.loads(said.out)["points"][0]["limit"]["text"].endswith(words)


def test_every_option_reaches_the_question(cli: Cli, file: Path) -> None:
    with file.open("a", encoding="utf-8") as more:
        more.write("\n[failures]\ncheckpoint = 5\nrestart = 12\n")
    content = file.read_text(encoding="utf-8").replace("[machines]", "[machines]\ncpus = 4")
    file.write_text(content, encoding="utf-8")
    base = ("predict", str(file), "--workers", "4", "--ps", "2", "--steps", "20", "--json")

    def speed(*options: str) -> float:
        said = cli(*base, *options)
        assert said.code == 0, said.err
        return float(json.loads(said.out)["points"][0]["images_per_s"])

    usual = speed()
    for option in (
        ("--cpus", "8"), ("--speed", "12"), ("--bandwidth", "100gbit"), ("--overlap", "1"),
        ("--placement", "split"),
    ):  # fmt: skip
        assert speed(*option) > usual, option
    for option in (
        ("--latency", "50ms"), ("--devices-per-host", "4"), ("--straggler", "0.2"),
        ("--failures", "1/day"), ("--way", "sync-ps"), ("--way", "sync-ps", "--backup", "1"),
    ):  # fmt: skip
        assert speed(*option) < usual, option
    assert speed("--ps-on", "beside") != usual
    usual_counts = ("predict", str(file), "--ps", "1", "--steps", "20", "--json")
    said = cli(*usual_counts, "--way", "sync-ps", "--backup", "1")
    assert [point["workers"] for point in json.loads(said.out)["points"]][:2] == [2, 4]
    said = cli(*base, "--budget", "4")
    assert json.loads(said.out)["advice"][-1].startswith("4 machines: ")


ERRORS = {
    (): ("a profile is missing", "--example"),
    ("none.toml",): ("no profile none.toml", "docs/predict.md"),
    ("nothing",): ("no run `nothing`", "there are"),
    ("FILE", "--workers", "0"): ("`0` is not a number from 1 to 4096", "--workers 1,2,4"),
    ("FILE", "--ps", "x"): ("`x` is not a number from 1 to 1024", "--ps 1,2,4"),
    ("FILE", "--bandwidth", "10"): ("a rate is a number with a unit", "--bandwidth 10gbit"),
    ("FILE", "--latency", "soon"): ("a time is a number of seconds", "--latency 100us"),
    ("FILE", "--way", "asink-ps"): ("--way asink-ps: not known", "did you mean `async-ps`?"),
    ("FILE", "--failures", "often"): ("not a rate", "1/day"),
    ("FILE", "--failures", ""): ("not a rate", "1/day"),
    ("FILE", "--workers", ""): ("`` is not a number from 1 to 4096", "--workers 1,2,4"),
    ("FILE", "--ps", ""): ("`` is not a number from 1 to 1024", "--ps 1,2,4"),
    ("FILE", "--cpus", "8"): ("does not say on how many CPUs", "cpus = 4"),
    ("FILE", "--way", "ring", "--ps", "2"): ("an all-reduce (ring) has no ps", "--way async-ps"),
    ("FILE", "--cpus", "inf"): ("x<=1000000", "--help"),
    ("FILE", "--picture", "x.gif", "--workers", "1", "--ps", "1"): ("not a picture", "FILE.png"),
}


def test_errors_say_what_to_do(cli: Cli, file: Path, subtests: pytest.Subtests) -> None:
    for words, (message, hint) in ERRORS.items():
        with subtests.test(words=words):
            said = cli("predict", *(str(file) if word == "FILE" else word for word in words))
            assert (said.code, said.out) == (2, "")
            assert message in said.err
            assert hint in said.err.partition("→")[2]


def test_a_run_without_a_profile_says_what_is_missing(cli: Cli, root: Path) -> None:
    run = root / "runs" / "demo" / "1"
    (run / "output").mkdir(parents=True)
    said = cli("predict", str(run))
    assert said.code == 2
    assert "has no run.json: `cluster-kit up` has started no tasks there" in said.err
    assert "docs/predict.md#the-profile" in said.err
    (run / "profile.toml").write_text(text(profile()), encoding="utf-8")
    assert cli("predict", str(run), "--workers", "1", "--ps", "1", "--steps", "10").code == 0


@pytest.mark.draws
@pytest.mark.parametrize("name", [r"$\bad{x}$", "$5 for $6", "a\x1b[31m\u3164\u202eb", "漢" * 200])
def test_a_picture_takes_any_name(cli: Cli, tmp_path: Path, name: str) -> None:
    path, picture = tmp_path / "mine.toml", tmp_path / "scaling.png"
    path.write_text(text(profile(name=name)), encoding="utf-8")
    words = ("--workers", "1", "--ps", "1", "--steps", "10", "--picture", str(picture))
    said = cli("predict", str(path), *words)
    assert said.code == 0, said.err
    assert said.err.startswith("written: ")
    assert picture.stat().st_size < 2**20


@pytest.mark.draws
def test_without_matplotlib_a_picture_is_refused_before_the_work(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_kit.cli.predict.find_spec", lambda name: None)
    said = cli("predict", "FILE", "--picture", "x.png")
    assert said.code == 3
    assert "--picture x.png: matplotlib, which draws it, is not installed" in said.err


def test_a_picture_has_the_measured_points(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"workers": 1, "ps": 1, "images_per_s": 60.0, "calibrate": True},
        {"workers": 2, "ps": 1, "images_per_s": 100.0},
    ]
    path = tmp_path / "mine.toml"
    path.write_text(text(profile(measured=rows)), encoding="utf-8")
    picture = tmp_path / "below" / "scaling.svg"
    words = ("--workers", "1,2,4", "--ps", "1,2", "--steps", "10")
    said = cli("predict", str(path), *words, "--picture", str(picture))
    assert said.code == 0, said.err
    assert "written: " in said.err
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
