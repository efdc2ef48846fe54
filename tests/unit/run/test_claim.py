"""Two commands of one name at the same moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import HostError
from cluster_kit.run.claim import Watched, claim
from tests.fakes.stage import Stage


@pytest.mark.parametrize(
    ("asked", "moment"), [("docker", "compose -f"), ("docker", "start ps-0"), ("engine", "stop")]
)
def test_a_second_up_of_a_name_is_refused_and_disturbs_nothing(
    stage: Stage, asked: str, moment: str
) -> None:
    """While the first one starts its containers, and while it ends them."""
    refused: list[HostError] = []

    def second(name: str) -> None:
        if name == moment and not refused:
            with pytest.raises(Watched) as error:
                stage.up()
            refused.append(error.value)

    getattr(stage, asked).on_call = second
    assert stage.up().success
    assert "demo is being started or watched by process" in refused[0].message
    assert "--name OTHER" in refused[0].cure
    assert len(stage.docker.ups) == 1
    assert len(list(stage.workspace.runs("demo").glob("2*"))) == 1
    assert stage.is_clean()


def test_a_name_is_free_again_after_its_run(stage: Stage) -> None:
    assert stage.up().success
    assert stage.up().success


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with (
        pytest.raises(HostError, match="runs/demo cannot be written"),
        claim(tmp_path / "runs" / "demo", "demo"),
    ):
        pass
