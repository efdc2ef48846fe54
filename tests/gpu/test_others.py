"""A container that is not the kit's uses a GPU: it is shown, and `auto` skips that GPU."""

from __future__ import annotations

import json

from tests.gpu.clusters import requests, standing
from tests.gpu.conftest import MakeKit, inventory
from tests.gpu.second_engine import SecondEngine
from tests.gpu.waiting_image import NAME

STRANGER = "not-of-the-kit"


def test_gpus_of_other_containers_are_shown_and_skipped(
    engine: SecondEngine, make_kit: MakeKit
) -> None:
    cdi = "cdi" in engine.namespace
    gpu = "--device=nvidia.com/gpu=0" if cdi else "--gpus=device=0"
    started = ("run", "--detach", f"--name={STRANGER}", "--network=none", gpu)
    done = engine.docker(*started, "--entrypoint=/bin/sleep", NAME, "300")
    assert done.returncode == 0, done.stderr
    try:
        kit = make_kit(engine, inventory(2))
        found = json.loads(kit.run("gpus", "--json").stdout)["gpus"]
        assert [gpu["used_by"] for gpu in found] == [f"container {STRANGER}", None]
        with standing(kit, engine, chief=0, worker=1, ps=0) as names:
            given = [ids for name in names for _, ids in requests(engine, name)]
        assert given == [["nvidia.com/gpu=1" if cdi else "1"]]
        too_many = kit.run("render", kit.name, "--workers", "2")
        assert f"0 is used by container {STRANGER}" in too_many.stderr
    finally:
        engine.docker("rm", "--force", STRANGER)
