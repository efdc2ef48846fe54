"""In which table a key belongs, which one was meant, and its purpose."""

from __future__ import annotations

import pytest

from cluster_kit.errors import Setting, hint_text
from cluster_kit.manifest.load import homes, meaning, nearest_key, words_of
from cluster_kit.manifest.schema import (
    DataTable,
    DeadlineTable,
    Limits,
    MountTable,
    NetworkTable,
    ProfileTable,
    RestartTable,
    SecretTable,
    SidecarTable,
    TaskLimits,
)
from cluster_kit.platforms.kubernetes.kubernetes_table import KubernetesTable
from cluster_kit.platforms.platform import manifest_model
from cluster_kit.platforms.slurm.slurm_table import SlurmTable

MODEL = manifest_model()
ROLE_KEYS = f"known keys: {', '.join(sorted(Limits.model_fields))}"


def test_every_key_has_a_table() -> None:
    assert homes(MODEL).keys() == {
        *MODEL.model_fields,
        *DeadlineTable.model_fields,
        *TaskLimits.model_fields,
        *KubernetesTable.model_fields,
        *MountTable.model_fields,
        *NetworkTable.model_fields,
        *ProfileTable.model_fields,
        *RestartTable.model_fields,
        *SecretTable.model_fields,
        *DataTable.model_fields,
        *SidecarTable.model_fields,
        *SlurmTable.model_fields,
    }


def test_a_count_in_a_roles_table_gets_a_hint_where_it_belongs() -> None:
    hint = nearest_key(("role", "worker", "count"), MODEL, 2)
    assert hint_text(hint) == "write `worker = 2` at the top, above the first [table]"


@pytest.mark.parametrize(
    ("key_path", "hint"),
    [
        (("wrker",), "did you mean `worker`?"),
        (("role", "ps", "cpu"), "did you mean `cpus`?"),
        (("role", "ps", "mem_limit"), "did you mean `memory`?"),
        (("volumes",), "write each as [[mount]], with `source` and `target`"),
        (
            ("sidecar", "x", "volumes"),
            "write each as [[sidecar.x.mount]], with `source` and `target`",
        ),
        (("timeout",), "write it as `job` under [deadline]"),
        (("cpus",), "write it under [role.worker] or [task.worker-0]"),
        (("role", "ps", "ip"), "write it under [task.worker-0]"),
        (("mount", "0", "sourc"), "did you mean `source`?"),
        (("mount", "0", "cpus"), "write it under [role.worker] or [task.worker-0]"),
        (("readonly",), "did you mean `read_only`? write it under [[mount]]"),
        (("storage_clas",), "did you mean `storage_class`? write it under [kubernetes]"),
        (("jobset",), "write it under [kubernetes]"),
        (("kubernetes", "jobsets"), "did you mean `jobset`?"),
        (("mtu",), "write it under [network]"),
        (("secret", "mine", "enviroment"), "did you mean `environment`?"),
        (("sidecar", "x", "imgae"), "did you mean `image`?"),
        (("sidecar", "x", "mount", "0", "sourc"), "did you mean `source`?"),
        (("requird",), "did you mean `required`? write it under [sidecar.NAME]"),
        (("data", "fetsh"), "did you mean `fetch`?"),
        (("role", "master"), "did you mean `chief`?"),
        (("parameter_servers",), "did you mean `ps`?"),
        (
            ("role", "ps", "restart_policy"),
            "did you mean `retries`? write it at the top, above the first [table]",
        ),
        (("env",), "did you mean `environment`? write it under [role.worker] or [task.worker-0]"),
        (("role", "ps", "deadline"), "write it as [deadline]"),
        (("role", "ps", "mount"), "write it as [[mount]]"),
        (("role", "ps", "secret"), "write it as [secret]"),
        (
            ("role", "ps", "dns"),
            "write it into compose/NAME/compose.override.yaml: docs/real-projects.md",
        ),
        (("role", "ps", "user"), ROLE_KEYS),
        (("role", "ps", "resources"), ROLE_KEYS),
        (("deadline", "zzz"), "known keys: engine, evaluator_grace, job, silent, stall, start"),
    ],
)
def test_the_nearest_key_or_its_table(key_path: tuple[str, ...], hint: str) -> None:
    assert nearest_key(key_path, MODEL) == hint


@pytest.mark.parametrize(
    ("key_path", "words"),
    [
        (("style",), ("auto", "coordinator", "all-tasks")),
        (("gpus",), ("none", "auto", "require")),
        (("worker",), ()),
        (("no", "such", "table"), ()),
    ],
)
def test_the_values_of_a_key_with_few_values(
    key_path: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert words_of(key_path, MODEL) == words


def test_a_key_is_explained_with_an_example_in_the_callers_form() -> None:
    _, example, text = meaning(("deadline", "start"), MODEL)
    assert example == Setting("deadline.start", 120)
    assert "until every server answers" in str(text)


@pytest.mark.parametrize(
    ("key_path", "hint"),
    [
        (("requirements",), "requirements: Path of a file of pip requirements, installed on top"),
        (("sidecar", "image"), "sidecar: Services that run with the tasks, at most eight, each in"),
    ],
)
def test_an_empty_example_is_left_out(key_path: tuple[str, ...], hint: str) -> None:
    assert hint_text(meaning(key_path, MODEL)).startswith(hint)
