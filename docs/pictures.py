"""Makes docs/report.png from a run: `make pictures`, after `make cluster`.

python -m docs.pictures [RUN]; the newest run of quickstart without one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from cluster_kit.run.past_run import run_named
from cluster_kit.run.report import write_together
from cluster_kit.workspace import here
from tests.browser.chromium import opened, started, why_none

PICTURE = Path(__file__).with_name("report.png")
SHOWN = 1130
"""Pixels from the top: verdict, lanes, and the first curves."""


def main(arguments: list[str]) -> int:
    """Write the picture; the exit code."""
    if reason := why_none():
        print(reason, file=sys.stderr)
        return 3
    run = run_named(*arguments or ["quickstart"], here())
    with tempfile.TemporaryDirectory() as folder, started() as browser:
        page = Path(folder) / "report.html"
        write_together([run], page)
        with opened(browser, page) as one:
            size = {"x": 0, "y": 0, "width": 1200, "height": SHOWN}
            one.page.screenshot(path=str(PICTURE), clip=size, full_page=True)
    print(f"written: {PICTURE}, {PICTURE.stat().st_size // 1000} kB, from {run.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
