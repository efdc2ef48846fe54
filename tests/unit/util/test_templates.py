"""Templates have no logic, and the linter that checks it detects every kind of logic."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.make import ROOT
from tests.unit.templates import findings

TEMPLATES = sorted((ROOT / "templates").rglob("*.j2"))


def test_there_are_templates() -> None:
    assert "compose.yaml.j2" in [path.name for path in TEMPLATES]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_only_attributes_loops_and_conditions(path: Path) -> None:
    assert not findings(path)


NOT_PLAIN = [
    "{% set a = 1 %}",
    "{% macro f() %}{% endmacro %}",
    "{% include 'x' %}",
    "{% block b %}{% endblock %}",
    "{% with a = 1 %}{% endwith %}",
    "{% filter upper %}a{% endfilter %}",
    "{% call f() %}{% endcall %}",
    "{{ a|upper }}",
    "{{ a|yaml(b) }}",
    "{{ a()|yaml(2) }}",
    "{{ a + 1 }}",
    "{{ a ~ b }}",
    "{{ a() }}",
    "{{ a.b() }}",
    "{{ a['b'] }}",
    "{{ 'text' }}",
    "{{ [a] }}",
    "{{ a if b else c }}",
    "{{ -a }}",
    "{% for a in range(3) %}{% endfor %}",
    "{% for a in b|sort %}{% endfor %}",
    "{% for a, b in c %}{% endfor %}",
    "{% for a in b if a %}{% endfor %}",
    "{% for a in b %}{{ loop.index + 1 }}{% endfor %}",
    "{% if a == 1 %}{% endif %}",
    "{% if a is defined %}{% endif %}",
    "{% if a in b %}{% endif %}",
    "{% if a %}{{ b|d }}{% elif c %}{% else %}{% endif %}",
    "{% if a %}{% elif b > 1 %}{% endif %}",
]


def test_the_linter_names_file_and_line_of(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text in NOT_PLAIN:
        with subtests.test(text=text):
            file = tmp_path / "bad.j2"
            file.write_text(f"fine: {{{{ a.b }}}}\n{text}\n")
            (finding,) = findings(file)
            assert finding.startswith("bad.j2:2: ")
            assert finding.endswith("belongs in Python")


def test_the_linter_accepts_plain_attributes_loops_and_conditions(tmp_path: Path) -> None:
    file = tmp_path / "good.j2"
    file.write_text(
        "{{ a }}{{ a.b.c }}{% for x in a.b %}{{ x.y }}{% endfor %}"
        "{% if a.b and not c or d %}1{% elif e %}2{% else %}3{% endif %}"
    )
    assert not findings(file)
