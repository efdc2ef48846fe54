"""The kit from Python: the same runs as on the command line, reported as values; nothing is
printed."""

from __future__ import annotations

import importlib
import pkgutil
import signal
from pathlib import Path
from typing import Any

import pytest

import cluster_kit
import cluster_kit as ck
from cluster_kit import api
from tests.fakes.acting import Life, ends
from tests.fakes.stage import NAME, Stage


def load(stage: Stage, **overrides: object) -> ck.Job:
    return ck.load(NAME, root=stage.workspace.root, **overrides)


def test_a_job_is_planned_and_rendered_and_nothing_is_started(stage: Stage) -> None:
    job = load(stage, worker=3)
    assert [task.name for task in job.plan().tasks if task.role == "worker"] == [
        "worker-0", "worker-1", "worker-2",
    ]  # fmt: skip
    assert "worker-2:" in job.render()
    assert not stage.engine.boxes and not stage.ran


def test_a_run_returns_its_outcome_reports_events_and_prints_nothing(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[ck.RunEvent] = []
    outcome = load(stage).run(told.append)
    assert (outcome.success, outcome.metrics["test_accuracy"]) == (True, 0.9)
    assert outcome.as_json()["cluster"] == NAME and stage.is_clean()
    assert {event.kind for event in told} == {"phase", "log", "state"}
    assert ("chief-0", "100 training images") in {(event.task, event.text) for event in told}
    last = [event.seen for event in told if event.seen is not None][-1]
    assert last.tasks["chief-0"].exit_code == 0
    assert load(stage).run().success
    assert capfd.readouterr() == ("", "")


def test_a_failed_training_is_an_outcome_and_no_exception(stage: Stage) -> None:
    stage.engine.acting = {"chief-0": [Life((ends(1.0, 1, "failed", "ValueError: no"),))]}
    outcome = load(stage).run()
    assert (outcome.success, outcome.blame, outcome.exit_code) == (False, "chief-0", 5)


@pytest.mark.usefixtures("usual_handlers")
def test_ctrl_c_raises_keyboard_interrupt_after_everything_is_saved_and_removed(
    stage: Stage,
) -> None:
    stage.clock.at(1.0, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        load(stage).run()
    assert stage.saved()["reason"] == "interrupted" and stage.is_clean()


def test_errors_are_the_kits_own_and_name_keys(stage: Stage) -> None:
    with pytest.raises(ck.ManifestError, match=r"worker = -1: a cluster needs at least") as caught:
        load(stage, worker=-1)
    with pytest.raises(ck.ManifestError, match=r"2 problems"):
        load(stage, worker=0, wrker=3)
    assert "--workers" not in str(caught.value) and caught.value.exit_code == 2
    assert str(caught.value.problems[0]).endswith("→ write `worker = 1`")
    with pytest.raises(
        ck.ManifestError, match=r"^the overrides: 1 problem\n  wrker = 3: no such key"
    ):
        load(stage, wrker=3)
    with pytest.raises(ck.UsageError, match="no manifest `dmo`"):
        ck.load("dmo", root=stage.workspace.root)
    assert issubclass(ck.ManifestError, ck.KitError)


def test_paths_are_relative_to_the_current_directory(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    job = load(stage, program="mine.py", evaluator=0, deadline={"job": "5m"})
    assert job.overrides["program"] == str(tmp_path / "mine.py")
    assert job.plan().deadlines.job == 300
    assert load(stage, program="classifier").overrides["program"] == "classifier"
    fetched = load(stage, data={"fetch": "mine.py"}).plan().fetch
    assert fetched and fetched.script == str(tmp_path / "mine.py")


def test_values_of_another_type_are_refused_as_in_a_manifest(stage: Stage) -> None:
    for key in ("program", "data", "requirements", "build"):
        with pytest.raises(ck.ManifestError, match=f"{key} = 5: must be a text in quotes"):
            load(stage, **{key: 5})
    with pytest.raises(ck.ManifestError, match='extra_args = "--epochs 3": must be a list') as told:
        load(stage, extra_args="--epochs 3")
    assert '→ write `extra_args = ["--epochs", "3"]`' in str(told.value)
    assert load(stage, args=("--epochs", "3")).plan().leader.command[-2:] == ("--epochs", "3")


def test_another_program_does_not_get_the_manifests_arguments(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on the command line: another program does not know these arguments."""
    for name in ("mine.py", "other.py"):
        (tmp_path / name).write_text("x = 1\n")
    manifest = tmp_path / "own.toml"
    lines = 'program = "mine.py"\nargs = ["--epochs", "5"]\nevaluator = 1\ntf1 = true\n'
    manifest.write_text(f'format = 1\nname = "own"\nchief = 0\nps = 0\n{lines}')
    monkeypatch.chdir(tmp_path)

    def kept(**keys: Any) -> tuple[Any, ...]:
        plan = ck.load(manifest, root=tmp_path, **keys).plan()
        return plan.leader.arguments, len(plan.evaluators), plan.tf1

    assert kept() == kept(program="mine.py") == (("--epochs", "5"), 1, True)
    assert kept(program="other.py") == ((), 0, False)
    assert kept(program="other.py", args=["-v"], evaluator=1, tf1=True) == (("-v",), 1, True)


def test_a_cluster_is_up_for_a_block_and_then_removed(stage: Stage) -> None:
    with load(stage).up() as cluster:
        assert (cluster.name, cluster.directory.path.parent.name) == (NAME, NAME)
        assert [task.name for task in cluster.tasks()] == [
            task.name for task in cluster.cluster.tasks
        ]
        config = cluster.tf_config("worker-1")
        assert config["task"] == {"type": "worker", "index": 1}
        assert "evaluator" not in config["cluster"]
        with pytest.raises(ck.UsageError, match="demo has no task worker-9"):
            cluster.logs("worker-9")
        with pytest.raises(ck.UsageError, match="demo has no task worker-9"):
            cluster.tf_config("worker-9")
    assert stage.is_clean()


def test_wait_returns_the_outcome(stage: Stage) -> None:
    with load(stage).up() as cluster:
        outcome = cluster.wait()
    assert outcome.success and stage.is_clean()


def test_a_cluster_is_removed_if_the_block_fails(stage: Stage) -> None:
    with pytest.raises(ZeroDivisionError), load(stage).up() as cluster:
        assert cluster.tasks()
        raise ZeroDivisionError
    assert "by the end of its `with` block at " in stage.saved()["message"]
    assert stage.is_clean()


def test_the_short_form_is_the_same_and_has_the_addresses(stage: Stage) -> None:
    with ck.cluster(NAME, root=stage.workspace.root, worker=3) as cluster:
        assert cluster.addresses["worker-2"] == f"{cluster.cluster.of('worker')[2].ip}:2222"
        assert {task.name: f"{task.ip}:2222" for task in cluster.tasks()} == cluster.addresses
    assert stage.is_clean()


def test_addresses_are_those_of_the_started_cluster(stage: Stage) -> None:
    stage.docker.takes_subnet = 1
    with load(stage).up() as cluster:
        assert {task.ip for task in cluster.tasks()} == {
            address.partition(":")[0] for address in cluster.addresses.values()
        }
        assert cluster.tf_config("ps-0")["cluster"]["ps"] == [cluster.addresses["ps-0"]]


def states(cluster: ck.RunningCluster) -> dict[str, str]:
    return {task.name: task.state for task in cluster.tasks()}


def test_a_task_is_frozen_for_a_block_or_until_it_is_thawed(stage: Stage) -> None:
    with load(stage).up() as cluster:
        with cluster.frozen("worker-1"):
            assert states(cluster)["worker-1"] == "paused"
            with pytest.raises(ck.UsageError, match="worker-1 is frozen") as refused:
                cluster.freeze("worker-1")
            assert refused.value.hint == 'thaw("worker-1") lets it continue'
            with pytest.raises(ck.UsageError, match="worker-1 is frozen"):
                cluster.exec("worker-1", "true")
        assert states(cluster)["worker-1"] == "running"
        with pytest.raises(ck.UsageError, match="worker-1 is not frozen: it is running"):
            cluster.thaw("worker-1")
        cluster.freeze("ps-0")
        cluster.thaw("ps-0")
        assert cluster.exec("ps-0", "hostname").startswith("ps-0: hostname")
        codes = [cluster.exec("ps-0", command).exit_code for command in ("true", "false")]
        assert codes == [0, 1]
        assert repr(cluster).startswith(f"<cluster {cluster.name}: chief-0, worker-0, worker-1")
        with pytest.raises(ZeroDivisionError), cluster.frozen("ps-0"):
            raise ZeroDivisionError
        assert states(cluster)["ps-0"] == "running"


def test_a_task_that_was_killed_in_its_block_is_not_thawed(stage: Stage) -> None:
    with load(stage).up() as cluster, cluster.frozen("worker-1"):
        cluster.kill("worker-1")


def test_commands_for_a_task_that_has_ended_are_refused(stage: Stage) -> None:
    with load(stage).up() as cluster:
        cluster.kill("ps-0")
        ended = r"ps-0 does not run: it is exited, exit code 137"
        for refused in (lambda: cluster.exec("ps-0", "true"), lambda: cluster.freeze("ps-0")):
            with pytest.raises(ck.UsageError, match=ended) as told:
                refused()
            assert 'logs("ps-0")' in told.value.hint
        with pytest.raises(ck.UsageError, match="no command for ps-0"):
            cluster.exec("ps-0")
        with pytest.raises(ck.UsageError, match=ended):
            cluster.crash("ps-0")


def test_a_crashed_task_does_not_end_the_cluster(stage: Stage) -> None:
    with load(stage).up() as cluster:
        cluster.crash("worker-1")
        assert stage.engine.executed == [("worker-1", "kill -9 -1")]


def test_a_removed_cluster_is_reported_and_an_unknown_task_has_a_suggestion(stage: Stage) -> None:
    with load(stage).up() as cluster:
        with pytest.raises(ck.UsageError, match="demo has no task worker-7") as told:
            cluster.freeze("worker-7")
        assert "worker-" in told.value.hint
    with pytest.raises(ck.UsageError, match="the container of ps-0 no longer exists: demo was"):
        cluster.logs("ps-0")


def test_a_name_that_is_up_is_refused_and_the_cluster_continues(stage: Stage) -> None:
    with load(stage).up() as cluster:
        with pytest.raises(ck.HostError, match="the cluster demo is already up"):
            load(stage).run()
        with pytest.raises(ck.HostError, match="already up"), load(stage).up():
            pytest.fail("it was started twice")
        assert set(states(cluster).values()) == {"running"}


def test_a_cluster_with_a_frozen_task_is_taken_down(stage: Stage) -> None:
    with load(stage).up() as cluster:
        cluster.freeze("worker-0")
    assert stage.is_clean()


@pytest.mark.usefixtures("usual_handlers")
def test_signal_handlers_of_the_caller_are_not_changed(stage: Stage) -> None:
    load(stage).run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_public_names() -> None:
    assert {name for name in ck.__all__ if getattr(ck, name) is not None} == set(ck.__all__)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        ck.laod  # noqa: B018


def test_importing_every_module_leaves_the_api_functions_in_place() -> None:
    for module in pkgutil.iter_modules(cluster_kit.__path__):
        if module.name != "__main__":
            importlib.import_module(f"cluster_kit.{module.name}")
    assert (ck.cluster, ck.load, ck.Cluster) == (api.cluster, api.load, api.Cluster)
