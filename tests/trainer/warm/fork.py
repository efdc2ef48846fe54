"""Turns a fork of the process that has TensorFlow imported into `python ARGUMENTS…`.

It cannot have its own /proc/self/environ: programs that read that file need the fixture `cold`.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import runpy
import sys
import tempfile
import threading
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NoReturn

WARM = ("tensorflow", "tf_keras", "keras")
"""Modules that are imported beforehand. To a program they seem not imported: its `import` runs the
hooks."""
OF_PYTHON = [
    entry
    for entry in sys.path
    if entry
    not in (str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
]


said_by_tensorflow = ""
"""What TensorFlow's import printed to stderr; each fork prints it again at its own import."""


def warm_up() -> None:
    """Import the slow modules, and run no operation, which would start threads."""
    global said_by_tensorflow
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        for name in WARM:
            importlib.import_module(name)
        importlib.import_module("tf_keras.src.engine.training")
        os.dup2(stderr, 2)
        os.close(stderr)
        kept.seek(0)
        said_by_tensorflow = kept.read().decode()


def become(asked: dict, files: list[int]) -> NoReturn:
    """Run the requested program with these files as stdin, stdout and stderr; never returns."""
    code = 1
    try:
        prepare(asked, files)
        run(asked["arguments"])
        code = 0
    except SystemExit as problem:
        code = exit_code(problem.code)
    except BaseException:  # noqa: BLE001 - as Python itself does
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 120
        os._exit(code)
    raise AssertionError


def prepare(asked: dict, files: list[int]) -> None:
    """Set up the client's files, directory and environment, and hide the imported modules."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout, sys.stderr = (
        open(file, "w", closefd=False, buffering=1, errors=errors)  # noqa: SIM115
        for file, errors in ((1, "strict"), (2, "backslashreplace"))
    )
    if unbuffered:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.modules["numpy"].random.seed()  # Python itself does the same
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [entry for entry in named if entry] + OF_PYTHON
    importlib.invalidate_caches()
    hide()
    sys.modules.pop("sitecustomize", None)
    importlib.import_module("sitecustomize") if importlib.util.find_spec("sitecustomize") else None


def hide() -> None:
    """Let `import` find WARM in their usual places and run the hooks, without loading anything
    twice."""
    hidden = {name: sys.modules.pop(name) for name in WARM}
    create, execute = SourceFileLoader.create_module, SourceFileLoader.exec_module

    def create_module(self: SourceFileLoader, spec: ModuleSpec) -> ModuleType | None:
        module = hidden.get(spec.name)
        if module is None or module.__file__ != spec.origin:  # a toy in its place
            return create(self, spec)
        return module

    def exec_module(self: SourceFileLoader, module: ModuleType) -> None:
        if all(module is not one for one in hidden.values()):
            execute(self, module)
        elif module.__name__ == "tensorflow":
            sys.stderr.write(said_by_tensorflow)

    SourceFileLoader.create_module = create_module
    SourceFileLoader.exec_module = exec_module


def run(arguments: list[str]) -> None:
    """Run `-m MODULE …`, `-c TEXT`, or `FILE …` in a new `__main__`."""
    safe = False
    while arguments[0] in ("-u", "-B", "-P"):
        safe = safe or arguments[0] == "-P"
        arguments = arguments[1:]
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.orig_argv = [sys.executable, *arguments]
    if arguments[0] == "-m":
        sys.argv = ["-m", *arguments[2:]]
        if not safe:
            sys.path.insert(0, str(Path.cwd()))
        runpy._run_module_as_main(arguments[1])
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path.insert(0, "")
        exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
    else:
        file = Path(arguments[0])
        sys.argv = list(arguments)
        sys.path.insert(0, str(file.resolve().parent))
        main.__file__ = str(file)
        exec(compile(file.read_bytes(), str(file), "exec"), main.__dict__)


def exit_code(asked: object) -> int:
    """Returns the exit code as Python does: from a number, nothing, or a text to print."""
    if asked is None or isinstance(asked, int):
        return (asked or 0) & 0xFF
    print(asked, file=sys.stderr)
    return 1
