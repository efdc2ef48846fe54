"""Each line of `doctor` can fail, and then has a hint; on a good host no line has one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.errors import HostError
from cluster_kit.facts import EngineKind, GpuSetup, HostFacts
from cluster_kit.plan import addresses
from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import Cluster
from cluster_kit.run import doctor
from cluster_kit.util.process import Completed
from tests.fakes.hosts import programs
from tests.make import cluster, gpus, host, network

WELL = host(engine="26.1.5", engine_root="/", no_gpu="no driver")
GIB = 2**30


class Says:
    """The output of programs and the free space of a host; each can be changed."""

    def __init__(self) -> None:
        self.compose = "2.26.1"
        self.buildx = "github.com/docker/buildx v0.13.1"
        self.free = 100 * GIB
        self.built = True
        self.host = programs(run=self.run)

    def run(self, command: list[str], **_: object) -> Completed:
        output = self.compose if command[1] == "compose" else self.buildx
        return Completed(tuple(command), 0 if output else 1, f"{output}\n", "")


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Says:
    made = Says()
    monkeypatch.setattr(doctor, "image_present", lambda *_: made.built)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=made.free))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return made


def checks(says: Says, facts: HostFacts = WELL, of: Cluster | None = None) -> dict[str, Check]:
    return {check.name: check for check in doctor.check_host(says.host, facts, of)}


@pytest.mark.parametrize("of", [None, cluster()], ids=["no manifest", "a manifest"])
def test_a_host_without_problems(says: Says, of: Cluster | None) -> None:
    found = checks(says, of=of)
    assert list(found) == [
        "engine", "compose", "buildx", "disk", "memory", "gpus", "subnet", "proxy",
    ]  # fmt: skip
    assert {(check.state, check.hint) for check in found.values()} == {("ok", "")}


EVERYWHERE = tuple(network(str(pool), "a VPN") for pool in addresses.POOLS)
PROXY = {"HTTP_PROXY": "http://proxy:3128", "no_grpc_proxy": "example.org"}
BROKEN: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "engine of long ago": ("engine", "fail", "upgrade", {"facts": {"engine": "20.10.5+dfsg1"}}),
    "engine without a version": ("engine", "fail", "upgrade", {"facts": {"engine": ""}}),
    "no Compose v2": ("compose", "fail", "install its plugin", {"compose": ""}),
    "Compose of long ago": ("compose", "fail", "needs 2.20", {"compose": "v2.19.9"}),
    "no Buildx": ("buildx", "warn", "install it", {"buildx": ""}),
    "no Buildx for what must be built": (
        "buildx", "fail", "install it", {"buildx": "", "built": False, "of": cluster()}
    ),
    "no Buildx for what may be built": (
        "buildx", "warn", "install it", {"buildx": "", "of": cluster()}
    ),
    "a full disk": ("disk", "fail", "docker system prune", {"free": GIB // 2}),
    "no room to build": (
        "disk", "fail", "needs 8 GiB", {"free": 4 * GIB, "built": False, "of": cluster()}
    ),
    "little memory": ("memory", "warn", "more memory", {"facts": {"memory": GIB}}),
    "memory for limited tasks": (
        "memory", "ok", "",
        {
            "facts": {"memory": 8 * GIB},
            "of": cluster(worker=20, ps=0, chief=0, role={"worker": {"memory": "300m"}}),
        },
    ),
    "memory for fewer tasks": (
        "memory", "fail", "fewer tasks", {"facts": {"memory": GIB}, "of": cluster(worker=20)}
    ),
    "GPUs without a driver": (
        "gpu driver", "warn", "install NVIDIA's driver", {"facts": {"gpu_setup": GpuSetup(1, "x")}}
    ),
    "GPUs that are refused": (
        "gpus", "warn", "restart the engine",
        {"facts": {"gpus": gpus(1), "no_gpu": "", "gpu_refusal": "no"}},
    ),
    "no free subnet": (
        "subnet", "fail", "docker network prune", {"facts": {"networks": EVERYWHERE}}
    ),
    "a subnet that was taken meanwhile": (
        "subnet", "fail", "another `subnet`",
        {"facts": {"networks": EVERYWHERE}, "of": cluster(subnet="172.28.0.0/24")},
    ),
    "a proxy that is the container itself": (
        "proxy", "warn", "containers can reach",
        {"config": {"proxies": {"default": {"httpsProxy": "http://127.0.0.1:3128"}}}},
    ),
    "the same by name, without a scheme": (
        "proxy", "warn", "containers can reach",
        {"config": {"proxies": {"default": {"allProxy": "localhost:3128"}}}},
    ),
    "a configuration that is no table": ("proxy", "warn", "fix the file", {"config": ["a"]}),
    "secrets that are not set": (
        "secrets", "fail", "export HUSH_HUSH=",
        {"of": cluster(role={"chief": {"secrets": ["HUSH_HUSH"]}})},
    ),
    "exceptions of gRPC's own": (
        "proxy", "fail", "take no_grpc_proxy out",
        {"of": cluster(role={"worker": {"environment": PROXY}})},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "state", "hint", "given"), BROKEN.values(), ids=BROKEN)
def test_each_problem_has_its_line_and_its_hint(
    name: str, state: str, hint: str, given: dict[str, Any], says: Says, tmp_path: Path
) -> None:
    facts = replace(WELL, **given.pop("facts", {}))
    if config := given.pop("config", None):
        (tmp_path / "config.json").write_text(json.dumps(config))
    of = given.pop("of", None)
    for key, value in given.items():
        setattr(says, key, value)
    found = checks(says, facts, of)
    assert (found[name].state, hint in found[name].hint) == (state, True), found[name]
    others = {check for key, check in found.items() if key != name}
    assert {check.state for check in others} == {"ok"}
    if of is not None and state == "fail":
        with pytest.raises(HostError) as refused:
            doctor.refuse_if_unfit(says.host, facts, of)
        assert hint in refused.value.hint


@pytest.mark.parametrize("built", [True, False])
def test_up_asks_for_buildx_only_if_the_kits_image_is_absent(says: Says, built: bool) -> None:
    says.built, asked = built, list[str]()
    run = says.run
    says.host = programs(run=lambda command, **_: asked.append(command[1]) or run(command))
    doctor.refuse_if_unfit(says.host, WELL, cluster())
    assert ("buildx" in asked) is not built


def test_every_line_fails_in_some_case(says: Says) -> None:
    assert checks(says).keys() <= {name for name, *_ in BROKEN.values()}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"proxies": {"default": 3}}'])
def test_a_client_configuration_that_cannot_be_read(says: Says, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert checks(says)["proxy"].state == "warn"


def test_complete_proxy_exceptions_are_accepted(says: Says, tmp_path: Path) -> None:
    proxies = {"default": {"httpProxy": "http://proxy.example:3128", "noProxy": "localhost"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    found = checks(says)["proxy"]
    assert found.state == "ok" and "exempted" in found.found


def test_the_password_of_a_proxy_is_in_no_line(says: Says, tmp_path: Path) -> None:
    proxies = {"default": {"httpProxy": "http://me:in-clear-1@127.0.0.1:3128"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    assert "http://me:***@127.0.0.1:3128" in checks(says)["proxy"].found


def test_a_cluster_does_not_collide_with_itself(says: Says) -> None:
    mine = cluster(subnet="172.28.0.0/24")
    own = network("172.28.0.0/24", "Docker network cluster-kit-demo_cluster", "demo")
    assert checks(says, replace(WELL, networks=(own,)), mine)["subnet"].state == "ok"


def test_a_disk_that_cannot_be_read_is_not_judged(says: Says) -> None:
    says.free = 0
    assert checks(says, replace(WELL, engine_root="/nowhere"))["disk"].state == "ok"


def test_a_disk_with_nearly_enough_space_is_not_said_to_have_enough(says: Says) -> None:
    says.free = 95 * GIB // 100
    disk = checks(says)["disk"]
    assert disk.found.startswith("0.9 GiB free") and disk.hint.startswith("needs 1 GiB")


@pytest.mark.parametrize(
    ("version", "state"),
    [("4.3.1", "warn"), ("5.4.0-dev", "warn"), ("4.2.0", "fail"), ("", "fail")],
)
def test_podman_is_checked_by_its_own_versions(says: Says, version: str, state: str) -> None:
    check = checks(says, host(engine=version, kind=EngineKind(podman=True)))["engine"]
    assert check.state == state and check.hint
    assert f"Podman {version}" in check.found


def test_podman_can_load_images_but_not_build_them(says: Says) -> None:
    podman = host(engine="4.3.1", kind=EngineKind(podman=True))
    assert checks(says, podman)["buildx"].state == "warn"
    assert checks(says, podman, cluster())["buildx"].state == "warn"
    says.built = False
    check = checks(says, podman, cluster())["buildx"]
    assert check.state == "fail"
    assert f"docker save {cluster().image} | podman load" in check.hint
