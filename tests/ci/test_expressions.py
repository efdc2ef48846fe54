"""The runner of the tests reads expressions as GitHub does, and refuses what there is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ci.expressions import Unknown, fill, holds
from tests.ci.steps import outputs_of

CONTEXTS = {
    "inputs": {"kit": "", "python-version": "3.12"},
    "steps": {"run": {"outcome": "success", "outputs": {"code": "5"}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a ${{ inputs.python-version }}!", "a 3.12!"),
        ("${{ inputs.kit || 'this' }}", "this"),
        ("${{ inputs.kit && 'this' }}", ""),
        ("${{ steps.run.outputs.code }}${{steps.run.outputs.other}}", "5"),
        ("${{ !inputs.kit && (steps.run.outputs.code == '5') }}", "true"),
        ("${{ 'it''s' }}", "it's"),
    ],
)
def test_a_hole_is_filled(text: str, value: str) -> None:
    assert fill(text, CONTEXTS) == value


@pytest.mark.parametrize(
    ("condition", "before", "after"),
    [
        ("success()", True, False),
        ("always()", True, True),
        ("failure()", False, True),
        ("inputs.kit == ''", True, False),
        ("always() && steps.run.outputs.code != '5'", False, False),
        ("${{ always() }}", True, True),
    ],
)
def test_a_step_is_run_before_and_after_a_failure(
    condition: str, before: bool, after: bool
) -> None:
    assert holds(condition, CONTEXTS, failed=False) is before
    assert holds(condition, CONTEXTS, failed=True) is after


@pytest.mark.parametrize(
    "text", ["${{ steps.rum.outputs.code }}", "${{ input.kit }}", "${{ cancelled() }}",
             "${{ inputs.kit == }}", "${{ (inputs.kit }}", "${{ 1 + 2 }}"],
)  # fmt: skip
def test_what_there_is_not_is_refused(text: str) -> None:
    with pytest.raises((Unknown, IndexError)):
        fill(text, CONTEXTS)


def test_outputs_have_one_line_or_many() -> None:
    expected: dict[str, Any] = {"a": "1=2", "b": "x\ny=z", "c": ""}
    assert outputs_of("a=1=2\nb<<END\nx\ny=z\nEND\nc=\n") == expected
    with pytest.raises(Unknown):
        outputs_of("nothing\n")
