"""Which requests are accepted: by token, by host name, by method."""

from __future__ import annotations

import pytest

from cluster_kit.serve.server import Refused, Request, is_loopback, refuse

TOKEN = "the-token"
OWN = {"host": "127.0.0.1:8000"}


def asked(
    method: str = "GET", query: str = "", bearer: str = "", host: str = "127.0.0.1:8000"
) -> Request:
    headers = {"host": host} | ({"authorization": bearer} if bearer else {})
    return Request(method, "/", {"token": query} if query else {}, headers)


@pytest.mark.parametrize(
    "request_",
    [
        asked(query=TOKEN),
        asked(bearer=f"Bearer {TOKEN}"),
        asked("HEAD", bearer=f"bearer  {TOKEN} "),
        asked("POST", bearer=f"Bearer {TOKEN}"),
        asked(query=TOKEN, host="localhost"),
        asked(query=TOKEN, host="LOCALHOST:1"),
        asked(query=TOKEN, host="[::1]:9"),
        asked(query=TOKEN, host="127.0.0.2"),
    ],
)
def test_requests_with_the_token_are_accepted(request_: Request) -> None:
    refuse(request_, TOKEN, "127.0.0.1")


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (asked(), "that in the URL is missing"),
        (asked(query="another"), "that in the URL is another one"),
        (asked(query="ünïcode"), "another one"),
        (asked(bearer="Bearer another"), "takes a token"),
        (asked(bearer=f"Basic {TOKEN}"), "takes a token"),
        (asked("POST", query=TOKEN), "`Authorization: Bearer TOKEN`"),
        (asked("DELETE", query=TOKEN), "DELETE takes the token"),
        (asked(query=TOKEN, host="evil.example:8000"), "Host: evil.example:8000` is not"),
        (asked(query=TOKEN, host="192.168.1.7"), "is not an address of this server"),
        (asked(query=TOKEN, host="127.0.0.1.evil.example"), "is not an address of this server"),
        (asked(query=TOKEN, host="[::1].evil.example:8000"), "is not an address of this server"),
        (asked(query=TOKEN, host=""), "is not an address of this server"),
        (asked("POST", bearer=f"Bearer {TOKEN}", host="evil.example"), "is not an address"),
    ],
)
def test_other_requests_are_refused_with_the_reason(request_: Request, says: str) -> None:
    with pytest.raises(Refused) as refused:
        refuse(request_, TOKEN, "127.0.0.1")
    assert refused.value.status == 403 and says in refused.value.sentence


def test_a_server_for_other_machines_accepts_any_address_but_not_any_name() -> None:
    refuse(asked(query=TOKEN, host="192.168.1.7:8000"), TOKEN, "0.0.0.0")
    refuse(asked(query=TOKEN, host="build-3.lan:8000"), TOKEN, "build-3.lan")
    refuse(asked(query=TOKEN, host="Mine:8000"), TOKEN, "0.0.0.0", "mine")
    for host, address in (("evil.example", "0.0.0.0"), ("mine", "127.0.0.1")):
        with pytest.raises(Refused):
            refuse(asked(query=TOKEN, host=host), TOKEN, address, "mine")


def test_which_addresses_only_this_machine_can_reach() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost", "127.9.9.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.7", "build-3.lan", "::")))
