"""The image's tag, and what of this host's configuration a build can see."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cluster_kit.errors import EngineError, HostError
from cluster_kit.image import base_image, kit_image
from cluster_kit.image.pip_config import CA_IN_BUILD, build_secrets, pip_access
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine

ADDRESS = "https://someone:secret@mirror.example/simple"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Returns a small copy of images/trainer."""
    shutil.copytree(
        kit_image.SOURCE, tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path / "trainer"


def build_time_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, kit_image.SOURCE / "recipe" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cusolver_lies_where_tensorflow_looks_for_cublas(tmp_path: Path) -> None:
    for library in ("cublas/lib/libcublas.so.12", "cusolver/lib/libcusolver.so.11"):
        path = tmp_path / "nvidia" / library
        path.parent.mkdir(parents=True)
        path.write_text(library)
    for _ in range(2):  # a second time changes nothing
        build_time_script("slim").link_cusolver(tmp_path)
    found = (tmp_path / "nvidia" / "cublas" / "lib").iterdir()
    assert {path.name: path.read_text() for path in found} == {
        "libcublas.so.12": "cublas/lib/libcublas.so.12",
        "libcusolver.so.11": "cusolver/lib/libcusolver.so.11",
    }
    build_time_script("slim").link_cusolver(tmp_path / "cpu")


class Installs:
    """Stands for subprocess.run: keeps the commands that install, and answers with the given exit
    codes; pip has no configuration."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.commands: list[tuple[str, ...]] = []
        self.variables: list[dict[str, str]] = []

    def __call__(self, command: tuple[str, ...], env: Any = None, **_: object) -> Any:
        if "config" in command:
            return subprocess.CompletedProcess(command, 0, stdout="")
        self.commands.append(command)
        self.variables.append(env or {})
        return subprocess.CompletedProcess(command, self.codes.pop(0))


@pytest.mark.parametrize(
    ("has_uv", "codes", "last"),
    [(True, (0,), "uv"), (True, (2, 0), "pip"), (False, (0,), "pip"), (True, (2, 1), "pip")],
    ids=["uv", "uv fails", "no uv", "both fail"],
)
def test_uv_installs_the_packages_or_else_pip(
    monkeypatch: pytest.MonkeyPatch, has_uv: bool, codes: tuple[int, ...], last: str
) -> None:
    install = build_time_script("install")
    ran = Installs(*codes)
    monkeypatch.setattr(install.subprocess, "run", ran)
    monkeypatch.setattr(install, "find_spec", lambda _: has_uv or None)
    assert install.main(Path("/locked.txt"), Path("/cache"), byte_code=False) == codes[-1]
    assert not ran.codes
    assert ("uv" if "uv" in ran.commands[-1] else "pip") == last
    assert "--requirement=/locked.txt" in ran.commands[-1]
    assert all("--require-hashes" in command for command in ran.commands)


@pytest.mark.parametrize("byte_code", [True, False])
def test_byte_code_is_made_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, byte_code: bool
) -> None:
    install = build_time_script("install")
    ran = Installs(2, 0)
    monkeypatch.setattr(install.subprocess, "run", ran)
    monkeypatch.setattr(install, "find_spec", lambda _: "found")
    assert install.main(Path("/locked.txt"), None, byte_code=byte_code) == 0
    uv, pip = ran.commands
    assert ("--compile-bytecode" in uv, "--no-compile" not in pip) == (byte_code, byte_code)
    assert not any("cache" in word for word in (*uv, *pip))


def test_uv_gets_what_pips_configuration_says() -> None:
    listing = (
        f"global.index-url='https://other.example'\ninstall.index-url='{ADDRESS}'\n"
        "global.proxy='http://proxy.example:3128'\nglobal.cert='/ca.pem'\nlist.format='json'\n"
        "global.extra-index-url='\\nhttps://a.example\\nhttps://b.example'\n"
        "global.find-links='https://c.example https://d.example'\n"
        "global.trusted-host='a.example'\n:env:.timeout='7'\nglobal.timeout='9'\n"
        "global.retries='2'\n"
    )
    given = {"HOME": "/home/me", "UV_HTTP_RETRIES": "4"}
    assert build_time_script("install").environment(given, listing) == {
        **given,
        "UV_DEFAULT_INDEX": ADDRESS,
        "UV_INDEX": "https://a.example https://b.example",
        "UV_FIND_LINKS": "https://c.example,https://d.example",
        "UV_INSECURE_HOST": "a.example",
        "UV_HTTP_TIMEOUT": "7",
        "ALL_PROXY": "http://proxy.example:3128",
        "SSL_CERT_FILE": "/ca.pem",
    }


def test_pip_is_unpacked_from_the_wheel_that_python_brings_along(tmp_path: Path) -> None:
    script = build_time_script("installers")
    if script.bundled_wheel() is None:
        pytest.skip("this Python has no ensurepip")
    (tmp_path / "uv").write_text("of an earlier time")
    script.main(tmp_path)
    assert (tmp_path / "pip" / "__main__.py").is_file()
    assert not (tmp_path / "uv").exists()


@pytest.mark.parametrize(("code", "said"), [(0, ""), (1, "packages of locked-uv.txt: pip takes")])
def test_other_installers_are_fetched_with_their_hashes_or_said_to_be_missing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    said: str,
) -> None:
    script = build_time_script("installers")
    if script.bundled_wheel() is None:
        pytest.skip("this Python has no ensurepip")
    ran = Installs(code)
    monkeypatch.setattr(script.subprocess, "run", ran)
    script.main(tmp_path, Path("/build/locked-uv.txt"))
    (command,), (variables,) = ran.commands, ran.variables
    assert "--require-hashes" in command and f"--target={tmp_path}" in command
    assert variables["PYTHONPATH"] == str(tmp_path)
    error = capsys.readouterr().err
    assert said in error and bool(said) == bool(error)


def test_a_python_without_ensurepip_is_said_to_lack_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = build_time_script("installers")
    monkeypatch.setattr(script, "bundled_wheel", lambda: None)
    with pytest.raises(SystemExit, match="python3-venv"):
        script.main(tmp_path)


def test_the_tag_is_stable_and_names_the_variant(source: Path) -> None:
    assert kit_image.tag_of("cpu", source) == kit_image.tag_of("cpu")
    assert kit_image.tag_of("cpu").startswith("cluster-kit/trainer:cpu-")
    assert kit_image.tag_of("cpu") != kit_image.tag_of("gpu")


@pytest.mark.parametrize(
    "changed",
    ["recipe/Dockerfile", "recipe/Dockerfile.extra", ".dockerignore", "trainer/contract/endings.py",
     "recipe/slim.py", "recipe/extra.py", "recipe/locked-cpu.txt",
     "recipe/list_packages.py", "recipe/locked-digits.txt", "recipe/locked-uv.txt",
     "recipe/install.py", "recipe/installers.py",
     "trainer/__main__.py", "trainer/programs/new.txt"],
)  # fmt: skip
def test_a_changed_input_changes_the_tag(source: Path, changed: str) -> None:
    with (source / changed).open("a") as file:
        file.write("\n# changed\n")
    assert kit_image.tag_of("cpu", source) != kit_image.tag_of("cpu")


def test_files_that_the_build_does_not_read_do_not_change_the_tag(source: Path) -> None:
    (source / "README.md").write_text("other words")
    (source / "recipe" / "locked-gpu.txt").write_text("other pins")
    (source / "trainer" / "__pycache__").mkdir()
    (source / "trainer" / "__pycache__" / "x.pyc").write_bytes(b"")
    assert kit_image.tag_of("cpu", source) == kit_image.tag_of("cpu")
    assert kit_image.tag_of("gpu", source) != kit_image.tag_of("gpu")


def test_a_renamed_file_changes_the_tag(source: Path) -> None:
    (source / "trainer/agent/task.py").rename(source / "trainer/agent/tasks.py")
    assert kit_image.tag_of("cpu", source) != kit_image.tag_of("cpu")


def test_every_requirement_is_pinned() -> None:
    for path in kit_image.SOURCE.glob("recipe/requirements-*.txt"):
        for line in path.read_text().splitlines():
            assert not line or line.startswith(("#", "-r ")) or "==" in line, f"{path.name}: {line}"


def test_the_build_names_no_registry_and_no_frontend() -> None:
    for path in (
        *kit_image.SOURCE.glob("recipe/Dockerfile*"),
        *kit_image.SOURCE.glob("recipe/requirements-*.txt"),
    ):
        text = path.read_text()
        assert "http:" not in text and "https:" not in text
        assert "syntax=" not in text  # it would be fetched from a registry


def test_only_remote_addresses_of_pips_configuration_are_used() -> None:
    listing = (
        f"global.index-url='{ADDRESS}'\n"
        "global.extra-index-url='file:///opt/simple https://more.example/simple'\n"
        "global.find-links='/opt/wheels'\n"
        ":env:.timeout='7'\n"
    )
    conf = pip_access(listing, {"SSL_CERT_FILE": "/nowhere"}).conf
    assert f"index-url = {ADDRESS}\n" in conf
    assert "extra-index-url = https://more.example/simple\n" in conf
    assert "/opt" not in conf and "find-links" not in conf


def test_the_environment_overrides_pips_files(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificate")
    environment = {"PIP_INDEX_URL": "https://b.example", "PIP_CERT": str(bundle)}
    access = pip_access("global.index-url='https://a.example'\nglobal.cert='/old'\n", environment)
    assert "index-url = https://b.example\n" in access.conf
    assert f"cert = {CA_IN_BUILD}\n" in access.conf
    assert access.ca == "certificate"


@pytest.mark.parametrize(
    ("listing", "environment", "network"),
    [
        ("", {}, "default"),
        ("", {"https_proxy": "http://proxy.example:3128"}, "default"),
        ("", {"https_proxy": "http://me:secret@127.0.0.1:3128"}, "host"),
        ("", {"HTTP_PROXY": "localhost:3128"}, "host"),
        ("", {"no_proxy": "127.0.0.1"}, "default"),
        ("global.index-url='http://[::1]:8080/simple'\n", {}, "host"),
        ("global.index-url='http://127.example/simple'\n", {}, "default"),
        ("global.extra-index-url='https://a.example http://127.0.0.2/simple'\n", {}, "host"),
        ("global.proxy='http://[broken'\n", {}, "default"),
        ("", {"CLUSTER_KIT_BUILD_NETWORK": "host"}, "host"),
    ],
)
def test_a_build_uses_the_hosts_loopback_only_if_a_proxy_or_index_is_there(
    listing: str, environment: dict[str, str], network: str
) -> None:
    assert pip_access(listing, environment).network == network


def test_secrets_reach_the_build_only_as_file_and_variable_names(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr("cluster_kit.image.pip_config._pip_config_list", lambda *_: "")
    monkeypatch.setenv("PIP_INDEX_URL", ADDRESS)
    monkeypatch.setenv("https_proxy", "http://someone:secret@proxy.example:3128")
    with build_secrets(machine.host) as arguments:
        assert "--build-arg=https_proxy" in arguments
        assert not any("example" in argument or "someone" in argument for argument in arguments)
        conf = Path(arguments[0].partition("src=")[2])
        assert ADDRESS in conf.read_text()
    assert not conf.exists()


TARGETS = """\
Origin: Debian
Component: main
Release: trixie
Repo-URI: http://mirror.example/debian/

Origin: Debian
Component: main
Release: bookworm
Repo-URI: http://mirror.example/debian/

Origin: Debian
Component: main
Release: bookworm-security
Repo-URI: http://mirror.example/security/

Origin: Somebody
Component: main
Release: bookworm
Repo-URI: http://other.example/
"""


def test_a_base_is_made_only_from_the_hosts_own_suite() -> None:
    assert base_image.sources_of("bookworm", TARGETS) == (
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/security/ bookworm-security main",
    )


@dataclass
class Debian:
    """A Debian host whose programs answer with these texts; those of a base image's archive write
    it."""

    python: str = "3 11"
    fails: str = ""
    commands: list[tuple[str, ...]] = field(default_factory=list)
    variables: list[Mapping[str, str]] = field(default_factory=list)

    def run(self, command: Sequence[str], env: Mapping[str, str] | None = None, **_: Any) -> Any:
        self.commands.append(tuple(command))
        self.variables.append(env or {})
        words = " ".join(command)
        answers = {"apt-get": TARGETS, "apt-config": "", "docker run": f"{self.python}\n"}
        output = next((text for name, text in answers.items() if words.startswith(name)), "")
        failing = ("docker image inspect", "docker pull", self.fails or "docker pull")
        if command[0] == "mmdebstrap":
            Path(command[command.index("bookworm") + 1]).write_text("a root")
        return Completed(tuple(command), int(words.startswith(failing)), output, "")

    def all_of(self, *words: str) -> list[tuple[str, ...]]:
        return [command for command in self.commands if command[: len(words)] == words]


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Debian:
    release = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    host = Debian()
    machine.starts(run=host.run)
    return host


@pytest.mark.parametrize(("python", "is_kept"), [("3 11", True), ("3 8", False)])
def test_without_a_registry_a_base_is_made_from_the_hosts_system(
    debian: Debian, machine: Machine, python: str, is_kept: bool
) -> None:
    debian.python = python
    tag = base_image.local_base_tag()
    with contextlib.nullcontext() if is_kept else pytest.raises(HostError, match=r"Python 3\.8"):
        assert base_image.choose_base(machine.host, lambda _: None) == tag
    (made,) = debian.all_of("mmdebstrap")
    suite, _archive, *sources = made[made.index("bookworm") :]
    assert suite == "bookworm" and sources == list(base_image.sources_of("bookworm", TARGETS))
    assert bool(debian.all_of("docker", "image", "rm", tag)) == (not is_kept)


@pytest.mark.parametrize(
    ("free", "flags", "own", "available", "is_in_memory"),
    [
        (base_image.IN_MEMORY, 0, "", "MemAvailable: 1048576 kB", True),
        (base_image.IN_MEMORY, 0, "", "MemAvailable: 1048575 kB", False),
        (base_image.IN_MEMORY, 0, "", "MemFree: 1048576 kB", False),
        (base_image.IN_MEMORY - 1, 0, "", "MemAvailable: 1048576 kB", False),
        (base_image.IN_MEMORY, os.ST_NOEXEC, "", "MemAvailable: 1048576 kB", False),
        (base_image.IN_MEMORY, 0, "/big", "MemAvailable: 1048576 kB", False),
        (None, 0, "", "MemAvailable: 1048576 kB", False),
    ],
    ids=["room", "memory in use", "unknown", "too small", "noexec", "own TMPDIR", "none"],
)
def test_the_root_of_a_base_is_unpacked_in_memory_if_there_is_room(
    debian: Debian,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    free: int | None,
    tmp_path: Path,
    flags: int,
    own: str,
    available: str,
    is_in_memory: bool,
) -> None:
    def statvfs(_: object) -> Any:
        if free is None:
            raise FileNotFoundError
        return SimpleNamespace(f_bavail=free, f_frsize=1, f_flag=flags)

    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 2097152 kB\n{available}\n")
    monkeypatch.setattr(base_image, "MEMINFO", meminfo)
    monkeypatch.setattr(base_image.os, "statvfs", statvfs)
    monkeypatch.setattr(base_image.os, "access", lambda *_: True)
    monkeypatch.setenv("TMPDIR", own)
    base_image.choose_base(machine.host, lambda _: None)
    (made,) = debian.all_of("mmdebstrap")
    variables = debian.variables[debian.commands.index(made)]
    assert variables.get("TMPDIR") == (str(base_image.MEMORY) if is_in_memory else None)


@pytest.mark.parametrize("has_hook", [True, False])
def test_usrmerge_is_spared_if_this_mmdebstrap_can_do_that(
    debian: Debian,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    has_hook: bool,
) -> None:
    hook = tmp_path / "hook"
    if has_hook:
        hook.mkdir()
    monkeypatch.setattr(base_image, "MERGED_USR", str(hook))
    assert base_image.choose_base(machine.host, lambda _: None) == base_image.local_base_tag()
    (made,) = debian.all_of("mmdebstrap")
    assert (f"--hook-dir={hook}" in made) == has_hook


@pytest.mark.parametrize("fails", ["", "mmdebstrap", "apt-get indextargets", "docker import"])
def test_a_base_is_made_before_an_engine_is_there_or_else_after_it(
    debian: Debian, machine: Machine, fails: str
) -> None:
    debian.fails = fails
    with base_image.ahead(machine.host, lambda _: None) as base:
        base.make()
        assert not debian.all_of("docker")
        base.load()
    tag = base_image.local_base_tag()
    imported = [command[-1] for command in debian.all_of("docker", "import")]
    assert imported == ([tag] if fails in ("", "docker import") else [])


@pytest.mark.parametrize(
    ("given", "is_wanted"),
    [
        ("nothing", True),
        ("registry", False),
        ("configuration", False),
        ("CLUSTER_KIT_BASE", False),
        ("HTTPS_PROXY", False),
    ],
)
def test_a_base_is_made_ahead_only_if_none_can_be_pulled(
    debian: Debian,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: str,
    is_wanted: bool,
) -> None:
    for name in ("CLUSTER_KIT_BASE", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if given.isupper():
        monkeypatch.setenv(given, "https://there.example")
    configuration = tmp_path / "daemon.json"
    if given == "configuration":
        configuration.write_text("{}")
    monkeypatch.setattr(base_image, "ENGINE_CONFIGURATION", configuration)
    with socket.create_server(("127.0.0.1", 0)) as registry:
        monkeypatch.setattr(base_image, "REGISTRY", registry.getsockname())
        if given != "registry":
            registry.close()
        with base_image.ahead(machine.host, lambda _: None) as base:
            assert base.is_wanted() == is_wanted


def test_apts_proxy_configuration_is_kept() -> None:
    dump = (
        'Acquire "";\nAcquire::http "";\nAcquire::http::Proxy "http://p:1";\n'
        'Acquire::https::CaInfo "/ca.pem";\nAcquire::Check-Valid-Until "false";\n'
        'Acquire::Languages:: "none";\nAPT::Architecture "amd64";\n'
    )
    assert base_image.transport_options(dump) == (
        'Acquire::http::Proxy "http://p:1";',
        'Acquire::https::CaInfo "/ca.pem";',
        'Acquire::Check-Valid-Until "false";',
    )


def test_a_named_base_is_used_without_asking_docker(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setenv("CLUSTER_KIT_BASE", "registry.example/python:3.12")
    assert base_image.choose_base(machine.host, lambda _: None) == "registry.example/python:3.12"


def test_digits_are_divided_by_class_and_always_in_the_same_way() -> None:
    split = build_time_script("export_digits").split
    images = [(index, []) for index in range(180)]
    parts = split(images)
    assert {name: len(members) for name, members in parts.items()} == {
        "Train": 126,
        "Validate": 27,
        "Test": 27,
    }
    assert sorted(image for members in parts.values() for image in members) == images
    assert split(images[::-1]) == parts


def test_a_library_without_its_symbol_table_still_loads(tmp_path: Path) -> None:
    modules = sorted(Path(str(sysconfig.get_config_var("DESTSHARED"))).glob("*.so"))
    if not modules:
        pytest.skip("this Python has no extension modules as files")
    library = tmp_path / modules[0].name
    shutil.copy(modules[0], library)
    drop_symbol_table = build_time_script("slim").drop_symbol_table
    saved = drop_symbol_table(library)
    assert saved > 0
    assert library.stat().st_size == modules[0].stat().st_size - saved
    assert drop_symbol_table(library) == 0
    ctypes.CDLL(str(library))


def test_other_files_are_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x" * 100)
    assert build_time_script("slim").drop_symbol_table(path) == 0
    assert path.read_bytes() == b"x" * 100


def test_a_build_without_disk_space_is_reported_with_a_fix(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    words = "ERROR: failed to solve: write /usr/lib/x: no space left on device"
    monkeypatch.setattr(kit_image, "image_present", lambda *_: False)
    monkeypatch.setattr(kit_image, "choose_base", lambda *_: "base")
    monkeypatch.setattr(kit_image, "build_secrets", lambda *_: contextlib.nullcontext(()))
    machine.starts(run=lambda words_, **_: Completed(tuple(words_), 1, "", words))
    with pytest.raises(EngineError, match="no space left on device") as told:
        kit_image.ensure_image(machine.host, "cpu", lambda _line: None)
    assert "docker system df" in told.value.hint
