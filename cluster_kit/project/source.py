"""What pip installs the kit from on a machine of CI: never a guess, else it would be another's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from cluster_kit.errors import UsageError
from cluster_kit.version import __version__

PACKAGE = "cluster-kit"
_CURE = (
    "say what pip installs it from there: `--kit PATH/TO.whl` copies a wheel into your repository "
    "(in a clone of the kit `make wheel` builds one); or `--kit 'cluster-kit @ git+https://…'`"
)


@dataclass(frozen=True)
class Source:
    """A requirement for pip, or a wheel that has to lie in the repository."""

    requirement: str = ""
    wheel: Path | None = None


def source(given: str) -> Source:
    """What `--kit` says; without it what this kit was installed from, as its installer noted it.

    Raises:
        UsageError: the wheel was not found, or this kit came from what CI does not have.
    """
    if not given:
        return installed_from(_noted())
    if given.endswith(".whl") and "://" not in given:
        wheel = Path(given).expanduser()
        if not wheel.is_file():
            raise UsageError(f"--kit {given}: there is no such file", _CURE)
        return Source(wheel=wheel.resolve())
    if not given.isprintable() or Path(given).is_dir():
        raise UsageError(f"--kit {given!r} is neither a wheel nor a requirement for pip", _CURE)
    return Source(given)


def installed_from(noted: Mapping[str, Any] | None) -> Source:
    """The source by direct_url.json (PEP 610), which is None of a package from an index.

    Raises:
        UsageError: it was installed from a directory, or from a wheel that is gone.
    """
    if noted is None:
        return Source(f"{PACKAGE}=={__version__}")
    url = str(noted.get("url", ""))
    parts = urlsplit(url)
    if parts.scheme == "file":
        wheel = Path(unquote(parts.path))
        if wheel.suffix == ".whl" and wheel.is_file():
            return Source(wheel=wheel)
        raise UsageError(
            f"this kit was installed from {wheel}, which a machine of CI does not have", _CURE
        )
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if version := noted.get("vcs_info"):
        return Source(f"{PACKAGE} @ {version['vcs']}+{bare}@{version['commit_id']}")
    return Source(f"{PACKAGE} @ {bare}")


def _noted() -> Mapping[str, Any] | None:
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        raise UsageError(
            "this kit was not installed, so that CI cannot do the same", _CURE
        ) from None
    found: Mapping[str, Any] | None = json.loads(text) if text else None
    return found
