"""The image's sample set of detection, for tests that change it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster_kit.image.kit_image import image_tag


def copy_of_the_scenes(folder: Path) -> Path:
    """The sample set as files of this user's."""
    data = folder / "scenes"
    data.mkdir()
    subprocess.run(
        [
            *("docker", "run", "--rm", "--user", f"{os.getuid()}:{os.getgid()}"),
            *("--volume", f"{data}:/copy", "--entrypoint", "cp", image_tag("cpu")),
            *("-r", "/opt/datasets/digit-scenes/.", "/copy"),
        ],
        check=True,
        timeout=60,
    )
    return data
