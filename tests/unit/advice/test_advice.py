"""Problems of a program are reported before it starts; nothing is reported without reason."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.advice import sources
from cluster_kit.advice.of_program import advise
from cluster_kit.advice.sources import read
from cluster_kit.programs import style
from cluster_kit.programs.style import too_new
from tests.make import ROOT, manifest
from tests.unit.advised import KERAS_3_FIT, hints

OWN_SPEC = 'import json, os\nos.environ["TF_CONFIG"] = json.dumps(config)\n'


GENERATORS = {
    "by name": "def data(_):\n    return D.from_generator(g)\nDatasetCreator(data)\n",
    "by keyword": "def data(_):\n    return tf.data.Dataset.from_generator(g)\n"
    "tf.keras.utils.experimental.DatasetCreator(dataset_fn=data)\n",
    "a lambda": "coordinator.create_per_worker_dataset(\n    lambda: D.from_generator(g))\n",
    "a class that augments": "def data(_):\n    images = ImageDataGenerator(rescale=1/255)\n"
    "    return images\nDatasetCreator(data)\n",
    "from folders": "def data(_):\n    return images.flow_from_directory('/data')\n"
    "DatasetCreator(data)\n",
    "through a helper": "def make():\n    return D.from_generator(g)\ndef data(_):\n"
    "    return make().repeat()\nDatasetCreator(data)\n",
    "through a strategy": "def data(_):\n    return D.from_generator(g)\ndef per_worker():\n"
    "    return strategy.distribute_datasets_from_function(data)\n"
    "coordinator.create_per_worker_dataset(per_worker)\n",
    "decorated and partial": "@tf.function\ndef data(a, _):\n    return D.from_generator(g)\n"
    "DatasetCreator(functools.partial(data, 1))\n",
    "a method": "class T:\n    def data(self, _):\n        return D.from_generator(g)\n"
    "    def run(self):\n        return DatasetCreator(self.data)\n",
}


@pytest.mark.parametrize("what", GENERATORS)
def test_a_generator_that_would_run_in_the_chief_is_named(what: str, tmp_path: Path) -> None:
    text = GENERATORS[what]
    (hint,) = hints(text, tmp_path)
    made = next(
        number
        for number, line in enumerate(text.splitlines(), 1)
        if any(name in line for name in ("from_generator", "ImageDataGenerator", "flow_from"))
    )
    assert hint.location == f"train.py:{made}"
    assert "would run in the chief" in hint.rule
    assert "TFRecordDataset" in hint.fix


def test_a_generator_in_another_file_is_named_there(tmp_path: Path) -> None:
    files = {
        "train.py": "from data import load\nDatasetCreator(load)\n",
        "data.py": "def load(_):\n    return D.from_generator(g)\n",
    }
    (hint,) = hints(files, tmp_path)
    assert hint.location == "data.py:2"


QUIET_GENERATORS = {
    "on one machine": "data = D.from_generator(g)\nmodel.fit(data)\n",
    "beside the dataset function": "def data(_):\n    return D.from_tensor_slices(x)\n"
    "check = D.from_generator(g)\nDatasetCreator(data)\n",
    "in a function that nobody sends": "def other():\n    return D.from_generator(g)\n"
    "def data(_):\n    return D.list_files('*')\nDatasetCreator(data)\nother()\n",
    "a name with two meanings": "def data(_):\n    return D.from_generator(g)\n"
    "def data(_):\n    return D.list_files('*')\nDatasetCreator(data)\n",
    "a function from elsewhere": "from elsewhere import data\nDatasetCreator(data)\n",
    "nothing at all": "DatasetCreator()\n",
}


@pytest.mark.parametrize("what", QUIET_GENERATORS)
def test_other_generators_are_accepted(what: str, tmp_path: Path) -> None:
    assert hints(QUIET_GENERATORS[what], tmp_path) == []


PYTHON = "import tensorflow as tf\ns = tf.distribute.ParameterServerStrategy(r)\n"
PYTHON_OPS = {
    "in a map": "def one(x):\n    return tf.numpy_function(augment, [x], tf.float32)\n"
    "def data(_):\n    return D.list_files('*').map(one)\nDatasetCreator(data)\n",
    "in a step": "@tf.function\ndef step():\n    s.run(lambda: tf.py_function(f, [], tf.float32))\n"
    "coordinator.schedule(step)\n",
    "by keyword": "def act():\n    return tf.compat.v1.py_func(f, [], tf.float32)\n"
    "coordinator.schedule(fn=act)\n",
}


@pytest.mark.parametrize("what", PYTHON_OPS)
def test_python_that_the_chief_runs_for_all_workers_is_named(what: str, tmp_path: Path) -> None:
    (hint,) = hints(PYTHON + PYTHON_OPS[what], tmp_path)
    assert hint.location == ("train.py:5" if what == "in a step" else "train.py:4")
    assert "runs in the chief, for all workers" in hint.rule
    assert ("cannot be fetched" in hint.rule) == (what != "in a map")
    all_reduce = PYTHON.replace("ParameterServer", "MultiWorkerMirrored")
    assert not any("chief" in h.rule for h in hints(all_reduce + PYTHON_OPS[what], tmp_path))


SPECS = {
    "in one go": OWN_SPEC + 'config = {"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}}\n',
    "by its name": OWN_SPEC + 'spec = {"ps": ["a:1"], "evaluator": [f"b:{p}"]}\n',
    "out of names": OWN_SPEC + 'c = {"cluster": {"chief": hosts[:1], "evaluator": evaluators}}\n',
    "as a default": 'os.environ.setdefault("TF_CONFIG", json.dumps(\n'
    '    {"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}}))\n',
    "among others": 'os.environ.update(TF_CONFIG=json.dumps(\n'
    '    {"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}}))\n',
}  # fmt: skip


@pytest.mark.parametrize("what", SPECS)
def test_an_evaluator_among_the_training_tasks_is_named(what: str, tmp_path: Path) -> None:
    (hint,) = hints(SPECS[what], tmp_path)
    line = SPECS[what].split('"evaluator"')[0].count("\n") + 1
    assert hint.location == f"train.py:{line}"
    assert "wait for it forever" in hint.rule


QUIET_SPECS = {
    "a spec of its own": OWN_SPEC + 'config = {"cluster": {"evaluator": ["b:1"]}}\n',
    "counts": OWN_SPEC + 'counts = {"worker": 2, "evaluator": 1, "ps": n}\n',
    "functions by role": OWN_SPEC + 'main = {"worker": serve, "evaluator": score}[role]\n',
    "a TF_CONFIG that is only read": 'json.loads(os.environ["TF_CONFIG"])\n'
    'c = {"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}}\n',
}


@pytest.mark.parametrize("what", QUIET_SPECS)
def test_other_dictionaries_are_accepted(what: str, tmp_path: Path) -> None:
    assert hints(QUIET_SPECS[what], tmp_path) == []


FLAGS = ["--job={{ role }}", "--index={{ index }}", "--workers={{ worker_hosts }}"]


def test_flags_for_a_chief_that_runs_alone_lead_to_a_warning(tmp_path: Path) -> None:
    (hint,) = hints("", tmp_path, args=FLAGS)
    assert hint.location == "args"
    assert "only the chief runs the program" in hint.what
    assert '`style = "all-tasks"`, and `chief = 0` if worker 0' in hint.fix


def test_flags_without_the_chiefs_address_lead_to_a_warning(tmp_path: Path) -> None:
    keys = {"style": "all-tasks", "chief_job": "master"}
    (hint,) = hints("", tmp_path, args=FLAGS, **keys)
    assert "chief-0 has the role `master`" in hint.what
    assert not hints("", tmp_path, args=[*FLAGS, "{{ chief_hosts }}"], **keys)
    assert not hints("", tmp_path, args=FLAGS, style="all-tasks", chief=0)
    assert not hints("", tmp_path, args=["--name={{ name }}"])


def test_a_text_that_is_not_python_is_named_with_its_line(tmp_path: Path) -> None:
    """If it is certain, `inputs` refuses the program; the uncertain cases are tested here."""
    (hint,) = hints("x = 1\nfor x in\n", tmp_path)
    assert (hint.location, hint.what) == ("train.py:2", "for x in")
    assert "not valid Python 3." in hint.rule  # an image can have a newer one
    assert str(hint.fix) == "fix the line, if the image has no newer Python"


def test_a_broken_module_beside_the_program_is_named_too(tmp_path: Path) -> None:
    (hint,) = hints({"train.py": "import lib.net\n", "lib/net.py": "\ndef f(:\n"}, tmp_path)
    assert hint.location == "lib/net.py:2"


def test_syntax_that_an_older_python_lacks_is_named() -> None:
    fault = too_new(b"x = 1\ntry:\n    f()\nexcept* ValueError:\n    pass\n", "train.py", (3, 10))
    assert fault is not None
    assert fault.location == "train.py:5" and "3.11" in fault.message
    assert too_new(b"x = 1\n", "train.py", (3, 10)) is None


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\0", b"", b"(" * 5000, b"-" * 200_000])
def test_an_unparsable_file_does_not_prevent_a_start(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(content)
    found = advise(tmp_path / "train.py", manifest(program="train.py"))
    assert all(hint.location.startswith("train.py") for hint in found)


def test_a_module_that_the_program_runs_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.py").write_text("from . import model\n")
    (tmp_path / "mine" / "model.py").write_text("x = 1\n")
    program = tmp_path / "run.py"
    program.write_text("import runpy; runpy.run_module('mine.train', run_name='__main__')\n")
    found, _ = read(program)
    assert [source.file for source in found] == ["run.py", "mine/train.py", "mine/model.py"]


def test_import_cycles_and_unreadable_modules_are_skipped(tmp_path: Path) -> None:
    files = {"train.py": "import a, b\n" + KERAS_3_FIT, "a.py": "import train, b\n"}
    (tmp_path / "b.py").write_bytes(b"-" * 200_000)
    assert len(hints(files, tmp_path)) == 1


@pytest.mark.parametrize("text", ["TOKEN = 'of another directory'\n", "machine a login b\n"])
def test_a_module_that_links_out_of_the_directory_is_neither_read_nor_kept(
    text: str, tmp_path: Path
) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (tmp_path / "private").write_text(text)
    (folder / "train.py").write_text("import helper, inside\n")
    (folder / "helper.py").symlink_to(tmp_path / "private")
    (folder / "real.py").write_text("x = 1\n")
    (folder / "inside.py").symlink_to("real.py")
    assert advise(folder / "train.py", manifest(program="train.py")) == ()
    program = folder / "train.py"
    found = sources.files(program, read(program)[0])
    assert [file.name for file in found] == ["train.py", "inside.py"]


def test_a_built_in_program_is_not_examined() -> None:
    assert advise(None, manifest()) == ()


@pytest.fixture
def each_file_parsed_once() -> Iterator[None]:
    """Parses each file once: programs of one package import the same modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_parse", functools.cache(sources._parse))
        patch.setattr(style, "too_new", functools.cache(style.too_new))
        yield


