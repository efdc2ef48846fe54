"""Install locked packages in the environment of this Python, by uv if it can be had, else by pip.

    install.py LOCKED [--cache FOLDER] [--compile]

Images and a clone's .venv are made with it. LOCKED has hashes: a file with another hash is refused,
wherever it comes from. Both are modules that this Python finds (see installers.py); uv takes a
third of pip's time for TensorFlow (8 s of CPU instead of 21 s). Index, proxy and certificate are
those of pip's configuration; uv does not read it by itself.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PIP = (sys.executable, "-m", "pip")
SECTIONS = ("global", "install", ":env:")
"""Those of pip's configuration that say how it installs; a later one overrides an earlier one."""


def main(locked: Path, cache: Path | None, *, byte_code: bool) -> int:
    """Returns 0, or pip's exit code if neither could install the packages.

    Args:
        cache: the folder that keeps what was fetched; None for that of each tool.
        byte_code: compile the packages, too.
    """
    pip = (
        *(*PIP, "install", "--disable-pip-version-check", "--progress-bar=off"),
        *([f"--cache-dir={cache / 'pip'}"] if cache else []),
        *("--no-deps", "--require-hashes"),
    )
    if find_spec("uv") and _uv_installs(locked, cache, byte_code):
        return 0
    print("uv did not install the packages: pip tries", file=sys.stderr)
    compiles = () if byte_code else ("--no-compile",)
    return subprocess.run((*pip, *compiles, f"--requirement={locked}"), check=False).returncode


def _uv_installs(locked: Path, cache: Path | None, byte_code: bool) -> bool:
    command = (
        *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config"),
        f"--python={sys.executable}",
        "--index-strategy=unsafe-best-match",
        *([f"--cache-dir={cache / 'uv'}", "--link-mode=copy"] if cache else []),
        *(["--compile-bytecode"] if byte_code else []),
        *("--no-deps", "--require-hashes", f"--requirement={locked}"),
    )
    listing = subprocess.run(
        (*PIP, "config", "list"), check=False, stdout=subprocess.PIPE, text=True
    ).stdout
    variables = environment(dict(os.environ), listing)
    return subprocess.run(command, env=variables, check=False).returncode == 0


def environment(given: dict[str, str], listing: str) -> dict[str, str]:
    """The variables `given`, and those of uv that say what pip's configuration says.

    Args:
        given: these override the configuration.
        listing: the output of `pip config list`.
    """
    settings: dict[str, str] = {}
    for section in SECTIONS:
        for line in listing.splitlines():
            key, separator, value = line.partition("=")
            if separator and key.rpartition(".")[0] == section:
                settings[key.rpartition(".")[2]] = str(ast.literal_eval(value))
    if "default-timeout" in settings:
        settings.setdefault("timeout", settings["default-timeout"])
    named = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "trusted-host": "UV_INSECURE_HOST",
        "timeout": "UV_HTTP_TIMEOUT",
        "retries": "UV_HTTP_RETRIES",
        "cert": "SSL_CERT_FILE",
        "proxy": "ALL_PROXY",
    }
    said = {variable: settings[name] for name, variable in named.items() if settings.get(name)}
    for variable, separator in (("UV_INDEX", " "), ("UV_FIND_LINKS", ",")):
        if variable in said:
            said[variable] = separator.join(said[variable].split())
    return {**said, **given}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("locked", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--compile", action="store_true")
    asked = parser.parse_args()
    sys.exit(main(asked.locked, asked.cache, byte_code=asked.compile))
