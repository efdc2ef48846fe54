"""Prints what an image contains, as one line of JSON: look.py [MODULE…] [/DIRECTORY…]

It is written for any Python 3, so that it also runs on one that is too old.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-rocm")


def main(needs, output="/output"):
    """Print the versions of Python and TensorFlow, what is missing, and why the output cannot be
    written."""
    folder = folder_of("tensorflow")
    facts = {
        "python": list(sys.version_info[:3]),
        "tensorflow": version() if folder else None,
        "native": all(Path(folder, name).exists() for name in LIBRARIES),
        "lacks": [name for name in needs if not there(name)],
        "output": refusal(output),
    }
    print(json.dumps(facts))


def there(name):
    """Whether there is a module of this name, or a directory if it begins with a slash."""
    return Path(name).is_dir() if name.startswith("/") else bool(folder_of(name))


def folder_of(module):
    """The folder of a package, "" if it is not installed."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ""
    return str(Path(spec.origin or "").parent) if spec else ""


def version():
    """TensorFlow's version by its package's metadata, "" if it has none."""
    try:
        from importlib import metadata
    except ImportError:
        return ""
    for name in DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return ""


def refusal(output):
    """Why this user cannot write there, "" if it can."""
    probe = Path(output, ".cluster-kit-probe-" + str(os.getpid()))
    try:
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


if __name__ == "__main__":
    main(sys.argv[1:])