SHARDS_AS_TUTORIALS_DO = ("keras_fit.py",)
"""It runs, but each worker gets all of the data (see test_sharding.py)."""
COORDINATORS = ("coordinator.py",)
OURS = [*sorted((ROOT / "tests" / "e2e" / "programs").glob("*.py"))]
OURS += sorted((ROOT / "images" / "trainer" / "trainer").rglob("*.py"))


@pytest.mark.usefixtures("each_file_parsed_once")
def test_valid_programs_get_no_advice() -> None:
    args = ["--job_name={{ role }}", "--task_index={{ index }}"]
    told = {}
    for path in OURS:
        files, unread = read(path)
        assert files and not unread, path
        runs = "coordinator" if path.name in COORDINATORS else "all-tasks"
        hints = advise(path, manifest(program=str(path), style=runs, args=args))
        if len(hints) != SHARDS_AS_TUTORIALS_DO.count(path.name):
            told[str(path.relative_to(ROOT))] = hints
    assert not told


@given(st.text("abfit_=.()[]{}:\n '\"keras,tf", max_size=60))
def test_no_text_causes_a_traceback(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.py"
        path.write_text("import keras\n" + text, encoding="utf-8")
        advise(path, manifest(program="train.py"))


@pytest.mark.parametrize(
    ("argument", "warns"),
    [("--epochs 10", True), ("-b  64", True), ("--epochs=10", False), ("--note=a b", False),
     ("a -b", False), ("--job_name {{ role }}", False), ("--note a b", False)],
)  # fmt: skip
def test_a_flag_and_its_value_in_one_argument_lead_to_a_warning(argument: str, warns: bool) -> None:
    found = advise(None, manifest(program="train.py", args=["--v", argument]))
    written = ", ".join(f'"{word}"' for word in argument.split())
    assert [hint.fix for hint in found] == [f"write `{written}`"] * warns
    assert advise(None, manifest(args=["--v", argument])) == ()


@pytest.mark.parametrize(
    ("argument", "fix"),
    [
        ("--task_index={index}", "write `{{ index }}`"),
        ("{ ps_hosts }", "write `{{ ps_hosts }}`"),
        ("--task_index={{ index }}", None),
        ("--file={name}-{index}.png", None),
        ("--format={epoch}", None),
    ],
)
def test_a_name_in_single_braces_leads_to_a_warning(argument: str, fix: str | None) -> None:
    found = advise(None, manifest(program="train.py", args=["--v", argument]))
    assert [hint.fix for hint in found] == ([fix] if fix else [])


def test_a_flag_and_its_value_in_one_argument_lead_to_one_warning(tmp_path: Path) -> None:
    program = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs')\n"
    assert len(hints(program, tmp_path, args=["--epochs 10"], worker=1)) == 1
