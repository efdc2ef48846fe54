"""What an import of TensorFlow changes for its time, and that nothing of it stays."""

from __future__ import annotations

import builtins
import gc
import typing

import pytest

from trainer.agent.injected import imports


def code_of(variable: typing.TypeVar) -> list[object]:
    return [constraint.__forward_code__ for constraint in variable.__constraints__]


def test_equal_forward_references_are_compiled_once() -> None:
    with imports.made_faster():
        one = typing.TypeVar("one", "dict[str, int]", "set[int]")
        two = typing.TypeVar("two", "dict[str, int]", "set[int]")
    assert list(map(id, code_of(one))) == list(map(id, code_of(two)))
    assert eval(code_of(two)[0]) == dict[str, int]


def test_a_wrong_reference_still_fails() -> None:
    wrong = "dict["
    with imports.made_faster(), pytest.raises(SyntaxError, match="must be an expression"):
        typing.ForwardRef(wrong)


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_and_typing_are_as_before_even_after_an_error(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ImportError), imports.made_faster(), imports.made_faster():
            assert not gc.isenabled()
            raise ImportError("no such module")
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
        gc.unfreeze()
    assert not hasattr(typing, "compile") and builtins.compile is compile
