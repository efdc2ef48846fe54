"""docs/quickstart.svg: the live table of a run of quickstart, which is made for it."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from cluster_kit.errors import EngineError
from cluster_kit.observe.state import RunState
from cluster_kit.run.launch import launch
from cluster_kit.run.request import Request
from cluster_kit.show.progress_line import progress_of
from cluster_kit.show.view import LiveView
from cluster_kit.this_host import this_host
from cluster_kit.workspace import here

MANIFEST = "quickstart"
WIDTH, HEIGHT = 116, 30
SHARE = 0.5
"""Of the training: what is shown then is kept."""
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
FONT = "ui-monospace, SFMono-Regular, Menlo, DejaVu Sans Mono, monospace"


def terminal() -> Console:
    """A terminal that nobody sees; it records what is printed."""
    return Console(
        file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor",
        width=WIDTH, height=HEIGHT, _environ={},
    )  # fmt: skip


class RecordedView(LiveView):
    """The live view; `kept` has its table as it was in the middle of the training."""

    def __init__(self) -> None:
        super().__init__(terminal())
        self.kept = terminal()
        self._is_kept = False

    def update(self, seen: RunState) -> None:
        super().update(seen)
        progress = progress_of(seen)
        told = progress is not None and (progress.share or 0.0) >= SHARE and progress.steps_per_s
        if told and not self._is_kept:
            self._is_kept = True
            self.kept.print(Text.assemble(("$ ", "dim"), "make cluster"))
            self.kept.print(self.shown())
            self.kept.print()

    @property
    def svg(self) -> str:
        """The table as a picture; raises EngineError if the training never came so far."""
        if not self._is_kept:
            raise EngineError("the training ended before anything was kept", "run it once more")
        made = self.kept.export_svg(title="cluster-kit", theme=MONOKAI, unique_id=MANIFEST)
        return FONTS.sub("", made).replace("Fira Code, monospace", FONT)


def draw(picture: Path) -> None:
    """Run the cluster, and write the picture of it; raises KitError if that fails."""
    view = RecordedView()
    request = Request(MANIFEST, {})
    outcome = launch(this_host(), request, here(), view, keep=False, resume=False)
    view.close()
    if not outcome.success:
        raise EngineError(f"the run failed: {outcome.message}", "run it once more")
    picture.write_text(view.svg, encoding="utf-8")
