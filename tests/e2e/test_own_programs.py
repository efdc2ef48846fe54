"""Users' programs, unchanged: current style, tutorial style, the oldest style, and failing ones."""

from __future__ import annotations

import re

import docker

from tests.e2e.evidence import codes, log, output
from tests.e2e.own_program import up
from tests.kit import Kit, mine

ALL_TASKS = ("--style", "all-tasks")
FLAGS = (
    "--job_name={{ role }} --task_index={{ index }} --ps_hosts={{ ps_hosts }} "
    "--worker_hosts={{ worker_hosts }} --train_dir={{ output }}/train"
)


def test_a_coordinators_loop_runs_only_on_the_chief(kit: Kit) -> None:
    code, printed = up(kit, "coordinator.py", "--args", "150")
    assert code == 0, printed
    assert re.search(r"150 steps, loss 0\.0\d+, w (2\.9|3\.0)\d+, b (1\.9|2\.0)\d+", printed), (
        printed
    )
    assert (output(kit) / "mine" / "ckpt-1.index").exists()
    assert codes(kit) == {"chief-0": 0, "worker-0": 0, "ps-0": 0}
    assert "TensorFlow server ready" in log(kit, "worker-0")


def test_a_tutorials_keras_fit_runs_on_every_task_and_ends(kit: Kit) -> None:
    code, printed = up(kit, "keras_fit.py", *ALL_TASKS, "--set", "ps_runs=program")
    assert code == 0, printed
    assert "losses [" in printed
    assert (output(kit) / "mine" / "ckpt-3.index").exists()
    assert codes(kit) == {"chief-0": 0, "worker-0": 0, "ps-0": 0}
    assert "worker 0 serves by itself" in log(kit, "worker-0")
    assert "ps 0 serves by itself" in log(kit, "ps-0")


def test_flags_instead_of_tf_config_give_each_task_its_role(kit: Kit) -> None:
    code, printed = up(
        *(kit, "flags_graph.py", *ALL_TASKS, "--chief", "0", "--workers", "2"),
        *("--set", "ps_runs=program", "--args", FLAGS),
    )
    assert code == 0, printed
    last = re.search(r"/job:worker/task:0 step (\d+) loss 0\.0\d+ w (\S+) b (\S+)", printed)
    assert last, printed
    assert abs(float(last[2]) - 3) < 0.2 and abs(float(last[3]) - 2) < 0.2
    assert "/job:worker/task:0 on /job:ps/task:0, chief: True" in log(kit, "worker-0")
    assert "/job:worker/task:1 on /job:ps/task:0, chief: False" in log(kit, "worker-1")
    assert "ps: waiting in its own server" in log(kit, "ps-0")
    assert codes(kit) == {"worker-0": 0, "worker-1": 0, "ps-0": 0}
    assert list((output(kit) / "train").glob("model.ckpt-3*.index"))


def test_a_master_leads_and_the_ps_is_the_kits_server(kit: Kit) -> None:
    code, printed = up(
        *(kit, "flags_graph.py", *ALL_TASKS, "--set", "chief_job=master", "--set", "success=all"),
        *("--args", FLAGS + " --master_hosts={{ chief_hosts }} --last_step=200 --train_dir=mine"),
    )
    assert code == 0, printed
    assert list((output(kit) / "mine").glob("model.ckpt-2*.index")), "the ps saved elsewhere"
    # The step that the master made itself: the shared step, in the checkpoint, includes the
    # worker's.
    assert re.search(r"/job:master/task:0 step [1-9]\d* ", log(kit, "chief-0")), printed
    assert "/job:worker/task:0 on /job:ps/task:0, chief: False" in log(kit, "worker-0")
    assert "TensorFlow server ready" in log(kit, "ps-0")
    assert codes(kit) == {"chief-0": 0, "worker-0": 0, "ps-0": 0}
    decided = '1 of 1 chief and 1 of 1 worker ended well (success = "all")'
    assert kit.outcome()["decided"] == decided and decided in printed


def test_a_chief_that_raises_is_blamed_while_its_workers_wait(
    kit: Kit, client: docker.DockerClient
) -> None:
    code, printed = up(kit, "raises.py", *ALL_TASKS)
    assert code == 5, printed
    assert "blame chief-0" in printed
    outcome = kit.outcome()
    assert (outcome["exit_code"], outcome["blame"]) == (5, "chief-0")
    assert outcome["message"].endswith("ValueError: shapes (32, 10) and (32, 9) do not match")
    assert "raises.py" in outcome["last_words"]
    assert codes(kit)["chief-0"] == 1
    assert mine(client, kit.name) == ([], [])


def test_a_program_that_exits_with_3_fails_the_run_with_3(kit: Kit) -> None:
    code, printed = up(kit, "exits_3.py", "--args", FLAGS, "--set", "restart.permanent=[3]")
    assert code == 5, printed
    assert "warning: args: they give each task its role and index, but only" in printed
    outcome = kit.outcome()
    assert (outcome["blame"], codes(kit)["chief-0"]) == ("chief-0", 3)
    assert "exit code 3" in outcome["message"]
    assert outcome["decided"] == "chief-0 ended with 3, which is permanent"
    assert outcome["decided"] in printed and outcome["decided"] not in outcome["last_words"]
    assert "the data set is empty, nothing to do" in outcome["last_words"]


def test_endless_output_is_counted_and_the_run_ends_with_its_verdict(
    kit: Kit,
) -> None:
    path = kit.program("for step in range(100_000):\n    print(f'step {step} of many')\n")
    code, printed = up(kit, path, "--set", "evaluator=0")
    assert code == 0, printed[-3000:]
    assert "Fatal Python error" not in printed
    shown = re.findall(r"chief-0 \| (.*)", printed)
    left_out = [re.match(r"… ([\d,]+) lines? left out here, all in logs/chief-0.log", line)
                for line in shown]  # fmt: skip
    counted = sum(int(match[1].replace(",", "")) for match in left_out if match)
    assert counted > 50_000
    assert counted + sum("of many" in line for line in shown) == 100_000
    assert log(kit, "chief-0").count("of many") == 100_000
    assert printed.index("step 99999 of many") < printed.index("removing the containers")


def test_a_program_that_never_ends_exceeds_the_job_deadline(
    kit: Kit, client: docker.DockerClient
) -> None:
    code, printed = up(kit, "never_ends.py", *ALL_TASKS, "--set", "deadline.job=3")
    assert code == 6, printed
    outcome = kit.outcome()
    assert (outcome["reason"], outcome["blame"]) == ("job-deadline", "chief-0")
    assert "still here" in log(kit, "worker-0")
    assert mine(client, kit.name) == ([], [])


def test_doctor_reads_the_program_of_a_manifest(kit: Kit) -> None:
    (kit.root / "train.py").write_text(
        "import tensorflow as tf\nif many:\n    tf.distribute.MultiWorkerMirroredStrategy()\n"
    )
    manifest = kit.root / "mine.toml"
    manifest.write_text(f'format = 1\nname = "{kit.name}"\nprogram = "train.py"\n')
    done = kit.run("doctor", str(manifest))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"warn +program +train\.py:3: MultiWorkerMirroredStrategy", done.stdout)
    assert '→ write `style = "all-tasks"` and `ps = 0`' in done.stdout
