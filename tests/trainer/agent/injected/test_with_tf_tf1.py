"""With TensorFlow: `import tensorflow` gives the API of TensorFlow 1, and errors name removed
parts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import IMAGE

if not find_spec("tensorflow"):
    pytest.skip("TensorFlow is in the image, not here", allow_module_level=True)

NAMES = IMAGE / "trainer" / "agent" / "injected" / "tf1" / "names.json"
ON_PATH = IMAGE / "trainer" / "agent" / "injected" / "on_path"

THERE = """
import tensorflow as tf
assert not tf.executing_eagerly() and tf.__version__ and tf.__name__ == "tensorflow"
tf.placeholder, tf.Session, tf.train.Supervisor, tf.layers.dense, tf.app.run, tf.gfile.GFile
import tensorflow.contrib.slim as slim
from tensorflow.contrib import slim as again, framework
assert slim is again is tf.contrib.slim
slim.conv2d, slim.learning.train, slim.losses.softmax_cross_entropy, slim.dataset.Dataset
from tensorflow.contrib.slim.nets import resnet_v1
from tensorflow.contrib.slim.python.slim.nets import inception_v1 as inception
from tensorflow.contrib.layers.python.layers import initializers, regularizers
from tensorflow.contrib.framework.python.ops import arg_scope, add_arg_scope
from tensorflow.contrib.rnn.python.ops import core_rnn_cell
from tensorflow.contrib.rnn import *
LSTMCell, static_rnn, tf.contrib.rnn.BasicLSTMCell
from tensorflow.contrib.layers import *
xavier_initializer, l2_regularizer, fully_connected, optimize_loss
framework.get_or_create_global_step, framework.nest, framework.init_from_checkpoint
tf.contrib.training.create_train_op, tf.contrib.training.evaluate_once
tf.contrib.losses.mean_squared_error, tf.contrib.metrics.streaming_mean
tf.contrib.data.AUTOTUNE, tf.contrib.data.Dataset, tf.contrib.util.make_tensor_proto
tf.contrib.staging.StagingArea, tf.contrib.cluster_resolver.SimpleClusterResolver
tf.contrib.tfprof.ProfileOptionBuilder, tf.contrib.lookup.HashTable
tf.contrib.compiler.jit.experimental_jit_scope, tf.contrib.distributions.Normal
import tensorflow.compat.v1 as v1, tensorflow.compat.v2 as v2
assert v1.placeholder is tf.placeholder and tf.compat.v1 is v1 and v2.Variable is not tf.Variable
import tensorflow.keras.backend as K
from tensorflow.keras.layers import Dense
from tensorflow import keras, flags, gfile
import tensorflow.layers as tf_layers, tensorflow.train as tf_train
assert tf_train is tf.train and tf_layers.dense is tf.layers.dense and "_v1" in keras.__name__
from tensorflow.python.client import timeline, device_lib
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, control_flow_ops, variable_scope
ops.Tensor, array_ops.stack, control_flow_ops.cond, variable_scope.variable
import numpy as np
assert np.zeros(1, np.float).dtype == np.float64 and np.array([1], np.int).size == 1
flags.DEFINE_string("log_dir", "/tmp/logs", "which absl has as well")
flags.DEFINE_string("verbosity_of_mine", "", "")
assert flags.FLAGS._parse_flags()["log_dir"] == flags.FLAGS.log_dir == "/tmp/logs"
images = tf.placeholder(tf.float32, [2, 8, 8, 3])
with arg_scope(resnet_v1.resnet_arg_scope()):
    slim.batch_norm(slim.conv2d(images, 4, [3, 3]), is_training=True)
hparams = tf.contrib.training.HParams(rate=0.5, layers=[1], name="x", on=False)
hparams.parse("rate=1,layers=[2,3],on=true")
assert hparams.values() == {"rate": 1.0, "layers": [2, 3], "name": "x", "on": True}, hparams
from tensorflow.examples.tutorials.mnist import mnist, input_data
logits = mnist.inference(tf.placeholder(tf.float32, [2, mnist.IMAGE_PIXELS]), 8, 4)
labels = tf.placeholder(tf.int32, [2])
assert mnist.evaluation(logits, labels).dtype == tf.int32 and mnist.NUM_CLASSES == 10
mnist.training(mnist.loss(logits, labels), learning_rate=0.1).run
fake, without, _ = input_data.read_data_sets("/none", fake_data=True, one_hot=True)
assert [part.shape for part in fake.next_batch(3, True)] == [(3, 784), (3, 10)], fake
assert [part.shape for part in without.next_batch(3)] == [(0, 784), (0, 10)], without
assert len(tf.trainable_variables("hidden1")) == 2 and mnist.loss(logits, labels).shape == ()
import tensorflow.contrib.distribute as contrib_distribute
from tensorflow.contrib.distribute import *
DistributeConfig, DistributionStrategy, run_standard_tensorflow_server, OneDeviceStrategy
AllReduceCrossDeviceOps("hierarchical_copy"), get_distribution_strategy()
for mirrored in (MirroredStrategy(num_gpus=0), tf.contrib.distribute.MirroredStrategy(["/cpu:0"])):
    assert isinstance(mirrored, DistributionStrategy) and mirrored.num_replicas_in_sync == 1
