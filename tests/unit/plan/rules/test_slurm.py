"""Keys that Slurm does not support are refused with a fix."""

from __future__ import annotations

from typing import Any

import pytest

from tests.make import cluster, gpus, host, problems

IMAGE = {"image": "/shared/trainer.sif"}
REFUSED: dict[str, dict[str, Any]] = {
    "task.worker-1.ip": {"subnet": "172.28.0.0/24", "task": {"worker-1": {"ip": "172.28.0.150"}}},
    "addressing": {"addressing": "ip"},
    "subnet": {"subnet": "172.28.0.0/24"},
    "network.mtu": {"network": {"mtu": 1400}},
    "network.encrypted": {"network": {"encrypted": True}},
    "container.pids": {"container": {"pids": 100}},
    "container.tmp_size": {"container": {"tmp_size": "1g"}},
    "container.log_size": {"container": {"log_size": 0}},
    "network.internal": {"network": {"internal": True}},
    "gpus": {"gpus": "auto"},
    "share_gpus": {"gpus": "require", "share_gpus": True},
    "role.chief.gpus": {"role": {"chief": {"gpus": ["0"]}}},
    "role.ps.ports": {"role": {"ps": {"ports": [6006]}}},
    "role.ps.bandwidth": {"role": {"ps": {"bandwidth": "1gbit"}}},
    "role.ps.ulimits": {"role": {"ps": {"ulimits": {"nofile": 65536}}}},
    "role.ps.shm_size": {"role": {"ps": {"shm_size": "1g"}}},
    "role.ps.env_file": {"role": {"ps": {"env_file": "some.env"}}},
    "role.ps.nodes": {"role": {"ps": {"nodes": "disk==ssd"}}},
    "role.ps.environment.API_TOKEN": {"role": {"ps": {"environment": {"API_TOKEN": "x"}}}},
    "sidecar.cache": {"sidecar": {"cache": {"image": "redis:7"}}},
    "secret.token": {"secret": {"token": "token.txt"}},
    "args.0": {"args": ["--bind={{ ip }}:{{ port }}"], "program": "train.py"},
    "data.fetch": {"data": {"fetch": "fetch.py"}},
    "tensorboard": {"tensorboard": True},
    "slurm.partition": {"slurm": {**IMAGE, "partition": "a b"}},
    "slurm.account": {"slurm": {**IMAGE, "account": "a\nb"}},
    "slurm.time": {"slurm": {**IMAGE, "time": "2h"}},
    "slurm.image": {"slurm": {"image": "~/trainer.sif"}},
    "slurm.trainer": {"slurm": {**IMAGE, "trainer": "a:b"}},
    "slurm.datasets": {"slurm": {**IMAGE, "datasets": "a\nb"}},
    "slurm.python": {"slurm": {**IMAGE, "python": ""}},
    "slurm.output": {"slurm": {**IMAGE, "output": ""}},
    "slurm.options.0": {"slurm": {**IMAGE, "options": ["-N3"]}},
    "slurm.options.1": {"slurm": {**IMAGE, "options": ["--nodes=3", "--ntasks=9"]}},
    "slurm.setup.0": {"slurm": {**IMAGE, "setup": ["a\nb"]}},
}
WITHOUT_IMAGE: dict[str, dict[str, Any]] = {
    "image": {"image": "tensorflow/tensorflow:2.15.0"},
    "build": {"build": "Dockerfile"},
    "tensorflow": {"tensorflow": "2.15"},
    "mount.0.target": {"mount": [{"source": "extra", "target": "/extra"}]},
    "data": {"data": "digits"},
}


def test_keys_that_slurm_does_not_support_are_refused(subtests: pytest.Subtests) -> None:
    for key_path in REFUSED:
        with subtests.test(key_path=key_path):
            keys = {"slurm": IMAGE, **REFUSED[key_path]}
            found = problems(host(gpus=gpus(8)), engine="slurm", **keys)
            assert key_path in [problem.key_path for problem in found]
            assert all(problem.hint_text() for problem in found)


@pytest.mark.parametrize("key_path", WITHOUT_IMAGE)
def test_keys_that_need_a_container_are_refused_without_an_image(key_path: str) -> None:
    found = problems(engine="slurm", **WITHOUT_IMAGE[key_path])
    assert key_path in [problem.key_path for problem in found]
    assert all(problem.hint_text() for problem in found)
    assert not problems(engine="slurm", slurm=IMAGE, **WITHOUT_IMAGE[key_path])


@pytest.mark.parametrize("time", ["90", "90:00", "2:00:00", "1-12", "1-12:30", "1-12:30:00"])
def test_times_have_slurms_format(time: str) -> None:
    cluster(engine="slurm", slurm={**IMAGE, "time": time})


def test_a_users_program_may_need_no_data() -> None:
    cluster(engine="slurm", program="train.py")
    cluster(engine="slurm", program="linear-regression", style="all-tasks", chief=0)


def test_other_engines_do_not_read_the_table() -> None:
    cluster(slurm={"time": "soon", "options": ["-N3"]})
