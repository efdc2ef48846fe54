"""The page on outcomes names every field, reason and step that an outcome.json may have."""

from __future__ import annotations

import re
from pathlib import Path

from cluster_kit.run.outcome import outcome_of
from cluster_kit.run.verdict import CODES, Verdict
from cluster_kit.workspace import RunDirectory
from tests.docs.markdown import all_pages
from tests.unit.stories import CLUSTER, Story

PAGE = all_pages()["docs/outcome.md"].text
ROW = re.compile(r"^\| (`[^|]+) \|(.*)$", re.MULTILINE)


def rows(heading: str) -> dict[str, str]:
    """Returns the first cell and the rest of each row of the table under a heading."""
    _, _, section = PAGE.partition(f" {heading}\n")
    return dict(ROW.findall(re.split(r"^#", section, flags=re.MULTILINE)[0]))


def in_quotes(cells: object) -> set[str]:
    return set(re.findall(r"`([\w-]+)`", str(cells)))


def facts() -> dict[str, object]:
    directory, finished = RunDirectory(Path("/runs/1")), Verdict(True, 0, "finished")
    return outcome_of(CLUSTER, finished, Story.of().seen, [], directory).as_json()


def test_every_field_has_a_row_and_no_other() -> None:
    assert in_quotes(rows("outcome.json").keys()) == set(facts())


def test_every_field_of_a_task_is_named() -> None:
    tasks = facts()["tasks"]
    assert isinstance(tasks, list)
    assert tasks[0].keys() <= in_quotes(rows("outcome.json")["`tasks`"])


def test_every_reason_with_an_exit_code_has_a_row_with_this_code() -> None:
    told = {name.strip("`"): rest.split("|")[0].strip() for name, rest in rows("Reasons").items()}
    for reason, code in CODES.items():
        assert told[reason] == str(code)
