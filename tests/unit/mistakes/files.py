"""Programs, requirements and data that exist, but cannot be used.

Each entry is the files with their contents (a path that ends in / is an empty directory), the
manifest's text, then the key, the value, a part of the rule and a part of the hint.
"""

from __future__ import annotations

Files = dict[str, bytes]
Mistake = tuple[Files, str, str, str, str, str]

TRAIN = 'program = "train.py"'
WITH = f'{TRAIN}\nrequirements = "needs.txt"'
PHOTOS = 'data = "photos"'
MEND = "fix the line, or the one before it"
PACKAGES = "write packages as `name` or `name==version`"
BESIDE = "a program beside the package's directory can import it"
CLASSES = "needs a folder of images for each class"


def program(text: bytes, line: str, value: str, rule: str, hint: str = MEND) -> Mistake:
    return {"train.py": text}, TRAIN, f"train.py:{line}", value, rule, hint


def needs(text: bytes, rule: str, hint: str = PACKAGES) -> Mistake:
    files = {"train.py": b"x = 1\n", "needs.txt": text}
    return files, WITH, "requirements", '"needs.txt"', rule, hint


def needs_also(line: str, rule: str, hint: str = PACKAGES) -> Mistake:
    files = {"train.py": b"x = 1\n", "needs.txt": f"numpy\n{line}\n".encode()}
    return files, WITH, "needs.txt:2", f"`{line}`", rule, hint


def photos(rule: str, *names: str) -> Mistake:
    files = {f"photos/{name}": b"" for name in names}
    return files, PHOTOS, "data", '"photos"', rule, "`--data DIR`"


def detection(files: Files, rule: str, hint: str) -> Mistake:
    return files, 'program = "detection"\ndata = "boxes"', "data", '"boxes"', rule, hint


MISTAKES: dict[str, Mistake] = {
    "half a function": program(b"def f(:\n", "1", "`def f(:`", "invalid syntax"),
    "Python 2": program(
        b'x = 1\nprint "hi"\n', "2", '`print "hi"`', "Missing parentheses", "write print(…)"
    ),
    "tabs and spaces": program(
        b"if True:\n\tx = 1\n        y = 2\n", "3", "`y = 2`", "inconsistent use of tabs"
    ),
    "a NUL": program(b"x = 1\0\n", "1", "`x = 1\0`", "null bytes"),
    "Latin-1": program(b"x = 1\n# caf\xe9\n", "2", "`# caf\ufffd`", "not in utf-8"),
    "an open bracket": program(b"x = (1,\n", "1", "`x = (1,`", "was never closed"),
    "an open text": program(b"x = 'a\n", "1", "`x = 'a`", "unterminated string"),
    "a return outside of a function": program(b"return 1\n", "1", "`return 1`", "outside function"),
    "a keyword as a name": program(b"class = 1\n", "1", "`class = 1`", "invalid syntax"),
    "merge markers": program(b"<<<<<<< HEAD\nx = 1\n", "1", "`<<<<<<< HEAD`", "invalid syntax"),
    "a missing indent": program(b"for x in y:\nz()\n", "2", "`z()`", "expected an indented block"),
    "HTML": program(b"<!DOCTYPE html>\n", "1", "`<!DOCTYPE html>`", "invalid syntax"),
    "a shell script": (
        {"train.sh": b"#!/bin/sh\necho hi there\n"}, 'program = "train.sh"', "train.sh:2",
        "`echo hi there`", "not valid Python", MEND,
    ),
    "a notebook": (
        {"train.ipynb": b"{}"}, 'program = "train.ipynb"', "program", '"train.ipynb"',
        "a notebook", "jupyter nbconvert --to script train.ipynb",
    ),
    "a folder as a program": (
        {"job/train.py": b"", "job/model.py": b""}, 'program = "job"', "program", '"job"',
        "which is a directory", "such as job/train.py; there are: model.py, train.py",
    ),
    "a folder without a program": (
        {"job/": b""}, 'program = "job"', "program", '"job"', "is a directory", "contains none",
    ),
    "no requirements": (
        {"train.py": b""}, WITH, "requirements", '"needs.txt"', "No such file", "fix the path",
    ),
    "requirements that are binary": needs(b"\xff\xfe\0", "not UTF-8", "save the file as UTF-8"),
    "requirements of nothing": needs(b"# later\n\n", "it names no package"),
    "a project's description for requirements": (
        {"train.py": b"x = 1\n", "pyproject.toml": b'[project]\nname = "mine"\n'},
        f'{TRAIN}\nrequirements = "pyproject.toml"', "requirements", '"pyproject.toml"',
        "not a file of pip requirements", "one a line",
    ),
    "a wheel of this host": needs_also("./dist/x.whl", "no path of this host"),
    "requirements of requirements": needs_also("-r more.txt", "this one file"),
    "an editable package": needs_also("-e .", "this one file", BESIDE),
    "the project's own package": needs_also(".[dev]", "no path of this host", BESIDE),
    "a package next to the project": needs_also("../lib", "no path of this host", BESIDE),
    "no photos": photos("there are 0 folders", ""),
    "photos of one class": photos("there is 1 folder", "cat/1.jpg"),
    "a class without photos": photos("there is 1 folder", "cat/1.jpg", "dog/readme.md"),
    "photos without classes": photos("there are 0 folders", "1.jpg", "2.jpg"),
    "photos in another format": photos("there are 0 folders", "cat/1.gif", "dog/1.gif"),
    "texts for photos": photos(CLASSES, "cat/1.txt", "dog/1.txt"),
    "detection without its configuration": detection(
        {"boxes/readme.md": b""}, "needs a pipeline configuration", "--pipeline-config FILE"
    ),
}  # fmt: skip
