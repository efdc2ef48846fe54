"""The docker SDK's answers and failures, with an SDK that is made up."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import docker
import pytest
import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound

from cluster_kit import labels
from cluster_kit.engine import adjust
from cluster_kit.engine.client import DockerEngine
from cluster_kit.engine.helper import Helper
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError, HostError
from tests.unit.engine.test_containers import inspected, told

CONNECTS = DockerEngine.__init__
"""As it is outside of unit tests, where nothing connects."""


def connected(sdk: Any) -> DockerEngine:
    """An engine whose SDK is this one."""
    engine = object.__new__(DockerEngine)
    engine._client = sdk
    return engine


class Broken:
    """An SDK that raises one error, whatever is asked of it."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, _name: str) -> Broken:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise self._error


CALLS: dict[str, Callable[[DockerEngine], object]] = {
    "info": lambda e: e.info(),
    "networks": lambda e: e.networks(),
    "clusters": lambda e: e.clusters(),
    "containers": lambda e: e.containers("demo"),
    "sidecars": lambda e: e.sidecars("demo"),
    "glance": lambda e: e.glance(),
    "events": lambda e: list(e.events("demo", 0.0)),
    "gpus_taken": lambda e: e.gpus_taken(),
    "gpus_reserved": lambda e: e.gpus_reserved(),
    "gpu_refusal": lambda e: e.gpu_refusal("nvidia", "0"),
    "logs": lambda e: e.logs("id"),
    "follow": lambda e: list(e.follow("id")),
    "comes_back": lambda e: e.comes_back("id", 1.0),
    "ask": lambda e: e.ask("id", ["ls"], 5),
    "execute": lambda e: e.execute("id", ["ls"]),
    "detach": lambda e: e.detach("id", "demo"),
    "limit_cpus": lambda e: e.limit_cpus("id", 0.5),
    "memory_used": lambda e: e.memory_used("id"),
    "limit_memory": lambda e: e.limit_memory("id", 2**30, swap=True),
    "start_helper": lambda e: e.start_helper("demo", Helper("image", ("true",))),
    "freeze": lambda e: e.freeze("id"),
    "thaw": lambda e: e.thaw("id"),
    "kill": lambda e: e.kill("id"),
    "attach": lambda e: e.attach("id", "demo", "worker-0", "10.0.0.5"),
    "end": lambda e: e.end("id"),
    "start_again": lambda e: e.start_again("id"),
    "identity": lambda e: e.identity(),
    "stop": lambda e: e.stop("demo"),
    "remove": lambda e: e.remove("demo"),
}
LOST = (
    requests.exceptions.ConnectionError("Connection aborted"),
    requests.exceptions.ReadTimeout("Read timed out"),
    urllib3.exceptions.ProtocolError("Connection broken"),
    DockerException("Error while fetching server API version"),
    ConnectionResetError("Connection reset by peer"),
)


def test_every_method_of_the_interface_is_tried_here() -> None:
    methods = {name for name, _ in inspect.getmembers(Engine, inspect.isfunction)}
    assert {name for name in methods if not name.startswith("_")} == {*CALLS, "answers", "close"}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_an_engine_that_is_lost_is_an_engine_error_with_its_words(
    method: str, error: Exception
) -> None:
    with pytest.raises(EngineError, match=f"does not answer: {error}") as caught:
        CALLS[method](connected(Broken(error)))
    assert "cluster-kit down NAME" in caught.value.cure


@pytest.mark.parametrize("method", CALLS)
def test_what_the_engine_refuses_is_told_in_its_own_words(method: str) -> None:
    refused = APIError("500 Server Error", explanation="no space left on device")
    with pytest.raises(EngineError, match="refused: no space left on device") as caught:
        CALLS[method](connected(Broken(refused)))
    assert "docker system df" in caught.value.cure


@pytest.mark.parametrize("error", [LOST[0], LOST[3], LOST[4]], ids=lambda e: type(e).__name__)
def test_where_no_engine_answers_the_cure_is_make_engine(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "from_env", lambda **_: Broken(error))
    monkeypatch.setattr(DockerEngine, "__init__", CONNECTS)
    with pytest.raises(HostError, match="no Docker engine answers"):
        DockerEngine()


