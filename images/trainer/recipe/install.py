"""Build time: install locked packages, by uv if it can be had, else by pip.

    install.py VENV LOCKED CACHE

LOCKED has hashes: a file with another hash is refused, wherever it comes from. uv takes a third of
pip's time for TensorFlow (8 s of CPU instead of 21 s), and is not part of the image. Index, proxy
and certificate are those of the pip.conf that PIP_CONFIG_FILE names; uv does not read it by itself.
"""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

UV_LOCK = Path(__file__).with_name("locked-uv.txt")


def main(venv: Path, locked: Path, cache: Path) -> int:
    """Returns 0, or pip's exit code if neither could install the packages."""
    python, tool = venv / "bin" / "python", UV_LOCK.with_name("uv")
    pip = (
        *(str(python), "-m", "pip", f"--cache-dir={cache / 'pip'}", "install"),
        *("--disable-pip-version-check", "--no-compile", "--progress-bar=off"),
        *("--no-deps", "--require-hashes"),
    )
    got = subprocess.run(
        (*pip, "--quiet", f"--target={tool}", f"--requirement={UV_LOCK}"), check=False
    )
    if got.returncode == 0 and _uv(tool / "bin" / "uv", python, locked, cache / "uv") == 0:
        return 0
    print("uv did not install the packages: pip tries", file=sys.stderr)
    return subprocess.run((*pip, f"--requirement={locked}"), check=False).returncode


def _uv(uv: Path, python: Path, locked: Path, cache: Path) -> int:
    command = (
        *(str(uv), "pip", "install", "--quiet", "--no-config", f"--python={python}"),
        *("--link-mode=copy", "--index-strategy=unsafe-best-match"),
        *(f"--cache-dir={cache}", "--no-deps", "--require-hashes", f"--requirement={locked}"),
    )
    try:
        return subprocess.run(command, env=environment(dict(os.environ)), check=False).returncode
    except OSError:
        return 1


def environment(given: dict[str, str]) -> dict[str, str]:
    """The variables `given`, and those of uv that say what pip's configuration file says.

    `given` overrides the file, as pip's own variables do for pip.
    """
    conf = configparser.RawConfigParser()
    conf.read(given.get("PIP_CONFIG_FILE", os.devnull))
    settings = dict(conf["global"]) if conf.has_section("global") else {}
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
    if "UV_FIND_LINKS" in said:
        said["UV_FIND_LINKS"] = ",".join(said["UV_FIND_LINKS"].split())
    return {**said, **given}


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
