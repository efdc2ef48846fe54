"""`tf.contrib`: modules with the replacements of its names, and errors for names without one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

OWN = "own:"
"""The prefix of module names in this directory."""
API = "tf"
"""The first word of a path in the API, such as `tf.nn.rnn_cell`."""
SLIM = "tf_slim"
NO_SLIM = (
    "tf_slim, which is a part of tf.contrib today, is not in this image: put it into a file of"
)
NO_SLIM += " pip requirements (REQUIREMENTS)"
UNKNOWN = "it is not part of TensorFlow 2, and this image has no replacement"


class Contrib:
    """Creates the modules below tf.contrib at their first import."""

    def __init__(self, load_file: Callable[[str], ModuleType], table: dict[str, Any]) -> None:
        self._load_file = load_file
        self._rows: dict[str, Any] = table["contrib"]
        self._gone: dict[str, str] = table["gone"]

    def module(self, path: str, *, imported: bool = False) -> ModuleType:
        """The module at a path below tf.contrib; "" means tf.contrib itself.

        Raises AttributeError with what to use instead, or, if it is `imported`, the error of an
        import.
        """
        name = f"tensorflow.contrib.{path}".rstrip(".")
        if name in sys.modules:
            return sys.modules[name]
        module = self._made(path, name)
        if module is None:
            problem = self.gone(f"contrib.{path}")
            # Without its name: otherwise `from … import` would replace this message by its own.
            raise ModuleNotFoundError(problem) if imported else AttributeError(problem)
        return sys.modules.setdefault(name, module)

    def _made(self, path: str, name: str) -> ModuleType | None:
        """A module found by its own row, by the row of a parent package, or as a package of other
        modules."""
        row = self._rows.get(path)
        if isinstance(row, dict):
            return Part(name, self, path, row)
        if isinstance(row, str):
            return None
        if not path or self._has_row(path):
            return Part(name, self, path, {})
        above, _, last = path.rpartition(".")
        while above:
            homes = self._rows.get(above)
            if isinstance(homes, dict):
                return _below(homes.get("of", ()), last)
            above, _, more = above.rpartition(".")
            last = f"{more}.{last}"
        return None

    def _has_row(self, path: str) -> bool:
        """Whether the table knows this path, or one below it."""
        return path in self._rows or any(key.startswith(f"{path}.") for key in self._rows)

    def found(self, path: str, row: dict[str, Any], name: str) -> object:
        """The present object for a name; raises AttributeError, which says what to use instead."""
        if name in row.get("names", {}):
            return self._thing(row["names"][name])
        below = f"{path}.{name}".lstrip(".")
        if self._has_row(below):
            return self.module(below)
        for home in row.get("of", ()):
            try:
                return getattr(self._thing(home), name)
            except AttributeError:
                continue
        raise AttributeError(self.gone(f"contrib.{below}"))

    def names(self, row: dict[str, Any]) -> list[str]:
        """The names that `from … import *` imports from a part."""
        homes = [self._thing(home) for home in row.get("of", ()) if home != API]
        listed = {name for home in homes for name in getattr(home, "__all__", None) or dir(home)}
        return sorted(name for name in listed | set(row.get("names", ())) if name[0] != "_")

    def _thing(self, home: str) -> object:
        if home.startswith(OWN):
            return self._load_file(f"tf1/{home.removeprefix(OWN)}.py")
        parts = home.split(".")
        if parts[0] == API:
            value: object = sys.modules["tensorflow"]
            for part in parts[1:]:
                value = getattr(value, part)
            return value
        module, _, last = home.rpartition(".")
        try:
            return importlib.import_module(home)
        except ModuleNotFoundError as problem:
            if problem.name == SLIM:
                raise ModuleNotFoundError(NO_SLIM, name=SLIM) from None
            if not module or problem.name != home:
                raise
            return getattr(importlib.import_module(module), last)

    def reason(self, path: str) -> str:
        """What to use instead of a name below `tf`; "" if that is unknown."""
        if not path.startswith("contrib."):
            return self._gone.get(path, "")
        for known in _and_those_above(path.removeprefix("contrib.")):
            above, _, last = known.rpartition(".")
            row, package = self._rows.get(known), self._rows.get(above)
            if isinstance(row, str):
                return row
            if isinstance(package, dict) and last in package.get("gone", {}):
                return package["gone"][last]
        return UNKNOWN

    def gone(self, path: str) -> str:
        """The message about a missing name."""
        reason = self.reason(path)
        message = f"module 'tensorflow' has no attribute '{path}'"
        return f"tf.{path}: {reason}" if reason else message


class Part(ModuleType):
    """A module of tf.contrib."""

    def __init__(self, name: str, contrib: Contrib, path: str, row: dict[str, Any]) -> None:
        super().__init__(name)
        self.__path__ = []
        self._contrib, self._row, self._path = contrib, row, path

    def __getattr__(self, name: str) -> object:
        if name == "__all__":
            return self._contrib.names(self._row)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._contrib.found(self._path, self._row, name)


def _below(homes: list[str], path: str) -> ModuleType | None:
    """The module `path` in the first package that has it."""
    for home in homes:
        name = f"{home}.{path}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as problem:
            if not name.startswith(problem.name or " "):
                raise
    return None


def _and_those_above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]