@pytest.mark.parametrize("host", ["", "unix:///run/other.sock"])
def test_a_user_who_may_not_use_the_engine_is_told_how_to(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "('Connection aborted.', PermissionError(13, 'Permission denied'))"
    error = DockerException(f"Error while fetching server API version: {words}")
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setattr(docker, "from_env", lambda **_: Broken(error))
    monkeypatch.setattr(DockerEngine, "__init__", CONNECTS)
    with pytest.raises(HostError, match="this user may not use the Docker engine") as told:
        DockerEngine()
    assert told.value.message.endswith(host or "/var/run/docker.sock")
    assert "usermod -aG docker $USER" in told.value.cure and "log in again" in told.value.cure


def test_an_engine_answers_or_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, limits = connected(SimpleNamespace()), []

    def asks(sdk: object) -> bool:
        monkeypatch.setattr(docker, "from_env", lambda timeout, **_: limits.append(timeout) or sdk)
        return engine.answers()

    assert asks(SimpleNamespace(ping=lambda: True, close=lambda: None))
    assert not asks(SimpleNamespace(ping=Broken(LOST[0]).ping, close=lambda: None))
    assert limits == [3, 3], "one that hangs is not waited for"


def test_events_are_handed_out_until_the_engine_closes_the_stream() -> None:
    stream = iter([told("start"), told("exec_start: sh"), told("die", exitCode="1")])
    sdk = SimpleNamespace(events=lambda **_: stream)
    assert [event.action for event in connected(sdk).events("demo", 0.0)] == ["start", "die"]


def chunks(*parts: bytes) -> Iterator[bytes]:
    yield from parts


def test_followed_lines_are_whole_however_the_stream_cuts_them() -> None:
    log = SimpleNamespace(logs=lambda **_: chunks(b"fir", b"st\nsec", "ö\nl".encode(), b"ast"))
    log.attrs = {"Config": {"Env": [], "Labels": {}}}
    sdk = SimpleNamespace(containers=SimpleNamespace(get=lambda _id: log))
    assert list(connected(sdk).follow("id")) == ["first", "secö", "last"]


def test_a_container_that_goes_while_it_is_listed_is_listed_without() -> None:
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


def test_a_container_that_has_ended_is_killed_already() -> None:
    def refused(code: int) -> APIError:
        return APIError("refused", SimpleNamespace(status_code=code, url="", reason=""))

    killed(None)
    killed(refused(409))
    with pytest.raises(EngineError):
        killed(refused(404))


def test_a_container_gets_its_name_and_its_address_back() -> None:
    calls: list[object] = []

    def connect(container: str, **given: object) -> None:
        calls.append((container, given))

    def listed(filters: dict[str, list[str]]) -> list[Any]:
        assert filters == {"label": ["cluster-kit.cluster=demo"]}
        return [SimpleNamespace(connect=connect)]

    sdk = SimpleNamespace(networks=SimpleNamespace(list=listed))
    connected(sdk).attach("id", "demo", "ps-0", "10.0.0.20")
    assert calls == [("id", {"ipv4_address": "10.0.0.20", "aliases": ["ps-0"]})]


def test_a_limit_in_cores_reaches_the_engine_as_it_counts_them() -> None:
    sent: list[object] = []
    api = SimpleNamespace(
        _url=lambda path, name: path.format(name),
        _post_json=lambda url, data: sent.append((url, data)),
        _raise_for_status=lambda _answer: None,
    )
    connected(SimpleNamespace(api=api)).limit_cpus("id", 0.25)
    assert sent == [("/containers/id/update", {"NanoCpus": 250_000_000})]


def test_a_limit_of_memory_is_one_of_swap_too() -> None:
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
def test_a_container_that_cannot_be_frozen_now_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, code: int, failures: int, tries: int
) -> None:
    monkeypatch.setattr(adjust, "FREEZE_S", 0)
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


def test_containers_come_in_task_order() -> None:
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


