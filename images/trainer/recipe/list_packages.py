"""What is in this image? Prints one JSON line for each package: its kind, name, version, licence.

Run inside a container by `cluster-kit image sbom`. Python packages say what they are under in their
metadata, Debian's in the copyright file that each of them has.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

STATUS = Path("/var/lib/dpkg/status")
DOCUMENTS = Path("/usr/share/doc")
CLASSIFIER = "License :: OSI Approved :: "
MOST_WORDS = 6
"""Of a licence's name; more of them are the beginning of its text."""
KNOWN = re.compile(
    r"(Apache|MIT|BSD [23]-Clause|Mozilla Public|GNU \S* ?General Public) License", re.I
)
LONGEST = 80
"""Characters: some packages have the whole text where its name belongs."""


def main() -> None:
    print(line("python", "python", platform.python_version(), "PSF-2.0"))
    for distribution in sorted(metadata.distributions(), key=lambda d: d.metadata["Name"].lower()):
        licence = licence_of(distribution.metadata) or by_its_file(distribution)
        print(line("pypi", distribution.metadata["Name"], distribution.version, licence))
    if STATUS.exists():
        for name, version, licence in debian(STATUS.read_text(), DOCUMENTS):
            print(line("deb", name, version, licence, system()))


def line(kind: str, name: str, version: str, licence: str, system: str = "") -> str:
    fields = {"kind": kind, "name": name, "version": version, "licence": licence}
    return json.dumps({**fields, "system": system})


def system() -> str:
    """The base's system: `debian` or `ubuntu`."""
    try:
        return platform.freedesktop_os_release().get("ID", "debian")
    except OSError:
        return "debian"


def by_its_file(package: metadata.Distribution) -> str:
    """The name of a licence by the first line of the package's own file of it, "" without one."""
    for file in package.files or []:
        if re.match(r"(LICEN[CS]E|COPYING)", file.name, re.IGNORECASE):
            text = Path(str(file.locate())).read_text(errors="replace")
            return known[0] if (known := KNOWN.search(text)) else by_its_text(text)
    return ""


def licence_of(fields: metadata.PackageMetadata) -> str:
    """An SPDX expression or a name; "" if the metadata has none."""
    listed = [c.removeprefix(CLASSIFIER) for c in fields.get_all("Classifier") or []
              if c.startswith(CLASSIFIER)]  # fmt: skip
    named = (fields.get("License") or "").strip()
    if expression := fields.get("License-Expression"):
        return expression
    short = named if len(named) <= LONGEST and "\n" not in named and named != "UNKNOWN" else ""
    return short or " AND ".join(listed) or by_its_text(named)


def by_its_text(text: str) -> str:
    """The name of a licence by the first line of its text, "" if there is none."""
    return text.strip().partition("\n")[0].strip()[:LONGEST]


def debian(status: str, documents: Path) -> Iterator[tuple[str, str, str]]:
    """(name, version, licence) of each installed package, by dpkg's list."""
    stanzas = [dict(fields(text)) for text in status.split("\n\n") if text.strip()]
    installed = [s for s in stanzas if s.get("Status", "").endswith(" installed")]
    by_source: dict[str, str] = {}
    for stanza in installed:
        if licence := copyright_of(stanza["Package"], documents):
            by_source.setdefault(source(stanza), licence)
    for stanza in installed:
        licence = copyright_of(stanza["Package"], documents) or by_source.get(source(stanza), "")
        yield stanza["Package"], stanza["Version"], licence


def fields(stanza: str) -> Iterator[tuple[str, str]]:
    for text in stanza.splitlines():
        name, colon, value = text.partition(": ")
        if colon and not name.startswith(" "):
            yield name, value.strip()


def source(stanza: dict[str, str]) -> str:
    """Packages of one source have one copyright file, and links to it, which a base may lack."""
    return stanza.get("Source", stanza["Package"]).partition(" ")[0]


def copyright_of(package: str, documents: Path) -> str:
    """The licences that a copyright file names, "" if there is no file."""
    try:
        text = (documents / package / "copyright").read_text(errors="replace")
    except OSError:
        return ""
    licenses = (name.strip() for name in re.findall(r"^License: *(\S.*)$", text, re.MULTILINE))
    short = (name for name in licenses if len(name.split()) <= MOST_WORDS)
    names = dict.fromkeys(f"({n})" if re.search(r" (or|and) ", n) else n for n in short)
    common = dict.fromkeys(
        re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text)
    )
    if names:
        return " AND ".join(names)
    listed = " AND ".join(common)
    return f"{listed}, see {documents / package}/copyright".removeprefix(", ")


if __name__ == "__main__":
    main()
