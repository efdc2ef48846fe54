"""Names of clusters and images."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.manifest.field_types import IMAGE
from tests.make import problems, problems_of


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("My Cluster", '"my-cluster"'),
        ("a.b", '"a-b"'),
        ("-a-", '"a"'),
        ("", '"my-cluster"'),
        ("Ü", '"u"'),
        ("demo\\n", '"demo"'),
        ("a" * 41, f'"{"a" * 40}"'),
        ("a" * 39 + "--b", f'"{"a" * 39}"'),
        ("../up", '"up"'),
        ("²", '"2"'),
    ],
)
def test_a_name_that_is_no_dns_label_gets_a_suggestion(
    name: str, hint: str, tmp_path: Path
) -> None:
    (problem,) = problems_of(f'format = 1\nname = "{name}"', tmp_path)
    assert problem.key_path == "name"
    assert "DNS label" in problem.rule
    assert f"`name = {hint}`" in problem.hint_text()
    assert not problems_of(f"format = 1\nname = {hint}", tmp_path)


@pytest.mark.parametrize(
    "image",
    ["trainer", "team/name:tag", "registry:5000/a/b", "a.example/b@sha256:" + "0" * 64, "a__b-c.d"],
)
def test_dockers_names_of_images_are_accepted(image: str) -> None:
    assert IMAGE.fullmatch(image)
    assert not problems(image=image)


@pytest.mark.parametrize("image", ["", "A", "a b", "a:", "a@sha256:1", "-a", "a//b", "a:b:c"])
def test_names_that_docker_does_not_accept_are_refused(image: str) -> None:
    assert [problem.key_path for problem in problems(image=image)] == ["image"]


def test_packages_are_not_added_to_a_users_image() -> None:
    assert [p.key_path for p in problems(image="mine:1", requirements="more.txt")] == [
        "requirements"
    ]
