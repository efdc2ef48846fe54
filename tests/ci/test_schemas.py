"""The files for CI are valid by GitHub's and GitLab's schemas, which check-jsonschema provides."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from check_jsonschema import main
from click.testing import CliRunner

from tests.make import ROOT

ACTION = ROOT / "action.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def check(schema: str, *files: Path, transform: str = "") -> str:
    """Returns what check-jsonschema reports for the files; "" if they are valid."""
    words = ["--builtin-schema", f"vendor.{schema}", "--color", "never"]
    words += ["--data-transform", transform] if transform else []
    done = CliRunner().invoke(main, [*words, *map(str, files)])
    return "" if done.exit_code == 0 else done.output


def test_the_action_and_the_workflows_are_valid() -> None:
    assert WORKFLOWS
    assert check("github-actions", ACTION) == ""
    assert check("github-workflows", *WORKFLOWS) == ""


def test_the_schemas_find_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "action.yml"
    wrong.write_text(ACTION.read_text().replace("using: composite", "using: composit"))
    assert "using" in check("github-actions", wrong)


def test_every_input_is_used_and_every_step_has_a_name() -> None:
    """An input that nothing reads would have no effect, without an error."""
    text, read = ACTION.read_text(), yaml.safe_load(ACTION.read_text())
    assert [name for name in read["inputs"] if f"inputs.{name} " not in text] == []
    assert all(step["name"] for step in read["runs"]["steps"])


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_no_script_contains_an_input_value(path: Path) -> None:
    """A value in a script could run as a command; values come through environment variables."""
    steps = yaml.safe_load(path.read_text())
    jobs = [steps["runs"]] if "runs" in steps else steps["jobs"].values()
    assert not [s for job in jobs for s in job["steps"] if "${{" in s.get("run", "")]


def test_the_page_names_every_input_and_output() -> None:
    page = (ROOT / "docs" / "your-project.md").read_text(encoding="utf-8")
    read = yaml.safe_load(ACTION.read_text())
    assert [n for n in (*read["inputs"], *read["outputs"]) if f"`{n}`" not in page] == []