assert isinstance(CollectiveAllReduceStrategy(num_gpus_per_worker=1), DistributionStrategy)
ParameterServerStrategy(num_gpus_per_worker=1)
import subprocess, sys
child = "import tensorflow as tf; tf.placeholder; print('a child has it, too')"
subprocess.run([sys.executable, "-c", child], check=True)
"""
GONE = {
    "import tensorflow.contrib.seq2seq": "tensorflow_addons/seq2seq",
    "from tensorflow.contrib import learn": "tf.contrib.learn: removed",
    "from tensorflow.contrib.learn.python.learn.datasets import base": "input_data reads MNIST's",
    "tf.contrib.seq2seq.BasicDecoder": "tensorflow_addons/seq2seq",
    "tf.contrib.no_such": "tf.contrib.no_such: it is not part of TensorFlow 2",
    "from tensorflow.contrib.layers import real_valued_column": "tf.feature_column.numeric_column",
    "tf.contrib.layers.embed_sequence": "tf.nn.embedding_lookup",
    "tf.estimator.Estimator": "tf.train.MonitoredTrainingSession",
    "import tensorflow.estimator": "tf.train.MonitoredTrainingSession",
    "from tensorflow import estimator": "tf.train.MonitoredTrainingSession",
    "tf.mul(1, 2)": "write tf.multiply",
    "tf.no_such": "module 'tensorflow' has no attribute 'no_such'",
    "import tensorflow.no_such": "No module named 'tensorflow.no_such'",
    "from tensorflow.examples.tutorials.mnist import no_such": "no_such",
    "tf.contrib.distribute.TPUStrategy": "this image has no TPU",
    "tf.contrib.training.HParams(a=1).parse('b=2')": "Unknown hyperparameter: b",
    "tf.contrib.training.HParams(a=1).parse('a=x')": "'x' is no int",
}
ASKS = """
def there(module, path):
    for part in path.split("."):
        module = getattr(module, part, None)
    return module is not None
import json, pathlib
names = json.loads(pathlib.Path("NAMES").read_text())["only_in_1"]
assert len(names) > 30 and not [name for name in names if there(v2, name)]
known = ("examples", "initialize_all_variables")
assert not [name for name in names if not there(tf, name) and name not in known]
for line in GONE:
    try:
        exec(line)
        print("it is there")
    except (AttributeError, ImportError, ValueError) as problem:
        print(problem)
assert not hasattr(tf, "estimator") and not hasattr(tf.contrib, "learn")
"""


def said_by(program: str, folder: Path) -> list[str]:
    """Returns what a program prints, in a process as the trainer starts it."""
    file = folder / "program.py"
    file.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(ON_PATH), "CLUSTER_KIT_AFTER_IMPORT": "tf1"}
    done = subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "deprecated" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def test_the_old_api_exists_and_removed_parts_are_named(tmp_path: Path) -> None:
    lines = said_by(
        THERE + ASKS.replace("GONE", repr(list(GONE))).replace("NAMES", str(NAMES)), tmp_path
    )
    assert lines.pop(0) == "a child has it, too"
    assert len(lines) == len(GONE)
    for line, (asked, told) in zip(lines, GONE.items(), strict=True):
        assert told in line, asked


def test_a_program_without_tensorflow_has_no_extra_cost(tmp_path: Path) -> None:
    program = "import sys\nprint([name for name in sys.modules if 'tf1' in name or 'json' in name])"
    assert said_by(program, tmp_path) == ["[]"]


def test_packages_written_for_tensorflow_2_get_its_api(tmp_path: Path) -> None:
    """Estimators are loaded at their first use: a stand-in, which 2.16 lacks, checks this."""
    package = tmp_path / "tensorflow_estimator"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow as tf\nSEEN = hasattr(tf, 'Session')\n")
    (package / "later.py").write_text("import tensorflow as tf\nSEEN = hasattr(tf, 'Session')\n")
    program = """
import tensorflow as tf
import tensorflow_estimator
from tensorflow_estimator import later
import tensorflow
print(tensorflow_estimator.SEEN, later.SEEN, tensorflow is tf, hasattr(tensorflow, "Session"))
"""
    assert said_by(program, tmp_path) == ["False False True True"]


def test_examples_next_to_the_program_take_precedence(tmp_path: Path) -> None:
    folder = tmp_path / "tensorflow" / "examples" / "tutorials"
    (folder / "mnist").mkdir(parents=True)
    (folder / "mnist" / "input_data.py").write_text("HOME = 'beside the program'\n")
    (folder / "word2vec.py").write_text("import tensorflow as tf\nHOME = tf.placeholder.__name__\n")
    program = """
from tensorflow.examples.tutorials.mnist import input_data, mnist
from tensorflow.examples.tutorials import word2vec
print(input_data.HOME, word2vec.HOME, mnist.NUM_CLASSES)
"""
    assert said_by(program, tmp_path) == ["beside the program placeholder 10"]
