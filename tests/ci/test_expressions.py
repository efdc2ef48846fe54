"""The tests' own evaluation of expressions equals GitHub's, and refuses unknown names."""

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
def test_an_expression_in_a_text_is_replaced(text: str, value: str) -> None:
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
def test_conditions_of_steps_before_and_after_a_failure(
    condition: str, before: bool, after: bool
) -> None:
    assert holds(condition, CONTEXTS, failed=False) is before
    assert holds(condition, CONTEXTS, failed=True) is after


@pytest.mark.parametrize(
    "text", ["${{ steps.rum.outputs.code }}", "${{ input.kit }}", "${{ cancelled() }}",
             "${{ inputs.kit == }}", "${{ (inputs.kit }}", "${{ 1 + 2 }}"],
)  # fmt: skip
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises((Unknown, IndexError)):
        fill(text, CONTEXTS)


def test_outputs_have_one_line_or_several() -> None:
    expected: dict[str, Any] = {"a": "1=2", "b": "x\ny=z", "c": ""}
    assert outputs_of("a=1=2\nb<<END\nx\ny=z\nEND\nc=\n") == expected
    with pytest.raises(Unknown):
        outputs_of("nothing\n")
