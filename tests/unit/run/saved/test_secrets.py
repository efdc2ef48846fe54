"""No file and no message of a run has the value of a secret, wherever it was set."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cluster_kit.errors import EngineError, HostError
from cluster_kit.platforms.variables import known_secrets, mode_of, without_secrets
from cluster_kit.run.bug_report import archive
from cluster_kit.run.doctor import check_secrets
from cluster_kit.run.known_secrets import Known, known_of, values_of
from cluster_kit.run.run_report import exposition, write_report
from cluster_kit.util.masking import masked
from cluster_kit.util.process import Completed
from tests.fakes.acting import Life, ends, prints, says
from tests.fakes.stage import NAME, Stage
from tests.make import cluster
from tests.unit.command_line import MANIFEST, Cli

CLEAR, CALLERS = "in-clear-it's$5", "only-the-caller-has-it"
ROLE = {"chief": {"environment": {"API_TOKEN": CLEAR, "OPEN": "plain-text"}, "secrets": ["MINE"]}}
TELLS = Life(
    (
        says(0.1, "start", attempt=1, token=CALLERS),
        prints(0.5, f"token={CLEAR} mine={CALLERS} plain-text"),
        prints(0.6, f"ValueError: bad key {CALLERS}"),
        ends(1.0, 1, "program", f"ValueError: bad keys {CALLERS} and {CLEAR}"),
    )
)


PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
KEY = {"chief": {"environment": {"API_KEY": PEM}, "env_file": "private.env", "secrets": ["MINE"]}}
SHOWS = Life(
    (
        says(0.1, "start", attempt=1),
        *(prints(0.5, line) for line in PEM.splitlines()),
        says(0.6, "metrics", **{f"of {CALLERS}": f"is {CLEAR}", "figure": 1.5}),
        says(0.7, "phase", name=PEM),
        ends(1.0, 1, "failed", f"ValueError: bad key {PEM!r}"),
    )
)


@pytest.fixture(autouse=True)
def caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", CALLERS)


def kept(folder: Path) -> str:
    """Returns all texts below a folder, except files that tasks have written themselves."""
    files = [path for path in folder.rglob("*") if path.is_file() and "output" not in path.parts]
    return "\n".join(path.read_text(errors="replace") for path in files)


def test_no_file_of_a_run_has_a_secret(stage: Stage) -> None:
    outcome = stage.up({"chief-0": [TELLS]}, role=ROLE)
    texts = kept(stage.directory.path)
    for value in (CLEAR, CALLERS, CLEAR.replace("$", "$$").replace("'", "''")):
        assert value not in texts
        assert value not in str(outcome.as_json())
    assert outcome.message == "ValueError: bad keys *** and ***"
    log = (stage.directory.logs / "chief-0.log").read_text()
    assert "token=*** mine=*** plain-text" in log
    copy = yaml.safe_load((stage.directory.path / "compose.yaml").read_text())
    variables = copy["services"]["chief-0"]["environment"]
    assert (variables["API_TOKEN"], variables["OPEN"]) == ("***", "plain-text")
    assert "plain-text" in stage.directory.record.read_text()


@pytest.fixture
def shown(stage: Stage) -> str:
    """Returns all files of a run whose tasks print secrets of several kinds."""
    (stage.workspace.manifests / "private.env").write_text(f'export TOKEN="{CLEAR}"\nA=b\n')
    outcome = stage.up({"chief-0": [SHOWS]}, role=KEY)
    assert outcome.message.startswith("ValueError: bad key '***")
    return kept(stage.directory.path) + str(outcome.as_json()) + str(stage.view.lines)


PARTS = [CLEAR, CALLERS, "MIIEvQ", "hkiG9w"]


def test_values_are_masked_in_metrics_and_line_by_line(stage: Stage, shown: str) -> None:
    assert [part for part in PARTS if part in shown] == []
    outcome = json.loads(stage.directory.outcome.read_text())
    assert outcome["metrics"] == {"of ***": "is ***", "figure": 1.5}


def test_files_that_tasks_wrote_are_unchanged(stage: Stage, shown: str) -> None:
    text = (stage.directory.progress / "chief-0.jsonl").read_text()
    assert CALLERS in text and "MIIEvQ" in text


def test_later_the_values_are_unknown_and_the_page_is_not_changed(
    stage: Stage, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stage.directory
    monkeypatch.delenv("MINE")
    known = known_of(run, lambda: stage.engine)
    assert not known.are_all
    page = run.report.read_text()
    write_report(run, known)
    assert run.report.read_text() == page
    run.report.with_suffix(".json").unlink()
    write_report(run, known)
    assert [part for part in PARTS if part in kept(run.path)] == []
    (stage.workspace.manifests / "private.env").unlink()


def test_all_values_are_known_while_the_containers_exist(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.up({"chief-0": [TELLS]}, role=ROLE, keep=True)
    monkeypatch.delenv("MINE")
    known = known_of(stage.directory, lambda: stage.engine)
    assert known.are_all and {CLEAR, CALLERS} <= known.values
    assert not known_of(stage.directory).are_all


def test_a_run_without_secrets_needs_no_engine(stage: Stage) -> None:
    stage.up()
    assert known_of(stage.directory) == Known(frozenset(), True)


def test_a_secret_argument_is_not_saved(stage: Stage) -> None:
    (stage.workspace.manifests / "train.py").touch()
    stage.up(args=["--api-token", CLEAR], program="train.py")
    assert CLEAR not in kept(stage.directory.path)
    assert not known_of(stage.directory).are_all
    (file,) = stage.workspace.manifests.glob(f"{NAME}/compose.yaml")
    assert CLEAR not in file.read_text() and file.stat().st_mode & 0o777 == 0o600


WORDS = {
    "data": {"fetch": "fetch.py", "args": ["--api-token", CLEAR]},
    "sidecar": {"web": {"image": "nginx", "entrypoint": ["web", "--auth-token", CLEAR],
                        "command": [f"--password={CLEAR}"]}},
}  # fmt: skip


@pytest.mark.parametrize("key", WORDS)
def test_a_secret_of_the_data_step_or_a_sidecar_is_not_saved(key: str) -> None:
    made = cluster(**{key: WORDS[key]})
    assert CLEAR in known_secrets(made) and mode_of(made) == 0o600 and mode_of(cluster()) is None
    assert CLEAR not in repr(without_secrets(made)) and "***" in repr(without_secrets(made))


def test_a_sidecars_secret_output_is_not_saved(stage: Stage) -> None:
    stage.up(sidecar=WORDS["sidecar"])
    assert "--password=***" in stage.directory.record.read_text()
    assert "in-clear-it" not in kept(stage.directory.path)
    assert not known_of(stage.directory).are_all


PASSWORD = "pa55w0rd-of-mine"
ADDRESS = f"postgres://me:{PASSWORD}@db/x"


def test_a_password_in_an_address_is_not_saved(stage: Stage) -> None:
    tells = Life((prints(0.5, f"at {ADDRESS}"), ends(1.0, 1, "program", f"bad {PASSWORD}")))
    (stage.workspace.manifests / "train.py").touch()
    chief = {"environment": {"DATABASE": ADDRESS}}
    outcome = stage.up({"chief-0": [tells]}, role={"chief": chief}, args=[f"--db={ADDRESS}"],
                       program="train.py")  # fmt: skip
    assert outcome.message == "bad ***"
    assert PASSWORD not in kept(stage.directory.path)
    assert "postgres://me:***@db/x" in stage.directory.record.read_text()
    assert not known_of(stage.directory).are_all
    (file,) = stage.workspace.manifests.glob(f"{NAME}/compose.yaml")
    assert ADDRESS in file.read_text() and file.stat().st_mode & 0o777 == 0o600


def test_a_password_in_the_requirements_is_known() -> None:
    made = replace(cluster(), requirements=f"a @ https://me:{PASSWORD}@pip.example/a.whl\n")
    assert PASSWORD in known_secrets(made)
    assert without_secrets(made).requirements == "a @ https://me:***@pip.example/a.whl\n"
    assert known_secrets(without_secrets(made)) == {}


def test_a_password_that_is_a_common_word_is_masked_only_in_the_address() -> None:
    made = cluster(role={"chief": {"environment": {"DB": "postgres://postgres:postgres@db/x"}}})
    assert known_secrets(made) == {}
    assert "postgres:***@db" in repr(without_secrets(made).tasks)
    assert mode_of(made) == 0o600
    assert masked("postgres at postgres://postgres:postgres@db/x", values_of(made, ())) == (
        "postgres at postgres://***db/x"
    )


@pytest.mark.parametrize("password", ["hunter2", "482913", "p%407"])
def test_a_short_password_is_masked_in_its_address(stage: Stage, password: str) -> None:
    address = f"postgres://me:{password}@db/x"
    tells = Life((prints(0.5, f"at {address}"), ends(1.0, 1, "program", f"no {address}")))
    (stage.workspace.manifests / "train.py").touch()
    chief = {"environment": {"DATABASE": address}}
    outcome = stage.up({"chief-0": [tells]}, role={"chief": chief}, program="train.py")
    assert outcome.message == "no postgres://***db/x"
    assert f":{password}" not in kept(stage.directory.path)
    (file,) = stage.workspace.manifests.glob(f"{NAME}/compose.yaml")
    assert address in file.read_text() and file.stat().st_mode & 0o777 == 0o600


LINES = ("MIIEvQ/line+of+a+key", "aa/another+line==")


def test_an_error_that_quotes_an_env_file_shows_no_line_of_a_key(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(("A_KEY=-----BEGIN KEY-----", *LINES, "-----END KEY-----", "HOME", "# note"))
    (stage.workspace.manifests / "private.env").write_text(f'{text}\nB_TOKEN="open-{CLEAR}\n')
    quoted = f'line 2: unexpected character "/" in variable name "{LINES[0]}" of HOME, note {CLEAR}'

    def refuses(words: tuple[str, ...], *_: object) -> Completed:
        return Completed(words, 15, "", f"{quoted}\n{LINES[1]}, open-{CLEAR}\n")

    monkeypatch.setattr(stage.docker, "_up", refuses)
    with pytest.raises(EngineError, match="of HOME, note") as refused:
        stage.up(role={"chief": {"env_file": "private.env"}})
    shown = f"{refused.value.message} {refused.value} {kept(stage.directory.path)}"
    assert [one for one in (*LINES, f"open-{CLEAR}") if one in shown] == []


def test_no_compose_file_and_no_hash_in_the_workspace_has_a_secret(stage: Stage) -> None:
    stage.up({"chief-0": [TELLS]}, role=ROLE)
    (holder,) = [path for path in stage.workspace.root.rglob("*") if _has(path, "in-clear-it")]
    assert (holder.name, holder.stat().st_mode & 0o777) == ("secrets.yaml", 0o600)


def _has(path: Path, text: str) -> bool:
    return (
        path.is_file() and "output" not in path.parts and text in path.read_text(errors="replace")
    )


def test_the_contents_of_a_secret_file_are_masked(stage: Stage, tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    account.write_text('{"private_key": "k3y-of-mine", "id": 7, "note": "short"}\n')
    tells = Life((prints(0.5, "key k3y-of-mine, short"), ends(1.0, 1, "program", "k3y-of-mine")))
    outcome = stage.up({"chief-0": [tells]}, secret={"account": str(account)})
    assert outcome.message == "***"
    assert "k3y-of-mine" not in kept(stage.directory.path)
    assert "key ***, short" in (stage.directory.logs / "chief-0.log").read_text()


def test_a_secret_file_from_the_callers_environment_needs_its_variable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {"mine": {"environment": "MINE"}}
    outcome = stage.up({"chief-0": [TELLS]}, secret=secret)
    assert CALLERS not in kept(stage.workspace.root) and CALLERS not in str(outcome.as_json())
    monkeypatch.delenv("MINE")
    with pytest.raises(HostError, match="secrets: not set: MINE"):
        stage.up(secret=secret)


def test_a_process_that_continues_a_run_reads_the_secrets_from_the_containers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.detach({"chief-0": [TELLS]}, role=ROLE)
    monkeypatch.delenv("MINE")
    stage.attach()
    texts = kept(stage.directory.path)
    assert CLEAR not in texts and CALLERS not in texts


def test_the_callers_secrets_are_in_no_compose_file(stage: Stage) -> None:
    stage.up(role={"chief": {"secrets": ["MINE"]}})
    (file,) = stage.workspace.manifests.glob(f"{NAME}/compose.yaml")
    variables = yaml.safe_load(file.read_text())["services"]["chief-0"]["environment"]
    assert "MINE" in variables and variables["MINE"] is None
    assert CALLERS not in kept(stage.workspace.root)


def test_a_missing_secret_starts_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINE")
    with pytest.raises(HostError, match="secrets: not set: MINE") as refused:
        stage.up(role=ROLE)
    assert "export MINE=" in refused.value.hint
    assert stage.is_clean()


def test_doctor_has_a_line_about_secrets_if_there_are_any() -> None:
    made = cluster(role=ROLE)
    assert check_secrets(None, {}) == check_secrets(cluster(), {}) == []
    (well,) = check_secrets(made, {"MINE": CALLERS})
    assert (well.state, well.found) == ("ok", "set: MINE")
    for nothing in ({}, {"MINE": ""}):
        (check,) = check_secrets(made, nothing)
        assert (check.state, check.found) == ("fail", "not set: MINE")
        assert "or remove it from the manifest" in check.hint


def test_a_cluster_is_shown_without_secrets() -> None:
    made = cluster(role=ROLE)
    shown = without_secrets(made)
    assert dict(shown.of("chief")[0].environment) == {"API_TOKEN": "***", "OPEN": "plain-text"}
    assert without_secrets(shown) == shown
    assert without_secrets(cluster()) == cluster()


def test_render_warns_about_a_secret_in_clear_and_refuses_it_in_a_portable_file(
    cli: Cli, root: Path
) -> None:
    more = '[role.chief.environment]\nAPI_TOKEN = "in-clear"\n'
    (root / "compose" / "demo.toml").write_text(MANIFEST + more)
    result = cli("render", "demo")
    assert result.code == 0
    assert "role.chief.environment.API_TOKEN: its name looks like a secret's" in result.err
    assert 'write `secrets = ["API_TOKEN"]`' in result.err and "in-clear" not in result.err
    for value in ("$LR", "${LR}", "${lr}"):
        more = f'[role.chief.environment]\nLR = "{value}"\n'
        (root / "compose" / "other.toml").write_text(MANIFEST.replace("demo", "other") + more)
        warning = f"role.chief.environment.LR: `{value}` stays as it is"
        assert (warning in cli("render", "other").err) == (value != "${lr}")
    result = cli("render", "demo", "--portable")
    assert result.code == 2
    assert "role.chief.environment.API_TOKEN" in result.err and "in-clear" not in result.err
    more = '[role.chief]\nsecrets = ["API_TOKEN"]\n'
    (root / "compose" / "demo.toml").write_text(MANIFEST + more)
    result = cli("render", "demo", "--portable", "--dry-run")
    assert (result.code, result.err) == (0, "")
    assert "      API_TOKEN:\n" in result.out


NAMES_IT = Life(
    (says(0.1, "metrics", **{f"of {CALLERS}": 1.5, "figure": 2.5}), ends(1.0, 1, "failed"))
)


def test_no_metric_name_has_a_secret_whose_value_is_no_longer_known(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.up({"chief-0": [NAMES_IT]}, role=ROLE)
    monkeypatch.delenv("MINE")
    told = exposition([stage.directory])
    assert CALLERS not in told and 'metric="of ***"' in told and 'metric="figure"' in told
    stage.directory.outcome.unlink()
    assert "run_metric{" not in exposition([stage.directory])


def test_no_file_name_in_a_bug_report_has_a_secret(stage: Stage, tmp_path: Path) -> None:
    stage.up({"chief-0": [TELLS]}, role=ROLE, keep=True)
    (stage.directory.progress / f"{CALLERS}.txt").touch()
    archive(stage.host, stage.directory, tmp_path / "bug.tar.gz")
    with tarfile.open(tmp_path / "bug.tar.gz") as made:
        assert [name for name in made.getnames() if CALLERS in name] == []
        assert any(name.endswith("progress/***.txt") for name in made.getnames())
