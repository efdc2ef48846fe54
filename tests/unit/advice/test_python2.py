"""Uses of Python 2 are reported with file and line before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.programs.resolve import resolve
from tests.make import manifest
from tests.unit.advised import hints

KEYS = {"style": "all-tasks", "chief": 0}


@pytest.mark.parametrize(
    ("text", "location", "what", "fix"),
    [
        ("for i in xrange(3):\n    pass\nfor j in xrange(4): pass", 1, "`xrange` (also in 3)",
         "`range`"),
        ("name = raw_input()", 1, "`raw_input`", "`input`"),
        ("x = 1\nisinstance(x, basestring)", 2, "`basestring`", "`str`"),
        ("for k, v in d.iteritems(): pass", 1, "`.iteritems()`", "`.items()`"),
        ("import cPickle as pickle", 1, "`import cPickle`", "`import pickle`"),
        ("from urllib2 import urlopen", 1, "`from urllib2 import`", "`from urllib.request import`"),
        ("for i in range(n / batch): pass", 1, "`range(… / …)`", "`range(… // …)`"),
    ],
)  # fmt: skip
def test_it_is_named_with_its_replacement(
    text: str, location: int, what: str, fix: str, tmp_path: Path
) -> None:
    (hint,) = hints(text, tmp_path, **KEYS)
    assert (hint.location, hint.what, hint.fix) == (f"train.py:{location}", what, f"write {fix}")


@pytest.mark.parametrize(
    "text",
    [
        "from six.moves import xrange\nfor i in xrange(3): pass",
        "from six.moves import *\nfor i in xrange(3): pass",
        "try:\n    xrange\nexcept NameError:\n    xrange = range\nxrange(3)",
        "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle",
        "from functools import reduce\nreduce(f, [])",
        "def unicode(x): return x\nunicode(1)",
        "def f(long): return long",
        "import six\nsix.iteritems(d)\nd.iteritems(1)",
        "class D:\n    def iteritems(self): pass\nD().iteritems()",
        "range(int(n / 2))\nrange(n // 2)\nx = n / 2",
        "data.xrange(3)\nlong_name = 1",
    ],
)
def test_uncertain_cases_are_accepted(text: str, tmp_path: Path) -> None:
    assert not hints(text, tmp_path, **KEYS)


def test_a_users_module_may_have_such_a_name(tmp_path: Path) -> None:
    assert not hints({"train.py": "import Queue\n", "Queue.py": "size = 1\n"}, tmp_path, **KEYS)


OLD = '# coding: utf-8\n"print x"\nprint "one"\nif x: print \'two\', x\nprint >>f, "three"\n'


@pytest.mark.parametrize(
    ("text", "location", "fix"),
    [
        (OLD, "train.py:3", "Python 2, which is not rewritten here: write print(…), with"
         " parentheses (lines 3, 4, 5)"),
        ("print x\n", "train.py:1", "write print(…), with parentheses"),
        ("print 'x'\n" * 20, "train.py:1", "(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 8"),
        ("exec 'x'\n", "train.py:1", "write exec(…), with parentheses"),
        ("try:\n    f()\nexcept IOError, e:\n    pass\n", "train.py:3", "write `except X as e:`"),
        ("os.mkdir(x, 0755)\n", "train.py:1", "write 0o644 for 0644"),
        ("for x in\n", "train.py:1", "fix the line"),
        ("x = 10_\n", "train.py:1", "fix the line"),
    ],
)  # fmt: skip
def test_a_program_that_does_not_parse_is_refused_with_every_print(
    text: str, location: str, fix: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (problem,) = resolve(manifest(program="train.py"), tmp_path).problems
    assert problem.line == location
    assert fix in problem.hint_text()


def test_a_module_next_to_the_program_gets_the_same_message(tmp_path: Path) -> None:
    (hint,) = hints({"train.py": "import model\n", "model.py": OLD}, tmp_path, **KEYS)
    assert hint.location == "model.py:3"
    assert "(lines 3, 4, 5)" in hint.fix
