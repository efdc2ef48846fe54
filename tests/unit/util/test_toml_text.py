"""Values in messages are written as TOML, so that they can be found in the file."""

from __future__ import annotations

import tomllib
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.util.toml_text import document, dotted, to_toml

texts = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts
values = (
    scalars
    | st.lists(scalars, max_size=3)
    | st.dictionaries(texts, scalars | st.lists(scalars, max_size=2), max_size=3)
)


@given(values)
def test_a_value_can_be_read_back(value: Any) -> None:
    assert tomllib.loads(f"value = {to_toml(value)}")["value"] == value


tables = st.recursive(
    st.dictionaries(texts, values, max_size=3),
    lambda inner: st.dictionaries(texts, inner | values, max_size=3),
    max_leaves=6,
)


@given(tables)
def test_a_document_can_be_read_back(table: dict[str, Any]) -> None:
    assert tomllib.loads(document(table)) == table


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"cpus": 1, "a b": [True, "x"]}, '{cpus = 1, "a b" = [true, "x"]}'),
        ((0, 1.5), "[0, 1.5]"),
        (date(2024, 1, 1), "2024-01-01"),
        ([], "[]"),
        ("Köln\n", '"Köln\\n"'),
    ],
)
def test_tables_lists_and_unusual_values(value: object, shown: str) -> None:
    assert to_toml(value) == shown


def test_very_long_numbers_and_deep_nesting_are_truncated() -> None:
    assert to_toml(10**5000) == "a very long number"
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert to_toml(value) == "[[[[…]]]]"


def test_keys_are_quoted_if_toml_requires_it() -> None:
    assert dotted(["task", "worker-1", "a.b"]) == 'task.worker-1."a.b"'
