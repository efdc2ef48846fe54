"""Becoming the owner of the output directory: when, in which order, and what if it is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer import __main__ as main
from trainer.agent.network import privileges


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """Records what is done to the process, in order; the process is root."""
    done = []
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(privileges, "drop", lambda user: done.append(("drop", user)))
    monkeypatch.setenv("CLUSTER_KIT_OUTPUT", str(tmp_path))
    monkeypatch.setenv("CLUSTER_KIT_USER", "owner")

    def execve(_program, words, environment):
        done.append((words[1:], Path.cwd(), "CLUSTER_KIT_USER" in environment))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", execve)
    return done


def test_root_becomes_the_owner_and_restarts_without_asking_again(steps, tmp_path):
    with pytest.raises(SystemExit):
        main.main(["serve"])
    stat = tmp_path.stat()
    assert steps == [
        ("drop", (stat.st_uid, stat.st_gid)),
        (["-P", "-m", "trainer", "serve"], Path("/"), False),
    ]


def test_any_other_user_stays_the_same(steps, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert not privileges.wanted()
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setenv("CLUSTER_KIT_USER", "1000:1000")
    assert not privileges.wanted()


def test_a_container_that_cannot_give_up_root_says_what_it_lacks(steps, monkeypatch, capsys):
    def refused(_user):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(privileges, "drop", refused)
    assert main.main(["serve"]) == 2
    assert "lacks SETUID, SETGID or SETPCAP" in capsys.readouterr().err
