"""With TensorFlow: unchanged programs written for TensorFlow 1, on small clusters.

Two of the six run in containers: tests/e2e/test_tf1.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

if not find_spec("tensorflow"):
    pytest.skip("TensorFlow is in the image, not here", allow_module_level=True)

PERIOD = Path(__file__).parents[2] / "period"
Run = Callable[..., dict[str, str]]


@pytest.fixture
def run(run_task, free_port, tmp_path: Path) -> Run:
    """Run a program on two trainers and a ps, which is the program's own or the kit's; returns each
    task's output, by name."""

    def clustered(program: str, jobs: dict[str, int], *arguments: str, joins: bool = False,
                  **variables: str) -> dict[str, str]:  # fmt: skip
        cluster = {
            job: [f"127.0.0.1:{free_port()}" for _ in range(count)] for job, count in jobs.items()
        }
        hosts = {f"{job}_hosts": ",".join(addresses) for job, addresses in cluster.items()}
        shared = {
            "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}",
            "CLUSTER_KIT_SERVERS": "" if joins else "ps-0",
            "CLUSTER_KIT_OLD_API": "on",
            **variables,
        }
        tasks = {}
        for job, addresses in cluster.items():
            for index, address in enumerate(addresses):
                role = "chief" if job == "master" else job
                names = {"type": job, "index": index, "master": f"grpc://{address}", **hosts}
                filled = [argument.format(**names, out=tmp_path) for argument in arguments]
                serves = job == "ps" and not joins
                command = ["serve"] if serves else ["run", str(PERIOD / program), *filled]
                config = {"cluster": cluster, "task": {"type": job, "index": index}}
                tasks[f"{role}-{index}"] = run_task(
                    f"{role}-{index}", {}, *command, **shared, TF_CONFIG=json.dumps(config)
                )
        outputs = {name: task.communicate(timeout=90)[0] for name, task in tasks.items()}
        for name, task in tasks.items():
            assert task.returncode == 0, f"{name}: {outputs[name]}"
        return outputs

    return clustered


FLAGS = (
    "--job_name={type}", "--task_index={index}", "--ps_hosts={ps_hosts}",
    "--worker_hosts={worker_hosts}", "--train_dir={out}/train",
)  # fmt: skip


def test_a_network_of_tf_layers_in_a_synchronous_monitored_session(
    run: Run, tmp_path: Path
) -> None:
    """The chief would wait 120 s for a thread of the synchronous optimizer."""
    jobs = {"ps": 1, "worker": 2}
    output = run("cnn_monitored.py", jobs, *FLAGS, "--sync_replicas=True", joins=True)
    last = re.search(r"task 0: last step (\d+), loss (\S+), accuracy (\S+)", output["worker-0"])
    assert last and int(last[1]) >= 79 and float(last[3]) > 0.8, output["worker-0"]
    assert list((tmp_path / "train").glob("model.ckpt-8?.index"))


def test_slims_clones_share_their_variables(run: Run, tmp_path: Path) -> None:
    output = run(
        "slim_clones.py", {"ps": 1, "worker": 2}, "--type={type}", "--index={index}", *FLAGS[2:]
    )
    final = re.search(r"worker 0: final loss (\S+)", output["worker-0"])
    assert final and float(final[1]) < 0.5, output["worker-0"]
    assert list((tmp_path / "train").glob("model.ckpt-6?.index"))


def test_a_master_with_hooks_and_a_scaffold(run: Run, tmp_path: Path) -> None:
    output = run(
        *("master_hooks.py", {"ps": 1, "master": 1, "worker": 1}, "--type={type}"),
        *("--index={index}", "--ps={ps_hosts}", "--master={master_hosts}"),
        *("--workers={worker_hosts}", "--train_dir={out}/train", "--steps=400"),
        CLUSTER_KIT_LEADER="chief-0",
    )
    assert (
        "master 0: w = 1." in output["chief-0"] and "checkpoint: model.ckpt-40" in output["chief-0"]
    )


def test_a_loop_of_slims_connects_to_the_server_that_the_kit_starts(
    run: Run, tmp_path: Path
) -> None:
    config = tmp_path / "pipeline.config"
    config.write_text("num_steps: 60\nbatch_size: 8\nlearning_rate: 0.1\n")
    output = run(
        *("master_task.py", {"ps": 1, "worker": 2}, "--master={master}", "--task={index}"),
        *("--ps_tasks=1", "--worker_replicas=2", "--train_dir={out}/train"),
        f"--pipeline_config_path={config}",
        CLUSTER_KIT_OWN_SERVER="on",
    )
    assert "task 0 of 2: loss" in output["worker-0"]
    assert list((tmp_path / "train").glob("model.ckpt-6*.index"))
