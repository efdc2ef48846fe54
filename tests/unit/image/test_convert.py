"""The converter's container: its mounts, and how its messages become the kit's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.cli import provision
from cluster_kit.errors import EngineError, UsageError
from cluster_kit.host import Host
from cluster_kit.image import convert
from cluster_kit.image.convert import Conversion
from cluster_kit.image.kit_image import Say
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine, fake_host
from tests.unit.command_line import Cli

COCO = Conversion("coco", (Path("/in/a.json"), Path("/in/images")), Path("/out"))


def test_the_container_sees_the_named_paths_and_writes_to_one() -> None:
    command = convert.convert_command("image:1", COCO, "7:8")
    assert [word for word in command if word.startswith("--mount")] == [
        '--mount=type=bind,"source=/out","target=/out"',
        '--mount=type=bind,"source=/in/a.json","target=/in/a.json",readonly',
        '--mount=type=bind,"source=/in/images","target=/in/images",readonly',
    ]
    assert {"--user=7:8", "--network=none", "--read-only", "--cap-drop=ALL"} <= set(command)
    assert command[command.index("image:1") :] == (
        "image:1", "-m", convert.CONVERTER, "coco", "--to=/out", "--", "/in/a.json", "/in/images",
    )  # fmt: skip


def test_a_path_inside_another_one_is_not_mounted_twice() -> None:
    inside = Conversion("voc", (Path("/out/VOC"),), Path("/out"), Path("/out/label_map.pbtxt"))
    assert list(convert.mounts(inside)) == ['--mount=type=bind,"source=/out","target=/out"']
    same = Conversion("voc", (Path("/out"),), Path("/out"))
    assert len(list(convert.mounts(same))) == 1
    odd = Conversion("voc", (Path('/a,b:"c'),), Path("/out"))
    assert list(convert.mounts(odd))[1] == (
        '--mount=type=bind,"source=/a,b:""c","target=/a,b:""c",readonly'
    )


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[Completed]:
    """The result of the container's command; no image is built."""
    ends: list[Completed] = []
    monkeypatch.setattr(convert, "ensure_image", lambda *_: False)
    monkeypatch.setattr(convert, "caller_of", lambda _connect: "7:8")
    machine.starts(run=lambda command: ends.pop())
    return ends


def sources(folder: Path) -> Conversion:
    (folder / "a.json").touch()
    (folder / "images").mkdir()
    return Conversion("coco", (folder / "a.json", folder / "images"), folder / "deep" / "out")


def test_a_missing_path_is_named_before_anything_starts(
    tmp_path: Path, ended: list[Completed], machine: Machine
) -> None:
    for absent in (
        Conversion("voc", (tmp_path / "none",), tmp_path),
        Conversion("voc", (tmp_path,), tmp_path, tmp_path / "none"),
    ):
        with pytest.raises(UsageError, match="none was not found"):
            convert.convert(machine.host, absent, print)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made"):
        convert.convert(
            fake_host(), Conversion("voc", (tmp_path,), tmp_path / "file" / "out"), print
        )


def test_invalid_annotations_are_an_error_of_the_caller(
    tmp_path: Path, ended: list[Completed], machine: Machine
) -> None:
    message = "error: 1 problem in the annotations\n  image 3: bad\n    → repair them\n"
    ended.append(Completed((), 2, "", f"WARNING: TensorFlow\n{message}"))
    with pytest.raises(UsageError) as refused:
        convert.convert(machine.host, sources(tmp_path), print)
    assert refused.value.message == "1 problem in the annotations\n  image 3: bad"
    assert refused.value.hint == "repair them"
    assert (tmp_path / "deep" / "out").is_dir()
    ended.append(Completed((), 0, "written\n", "WARNING: TensorFlow\n"))
    assert (
        convert.convert(machine.host, Conversion("voc", (tmp_path,), tmp_path), print) == "written"
    )
    ended.append(Completed((), 125, "", "docker: no such image"))
    with pytest.raises(EngineError, match="ended with 125:\ndocker: no such image"):
        convert.convert(machine.host, Conversion("voc", (tmp_path,), tmp_path), print)


def test_the_verbs_pass_on_every_option(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Conversion] = []

    def noted(_host: Host, wanted: Conversion, say: Say) -> str:
        asked.append(wanted)
        return "written"

    monkeypatch.setattr(provision, "ensure_engine", lambda *_: False)
    monkeypatch.setattr(provision, "convert", noted)
    common = ["--to", "out", "--name", "x", "--shards", "2", "--label-map", "m", "--skip-bad"]
    assert "written" in cli("data", "convert", "coco", "a.json", "images", *common).out
    output = cli("data", "convert", "voc", "VOC", *common, "--split", "val", "--json").out
    assert json.loads(output)["said"] == ["written"]
    given = ("--name=x", "--shards=2", "--skip-bad")
    assert asked == [
        Conversion("coco", (Path("a.json"), Path("images")), Path("out"), Path("m"), given),
        Conversion("voc", (Path("VOC"),), Path("out"), Path("m"), (*given, "--split=val")),
    ]


def test_a_name_that_no_file_can_have_is_refused_before_the_image_is_built(cli: Cli) -> None:
    for name in ("", "..", "../x", "a/b"):
        said = cli("data", "convert", "coco", "a.json", "images", "--to", "out", "--name", name)
        assert (said.code, said.out) == (2, ""), name
        assert f"--name {name!r}: not the beginning" in said.err and "→" in said.err
