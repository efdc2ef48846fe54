"""What an import of TensorFlow changes for its time, and that nothing of it stays."""

from __future__ import annotations

import gc
import sys
import typing

import pytest

from trainer.agent.injected import imports

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="this Python compiles forward references when they are used"
)


def code_of(variable: typing.TypeVar) -> list[int]:
    return [id(constraint.__forward_code__) for constraint in variable.__constraints__]


def test_equal_forward_references_are_compiled_once_also_by_an_import_in_an_import() -> None:
    with imports.made_faster():
        one = typing.TypeVar("one", "dict[str, int]", "set[int]")
        with imports.made_faster():
            two = typing.TypeVar("two", "dict[str, int]", "set[int]")
        three = typing.TypeVar("three", "dict[str, int]", "set[int]")
    assert code_of(one) == code_of(two) == code_of(three)
    assert eval(three.__constraints__[0].__forward_code__) == dict[str, int]


def test_a_wrong_reference_still_fails() -> None:
    wrong = "dict["
    with imports.made_faster(), pytest.raises(SyntaxError, match="must be an expression"):
        typing.ForwardRef(wrong)


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_and_typing_are_as_before_even_after_an_error(enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ImportError), imports.made_faster():
            assert not gc.isenabled()
            raise ImportError("no such module")
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert not hasattr(typing, "compile")
