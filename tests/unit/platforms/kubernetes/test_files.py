"""The files of this host that nodes get, and the errors about files that are too large."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.platforms.kubernetes.carried_files import LARGEST, MOST, Carried, read
from cluster_kit.platforms.kubernetes.kubernetes_file import objects
from cluster_kit.resolved import Mount
from tests.make import cluster


def test_a_programs_directory_is_read_without_generated_files(tmp_path: Path) -> None:
    for name in ("train.py", "lib/model.py", ".git/config", "__pycache__/a.pyc", "runs/x/log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    files = read(Mount(str(tmp_path), "/program"))
    assert files == {"train.py": b"train.py", "lib/model.py": b"lib/model.py"}
    assert read(Mount(str(tmp_path / "train.py"), "/x")) == {"": b"train.py"}


@pytest.mark.parametrize("what", ["large", "many", "written", "gone"])
def test_files_that_nodes_cannot_get_are_refused_with_a_hint_about_claims(
    tmp_path: Path, what: str
) -> None:
    if what == "large":
        (tmp_path / "a").write_bytes(b"x" * (LARGEST + 1))
    for number in range(MOST + 1 if what == "many" else 0):
        (tmp_path / str(number)).touch()
    source = tmp_path / "gone" if what == "gone" else tmp_path
    with pytest.raises(UsageError) as raised:
        read(Mount(str(source), "/data", what != "written"))
    assert str(source) in raised.value.message
    assert 'claims = { "/data" = "CLAIM" }' in raised.value.hint


def test_texts_and_bytes_are_in_one_config_map_with_their_paths() -> None:
    made = cluster(engine="kubernetes", program="train.py")
    files = [Carried("ck-demo-files-0", "/program", {"train.py": b"print(1)\n", "lib/x": b"\xff"})]
    found = {one["metadata"]["name"]: one for one in objects(made, files)}
    config = found["ck-demo-files-0"]
    assert config["data"] == {"f1": "print(1)\n"}
    assert config["binaryData"] == {"f0": "/w=="}
    pod = found["ck-demo-worker"]["spec"]["template"]["spec"]
    (volume,) = (one for one in pod["volumes"] if one["name"] == "files-0")
    assert volume["configMap"]["items"] == [
        {"key": "f0", "path": "lib/x"},
        {"key": "f1", "path": "train.py"},
    ]
    (mount,) = (o for o in pod["containers"][0]["volumeMounts"] if o["name"] == "files-0")
    assert mount == {"name": "files-0", "mountPath": "/program", "readOnly": True}
