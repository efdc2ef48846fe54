"""Which variables hold secrets, by their names, and masking of the values in texts."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.util.masking import (
    LEFT_OUT,
    looks_secret,
    looks_secret_file,
    masked,
    masked_facts,
    masker,
    option_values,
    url_passwords,
    without_option_values,
    without_url_passwords,
)
from cluster_kit.util.terminal import harmless
from cluster_kit.util.toml_text import to_toml

PLAIN = ("true", "false", "none", "null", "auto", "basic", "default", "disabled")
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n  hkiG9w0BAQEFAASC==\n-----END KEY-----\n"
ACCOUNT = json.dumps({"type": "service", "private_key": PEM, "id": "k3y"}, indent=1)
PIECES = st.text(st.sampled_from("abAB01.*+?()[]{}|^$\\'\"/= \t\n\r\u2028é"), max_size=12)
LINES = st.lists(PIECES, max_size=4).map("\n".join)
VALUES = st.one_of(PIECES, LINES, st.sampled_from([PEM, ACCOUNT]))


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def telling(value: str) -> set[str]:
    """Returns the parts of a value that no text may have: the whole, and its lines if they are long
    enough."""
    found = {value} | {line.strip() for line in value.splitlines() if len(line.strip()) >= 6}
    return {
        one
        for one in found
        if len(one.strip(" \t\r\n*")) >= 4
        and one.strip().lower() not in PLAIN
        and not (is_number(one) and sum(map(str.isdigit, one)) < 8)
    }


@pytest.mark.parametrize(
    "name",
    ["WANDB_API_KEY", "HF_TOKEN", "token", "DB_PASSWORD", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY",
     "DB_PASS", "MY_PWD", "GITHUB_PAT", "client_secret", "SSH_PRIVATE_KEY", "APIKEY",
     "BASIC_AUTH", "AZURE_CREDENTIALS", "KEY2", "accessToken", "privateKey", "hfToken2", "NPMTOKEN",
     "SSHPASS", "SLACK_WEBHOOK_URL", "SESSION_COOKIE", "AZURE_STORAGE_CONNECTION_STRING"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["PATH", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "MAX_TOKENS",
     "AUTHOR", "COMPASS", "AWS_SHARED_CREDENTIALS_FILE", "SSH_KEY_PATH", "TF_CONFIG", "PATTERN",
     "keyPath", "maxTokens", "BYPASS", "hotKeys"],
)  # fmt: skip
def test_other_names(name: str) -> None:
    assert not looks_secret(name)


def test_longer_values_are_masked_first_and_short_or_plain_ones_stay() -> None:
    assert masked("ab-secret-x ab-secret", {"ab-secret", "ab-secret-x"}) == "*** ***"
    kept = "true 1234 abc None 12345678"
    assert masked(kept, {"true", "1234", "abc", "None", ""}) == kept
    assert masked(kept, {"12345678"}) == "true 1234 abc None ***"
    numbers = "lr=0.005 -0.25 1e-4 1.5e-10 .125"
    assert masked(numbers, set(numbers.removeprefix("lr=").split())) == numbers
    assert masked("0.1234567 1.5e-1000 5e-4x", {"0.1234567", "1.5e-1000", "5e-4x"}) == "*** *** ***"


@st.composite
def values_and_text(draw: st.DrawFn) -> tuple[list[str], str]:
    """Draw values, of which some overlap, and a text with them, parts of them and other texts."""
    values = draw(st.lists(VALUES, min_size=1, max_size=4))
    cut = draw(st.integers(0, 6))
    values += [value[cut:] + draw(PIECES) for value in values[:2]]
    parts = [*values, *(line for value in values for line in value.splitlines())]
    known = st.sampled_from([*parts, *map(json.dumps, values), *map(repr, values), "***"])
    return values, "".join(draw(st.lists(st.one_of(known, PIECES), max_size=12)))


@given(values_and_text())
def test_no_value_and_no_long_part_of_it_stays(drawn: tuple[list[str], str]) -> None:
    values, text = drawn
    whole, lines = masked(text, values), [masked(line, values) for line in text.split("\n")]
    for value in values:
        for part in telling(value):
            assert part not in whole
            assert not any(part in line for line in lines)
    assert masked(whole, values) == whole


@given(values_and_text())
def test_text_that_is_no_part_of_a_value_stays(drawn: tuple[list[str], str]) -> None:
    values, text = drawn
    strange = "".join(chr(0x4E00 + ord(character) % 512) for character in text)
    assert masked(strange, values) == strange
    facts = {"a": [strange, 1, None, {"b": text}]}
    assert masked_facts(facts, masker(values))["a"][0] == strange


@pytest.mark.parametrize("shown", [PEM, repr(PEM), json.dumps(PEM), json.dumps({"k": ACCOUNT})])
def test_a_value_of_several_lines_is_masked_however_it_is_written(shown: str) -> None:
    text = masked(f"key: {shown}", {PEM, ACCOUNT})
    assert not any(part in text for part in ("MIIE", "hkiG", "BEGIN", "private"))


@pytest.mark.parametrize(
    "value", ["\u041f\u0430\u0440ol77", "geheimß1é", "schlüssel-\U0001f511", "秘密の鍵です"]
)
@pytest.mark.parametrize("written", [str, json.dumps, repr, ascii])
def test_letters_of_any_script_are_masked_however_they_are_written(
    value: str, written: Callable[[str], str]
) -> None:
    assert masked(f"v={written(value)}", {value}).strip("'\"") in ("v=***", "v='***", 'v="***')


def test_overlapping_values_are_masked_as_one() -> None:
    assert masked("<abcdefghi>", {"abcdef", "defghi"}) == "<***>"
    assert masked("kept <x***y***z> kept", {"a1b2", "x***y"}) == "kept <******z> kept"
    assert masked("kept wxyz***a1b2 ab", {"a1b2", "wxyz******"}) == "***"


@pytest.mark.parametrize("value", ["correct horse battery", "abcabcabd", PEM, 'pass"word"77\u0416'])
def test_the_beginning_of_a_value_is_masked_at_the_end_of_a_truncated_text(value: str) -> None:
    mask = masker({value, "xyz***", "d1e2f3"})
    for written in (value, json.dumps(value)[1:-1]):
        for length in range(4, len(written)):
            shown = mask(f"kept {written[:length]}{LEFT_OUT}")
            assert shown.startswith("kept ***") and shown.endswith(LEFT_OUT)
            assert written[:4] not in shown
    assert mask(f"kept corr{LEFT_OUT} kept") == f"kept corr{LEFT_OUT} kept", "no end"
    assert masked(f"abcdefg{LEFT_OUT}", {"abcdef", "defghi"}) == f"***{LEFT_OUT}"
    assert masked(f"kept{LEFT_OUT}", {"abcdef", "xkept"}) == f"kept{LEFT_OUT}"


@pytest.mark.parametrize(
    "between", ["\x1b[1m", "\x1b[0m\x1b[36m", "\u200b", "\x00", "\u202e", "\u3164"]
)
def test_a_value_is_masked_even_if_control_sequences_divide_it(between: str) -> None:
    text = f"\x1b[1mtoken: tok_{between}0123456789\x1b[0m in use"
    assert masked(text, ["tok_0123456789"]) == "token: *** in use"
    other = f"\x1b[1mno{between}thing\x1b[0m"
    assert masked(other, ["tok_0123456789"]) == other


def test_masking_takes_time_linear_in_the_text() -> None:
    def seconds(count: int) -> float:
        text = ("aaaa-aaab " + "a" * 90) * count
        began = time.thread_time()
        masked(text, {"a" * 80 + "b", "a" * 40 + "c", PEM, "aaab"})
        return time.thread_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (20_000, 200_000))
    assert many < 40 * few, "ten times the text"


def test_options_with_secrets_are_found_and_masked() -> None:
    given_ = ("--api-token", "abc", "--token=x=y", "--n", "3", "--key", "-x", "file", "--auth")
    assert option_values(given_) == {"abc", "x=y"}
    shown = without_option_values(given_)
    assert shown == ("--api-token", "***", "--token=***", *given_[3:])
    assert option_values(shown) == set() and without_option_values(shown) == shown


def test_values_are_masked_in_the_notation_of_other_languages() -> None:
    assert masked(r'{"key": "ab\/cd+ef=="}', {"ab/cd+ef=="}) == '{"key": "***"}'
    assert masked(r"key: 'it\'s\"7k'", {"it's\"7k"}) == "key: '***'"


ODD = ["it's7k", 'a"b\\c7', "t\x7f\u200bk7zz", "a  b\tc7", "k\x1b[0m7zz", "ü\u20287zz", "a<b>&c7"]
"""Values with several notations."""


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "written",
    [
        lambda value: json.dumps(json.dumps(value)),
        lambda value: repr(f"x'{value}\""),
        lambda value: repr(value.encode()),
        lambda value: repr(ValueError(repr(value))),
        lambda value: repr({"problem": f"no such key: {value!r}"}),
        lambda value: "'" + value.replace("'", "''") + "'",
        lambda value: escape(value, quote=False),
        lambda value: f"{harmless(value)} |",
        lambda value: " ".join(harmless(value).split()),
        to_toml,
        escape,
        shlex.quote,
    ],
)
def test_special_values_are_masked_however_they_are_written(
    value: str, written: Callable[[str], str]
) -> None:
    assert "7" not in masked(f"v={written(value)}", {value})


@pytest.mark.parametrize(
    ("text", "passwords", "shown"),
    [
        ("--db=postgres://me:pa55@db:5/x", {"pa55"}, "--db=postgres://me:***@db:5/x"),
        ("https://u:p@ss%20w@host/", {"p@ss%20w", "p@ss w"}, "https://u:***@host/"),
        ("git+https://ghp_0123456789abcdef@github.com/a", {"ghp_0123456789abcdef"},
         "git+https://***@github.com/a"),
        ("https://ghp_0123456789abcdef:x-oauth@h", {"ghp_0123456789abcdef", "x-oauth"},
         "https://***:***@h"),
        ("git+ssh://git@github.com/a, https://host/a@b, https://h?a=b:c@d", set(), None),
        ("https://u:${TOKEN}@h http://u:***@h https://u:@h https://oauth2@h", set(), None),
    ],
)  # fmt: skip
def test_passwords_in_addresses(text: str, passwords: set[str], shown: str | None) -> None:
    assert url_passwords(text) == passwords
    assert without_url_passwords(text) == (shown or text)
    assert url_passwords(without_url_passwords(text)) == set()


def test_names_of_files_that_look_like_secrets() -> None:
    secret = [".env", ".env.local", "a.env", "Key.PEM", "id_rsa", "x.p12", "credentials.json",
              ".netrc", "secrets.yaml", "token.txt", "kubeconfig"]  # fmt: skip
    plain = ["train.py", "credentials.py", "id_rsa.pub", "tokenizer.json", "environment.yaml",
             "keys.csv", "tokens.txt"]  # fmt: skip
    assert [name for name in secret + plain if looks_secret_file(name)] == secret
