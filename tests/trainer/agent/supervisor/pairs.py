"""Two programs that run in parallel: worker-0 leads with one, worker-1 follows with the other."""

from __future__ import annotations

from pathlib import Path

from connected import wait_for_a_follower
from waiting import wait_for

PAIR = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
MARK = "import os, sys, time, pathlib, signal\nhere = pathlib.Path(__file__).parent\n"
IS_HERE = "(here / 'there').touch()\n"
ONCE_THE_OTHER_IS_HERE = "while not (here / 'there').exists(): time.sleep(0.02)\n"
UNTIL_DONE = (
    "(here / 'pid').write_text(str(os.getppid()))\n"
    "while not (here / 'done').exists(): time.sleep(0.02)\n"
)
HAS_BEEN_HEARD = f"{ONCE_THE_OTHER_IS_HERE}time.sleep(0.8)\n"
"""More than the longest pause between two attempts of a follower to reach the beacon."""


def start(run_task, free_port, tmp_path: Path, leader: str, follower: str, **variables: object):
    """Start worker-0 as the leader with one program, and worker-1 with the other."""
    port = variables.pop("port", None) or free_port()
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{port}", **variables}
    paths = []
    for name, text in (("leader.py", leader), ("follower.py", follower)):
        paths.append(tmp_path / name)
        paths[-1].write_text(MARK + text)
    tasks = [
        run_task(f"worker-{index}", PAIR, "run", str(path), **common)
        for index, path in enumerate(paths)
    ]
    return (*tasks, lambda: run_task("worker-1", PAIR, "run", str(paths[1]), **common))


def lose(followed, tmp_path: Path, port: int) -> None:
    """Kill worker-1 when its program runs and the leader has accepted it; wait for the event
    `lost`."""
    wait_for((tmp_path / "pid").exists)
    wait_for_a_follower(port)
    followed.kill()
    followed.wait()
    (tmp_path / "lost").touch()
