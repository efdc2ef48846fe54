"""How another user of this host can obstruct the kit's locks."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from cluster_kit.util import locks
from cluster_kit.util.locks import Locked


def nobody_holds(name: str, prefix: str, user: int) -> subprocess.Popen[str]:
    """Start a process of another user that holds a name until its stdin is closed."""
    code = (
        "import os, sys\n"
        "from cluster_kit.util import locks\n"
        "name, locks.PREFIX, user = sys.argv[1:]\n"
        "os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))\n"
        "with locks.between_users(name, lambda _: True):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, name, prefix, str(user)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be two users")
def test_a_trusted_user_can_hold_a_name_and_others_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PREFIX", str(tmp_path))
    nobody = pwd.getpwnam("nobody")
    with nobody_holds("demo", str(tmp_path), nobody.pw_uid) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        about = f"process {other.pid} of the user nobody"
        assert locks.holder("demo", {nobody.pw_uid}.__contains__) == about
        with (
            pytest.raises(Locked, match=about),
            locks.between_users("demo", {nobody.pw_uid}.__contains__),
        ):
            pass
        assert locks.holder("demo", lambda _: False) == ""
        began = time.monotonic()
        with locks.between_users("demo", lambda _: False, wait_s=60.0):
            assert time.monotonic() - began < 10
        assert other.stdin is not None
        other.stdin.close()
    with locks.between_users("demo", lambda _: False):
        assert locks.holder("demo", lambda _: False)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such sockets")
def test_endless_requests_do_not_hide_the_holder_of_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection that is not accepted stays in the queue of the socket."""
    monkeypatch.setattr(locks, "PREFIX", str(tmp_path))
    monkeypatch.setattr(locks.socket, "SOMAXCONN", 5)
    threads = threading.active_count()
    with contextlib.ExitStack() as open_for_long:
        with locks.between_users("demo", lambda _: False):
            for _ in range(50):
                asking = open_for_long.enter_context(socket.socket(socket.AF_UNIX))
                asking.settimeout(1)
                connect(asking, locks._address("demo", ""))
            assert locks.holder("demo", lambda _: False) == ME
            with pytest.raises(Locked), locks.between_users("demo", lambda _: False):
                pass
        assert locks.holder("demo", lambda _: False) == ""
    assert threading.active_count() == threads


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such sockets")
def test_a_stranger_who_holds_a_name_and_does_not_answer_blocks_no_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PREFIX", str(tmp_path))
    with contextlib.ExitStack() as held:
        taken = held.enter_context(socket.socket(socket.AF_UNIX))
        taken.bind(locks._address("demo", ""))
        taken.listen(0)
        connect(held.enter_context(socket.socket(socket.AF_UNIX)), locks._address("demo", ""))
        began = time.monotonic()
        with locks.between_users("demo", lambda _: False, wait_s=60.0):
            assert time.monotonic() - began < locks.ASK_S + 5


def connect(asking: socket.socket, address: str) -> None:
    """Connect as soon as there is room in the queue; raises TimeoutError."""
    until = time.monotonic() + 10
    while True:
        try:
            asking.connect(address)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(address) from None
            time.sleep(0.01)
        else:
            return


ME = f"process {os.getpid()} of the user {pwd.getpwuid(os.geteuid()).pw_name}"
AS_NOBODY = """
import os, sys
from pathlib import Path
from cluster_kit.util import untrusted
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
root = Path(sys.argv[1]) / "mine"
for mode in (0o111, 0o311, 0o411, 0o055):
    output = root / oct(mode)
    (output / "a").mkdir(parents=True)
    (output / "a" / "shell").touch()
    (output / "a" / "shell").chmod(0o4755)
    (output / "a").chmod(mode)
    untrusted.drop_set_ids(output)
    print(oct(output.stat().st_mode & 0o777))
output = root / "closed"
output.mkdir()
(output / "shell").touch()
(output / "shell").chmod(0o4755)
output.chmod(0o111)
untrusted.drop_set_ids(output)
print(oct((output / "shell").stat().st_mode & 0o7777))
"""


def test_a_directory_that_cannot_be_read_is_closed_to_others() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, folder], capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == ["0o700"] * 4 + ["0o755"], done.stderr


def test_others_cannot_change_written_files_however_open_the_callers_umask_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "compose").mkdir()
    command = [sys.executable, "-m", "cluster_kit", "new", "demo"]
    subprocess.run(command, cwd=tmp_path, umask=0, check=True, capture_output=True)
    written = [path for path in tmp_path.rglob("*") if path.name != "compose"]
    assert [path for path in written if path.stat().st_mode & 0o002] == []
    modes = {path.name: path.stat().st_mode & 0o777 for path in written}
    assert modes["train.py"] == 0o664, "and his group still can"
