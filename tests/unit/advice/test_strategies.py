"""A program that trains by all-reduce gets a suitable cluster, or is not started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.advice.of_program import Fitted
from cluster_kit.errors import Problem
from cluster_kit.programs.style import style_of
from tests.unit.advised import COORDINATED, fitted, hints

ALL_REDUCE = "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
IN_MAIN = """\
import tensorflow as tf
def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.experimental.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
if __name__ == "__main__":
    main()
"""
LOCAL_CONFIG = {"cluster": {"worker": ["localhost:1", "localhost:2"]}}
UNCERTAIN = {
    "it chooses": ALL_REDUCE + COORDINATED,
    "or in graph mode": ALL_REDUCE
    + "with tf.compat.v1.train.MonitoredTrainingSession('grpc://a:1') as session:\n    pass\n",
    "it may train alone": "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n"
    + ALL_REDUCE,
    "only with a flag": "import tensorflow as tf\nif flag:\n"
    "    tf.distribute.MultiWorkerMirroredStrategy()\n",
    "a spec of its own": ALL_REDUCE + "import os\nos.environ['TF_CONFIG'] = '{}'\n",
    "a spec of its own if there is one": ALL_REDUCE + "import os\nif 'TF_CONFIG' in os.environ:\n"
    "    os.environ['TF_CONFIG'] = '{}'\n",
    "a resolver of its own": ALL_REDUCE
    + "r = tf.distribute.cluster_resolver.SlurmClusterResolver()\n",
}


def texts(found: Fitted) -> list[str]:
    return [p.text(found.loaded.command_line) for p in found.problems]


@pytest.mark.parametrize("text", [ALL_REDUCE, IN_MAIN])
@pytest.mark.parametrize(
    ("manifest", "overrides", "shape"),
    [
        ("chief = 1\nps = 2\n", {"program": "train.py"}, ("auto", 0, 0)),
        ('program = "train.py"\n', {}, ("auto", 0, 0)),
        ('program = "train.py"\n', {"ps": 0}, ("auto", 0, 0)),
        ("", {"program": "train.py", "chief": 1}, ("auto", 1, 0)),
        ('style = "coordinator"\nps = 2\n', {"program": "train.py"}, ("all-tasks", 0, 0)),
        ('style = "all-tasks"\nps = 1\n', {"program": "train.py"}, ("all-tasks", 1, 0)),
    ],
)
def test_every_worker_runs_it_without_ps_and_a_line_reports_it(
    text: str,
    manifest: str,
    overrides: dict[str, Any],
    shape: tuple[str, int, int],
    tmp_path: Path,
) -> None:
    found = fitted(text, tmp_path, manifest, **overrides)
    shaped = found.loaded.manifest
    assert (shaped.style, shaped.count("chief"), shaped.count("ps")) == shape
    assert style_of(shaped) == "all-tasks"
    assert found.problems == ()
    (hint,) = found.hints
    assert "MultiWorkerMirroredStrategy: every worker runs the program, and there is no ps" in str(
        hint
    )
    assert "\n" not in str(hint)


@pytest.mark.parametrize("chief", [0, 1])
def test_a_suitable_cluster_is_not_changed(chief: int, tmp_path: Path) -> None:
    lines = f'program = "train.py"\nchief = {chief}\nps = 0\n'
    found = fitted(ALL_REDUCE, tmp_path, lines)
    assert (found.loaded.manifest.style, found.hints, found.problems) == ("auto", (), ())


def test_requested_ps_are_refused_with_the_option_that_works(tmp_path: Path) -> None:
    found = fitted(ALL_REDUCE, tmp_path, program="train.py", ps=2)
    (text,) = texts(found)
    assert "--ps = 2: MultiWorkerMirroredStrategy (train.py:2) waits forever" in text
    assert text.endswith("→ write `--ps 0`")
    (text,) = texts(fitted(ALL_REDUCE, tmp_path, 'program = "train.py"\nps = 1\n'))
    assert text.endswith("→ write `ps = 0`")


def test_the_style_coordinator_is_refused_with_the_option_that_works(tmp_path: Path) -> None:
    found = fitted(ALL_REDUCE, tmp_path, program="train.py", style="coordinator")
    (text,) = texts(found)
    assert text.endswith("→ write `--style all-tasks`")


@pytest.mark.parametrize("what", UNCERTAIN)
def test_uncertain_cases_change_nothing(what: str, tmp_path: Path) -> None:
    found = fitted(UNCERTAIN[what], tmp_path, program="train.py", ps=2)
    assert (found.loaded.manifest.style, found.problems) == ("auto", ())
    assert found.loaded.manifest.count("ps") == 2


def test_a_program_for_tensorflow_1_is_not_changed(tmp_path: Path) -> None:
    found = fitted(ALL_REDUCE, tmp_path, program="train.py", ps=2, tf1=True)
    assert (found.hints, found.problems) == ((), ())


def test_a_problem_is_not_certain_if_what_it_reads_is_invalid(tmp_path: Path) -> None:
    found = fitted(ALL_REDUCE, tmp_path, 'program = "train.py"\nps = 2\nstyle = "x"\n')
    assert not any(map(found.loaded.certain, found.problems))
    assert isinstance(found.problems[0], Problem)


def test_a_possible_all_reduce_leads_to_a_warning(tmp_path: Path) -> None:
    maybe = UNCERTAIN["only with a flag"]
    (hint,) = hints(maybe, tmp_path)
    assert hint.location == "train.py:3"
    assert "only the chief runs the program" in hint.what
    assert '`style = "all-tasks"` and `ps = 0`' in hint.fix
    (hint,) = hints(maybe, tmp_path, style="all-tasks", ps=1)
    assert "there are ps" in hint.what
    assert not hints(maybe, tmp_path, chief=0, ps=0)
    assert not hints(maybe, tmp_path, style="all-tasks", ps=0)
    assert not hints(ALL_REDUCE + COORDINATED, tmp_path), "it chooses by itself"
    graph_mode = "tf.compat.v1.train.MonitoredTrainingSession('grpc://a:1')\n"
    assert not hints(ALL_REDUCE + graph_mode, tmp_path), "or it trains in graph mode"
    alone = "import os, tensorflow as tf\nif 'TF_CONFIG' not in os.environ:\n    "
    assert not hints(f"{alone}tf.distribute.MultiWorkerMirroredStrategy()\n", tmp_path)
    assert not hints(UNCERTAIN["a resolver of its own"], tmp_path), "it does not read TF_CONFIG"


SERVER = "tf.distribute.Server(spec, role, index)\n"
NOT_OF_A_TASK = (
    f"if 'TF_CONFIG' not in os.environ:\n    {SERVER}",
    f"if os.environ.get('TF_CONFIG', '') == '' and alone:\n    {SERVER}",
    f"config = json.loads(os.environ.get('TF_CONFIG') or '{{}}')\nif not config:\n    {SERVER}",
    f"def f():\n    if os.getenv('TF_CONFIG'):\n        return\n    {SERVER}",
    "tf.distribute.Server({'local': ['localhost:0']})\n",
    "tf.distribute.Server(tf.train.ClusterSpec({'local': ['localhost:0']}), job_name='local')\n",
    f"from models import distribute_utils\n{SERVER}s = distribute_utils.get_strategy('ps')\n",
    f"{SERVER}s = {{'ps': tf.distribute.ParameterServerStrategy}}['ps'](resolver)\n",
    f"{SERVER}s = getattr(tf.distribute, 'ParameterServerStrategy')(resolver)\n",
    f"class S(tf.distribute.experimental.ParameterServerStrategy):\n    pass\n{SERVER}s = S()\n",
    f"from mine import make\n{SERVER}tf.distribute.coordinator.ClusterCoordinator(make())\n",
    f"{SERVER}tf.config.experimental_connect_to_cluster(resolver)\n",
)
OF_A_TASK = (
    "distribute.Server({'worker': ['localhost:1', 'localhost:2']}, role, index)\n",
    "distribute.Server(spec) if 'TF_CONFIG' in os.environ else None\n",
    "distribute.Server(spec) if x else 0\nif 'TF_CONFIG' in os.environ and x:\n    exit()\n",
)


@pytest.mark.parametrize(
    ("text", "version", "warned"),
    [
        ("import tensorflow as tf\ntf.compat.v1.train.Server(spec, 'worker', 0)\n", "2.21", True),
        ("import tensorflow.compat.v1 as tf\ntf.distribute.Server(spec)\n", "2.21", True),
        ("import tensorflow as tf\ntf.estimator.train_and_evaluate(e, t, v)\n", "2.15", True),
        ("import tensorflow as tf\ntf.estimator.train_and_evaluate(e, t, v)\n", "2.21", False),
        (COORDINATED + "tf.distribute.Server(spec)\n", "2.21", False),
        ("from server import Server\nServer(spec)\n", "2.21", False),
        *(
            (f"import os, json, tensorflow as tf\n{lines}", "2.21", False)
            for lines in NOT_OF_A_TASK
        ),
        *((f"from tensorflow import distribute\n{lines}", "2.21", True) for lines in OF_A_TASK),
    ],
)
def test_a_program_with_its_own_server_runs_on_every_task(
    text: str, version: str, warned: bool, tmp_path: Path
) -> None:
    chief, keys = "but only the chief runs it", {"program": "train.py", "tensorflow": version}
    found = [h for h in fitted(text, tmp_path, **keys).hints if chief in h.what]
    assert [hint.location for hint in found] == ["train.py:2"] * warned
    if warned:
        assert '`style = "all-tasks"`' in str(found[0]) or "--style all-tasks" in str(found[0])
    every = fitted(text, tmp_path, 'style = "all-tasks"\n', program="train.py").hints
    assert not [hint for hint in every if chief in hint.what]


TF = "import tensorflow as tf\n"
PC = "['pc-1:2222']"
IN_PROCESS = f"{TF}for i in range(3):\n    tf.distribute.Server(spec, 'worker', i)\n"


@pytest.mark.parametrize(
    "text",
    [
        TF + "tf.train.ClusterSpec({'ps': ['localhost:1'], 'worker': ['localhost:2']})\n",
        f"{TF}ps, workers = {PC}, []\nps = {PC}\nw = {PC}\n"
        "tf.train.ClusterSpec({'a': w, 'worker': w})\n",
        f"{TF}SPEC = {{'ps': {PC}, 'worker': {PC}}}\ntf.compat.v1.train.ClusterSpec(SPEC)\n",
    ],
)
def test_a_cluster_spec_of_literal_addresses_leads_to_a_warning(text: str, tmp_path: Path) -> None:
    (hint,) = (h for h in fitted(text, tmp_path, program="t.py").hints if "ClusterSpec" in h.what)
    assert "has addresses of its own (" in hint.what
    assert "--ps_hosts={{ ps_hosts }}" in hint.fix
    lines = 'subnet = "10.1.10.0/24"\n'
    assert not [h for h in fitted(text, tmp_path, lines, program="t.py").hints if "own" in h.what]


def test_servers_that_a_program_starts_for_itself_lead_to_a_warning(tmp_path: Path) -> None:
    (hint,) = fitted(IN_PROCESS + COORDINATED, tmp_path, program="t.py").hints
    assert "a cluster of its own, in its process" in hint.what
    assert "TFConfigClusterResolver()`" in hint.fix


@pytest.mark.parametrize(
    "text",
    [
        TF + "tf.train.ClusterSpec({'ps': ['ps-0:2222'], 'worker': ['worker-0:2222']})\n",
        TF + "tf.train.ClusterSpec({'local': ['localhost:0']})\n",
        f"{TF}a = {PC}\nif b:\n    a = c\ntf.train.ClusterSpec({{'ps': a, 'worker': a}})\n",
        TF + "tf.train.ClusterSpec({'ps': hosts.split(','), 'worker': [x]})\n",
        IN_PROCESS + "if 'TF_CONFIG' in os.environ:\n    pass\n",
        IN_PROCESS + "tf.distribute.cluster_resolver.TFConfigClusterResolver()\n",
    ],
)
def test_other_cluster_specs_and_servers_are_accepted(text: str, tmp_path: Path) -> None:
    hints = fitted(text, tmp_path, style="all-tasks", program="t.py").hints
    assert not [hint for hint in hints if "its own" in hint.what]


def test_the_style_of_another_program_does_not_keep_one_for_tensorflow_1_from_running(
    tmp_path: Path,
) -> None:
    lines, old = 'style = "coordinator"\n', {"program": "train.py", "tf1": True}
    found = fitted("", tmp_path, lines, **old)
    assert style_of(found.loaded.manifest) == "all-tasks"
    assert [str(hint) for hint in found.hints] == [
        'tf1: every task runs a program for TensorFlow 1 (`style = "all-tasks"`)'
    ]
    for chosen in ({**old, "style": "coordinator"}, {"tf1": True}):
        assert fitted("", tmp_path, lines, **chosen).loaded.manifest.style == "coordinator"


OWN = "os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['localhost:1', 'localhost:2']},"
OWN += " 'task': {'type': 'worker', 'index': int(sys.argv[1])}})\n"
MODULES = "import json, os, sys\n"


@pytest.mark.parametrize(
    "guarded",
    [
        f"if 'TF_CONFIG' not in os.environ:\n    {OWN}",
        f"if not os.environ.get('TF_CONFIG'):\n    {OWN}",
        f"if os.getenv('TF_CONFIG') is None:\n    {OWN}",
        f"if 'TF_CONFIG' in os.environ:\n    print('cluster')\nelse:\n    {OWN}",
        f"if 'TF_CONFIG' not in os.environ and alone:\n    {OWN}",
        f"config = os.environ.get('TF_CONFIG')\nif config is None:\n    {OWN}",
        "os.environ.setdefault('TF_CONFIG', '{}')\n",
    ],
)
def test_a_tf_config_for_runs_without_a_cluster_changes_nothing(
    guarded: str, tmp_path: Path
) -> None:
    found = fitted(MODULES + guarded + ALL_REDUCE, tmp_path, "chief = 1\nps = 1\n", program="t.py")
    assert found.loaded.manifest.count("ps") == 0
    assert found.problems == ()


POP = "os.environ.pop('TF_CONFIG', None)\n"


@pytest.mark.parametrize("removal", [POP, "del os.environ['TF_CONFIG']\n"])
def test_a_program_that_removes_its_tf_config_is_named(removal: str, tmp_path: Path) -> None:
    def removed(text: str) -> list[str]:
        hints = fitted(MODULES + text, tmp_path, program="t.py").hints
        return [str(hint) for hint in hints if "removes" in hint.what]

    (hint,) = removed(removal + ALL_REDUCE)
    assert hint.startswith("train.py:2: the program removes TF_CONFIG")
    for accepted in (
        f"if 'LOCAL' in os.environ:\n    {removal}{ALL_REDUCE}",
        f"config = json.loads(os.environ['TF_CONFIG'])\n{removal}{ALL_REDUCE}",
        f"{removal}os.environ['TF_CONFIG'] = make()\n{ALL_REDUCE}",
        removal,
        f"config = {POP}{ALL_REDUCE}",
    ):
        assert removed(accepted) == []


@pytest.mark.parametrize("strategy", [ALL_REDUCE, COORDINATED])
@pytest.mark.parametrize(
    "own", [OWN, "os.environ['TF_CONFIG'] = " + repr(json.dumps(LOCAL_CONFIG)) + "\n"]
)
def test_a_programs_own_cluster_on_localhost_is_refused(
    own: str, strategy: str, tmp_path: Path
) -> None:
    found = fitted(MODULES + own + strategy, tmp_path, "chief = 1\nps = 1\n", program="t.py")
    (text,) = texts(found)
    assert text.startswith(
        "train.py:2: the program replaces TF_CONFIG with addresses of its own (localhost:1, "
        "localhost:2): TensorFlow waits"
    )
    assert "→ do not set TF_CONFIG" in text
    assert not any("STYLE" in str(hint) or "style" in str(hint) for hint in found.hints)


@pytest.mark.parametrize(
    "text",
    [
        MODULES + OWN.replace("localhost:", "10.1.10.58:") + ALL_REDUCE,
        MODULES + OWN.replace(", 'localhost:2'", "") + ALL_REDUCE,
        MODULES + "import subprocess\n" + OWN + ALL_REDUCE + "subprocess.run([])\n",
        MODULES + OWN + ALL_REDUCE + "os.popen('python worker.py')\n",
        "from concurrent.futures import ProcessPoolExecutor\n"
        f"{MODULES}{OWN}{ALL_REDUCE}with ProcessPoolExecutor(2) as pool:\n    pool.map(f, 'ab')\n",
    ],
)
def test_other_literal_addresses_lead_to_a_warning(text: str, tmp_path: Path) -> None:
    found = fitted(text, tmp_path, "chief = 1\nps = 1\n", program="t.py")
    assert found.problems == ()
    (hint,) = found.hints
    assert "replaces TF_CONFIG with addresses of its own" in hint.what
    assert not fitted(text, tmp_path, 'subnet = "10.1.10.0/24"\nps = 0\n', program="t.py").hints


@pytest.mark.parametrize(
    "text",
    [
        MODULES + f"def local():\n    {OWN}" + ALL_REDUCE,
        MODULES + f"if debug:\n    {OWN}" + ALL_REDUCE,
        MODULES + OWN,
        MODULES + OWN.replace("'localhost:1'", "host") + ALL_REDUCE,
    ],
)
def test_uncertain_uses_of_tf_config_are_accepted(text: str, tmp_path: Path) -> None:
    found = fitted(text, tmp_path, "chief = 0\nps = 0\n", program="t.py")
    assert (found.hints, found.problems) == ((), ())


def test_a_relative_import_in_the_program_is_refused_with_a_fix(tmp_path: Path) -> None:
    folder = tmp_path / "mytrainer"
    folder.mkdir()
    (text,) = texts(fitted("import os\nfrom . import model\n", folder, program="train.py"))
    assert text.startswith("train.py:2: a relative import, in the program itself")
    assert "next to the directory `mytrainer`" in text
    assert "runpy.run_module('mytrainer.train', run_name='__main__')" in text


def test_a_program_in_a_package_of_a_package_starts_as_its_module(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    (text,) = texts(fitted("from .. import model\n", inner, program="train.py"))
    assert "next to the directory `outer`" in text and "'outer.inner.train'" in text


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    from . import model\nexcept ImportError:\n    import model\n",
        "if __package__:\n    from . import model\n",
        "def late():\n    from . import model\n",
    ],
)
def test_a_relative_import_with_a_fallback_is_accepted(text: str, tmp_path: Path) -> None:
    assert not fitted(text, tmp_path, program="train.py").problems


COORDINATOR = "import tensorflow as tf\ns = tf.distribute.ParameterServerStrategy(r)\n"


def test_a_coordinator_that_every_task_runs_leads_to_a_warning(tmp_path: Path) -> None:
    (hint,) = hints(COORDINATOR, tmp_path, style="all-tasks", ps_runs="program")
    assert str(hint).startswith("train.py:2: ParameterServerStrategy, but every task runs")
    assert hint.fix == 'write `style = "coordinator"`'
    (hint,) = hints(COORDINATOR, tmp_path, chief=0, ps=0)
    assert hint.fix == "write `chief = 1` and `ps = 1`"
    assert hints(COORDINATOR, tmp_path) == []
    for more in ("tf.distribute.Server(c)\n", "if x:\n    s = tf.distribute.MirroredStrategy()\n"):
        assert hints(COORDINATOR + more, tmp_path, style="all-tasks") == []


ALONE = "import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n"
MIRRORED = f"{ALONE}strategy = tf.distribute.MirroredStrategy()\n"
MIRRORED += "def distributed_step(x):\n    strategy.run(step, (x,))\ndistributed_step(x)\n"
KNOWN = f"{ALONE}import os, numpy as np\nfrom sklearn import svm\n"


@pytest.mark.parametrize("text", [ALONE, MIRRORED, KNOWN, "import keras\nkeras.Model().fit(x)\n"])
def test_a_program_without_a_strategy_trains_in_one_task(text: str, tmp_path: Path) -> None:
    (hint,) = hints(text, tmp_path)
    assert hint.what == "no strategy for several tasks: the chief trains alone"
    assert hint.rule == "its 2 workers and 2 ps would have nothing to do"
    (hint,) = hints(text, tmp_path, worker=1, ps=1)
    assert hint.rule == "its 1 worker and 1 ps would have nothing to do"
    (hint,) = hints(text, tmp_path, chief=0, ps=0)
    assert hint.what == "no strategy for several tasks: each task trains a model of its own"
    assert hints(text, tmp_path, chief=0, ps=0, worker=1) == []


def test_a_program_that_shares_work_by_tf_config_must_run_in_every_task(tmp_path: Path) -> None:
    shares = (
        'import json, os, tensorflow as tf\nn = json.loads(os.environ["TF_CONFIG"])["cluster"]\n'
    )
    (hint,) = hints(shares, tmp_path)
    assert hint.rule == "its 2 workers and 2 ps would have nothing to do"
    assert hint.fix.endswith('write `style = "all-tasks"` and `chief = 0`')
    assert hints(shares, tmp_path, style="all-tasks") == []
    assert hints(f'{shares}os.environ["TF_CONFIG"] = ""\n', tmp_path) == []


def test_a_strategy_that_trains_nothing_leads_to_a_warning(tmp_path: Path) -> None:
    (hint,) = hints(COORDINATOR + "model.fit(x, y)\n", tmp_path)
    nothing = "ParameterServerStrategy, but nothing is made in its scope: the chief trains alone"
    assert str(hint).startswith(f"train.py:2: {nothing}")
    assert hint.fix.endswith("inside `with s.scope():`")
    all_reduce = "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\n"
    trains = f"{all_reduce}batch = 64 * s.num_replicas_in_sync\nmodel.fit(x, y)\n"
    (hint,) = hints(trains, tmp_path, chief=0, ps=0)
    assert "MultiWorkerMirroredStrategy, but nothing is made in its scope: each task" in hint.what
    for used in (
        "with s.scope():\n    model = build()\n", "train(s)\n", "import other\n",
        "with tf.device('/job:ps/task:0'):\n    v = tf.Variable(1)\n",
    ):  # fmt: skip
        files = {"train.py": trains + used, "other.py": "from train import s\n"}
        assert hints(files, tmp_path, chief=0, ps=0) == []


TRAINED = ALL_REDUCE + "with strategy.scope():\n    model = build()\nmodel.fit(data)\n"


OUT = (
    "import argparse, os\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--out-dir', default='model')\nargs = parser.parse_args()\n"
)


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["--out-dir", "/output/a", "--out-dir=b"], "b/m.keras"),
        (["--out-dir=/tmp/a"], ""),
        (["--out-dir={{ output }}/{{ index }}"], ""),
    ],
)
def test_arguments_are_part_of_the_path_that_tasks_save_to(
    args: list[str], path: str, tmp_path: Path
) -> None:
    program = f"{TRAINED}{OUT}model.save(f'{{args.out_dir}}/m.keras')\n"
    found = hints(program, tmp_path, chief=0, ps=0, args=args)
    assert [f"its model to {path}," in hint.what for hint in found] == [True] * bool(path)


@pytest.mark.parametrize(
    ("save", "path"),
    [
        ("model.save('model.keras')\n", "model.keras"),
        ("D = '/output/m'\ndef main():\n    tf.saved_model.save(model, D)\nmain()\n", "/output/m"),
        ("net.save_weights(filepath='best.weights.h5')\n", "best.weights.h5"),
        ("if strategy.flag:\n    model.save('model')\n", ""),
        ("model.save('/tmp/model')\n", ""),
        ("model.save('model' if leads else '/tmp/model')\n", ""),
        ("model.save(f'model-{index}.keras')\n", ""),
        ("path = 'model.keras'\nif index:\n    path = '/tmp/m.keras'\nmodel.save(path)\n", ""),
        ("path = '/output/m'\npath += index\nmodel.save(path)\n", ""),
        ("p = 'm'\ndef save(p):\n    model.save(p)\nsave(own)\n", ""),
        (f"{OUT}model.save(f'{{args.out_dir}}/m.keras')\n", "model/m.keras"),
        (f"{OUT}p = os.path.join(args.out_dir, 'm' + '.h5')\nmodel.save(p)\n", "model/m.h5"),
        (f"{OUT}args.out_dir += own()\nmodel.save(f'{{args.out_dir}}/m.keras')\n", ""),
        (f"{OUT}model.save(f'{{args.out_dir}}-{{index}}.keras')\n", ""),
        (f"{OUT}model.save(f'{{own.out_dir}}/m.keras')\n", ""),
        ("p = 'm'\np = p + '.keras'\nmodel.save(p)\n", ""),
        ("p = p + '.keras'\nmodel.save(p)\n", ""),
        ("picture.save('loss.png')\n", ""),
        ("import os\nos.chdir(own)\nmodel.save('model.keras')\n", ""),
    ],
)  # fmt: skip
def test_tasks_that_save_to_one_path_lead_to_a_warning(
    save: str, path: str, tmp_path: Path
) -> None:
    found = hints(TRAINED + save, tmp_path, chief=0, ps=0)
    assert [hint.what for hint in found] == [
        f"every task saves its model to {path}, at the same time"
    ] * bool(path)
    assert hints(TRAINED + save, tmp_path, chief=0, ps=0, worker=1) == []


MANAGED = "ckpt = tf.train.Checkpoint(net=net)\nm = tf.train.CheckpointManager(ckpt, {})\n"


@pytest.mark.parametrize(
    ("program", "warns"),
    [
        (MANAGED.format("'ckpts', 3") + "for _ in range(9):\n    m.save()\n", True),
        (MANAGED.format("directory='ckpts', max_to_keep=3") + "m.save(step)\n", True),
        (MANAGED.format("'ckpts', 3") + "ckpt.restore(m.latest_checkpoint)\n", False),
        (MANAGED.format("'ckpts', 3") + "if resolver.task_id == 0:\n    m.save()\n", False),
        (MANAGED.format("'/tmp/ckpts', 3") + "m.save()\n", False),
        (MANAGED.format("own(), 3") + "m.save()\n", False),
    ],
)
def test_checkpoints_that_tasks_save_to_one_directory_lead_to_a_warning(
    program: str, warns: bool, tmp_path: Path
) -> None:
    found = hints(ALL_REDUCE + program, tmp_path, chief=0, ps=0)
    assert [hint.what for hint in found] == [
        "every task saves its checkpoints to ckpts, at the same time"
    ] * warns
    for hint in found:
        assert hint.fix.endswith("and let all restore `tf.train.latest_checkpoint('ckpts')`")


IS_FIRST = "if strategy.cluster_resolver.task_id == 0:\n    "


@pytest.mark.parametrize(
    ("save", "warns"),
    [
        (f"{IS_FIRST}model.save('model.keras')\n", True),
        (f"def end(path, is_chief):\n    {IS_FIRST}    model.save(path)\n", True),
        ("if config['task']['index'] == 0:\n    tf.saved_model.save(model, 'm')\n", True),
        (f"{IS_FIRST}model.save('m')\nelse:\n    model.save('/tmp/m')\n", False),
        (f"{IS_FIRST}model.save('m')\nif task_id > 0:\n    model.save('/tmp/m')\n", False),
        (f"{IS_FIRST}model.save_weights('m')\n", False),
        (f"{IS_FIRST}picture.save('loss.png')\n", False),
    ],
)
def test_a_task_that_saves_alone_leads_to_a_warning(save: str, warns: bool, tmp_path: Path) -> None:
    found = hints(TRAINED + save, tmp_path, chief=0, ps=0)
    assert [hint.what for hint in found] == ["one task saves its model alone"] * warns
    own_loop = TRAINED.replace("model.fit(data)", "train(model)")
    assert hints(own_loop + save, tmp_path, chief=0, ps=0) == []


def test_the_task_that_keeps_its_model_is_the_first(tmp_path: Path) -> None:
    own = "class Net(tf.Module):\n    def save(self, path): pass\n"
    assert not hints(TRAINED + own + "model.save('a/m.h5')\n", tmp_path, chief=0, ps=0)
    (hint,) = hints(
        TRAINED.replace("strategy", "s") + "model.save('m.h5')\n", tmp_path, chief=0, ps=0
    )
    assert "`'m.h5' if s.cluster_resolver.task_id == 0 else" in hint.fix
    (hint,) = hints(TRAINED + "model.save('a/m.h5')\n", tmp_path, chief=0, ps=0)
    assert hint.fix.endswith(
        "`'a/m.h5' if strategy.cluster_resolver.task_id == 0 else '/tmp/m.h5'`"
    )
    chief = {"style": "all-tasks", "chief": 1, "ps": 0}
    (hint,) = hints(TRAINED + "model.save('m.h5')\n", tmp_path, **chief)
    assert "if strategy.cluster_resolver.task_type == 'chief' else" in hint.fix
    (hint,) = hints(TRAINED + "model.save('m.h5')\n", tmp_path, chief_job="master", **chief)
    assert "if strategy.cluster_resolver.task_type == 'master' else" in hint.fix


@pytest.mark.parametrize(
    "more",
    [
        "import tensorflow_recommenders\n",
        "from official.common import distribute_utils\n",
        "s = getattr(tf.distribute, name + 'Strategy')()\n",
        "s = tf.compat.v1.Session(target)\n",
        "server = tf.distribute.Server(spec)\n",
        "r = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n",
        "from tensorflow.experimental import dtensor\nm = dtensor.create_mesh(d)\n",
        "import subprocess\nsubprocess.run(['python', 'other.py'])\n",
        "import importlib\nm = importlib.import_module(n)\n",
        "from common import strategy_of\ns = strategy_of(f)\n",
    ],
)
def test_a_program_that_may_use_several_tasks_is_accepted(more: str, tmp_path: Path) -> None:
    files = {"train.py": ALONE + more, "common.py": "strategy_of = print\n"}
    assert not [hint for hint in hints(files, tmp_path) if "no strategy" in hint.what]


def test_tasks_that_may_do_different_things_are_accepted(tmp_path: Path) -> None:
    all_tasks = {"chief": 0, "ps": 0}
    assert hints(f"{ALONE}import os\nn = os.environ['N']\n", tmp_path, **all_tasks) == []
    assert hints(ALONE, tmp_path, args=["--rate={{ index }}"], **all_tasks) == []
