"""The Object Detection API's command line: its options, its configuration in parts, its claims
about the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pydantic", reason="pydantic is in the image and in this project's environment")
from pipelines import CLASSIC

from trainer.agent.errors import ContractError
from trainer.agent.task import Task, read_task
from trainer.programs.detection import classic, options
from trainer.programs.detection.config import pipeline_file

TRIO = {"model": "model.config", "train_config": "train.config", "train_input_reader": "in.config"}
THE_TRIO = (
    "--model_config_path=model.config",
    "--train_config_path=train.config",
    "--input_config_path=in.config",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.config").write_text(CLASSIC)
    for section, file in TRIO.items():
        (tmp_path / file).write_text(inside(section))
    (tmp_path / "eval.config").write_text(inside("eval_config"))
    (tmp_path / "eval_in.config").write_text(inside("eval_input_reader"))
    return tmp_path


def inside(section: str) -> str:
    """Returns the text between the braces of a section of CLASSIC."""
    start = CLASSIC.index("{", CLASSIC.index(f"\n{section}")) + 1
    depth, at = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(CLASSIC[at], 0)
        at += 1
    return CLASSIC[start : at - 1]


def parse(data: Path, *arguments: str) -> options.Options:
    return options.parse(arguments, data, data / "output")


def test_the_classic_command_line_is_accepted(data):
    found = parse(
        data, "--logtostderr", "--train_dir=ssd", "--pipeline_config_path=pipeline.config",
        "--num_clones=2", "--clone_on_cpu=true", "--stderrthreshold=INFO",
    )  # fmt: skip
    assert found.output == data / "output" / "ssd"
    assert (found.graph.num_clones, found.graph.clone_on_cpu) == (2, True)
    assert found.graph.steps == 200000
    assert found.pipeline.train_input_reader.label_map_path == f"{data}/map.pbtxt"
    other = parse(data, "--pipeline_config_path", "pipeline.config", "--noclone_on_cpu")
    assert not other.graph.clone_on_cpu
    assert parse(data, "--pipeline-config-path=pipeline.config").pipeline == found.pipeline
    assert (
        parse(data, "--pipeline_config", "pipeline.config", "--num_train_steps=5").graph.steps == 5
    )


def test_a_configuration_in_parts_equals_the_whole_one(data):
    whole = parse(data, "--pipeline_config_path=pipeline.config").pipeline
    parts = (*THE_TRIO, "--eval_config_path=eval.config", "--eval_input_config_path=eval_in.config")
    assert parse(data, *parts).pipeline == whole
    without = parse(data, *THE_TRIO, "--train_dir", str(data / "output")).pipeline
    assert without.eval_input_reader is None
    assert (without.model, without.train_config, without.train_input_reader) == (
        whole.model, whole.train_config, whole.train_input_reader,
    )  # fmt: skip
    assert "eval_input_reader" not in pipeline_file.to_toml(without)


def test_paths_in_a_part_are_relative_to_its_file(data):
    (data / "deep").mkdir()
    (data / "in.config").rename(data / "deep" / "in.config")
    found = parse(data, *THE_TRIO[:2], "--input_config_path=deep/in.config").pipeline
    assert found.train_input_reader.input_path[0] == f"{data}/deep/one.record"
    assert found.train_config.fine_tune_checkpoint == f"{data}/model.ckpt"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (THE_TRIO[:1], r"--train_config_path: is required together.*\n.*\n.*--input_config_path"),
        ((*THE_TRIO, "--pipeline_config_path=p.config"), "is one file, or in parts"),
        ((*THE_TRIO[:2], "--input_config_path=none"), "none: cannot be read"),
        ((*THE_TRIO, "--set", "model.num_classes=0"), "--set model.num_classes = 0"),
        ((*THE_TRIO[1:], "--model_config_path=eval.config"), "model.num_examples.*not known here"),
        (("--pipeline_config_path=pipeline.config", "--train_dir=/home/me/train"),
         r"--train_dir /home/me/train: tasks share and keep only .*output; leave it out"),
        (("--pipeline_config_path=pipeline.config", "--train_dir=../elsewhere"), "keep only"),
    ],
)  # fmt: skip
def test_errors_come_with_a_fix(data, arguments, message):
    with pytest.raises(ContractError, match=message):
        parse(data, *arguments)


def task(kind: str = "worker", index: int = 1) -> Task:
    hosts = {"master": 1, "worker": 2, "ps": 1}
    cluster = {job: [f"10.0.{n}.{i}:2222" for i in range(count)]
               for n, (job, count) in enumerate(hosts.items())}  # fmt: skip
    own = {"type": kind, "index": index}
    return read_task({"TF_CONFIG": json.dumps({"cluster": cluster, "task": own})})


TRUE = {
    "type": "worker", "index": "1", "task": "1", "master": "grpc://10.0.1.1:2222",
    "worker-replicas": "3", "ps-tasks": "1", "worker-job-name": "worker", "ps-job-name": "ps",
}  # fmt: skip


def test_claims_about_the_cluster_may_be_true(data):
    claims = [f"--{name.replace('-', '_')}={value}" for name, value in TRUE.items()]
    found = parse(data, "--pipeline_config_path=pipeline.config", *claims)
    assert found.claims == TRUE
    classic.check(found.claims, task())
    classic.check({"type": "master", "index": "0"}, task("master", 0))
    classic.check({"type": "chief"}, task("master", 0))
    assert set(TRUE) == set(classic.CLAIMS)


@pytest.mark.parametrize("name", TRUE)
def test_a_wrong_claim_is_refused_with_the_template_to_use(name):
    wrong = {"type": "ps", "master": "grpc://elsewhere:1"}.get(name, "7")
    with pytest.raises(ContractError) as refused:
        classic.check({**TRUE, name: wrong}, task())
    spelt = f"--{name.replace('-', '_')} {wrong}: for worker-1 the value is {TRUE[name]}; "
    assert str(refused.value).startswith(spelt)
    template = classic.CLAIMS[name].rpartition(": ")[2]
    assert template == "the same" or f"write {template}" in str(refused.value)


def test_an_evaluators_claims_are_checked_only_as_far_as_it_knows_the_cluster():
    evaluator = read_task({"TF_CONFIG": json.dumps(
        {"cluster": {"evaluator": ["10.0.9.9:1"]}, "task": {"type": "evaluator", "index": 0}}
    )})  # fmt: skip
    classic.check({"worker-replicas": "3", "type": "evaluator"}, evaluator)
