"""Which variables hold secrets, by their names, and texts without the values."""

from __future__ import annotations

import pytest

from cluster_kit.util.masking import looks_secret, masked


@pytest.mark.parametrize(
    "name",
    ["WANDB_API_KEY", "HF_TOKEN", "token", "DB_PASSWORD", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY",
     "DB_PASS", "MY_PWD", "GITHUB_PAT", "client_secret", "SSH_PRIVATE_KEY", "APIKEY",
     "BASIC_AUTH", "AZURE_CREDENTIALS", "KEY2"],
)  # fmt: skip
def test_these_are_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["PATH", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "MAX_TOKENS",
     "AUTHOR", "COMPASS", "AWS_SHARED_CREDENTIALS_FILE", "SSH_KEY_PATH", "TF_CONFIG", "PATTERN"],
)  # fmt: skip
def test_these_are_not(name: str) -> None:
    assert not looks_secret(name)


def test_longer_values_go_first_and_short_or_plain_ones_stay() -> None:
    assert masked("ab-secret-x ab-secret", {"ab-secret", "ab-secret-x"}) == "*** ***"
    kept = "true 1234 abc None 12345678"
    assert masked(kept, {"true", "1234", "abc", "None", ""}) == kept
    assert masked(kept, {"12345678"}) == "true 1234 abc None ***"
