"""The layouts of images that the classifier reads, as far as the names of folders show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cluster_kit.util.paths import is_directory, is_file

IMAGES = (".png", ".jpg", ".jpeg")


def fault(parts: Sequence[Sequence[str]], data: Path) -> str:
    """What a directory lacks to be images in class folders, divided into parts or not; "" if
    nothing, or if it cannot be read.

    Args:
        parts: the names that the folder of each part may have, whatever their case; Train's first.
    """
    try:
        folders = [path for path in data.iterdir() if path.name[0] != "." and is_directory(path)]
        names = {path.name.lower(): path.name for path in folders}
        train, *others = ([names[n.lower()] for n in part if n.lower() in names] for part in parts)
        if train:
            return ""
        for found in others:
            if found:
                return f"there is {found[0]}/, but no {parts[0][0]}/"
        with_images = [path.name for path in folders if _has_image(path)]
    except OSError:
        return ""
    if len(with_images) >= 2:
        return ""
    listed = f" ({with_images[0]}/)" if with_images else ""
    count = len(with_images)
    return (
        f"there {'is' if count == 1 else 'are'} {count} folder{'s' * (count != 1)} with .png or"
        f" .jpg files{listed}, and no {parts[0][0]}/"
    )


def _has_image(folder: Path) -> bool:
    return any(path.suffix.lower() in IMAGES and is_file(path) for path in folder.iterdir())
