"""Passes this host's pip configuration to builds, so that they reach the same package index.

Pip's files and the PIP_ variables become a pip.conf and a certificate bundle. Both are passed to
the build as secrets: they may name a company's mirror or contain a password, and must not become
part of a layer.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from cluster_kit.host import Host

PIP = (sys.executable, "-P", "-m", "pip")
"""The pip of this process's Python; -P prevents a module of the current directory from replacing
it."""
CA_IN_BUILD = "/run/secrets/ca.pem"
PLAIN = ("index-url", "proxy", "trusted-host", "timeout", "retries")
ADDRESSES = ("extra-index-url", "find-links")  # lists; a build cannot use local folders in them
NETWORK_VARIABLE = "CLUSTER_KIT_BUILD_NETWORK"
"""The variable that gives builds and data steps this host's network if its value is `host`. They
may need it for a reason that the kit cannot see, such as a mirror that only /etc/hosts names."""
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
SYSTEM_CA = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
# Docker treats these names specially: the build gets the values, but its history and cache do not.
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class PipAccess:
    """`conf` is the text of a pip.conf, `ca` that of a certificate bundle, "" if there is none.

    `network` is Docker's name of the network on which the index can be reached.
    """

    conf: str
    ca: str
    network: str


@contextmanager
def build_access(host: Host) -> Iterator[tuple[PipAccess, Path]]:
    """Yields this host's access to the index, and a file of its certificates in a directory that
    exists only inside the block."""
    access = pip_access(_pip_config_list(host), os.environ)
    with TemporaryDirectory(prefix="cluster-kit-") as folder:
        ca = Path(folder) / "ca.pem"
        ca.write_text(access.ca)
        yield access, ca


@contextmanager
def build_secrets(host: Host) -> Iterator[tuple[str, ...]]:
    """Yields arguments for `docker buildx build`; their files exist only inside the block."""
    with build_access(host) as (access, ca):
        conf = ca.with_name("pip.conf")
        conf.write_text(access.conf)
        yield (
            f"--secret=id=pip.conf,src={conf}",
            f"--secret=id=ca.pem,src={ca}",
            f"--network={access.network}",
            *(f"--build-arg={name}" for name in PROXY_VARIABLES if os.environ.get(name)),
        )


def pip_access(listing: str, environment: Mapping[str, str]) -> PipAccess:
    """The output of `pip config list` and the environment, as one pip.conf and one bundle."""
    settings = _settings(listing, environment)
    lines = [f"{name} = {settings[name]}" for name in PLAIN if settings.get(name)]
    for name in ADDRESSES:
        remote = [a for a in settings.get(name, "").split() if a.startswith(("http:", "https:"))]
        if remote:
            lines.append(f"{name} = {' '.join(remote)}")
    bundle = _bundle(settings, environment)
    if bundle:
        lines.append(f"cert = {CA_IN_BUILD}")
    addresses = " ".join(settings.get(name, "") for name in ("index-url", "proxy", *ADDRESSES))
    return PipAccess("\n".join(["[global]", *lines, ""]), bundle, network(environment, addresses))


def network(environment: Mapping[str, str], addresses: str = "") -> str:
    """Docker's name of the network for builds and data steps that fetch files: `default` or `host`.

    It is `host` only if one of this host's proxies, or one of these addresses, is a loopback
    address: services there may be meant for this host only.

    Args:
        addresses: further ones, separated by spaces.
    """
    proxies = [environment.get(name, "") for name in PROXY_VARIABLES if name.lower() != "no_proxy"]
    network_name = environment.get(NETWORK_VARIABLE, "")
    needs = any(map(_is_loopback, (*proxies, *addresses.split())))
    return "host" if needs or network_name == "host" else "default"


def _is_loopback(address: str) -> bool:
    """Whether the host of `http://user@host:port/path`, or of `host:port`, is this machine."""
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _settings(listing: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Pip's settings by name: the environment overrides `[install]`, which overrides `[global]`."""
    by_section: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for line in listing.splitlines():
        key, separator, value = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        if separator and section in by_section:
            by_section[section][name] = str(ast.literal_eval(value))
    known = {*PLAIN, *ADDRESSES, "cert"}
    from_environment = {
        name: environment[variable]
        for name in known
        if (variable := "PIP_" + name.upper().replace("-", "_")) in environment
    }
    if "PIP_DEFAULT_TIMEOUT" in environment:
        from_environment.setdefault("timeout", environment["PIP_DEFAULT_TIMEOUT"])
    return {**by_section["global"], **by_section["install"], **from_environment}


def _bundle(settings: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The text of the first certificate bundle that exists, the system's own as the last choice."""
    candidates = (
        settings.get("cert"),
        *(environment.get(name) for name in CA_VARIABLES),
        *SYSTEM_CA,
    )
    for path in candidates:
        if path and Path(path).is_file():
            return Path(path).read_text()
    return ""


def _pip_config_list(host: Host) -> str:
    """The output of `pip config list`; "" if the kit's environment has no pip."""
    done = host.processes.run([*PIP, "config", "list"])
    return done.output if done.ok else ""
