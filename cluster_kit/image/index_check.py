"""Asks pip's package index whether it has the packages of a requirements file, before a build.

Only a clear answer counts: the index has a page of pip, but none of a package (404). After any
other trouble the build decides. This file also runs as a process, which asks for all packages at
once and can be ended: `index_check.py NAME…` prints the names that the index does not have.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from urllib.parse import unquote, urlsplit, urlunsplit

URL, CA, PROXY = "CLUSTER_KIT_INDEX_URL", "CLUSTER_KIT_INDEX_CA", "CLUSTER_KIT_INDEX_PROXY"
"""The variables of the process: the index ("" for pip's default), a file of certificates, and pip's
proxy or ""."""
KNOWN = "pip"
"""A package that every complete index has."""
MOST = 60
"""Maximum number of packages to ask for."""
ANSWER_S = 3.0
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^]]*\])?\s*([<>=!~].*)?")
_CONF = re.compile(r"^([\w-]+) = (.*)$", re.MULTILINE)
_OTHER_INDEX = ("extra-index-url", "find-links", "index-url", "no-index")


def names_in(requirements: str) -> dict[str, int]:
    """The packages that the index must have, each with the number of its line, from 0.

    Lines with a marker (`;`) or an address are left out, and all if a line names another source.
    """
    lines = requirements.splitlines()
    if any(line.startswith("-") and any(o in line for o in _OTHER_INDEX) for line in lines):
        return {}
    names = ((_NAME.fullmatch(line.strip()), number) for number, line in enumerate(lines))
    return {match[1]: number for match, number in names if match}


def settings(conf: str) -> dict[str, str] | None:
    """The variables for the process from pip's configuration; None if there are several sources."""
    values = dict(_CONF.findall(conf))
    if "extra-index-url" in values or "find-links" in values:
        return None
    return {URL: values.get("index-url", ""), PROXY: values.get("proxy", "")}


def missing(names: Sequence[str], status: Callable[[str], int]) -> list[str]:
    """The names that the index certainly does not have.

    Args:
        status: the HTTP status of a package's page, 0 if there is no answer.
    """
    statuses: dict[str, int] = {}

    def ask(name: str) -> None:
        statuses[name] = status(name)

    asking = [threading.Thread(target=ask, args=[name], daemon=True) for name in (KNOWN, *names)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    if statuses[KNOWN] != HTTPStatus.OK:
        return []
    return [name for name in names if statuses[name] == HTTPStatus.NOT_FOUND]


def page_of(index: str, name: str) -> tuple[str, dict[str, str]]:
    """The address of a package's page, and the headers with the user that the index's names."""
    parts = urlsplit(index.rstrip("/") + "/" + re.sub(r"[-_.]+", "-", name).lower() + "/")
    user, _, host = parts.netloc.rpartition("@")
    headers = {"Accept": "text/html, application/vnd.pypi.simple.v1+json;q=0.5"}
    if user:
        coded = base64.b64encode(unquote(user).encode()).decode()
        headers["Authorization"] = f"Basic {coded}"
    return urlunsplit(parts._replace(netloc=host)), headers


def status_of(index: str, ca: str, proxy: str) -> Callable[[str], int]:
    """A function that returns the HTTP status of a package's page, 0 if there is no answer."""
    context = ssl.create_default_context(cafile=ca or None)
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if proxy:
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    opener = urllib.request.build_opener(*handlers)

    def status(name: str) -> int:
        address, headers = page_of(index, name)
        try:
            request = urllib.request.Request(address, headers=headers)
            with opener.open(request, timeout=ANSWER_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, ValueError):
            return 0

    return status


def main(names: Sequence[str]) -> None:
    """Print the names that the index does not have, one in a line."""
    index = os.environ.get(URL) or default_index()
    if not index:
        return
    status = status_of(index, os.environ.get(CA, ""), os.environ.get(PROXY, ""))
    for name in missing(names, status):
        print(name)


def default_index() -> str:
    """The index of a pip without configuration; "" if this Python has no such pip."""
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        return ""
    return str(PyPI.simple_url)


def advice(name: str, others: Sequence[str]) -> str:
    """What to write in place of a package that does not exist.

    Args:
        others: the other packages of the file.
    """
    from difflib import get_close_matches

    from cluster_kit.programs.packages import KNOWN_PACKAGES, package_of

    known = {one.lower(): one for one in (*others, *KNOWN_PACKAGES) if one != name}
    near = package_of(name) or next(
        (known[match] for match in get_close_matches(name.lower(), known, 1)), ""
    )
    return f"did you mean {near}?" if near else "fix the name, or remove the line"


def unknown(numbers: dict[str, int], names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields the line's number and what to write for each package that the index does not have."""
    for name in names:
        if name in numbers:
            yield numbers[name], advice(name, [one for one in numbers if one not in names])


if __name__ == "__main__":
    main(sys.argv[1:])
