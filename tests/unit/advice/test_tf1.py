"""Code for TensorFlow 1 is reported before the start, and so are parts that no longer exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.advice.of_program import advise
from tests.make import ROOT, manifest
from tests.unit.advised import fitted, hints

PERIOD = sorted((ROOT / "tests" / "trainer" / "period").glob("*.py"))
ARGS = ["--job_name={{ role }}", "--type={{ role }}", "--task={{ index }}"]
KEYS = {"style": "all-tasks", "chief": 0, "args": ARGS}


@pytest.mark.parametrize("path", PERIOD, ids=lambda path: path.stem)
def test_a_program_for_tensorflow_1_gets_the_key_once(path: Path) -> None:
    (hint,) = advise(path, manifest(program=str(path), **KEYS))
    assert hint.location.startswith(f"{path.name}:")
    assert "TensorFlow 2, which does not have them" in hint.rule
    assert "`tf1 = true`" in hint.fix
    assert not advise(path, manifest(program=str(path), tf1=True, **KEYS))


@pytest.mark.parametrize(
    ("text", "location", "names"),
    [
        ("x = 1\nx = tf.placeholder(tf.float32)", 3, "`tf.placeholder`: code"),
        ("tf.app.run()", 2, "`tf.app.run`"),
        ("tf.contrib.slim.conv2d(x)", 2, "`tf.contrib.slim`"),
        ("from tensorflow.contrib import slim", 2, "`tf.contrib.slim`"),
        ("import tensorflow.contrib.layers as layers", 2, "`tf.contrib.layers`"),
        ("from tensorflow.examples.tutorials.mnist import input_data", 2, "`tf.examples`"),
        ("sv = tf.train.Supervisor()", 2, "`tf.train.Supervisor`"),
        ("flags = tf.flags\nflags.FLAGS", 2, "`tf.flags`"),
        ("s = tf.Session\nwith tf.train.MonitoredTrainingSession():\n"
         "  tf.layers.dense(x); tf.log(1)", 2,
         "`tf.train.MonitoredTrainingSession`, `tf.layers.dense` and 1 more"),
    ],
)  # fmt: skip
def test_obviously_old_code_is_named(text: str, location: int, names: str, tmp_path: Path) -> None:
    (hint,) = hints(f"import tensorflow as tf\n{text}\n", tmp_path, **KEYS)
    assert hint.location == f"train.py:{location}"
    assert names in hint.what


def test_a_module_beside_the_program_is_read_as_well(tmp_path: Path) -> None:
    files = {"train.py": "import model\n", "model.py": "import tensorflow as tf\ntf.get_variable"}
    (hint,) = hints(files, tmp_path, **KEYS)
    assert hint.location == "model.py:2"


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\ntf.placeholder",
        "from tensorflow.compat import v1 as tf\ntf.placeholder",
        "from tensorflow.compat.v1 import placeholder, app\napp.run()",
        "import tensorflow as tf\ntf = tf.compat.v1\ntf.placeholder(tf.float32)",
        "import tensorflow as tf\ntf.compat.v1.Session()\nif old:\n    tf.Session()",
        "import tensorflow as tf\nif tf.__version__[0] == '1':\n    tf.Session()",
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n"
        "    import tensorflow as tf\ntf.placeholder",
        "import tensorflow as tf\ntry:\n    tf.Session()\nexcept AttributeError:\n    pass",
        "try:\n    from tensorflow.contrib import slim\nexcept ImportError:\n"
        "    import tf_slim as slim",
        "import tensorflow as tf\ntf.function\ntf.keras.layers.Dense(1)\ntf.train.Checkpoint()",
        "import other as tf\ntf.placeholder\ntf.contrib.slim",
        "import tensorflow as tf\nimport numpy as np\nnp.log(1)\nself.placeholder",
        "def f(tf):\n    return tf.Session()",
    ],
)
def test_uncertain_cases_are_accepted(text: str, tmp_path: Path) -> None:
    assert not hints(text, tmp_path, **KEYS)


@pytest.mark.parametrize(("version", "count"), [("", 1), ("2.16", 1), ("2.15", 0), ("2.15.1", 0)])
def test_estimators_exist_in_the_last_version_that_had_them(
    version: str, count: int, tmp_path: Path
) -> None:
    text = "import tensorflow as tf\ntf.estimator.Estimator(f)\n"
    found = hints(text, tmp_path, tf1=True, tensorflow=version, **KEYS)
    assert len(found) == count
    assert all('write `tensorflow = "2.15"`' in hint.fix for hint in found)


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("tf.contrib.seq2seq.BasicDecoder", "`tf.contrib.seq2seq`", "tensorflow_addons/seq2seq"),
        ("from tensorflow.contrib import learn", "`tf.contrib.learn`", "MonitoredTrainingSession"),
        ("import tensorflow.contrib.crf.python.ops.crf", "`tf.contrib.crf`", "text/crf.py"),
        ("tf.contrib.layers.embed_sequence(x)", "`tf.contrib.layers.embed_sequence`", "lookup"),
        ("tf.estimator.Estimator(f)", "`tf.estimator`", "MonitoredTrainingSession"),
        ("tf.train.SummaryWriter('x')", "`tf.train.SummaryWriter`", "tf.summary.FileWriter"),
        ("tf.mul(a, b)\ntf.mul(b, c)", "`tf.mul`", "tf.multiply"),
    ],
)
def test_with_the_key_removed_parts_are_reported(
    text: str, what: str, fix: str, tmp_path: Path
) -> None:
    (hint,) = hints(f"import tensorflow as tf\n{text}\n", tmp_path, tf1=True, **KEYS)
    assert (hint.location, hint.what) == ("train.py:2", what)
    assert fix in hint.fix


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import tensorflow as tf\ntf.estimator.Estimator(f)\n", "tf.estimator"),
        ("import tensorflow.compat.v1 as tf\ntf.estimator.RunConfig()\n", "tf.compat.v1.estimator"),
        ("import os\nfrom tensorflow import estimator\n", "tf.estimator"),
        (
            "import tensorflow as tf\ntf.keras.estimator.model_to_estimator(m)\n",
            "tf.keras.estimator",
        ),
    ],
)
def test_estimators_are_reported_if_tensorflow_has_none(
    text: str, name: str, tmp_path: Path
) -> None:
    (hint,) = hints(text, tmp_path, **KEYS)
    assert (hint.location, hint.what) == ("train.py:2", f"`{name}`")
    assert hint.rule == "TensorFlow 2.21.0 has no Estimators: the last version with them is 2.15"
    assert 'write `tensorflow = "2.15"`' in hint.fix
    assert len(hints(text, tmp_path, tensorflow="2.16", **KEYS)) == 1
    assert len(hints(text, tmp_path, tf1=True, **KEYS)) == 1, "once, with the key as well"
    for other in ({"tensorflow": "2.15.1"}, {"image": "mine:1"}, {"tensorflow": "nightly"}):
        assert not hints(text, tmp_path, **KEYS, **other)


USED = "tf.estimator.Estimator(f)\n"
IN_MAIN = "import tensorflow as tf\ndef main():\n    tf.estimator.Estimator(f)\n"
START = "if __name__ == '__main__':\n    main()\n"


@pytest.mark.parametrize(
    ("text", "location"),
    [
        (f"import tensorflow as tf\n{USED}", "train.py:2"),
        ("import tensorflow.compat.v1 as tf\nx = 1 + tf.estimator.RunConfig().n\n", "train.py:2"),
        ("from tensorflow import estimator\n", "train.py:1"),
        ("import tensorflow.estimator as e\n", "train.py:1"),
        ("from tensorflow.python.estimator import run_config\n", "train.py:1"),
        (
            "import tensorflow as tf\nclass Hook(tf.estimator.SessionRunHook):\n    pass\n",
            "train.py:2",
        ),
        ("import tensorflow as tf\nwith tf.Graph().as_default():\n    " + USED, "train.py:3"),
        (IN_MAIN + START, "train.py:3"),
        (IN_MAIN + "main()\n", "train.py:3"),
        (IN_MAIN + "from absl import app\napp.run(main)\n", "train.py:3"),
        (IN_MAIN + "if __name__ == '__main__':\n    tf.compat.v1.app.run()\n", "train.py:3"),
        (IN_MAIN + "def run():\n    main()\nrun()\n", "train.py:3"),
    ],
)
def test_a_program_that_certainly_needs_an_estimator_is_refused(
    text: str, location: str, tmp_path: Path
) -> None:
    for keys in ({}, {"tensorflow": "2.16"}, {"tf1": True}):
        found = fitted(text, tmp_path, program="train.py", **keys)
        (problem,) = found.problems
        assert (problem.key_path, problem.line) == ("program", location)
        assert "has no Estimators: the last version with them is 2.15" in problem.rule
        words = found.loaded.command_line
        assert problem.hint_text(words) == """write `--set 'tensorflow="2.15"'`"""
        assert not [hint for hint in found.hints if "all-tasks" in str(hint)]
    for known in ({"tensorflow": "2.15"}, {"tensorflow": "nightly"}, {"image": "mine:1"}):
        assert not fitted(text, tmp_path, program="train.py", **known).problems


def test_an_estimator_in_a_module_of_the_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(f"import tensorflow as tf\n{USED}")
    (problem,) = fitted("import model\n", tmp_path, program="train.py").problems
    assert problem.line == "model.py:2"
    for text in ("try:\n    import model\nexcept E:\n    pass\n", "if old:\n    import model\n"):
        assert not fitted(text, tmp_path, program="train.py").problems


@pytest.mark.parametrize(
    "text",
    [
        f"try:\n    {USED}except AttributeError:\n    pass\n",
        "try:\n    from tensorflow import estimator\nexcept ImportError:\n    estimator = None\n",
        f"if old:\n    {USED}",
        f"if hasattr(tf, 'estimator'):\n    {USED}",
        f"if old:\n    sys.exit()\n{USED}",
        f"for name in names:\n    {USED}",
        f"while waits:\n    {USED}",
        f"with contextlib.suppress(AttributeError):\n    {USED}",
        "x = old and tf.estimator.Estimator(f)\n",
        "x = tf.estimator if old else None\n",
        "x = [tf.estimator for name in names]\n",
        "x = lambda: tf.estimator\n",
        "def f(x: tf.estimator.Estimator) -> None:\n    pass\n",
        "import tensorflow_estimator\ntf.estimator = tensorflow_estimator.estimator\n" + USED,
        "setattr(tf, 'estimator', other)\n" + USED,
        "tf.keras.estimator.model_to_estimator(model)\n",
        "def main():\n    tf.estimator.Estimator(f)\n",
        "def main():\n    if old:\n        return\n    tf.estimator.Estimator(f)\nmain()\n",
        "def main():\n    yield tf.estimator.Estimator(f)\nmain()\n",
        "@decided\ndef main():\n    tf.estimator.Estimator(f)\nmain()\n",
        "def main():\n    tf.estimator.Estimator(f)\ndef main():\n    pass\nmain()\n",
    ],
)
def test_an_estimator_that_may_not_be_used_is_not_refused(text: str, tmp_path: Path) -> None:
    text = f"import contextlib, sys\nimport tensorflow as tf\n{text}"
    assert not fitted(text, tmp_path, program="train.py").problems
