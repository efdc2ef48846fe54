"""A worker with little CPU in real containers: it is named while it is slow, with the cause."""

from __future__ import annotations

import json

from tests.e2e.evidence import events, output
from tests.e2e.running import read_until, running
from tests.kit import Kit

# Tasks without a limit need little CPU, since the machine may be busy.
MAKES_STEPS = """
import json, os, time
progress = open(os.environ["CLUSTER_KIT_PROGRESS"], "a", buffering=1)
step, until = 0, time.time() + 90
while time.time() < until and not os.path.exists("/output/enough"):
    began = time.thread_time()
    while time.thread_time() - began < 0.01:
        pass
    step += 1
    event = dict(time=time.time(), event="step", step=step, own_steps=step)
    print(json.dumps(event), file=progress)
    time.sleep(0.05)
"""


def test_a_worker_with_little_cpu_is_named_with_its_share_and_the_cause(kit: Kit) -> None:
    with running(
        kit, "up", "smoke", "--name", kit.name, "--program", kit.program(MAKES_STEPS),
        "--workers", "3", "--ps", "0", "--set", "chief=0", "--set", "task.worker-1.cpus=0.05",
    ) as process:  # fmt: skip
        read_until(process, "worker-0 | worker-1 is a straggler: ")
        told = json.loads(kit.run("status", kit.name, "--json").stdout)
        (output(kit) / "enough").touch()
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    by_name = {task["name"]: task["straggler"] for task in told[kit.name]}
    assert by_name["worker-0"] is None and by_name["worker-2"] is None
    straggler = by_name["worker-1"]
    assert (straggler["cause"], straggler["limit"]) == ("cpu-limit", 0.05)
    assert straggler["steps_per_s"] * 2 < straggler["others_steps_per_s"]
    assert 0 < straggler["share"] < 0.2
    [over] = events(kit, "worker-0", "straggled")
    assert over["of"] == "worker-1" and over["seconds"] >= 20
    [note] = kit.outcome()["notes"]
    assert note.startswith(straggler["message"]) and "its CPU limit of 0.05 is reached" in note
