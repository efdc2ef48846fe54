"""Published tables as profiles, and what model and rivals say of each row that did not calibrate.

python3 -m tests.predict.tables    writes docs/predict.json, from which `make docs` makes tables
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cluster_kit.predict import rivals
from cluster_kit.predict.answer import predict
from cluster_kit.predict.profile import Profile, load
from cluster_kit.predict.question import Question
from tests.make import ROOT

FOLDER = Path(__file__).parent / "tables"
RESULTS = ROOT / "docs" / "predict.json"
GROUPS = {
    "tf-k80": "TensorFlow's page, 8 K80 in a host, ps on the workers' hosts",
    "tf-dgx1": "TensorFlow's page, one DGX-1",
    "ebug-p28-synthetic": "e-bug, 8 K80 in a host, synthetic data",
    "ebug-p28-real": "e-bug, 8 K80 in a host, images from the hosts' disks",
    "ebug-p2": "e-bug, one K80 in a host; its link is not published",
    "ebug-daint": "e-bug, one P100 in a host; its link is not published",
    "horovod-tcp": "Horovod's README, NCCL over TCP",
    "horovod-ps": "Horovod's README, Distributed TensorFlow; the number of ps is not published",
    "dlperf-nodes": "DLPerf, calibrated on 1 and 2 nodes",
    "dlperf-devices": "DLPerf, calibrated on 1 and 8 devices of one node",
}
"""Kinds of tables, in the order of the page."""


def group_of(name: str) -> str:
    """The kind of a table, by its file's name."""
    kind = name.replace("dlperf-", f"dlperf-{name.rpartition('-')[2]}-")
    return next(group for group in GROUPS if kind.startswith(group))


def names() -> list[str]:
    """The tables, in the order of their kinds."""
    order = list(GROUPS)
    found = [file.stem for file in FOLDER.glob("*.toml")]
    return sorted(found, key=lambda name: (order.index(group_of(name)), name))


def results(name: str) -> list[dict[str, Any]]:
    """What model and rivals predict for each row of a table that did not calibrate."""
    return list(_rows(load(FOLDER / f"{name}.toml")))


def _rows(profile: Profile) -> Iterator[dict[str, Any]]:
    for row in profile.measured:
        if row.calibrate:
            continue
        question = Question((row.workers,), (row.ps or 1,))
        (point,) = predict(profile, question).points
        assert point.images_per_s is not None
        assert point.low is not None
        assert point.high is not None
        assert point.limit is not None
        yield {
            "workers": row.workers,
            "ps": row.ps,
            "measured": row.images_per_s,
            "predicted": round(point.images_per_s, 1),
            "low": round(point.low, 1),
            "high": round(point.high, 1),
            "error": round(point.images_per_s / row.images_per_s - 1, 4),
            "line": round(rivals.line(profile, row.workers) / row.images_per_s - 1, 4),
            "formula": round(
                rivals.formula(profile, row.workers, row.ps) / row.images_per_s - 1, 4
            ),
            "limit": point.limit.text,
        }


def saved() -> Mapping[str, Any]:
    """The results in docs/predict.json, by table."""
    facts: Mapping[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return facts


def main() -> None:
    """Write docs/predict.json."""
    tables = {
        name: {
            "group": GROUPS[group_of(name)],
            "name": load(FOLDER / f"{name}.toml").name,
            "rows": results(name),
        }
        for name in names()
    }
    RESULTS.write_text(f"{json.dumps(tables, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
