"""What CI installs the kit from: the source of this installation, or the caller's value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.project import starter as module
from cluster_kit.project.starter import Source, installed_from, source
from cluster_kit.version import __version__

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("noted", "requirement"),
    [
        (None, f"cluster-kit=={__version__}"),
        (
            {"url": "https://me:secret@host.example/kit.git",
             "vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}},
            f"cluster-kit @ git+https://host.example/kit.git@{COMMIT}",
        ),
        (
            {"url": "https://host.example/cluster_kit-1-py3-none-any.whl", "archive_info": {}},
            "cluster-kit @ https://host.example/cluster_kit-1-py3-none-any.whl",
        ),
    ],
)  # fmt: skip
def test_the_source_of_an_installation(noted: Any, requirement: str) -> None:
    assert installed_from(noted) == Source(requirement)


def test_a_local_wheel_is_used_if_it_still_exists(tmp_path: Path) -> None:
    wheel = tmp_path / "a b" / "cluster_kit-1-py3-none-any.whl"
    wheel.parent.mkdir()
    noted = {"url": wheel.as_uri(), "archive_info": {}}
    with pytest.raises(UsageError, match="which CI's machines do not have") as caught:
        installed_from(noted)
    assert "--kit" in caught.value.hint
    wheel.touch()
    assert installed_from(noted) == Source(wheel=wheel)


def test_a_clone_is_no_source_for_ci(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"installed from .*, which CI's machines"):
        installed_from({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})


def test_a_given_value_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_noted", lambda: None)
    (tmp_path / "kit.whl").touch()
    assert source(str(tmp_path / "kit.whl")) == Source(wheel=tmp_path / "kit.whl")
    assert source("cluster-kit @ git+https://x/y") == Source("cluster-kit @ git+https://x/y")
    assert source("https://x/y.whl") == Source("https://x/y.whl")
    assert source("") == Source(f"cluster-kit=={__version__}")


@pytest.mark.parametrize("given", ["no/such.whl", ".", "a\nb"])
def test_values_that_pip_does_not_accept_are_refused(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        source(given)
    assert "--kit" in caught.value.message and "make wheel" in caught.value.hint
