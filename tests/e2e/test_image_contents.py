"""The contents of the image with licences; and a GPU check that fails if there is no GPU."""

from __future__ import annotations

import json
import subprocess

from cluster_kit.image.kit_image import image_tag
from cluster_kit.image.sbom import packages_of
from cluster_kit.this_host import this_host
from tests.kit import Kit

NO_GPU = "TensorFlow sees no GPU in this container"


def test_every_package_of_the_image_has_a_version_and_a_licence(kit: Kit) -> None:
    packages = packages_of(this_host(), image_tag("cpu"))
    names = {kind: {p.name for p in packages if p.kind == kind} for kind in ("pypi", "deb")}
    assert {"tensorflow_cpu", "tf_keras", "numpy"} <= {n.replace("-", "_") for n in names["pypi"]}
    assert {"libc6", "libstdc++6"} <= names["deb"]
    assert [p.name for p in packages if not (p.version and p.licence)] == []
    done = kit.run("image", "sbom")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["components"]) == len(packages)


def test_the_check_on_a_gpu_fails_in_a_container_without_one() -> None:
    run = ("docker", "run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp:mode=1777")
    check = ("--entrypoint=python3", image_tag("cpu"), "/opt/trainer/check_image.py", "--gpu")
    done = subprocess.run([*run, *check], capture_output=True, text=True, timeout=180)
    lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 1
    assert not lines["training step on a GPU"]["ok"]
    assert NO_GPU in lines["training step on a GPU"]["detail"]
    assert all(line["ok"] for name, line in lines.items() if name != "training step on a GPU")
