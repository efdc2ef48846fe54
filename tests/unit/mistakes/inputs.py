"""Image, program, data and environment."""

from __future__ import annotations

MISTAKES = {
    "digits for detection": (
        'program = "detection"', "data", '"digits"', "cannot read", '`data = "digit-scenes"`'
    ),
    "scenes for the classifier": (
        'data = "digit-scenes"', "data", '"digit-scenes"', "cannot read", '`data = "digits"`'
    ),
    "TensorFlow 1 and a built-in program": (
        "tf1 = true", "tf1", "true", "written for TensorFlow 2", "`tf1 = false`"
    ),
    "TensorFlow 1 as text": ('tf1 = "yes"', "tf1", '"yes"', "valid boolean", "tf1"),
    "no image": ('image = ""', "image", '""', "not a valid name of an image", "registry:5000"),
    "image in capitals": (
        'image = "My Image"', "image", '"My Image"', "not a valid name of an image", "trainer"
    ),
    "missing program": (
        'program = "train.py"', "program", '"train.py"', "nor a file at", "fix the path"
    ),
    "no program": ('program = ""', "program", '""', "nor a file", "fix the path"),
    "missing data": ('data = "images"', "data", '"images"', "nor a directory at", "--data DIR"),
    "no data": ('data = ""', "data", '""', "it is empty", "leave the key out"),
    "data without class folders": (
        'data = "."', "data", '"."', "there are 0 folders with .png or .jpg files", "--data DIR"
    ),
    "user nobody has": ('data = "~no-such-user/x"', "data", '"~no-such-user/x"', "nor a", "fix"),
    "the kit's own variable": (
        '[role.worker.environment]\nTF_CONFIG = "{}"',
        "role.worker.environment.TF_CONFIG", "", "the kit sets this variable", "remove it",
    ),
    "the kit's own prefix": (
        '[task.ps-0.environment]\nCLUSTER_KIT_TASK = "x"',
        "task.ps-0.environment.CLUSTER_KIT_TASK", "", "the kit sets this variable", "remove it",
    ),
    "GPU choice by environment": (
        '[role.ps.environment]\nNVIDIA_VISIBLE_DEVICES = "all"',
        "role.ps.environment.NVIDIA_VISIBLE_DEVICES", "", "the kit sets this variable", "remove it",
    ),
    "variable with a dash": (
        '[role.ps.environment]\nA-B = "x"',
        "role.ps.environment.A-B", "", "not a valid name of an environment", "letters",
    ),
}  # fmt: skip
