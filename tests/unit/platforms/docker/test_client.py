"""Answers and errors of the docker SDK, with a simulated SDK."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker import docker_engine
from cluster_kit.platforms.docker.docker_engine import MOST_ASKED, DockerEngine, _first
from tests.unit.platforms.docker.test_containers import inspected, told


def connected(sdk: Any) -> DockerEngine:
    """Returns an engine with this SDK."""
    engine = object.__new__(DockerEngine)
    engine._client = sdk
    return engine


def test_events_are_returned_until_the_engine_closes_the_stream() -> None:
    stream = iter([told("start"), told("exec_start: sh"), told("die", exitCode="1")])
    sdk = SimpleNamespace(events=lambda **_: stream)
    assert [event.action for event in connected(sdk).events("demo", 0.0)] == ["start", "die"]


def test_endless_out_of_memory_events_are_limited() -> None:
    life = [told("start"), *[told("oom")] * 500]
    sdk = SimpleNamespace(events=lambda **_: iter([*life, told("die", exitCode="1"), *life]))
    found = [event.action for event in connected(sdk).events("demo", 0.0)]
    kept = ["start", *["oom"] * docker_engine.MOST_OOMS]
    assert found == [*kept, "die", *kept]


def test_clusters_are_listed_without_inspecting_their_containers() -> None:
    """`status` of 50 tasks inspects each of them once."""
    names = {"Labels": {labels.CLUSTER: "demo"}}
    of_a_service = {"Labels": {labels.CLUSTER: "swarm", "com.docker.swarm.service.id": "1"}}
    networks = SimpleNamespace(list=lambda **_: [])
    api = SimpleNamespace(containers=lambda **_: [names, of_a_service])
    assert connected(SimpleNamespace(api=api, networks=networks)).clusters() == ["demo"]
    wanted: list[Any] = []
    listing = SimpleNamespace(list=lambda filters, **_: wanted.extend(filters["label"]) or [])
    connected(SimpleNamespace(containers=listing)).sidecars("demo")
    assert wanted == [f"{labels.CLUSTER}=demo", labels.SIDECAR]


def chunks(*parts: bytes) -> Iterator[bytes]:
    yield from parts


def test_followed_lines_are_complete_however_the_stream_cuts_them() -> None:
    log = SimpleNamespace(logs=lambda **_: chunks(b"fir", b"st\nsec", "ö\nl".encode(), b"ast"))
    log.attrs = {"Config": {"Env": [], "Labels": {}}}
    sdk = SimpleNamespace(containers=SimpleNamespace(get=lambda _id: log))
    assert list(connected(sdk).follow("id")) == ["first", "secö", "last"]


def test_commands_in_a_container_have_the_tasks_rights_and_a_safe_directory() -> None:
    runs: list[dict[str, Any]] = []

    def exec_run(command: list[str], **given: Any) -> None:
        runs.append({"command": command, **given})

    def exec_create(_container: str, command: list[str], **given: Any) -> dict[str, str]:
        exec_run(command, **given)
        return {"Id": "exec"}

    def exec_start(_exec: str, *, stream: bool) -> Iterator[bytes]:
        return chunks(*[b"x" * (1 << 20)] * 100)

    shown = inspected()
    shown["Config"] |= {"User": "0:0", "Env": ["CLUSTER_KIT_USER=7:8"]}
    container = SimpleNamespace(id="id", attrs=shown, exec_run=exec_run)
    api = SimpleNamespace(
        exec_create=exec_create, exec_start=exec_start, exec_inspect=lambda _: {"ExitCode": None}
    )
    containers = SimpleNamespace(get=lambda _id: container)
    engine = connected(SimpleNamespace(containers=containers, api=api))
    output = engine.ask("id", ["ls"], 5)
    assert len(output) == MOST_ASKED, "not all that a program prints for ever"
    assert output.exit_code is None
    engine.execute("id", ["ls"])
    assert [(one["user"], one["workdir"]) for one in runs] == [("7:8", "/")] * 2


def test_small_blocks_of_a_long_answer_are_joined_in_linear_time() -> None:
    began = time.process_time()
    assert len(_first(iter([b"x" * 100] * 100_000), 1 << 23)) == 1 << 23
    assert time.process_time() - began < 2


def test_a_container_that_is_removed_during_the_listing_is_omitted() -> None:
    answers = iter([NotFound("gone"), [SimpleNamespace(attrs=inspected())]])

    def listed(**_: object) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sdk = SimpleNamespace(containers=SimpleNamespace(list=listed))
    assert [c.name for c in connected(sdk).containers("demo")] == ["worker-1"]


def killed(error: APIError | None) -> None:
    def kill() -> None:
        if error:
            raise error

    container = SimpleNamespace(kill=kill)
    connected(SimpleNamespace(containers=SimpleNamespace(get=lambda _id: container))).kill("id")


def test_killing_a_container_that_has_ended_is_no_error() -> None:
    def refused(code: int) -> APIError:
        return APIError("refused", SimpleNamespace(status_code=code, url="", reason=""))

    killed(None)
    killed(refused(409))
    with pytest.raises(EngineError):
        killed(refused(404))


def test_a_reconnected_container_has_its_name_and_its_address() -> None:
    calls: list[object] = []

    def connect(container: str, **given: object) -> None:
        calls.append((container, given))

    def listed(filters: dict[str, list[str]]) -> list[Any]:
        assert filters == {"label": ["cluster-kit.cluster=demo"]}
        return [SimpleNamespace(connect=connect)]

    sdk = SimpleNamespace(networks=SimpleNamespace(list=listed))
    connected(sdk).attach("id", "demo", "ps-0", "10.0.0.20")
    assert calls == [("id", {"ipv4_address": "10.0.0.20", "aliases": ["ps-0"]})]


def test_a_limit_in_cores_and_the_usual_weight_are_converted_for_the_engine() -> None:
    sent: list[object] = []
    api = SimpleNamespace(
        _url=lambda path, name: path.format(name),
        _post_json=lambda url, data: sent.append((url, data)),
        _raise_for_status=lambda _answer: None,
    )
    connected(SimpleNamespace(api=api)).limit_cpus("id", 0.25)
    connected(SimpleNamespace(api=api)).weigh_as_usual("id")
    assert sent == [
        ("/containers/id/update", {"NanoCpus": 250_000_000}),
        ("/containers/id/update", {"CpuShares": 1024}),
    ]


def test_a_memory_limit_also_limits_swap() -> None:
    sent: list[object] = []
    api = SimpleNamespace(
        _url=lambda path, name: path.format(name),
        _post_json=lambda url, data: sent.append((url, data)),
        _raise_for_status=lambda _answer: None,
        stats=lambda name, **how: {"memory_stats": {"usage": 5}} if how["one_shot"] else {},
    )
    engine = connected(SimpleNamespace(api=api))
    engine.limit_memory("id", 100, swap=False)
    engine.limit_memory("id", 100, swap=True)
    assert [data for _, data in sent] == [
        {"Memory": 100, "MemorySwap": 100}, {"Memory": 100, "MemorySwap": 200},
    ]  # fmt: skip
    assert engine.memory_used("id") == 5


@pytest.mark.parametrize(("code", "failures", "tries"), [(500, 2, 3), (500, 3, 3), (409, 1, 1)])
def test_freezing_is_retried(
    monkeypatch: pytest.MonkeyPatch, code: int, failures: int, tries: int
) -> None:
    monkeypatch.setattr(docker_engine, "FREEZE_S", 0)
    asked: list[str] = []

    def pause(name: str) -> None:
        asked.append(name)
        if len(asked) <= failures:
            raise APIError("no", SimpleNamespace(status_code=code), "unable to freeze")

    engine = connected(SimpleNamespace(api=SimpleNamespace(pause=pause)))
    if failures < tries:
        engine.freeze("id")
    else:
        with pytest.raises(EngineError, match="unable to freeze"):
            engine.freeze("id")
    assert asked == ["id"] * tries


def test_containers_are_in_task_order() -> None:
    def shown(role: str, index: str) -> Any:
        attributes = inspected()
        attributes["Config"]["Labels"] |= {
            "cluster-kit.role": role,
            "cluster-kit.index": index,
        }
        return SimpleNamespace(attrs=attributes)

    unsorted = [shown("evaluator", "0"), shown("worker", "10"), shown("odd", "0")]
    unsorted += [shown("ps", "0"), shown("worker", "2"), shown("chief", "0")]
    sdk = SimpleNamespace(containers=SimpleNamespace(list=lambda **_: unsorted))
    names = [c.name for c in connected(sdk).containers("demo")]
    assert names == ["chief-0", "worker-2", "worker-10", "ps-0", "evaluator-0", "odd-0"]


def test_gpus_reserved_by_containers_without_the_kits_label() -> None:
    def container(name: str, tags: dict[str, str]) -> SimpleNamespace:
        requests = [{"DeviceIDs": ["0"], "Capabilities": [["gpu"]]}]
        config = {"Labels": tags, "Env": []}
        attributes = {"Name": f"/{name}", "Config": config}
        return SimpleNamespace(attrs={**attributes, "HostConfig": {"DeviceRequests": requests}})

    asked: list[object] = []

    def listed(**options: object) -> list[SimpleNamespace]:
        asked.append(options["filters"])
        return [container("mine", {labels.CLUSTER: "demo"}), container("jupyter", {})]

    sdk = SimpleNamespace(containers=SimpleNamespace(list=listed))
    assert connected(sdk).gpus_reserved() == (("0", "jupyter"),)
    assert asked == [{"status": "running"}]


def test_secrets_of_a_container_are_masked_in_its_log() -> None:
    variables = ["API_TOKEN=in-clear", "MINE=the-callers", "OPEN=plain-text"]
    config = {"Env": variables, "Labels": {labels.SECRETS: "OTHER,MINE"}}
    message = b"1 in-clear\n2 the-callers\n3 plain-text, in-clear"

    def log(**_: object) -> Any:
        return chunks(message[:14], message[14:])

    def answer(_url: str, **_: object) -> Any:
        frames = b"".join(
            b"\1\0\0\0" + len(p).to_bytes(4, "big") + p for p in (message[:9], message[9:])
        )
        return SimpleNamespace(
            iter_content=lambda _size: chunks(frames[:3], frames[3:20], frames[20:]),
            close=lambda: None,
        )

    container = SimpleNamespace(logs=log, attrs={"Config": config})
    api = SimpleNamespace(
        inspect_container=lambda _id: container.attrs,
        _url=lambda path, _id: path,
        _get=answer,
        _raise_for_status=lambda _answer: None,
    )
    sdk = SimpleNamespace(containers=SimpleNamespace(get=lambda _id: container), api=api)
    shown = ["1 ***", "2 ***", "3 plain-text, ***"]
    assert list(connected(sdk).lines("id")) == shown
    assert list(connected(sdk).follow("id")) == shown


def test_an_endless_answer_is_waited_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(docker_engine, "ANSWER_S", 0.1)
    over = threading.Event()

    def stream(_id: str, **_: object) -> Iterator[bytes]:
        over.wait(30)
        yield b"late"

    api = SimpleNamespace(exec_create=lambda *_, **__: {"Id": "1"}, exec_start=stream,
                          exec_inspect=lambda _id: {"ExitCode": None})  # fmt: skip
    container = SimpleNamespace(id="id", attrs=inspected())
    sdk = SimpleNamespace(containers=SimpleNamespace(get=lambda _id: container), api=api)
    answer = connected(sdk).ask("id", ["ls"], 0)
    over.set()
    assert (answer, answer.exit_code) == ("", None)
