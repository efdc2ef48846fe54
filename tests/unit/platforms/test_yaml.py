"""Plain data as YAML: reading it back gives the same data, whatever a text looks like."""

from __future__ import annotations

import pytest
import yaml

from cluster_kit.platforms.rendered_file import Anchored, OneLine, Verbatim, block, present
from tests.unit.manifests import TRAPS

TEXTS = ["null", "true", "1e3", "2024-01-01", "012", "", *TRAPS]


def test_a_text_stays_a_text(subtests: pytest.Subtests) -> None:
    for text in TEXTS:
        with subtests.test(text=text):
            data = {
                "one": text,
                "list": [text],
                "inner": {"deep": text},
                "short": OneLine({"a": text}),
            }
            read = yaml.safe_load(block(data).replace("$$", "$"))
            assert read == {
                "one": text,
                "list": [text],
                "inner": {"deep": text},
                "short": {"a": text},
            }


@pytest.mark.parametrize("name", ["yes", "12", "a b", "cluster-kit.role", "<<"])
def test_a_key_stays_a_text(name: str) -> None:
    assert yaml.safe_load(block({name: 1})) == {name: 1}


def test_other_types_of_values() -> None:
    data = {
        "number": 3, "yes": True, "nothing": None, "none": {}, "of": [],
        "rows": [{"a": 1, "b": [1, 2]}, {"c": {"d": "x"}}],
    }  # fmt: skip
    assert yaml.safe_load(block(data)) == data
    assert block({"rows": [{"a": 1, "b": 2}]}, 2) == "  rows:\n    - a: 1\n      b: 2"


def test_ready_made_yaml_is_written_unchanged() -> None:
    data = {
        "all": Anchored("all", {"a": 1}),
        "one": {Verbatim("<<"): Verbatim("*all"), "path": Verbatim("${HOME:-/}")},
    }
    text = block(data)
    assert text == "all: &all\n  a: 1\none:\n  <<: *all\n  path: ${HOME:-/}"
    assert yaml.safe_load(text)["one"] == {"a": 1, "path": "${HOME:-/}"}


def test_dollar_signs_are_escaped_for_compose() -> None:
    assert block({"a": "$HOME"}) == "a: '$$HOME'"


def test_keys_without_a_value_are_left_out() -> None:
    given = {"a": None, "b": "", "c": [], "d": {}, "e": 0, "f": False, "g": "x"}
    assert present(given) == {"e": 0, "f": False, "g": "x"}