class Thing:
    """A container or a network of the SDK's, which notes what was done to it."""

    def __init__(
        self, status: str = "", error: Exception | None = None, id: str = "", joins: str = "",
        kind: str = "cluster",
    ) -> None:  # fmt: skip
        self.id, self.kind = id, "helper" if joins else kind
        self.attrs = {"HostConfig": {"NetworkMode": f"container:{joins}", "PidMode": ""}}
        self.name, self.status, self.done = "demo_cluster", status, []
        self._error = error

    def unpause(self) -> None:
        self.done.append("unpause")
        if self._error:
            raise self._error

    def stop(self) -> None:
        self.done.append("stop")

    def remove(self, **_: object) -> None:
        self.done.append("remove")
        if self._error:
            raise self._error


def holding(containers: list[Thing], networks: list[Thing]) -> DockerEngine:
    return connected(
        SimpleNamespace(
            containers=SimpleNamespace(
                list=lambda filters, **_: [
                    c for c in containers if f"cluster-kit.{c.kind}=" in str(filters)
                ]
            ),
            networks=SimpleNamespace(list=lambda **_: networks),
        )
    )


def test_removing_stops_what_runs_and_forgives_what_is_gone() -> None:
    runs, ended = Thing("running"), Thing("exited", NotFound("gone"))
    network = Thing(error=NotFound("gone"))
    assert holding([runs, ended], [network]).remove("demo") == 2
    assert (runs.done, ended.done, network.done) == (["stop", "remove"], ["remove"], ["remove"])


def test_a_helper_that_the_engine_is_removing_is_gone() -> None:
    words = "removal of container e77e9 is already in progress"
    ends = Thing("running", APIError(words), joins="a")
    assert holding([Thing("running", id="a"), ends], []).remove("demo") == 1
    with pytest.raises(EngineError, match="refused"):
        holding([Thing("running", APIError("refused"))], []).remove("demo")


def test_helpers_go_with_the_containers_that_they_work_on() -> None:
    task = Thing("running", id="a")
    helper, of_another_run = Thing("running", joins="a"), Thing("running", joins="b")
    assert holding([task, helper, of_another_run], []).remove("demo", "run 1") == 1
    assert (helper.done, of_another_run.done) == (["stop", "remove"], [])
    assert holding([task, helper, of_another_run], []).remove("demo") == 1
    assert of_another_run.done == ["stop", "remove"]


def test_the_tensorboard_that_began_with_a_cluster_goes_with_it() -> None:
    board = Thing("running", kind="tensorboard.cluster")
    assert holding([Thing("running"), board], []).remove("demo", "run 1") == 1
    assert board.done == ["stop", "remove"]


def test_a_network_that_somebody_uses_is_named_with_the_cure() -> None:
    network = Thing(error=APIError("has active endpoints"))
    with pytest.raises(EngineError, match="network demo_cluster cannot be removed") as caught:
        holding([], [network]).remove("demo")
    assert "docker network inspect demo_cluster" in caught.value.cure


def test_stopping_leaves_what_has_ended_alone() -> None:
    things = [Thing(status) for status in ("running", "restarting", "paused", "exited", "created")]
    holding(things, []).stop("demo")
    stopped = [["stop"], ["stop"], ["unpause", "stop"], [], []]
    assert [thing.done for thing in things] == stopped


def test_a_frozen_container_is_thawed_to_hear_that_it_ends() -> None:
    thawed_meanwhile = Thing("paused", APIError("Container demo-ps-0 is not paused"))
    holding([thawed_meanwhile], []).stop("demo")
    assert thawed_meanwhile.done == ["unpause", "stop"]


def test_gpus_that_others_reserve_are_those_of_containers_without_the_kits_label() -> None:
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
    said = b"1 in-clear\n2 the-callers\n3 plain-text, in-clear"

    def log(*, stream: bool = False, **_: object) -> Any:
        return chunks(said[:14], said[14:]) if stream else said

    container = SimpleNamespace(logs=log, attrs={"Config": config})
    sdk = SimpleNamespace(containers=SimpleNamespace(get=lambda _id: container))
    shown = ["1 ***", "2 ***", "3 plain-text, ***"]
    assert connected(sdk).logs("id").splitlines() == shown
    assert list(connected(sdk).follow("id")) == shown
