"""Finds the files of a directory that a build uses: all except those that a .dockerignore
excludes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from docker.utils.build import Pattern


def ignore_file(dockerfile: Path, context: Path) -> Path:
    """The .dockerignore file: the one for the Dockerfile, else that of the directory."""
    beside_dockerfile = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
    return beside_dockerfile if beside_dockerfile.is_file() else context / ".dockerignore"


def patterns_of(text: str) -> list[Pattern]:
    """The patterns of such a file, in their order."""
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    patterns = [Pattern(line) for line in lines if line and not line.startswith("#")]
    return [pattern for pattern in patterns if pattern.dirs]


def files_of(context: Path, patterns: Sequence[Pattern]) -> Iterator[Path]:
    """Yields files, links and empty directories below `context` that no pattern leaves out.

    They are in the same order everywhere. Raises OSError if a directory cannot be read.
    """
    yield from _below(context, context, patterns, (False,) * len(patterns))


def _below(
    folder: Path, context: Path, patterns: Sequence[Pattern], above: Sequence[bool]
) -> Iterator[Path]:
    """Yields the files below a folder; `above` are the patterns that match the folder, and so all
    files in it."""
    for path in sorted(folder.iterdir()):
        name = path.relative_to(context).as_posix()
        matches = [
            inherited or bool(pattern.match(name))
            for pattern, inherited in zip(patterns, above, strict=True)
        ]
        left_out = _last(patterns, matches)
        if not path.is_dir() or path.is_symlink():
            if not left_out:
                yield path
        elif not left_out or any(pattern.exclusion for pattern in patterns):
            if not left_out and not any(path.iterdir()):
                yield path
            yield from _below(path, context, patterns, matches)


def _last(patterns: Sequence[Pattern], matches: Sequence[bool]) -> bool:
    """Whether the last matching pattern excludes the file; a pattern with `!` includes it."""
    verdicts = [not pattern.exclusion for pattern, matched in zip(patterns, matches) if matched]  # noqa: B905
    return verdicts[-1] if verdicts else False
