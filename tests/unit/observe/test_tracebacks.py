"""The error of a failed task, found among TensorFlow's log lines."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.manifest.command_line import Caller
from cluster_kit.observe.tracebacks import (
    absolute_hint,
    known_hint,
    last_words,
    on_host,
    relative_hint,
    relative_paths,
    with_suggestion,
    without_message,
)
from cluster_kit.resolved import Mount

NOISE = """\
2025-03-01 10:00:00.100000: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. \
You may see slightly different numerical results due to floating-point round-off errors.
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1740823200.102000      17 cpu_feature_guard.cc:210] This TensorFlow binary is optimized
To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow \
with the appropriate compiler flags.
E0000 00:00:1740823200.103000      17 cuda_dnn.cc:8579] Unable to register cuDNN factory: \
Attempting to register factory for plugin cuDNN when one has already been registered
2025-03-01 10:00:00.200000: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:265] \
failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
W0000 00:00:1740823200.300000      17 grpc_worker_cache.cc:91] Error reported from remote task
WARNING:tensorflow:From /usr/lib/python3/x.py:1: the name is deprecated
INFO:tensorflow:ParameterServerStrategy is initialized with cluster_spec
WARNING:absl:`lr` is deprecated
"""

TRACEBACK = """\
Traceback (most recent call last):
  File "/program/train.py", line 12, in <module>
    main()
    ^^^^^^
  File "/program/train.py", line 8, in main
    model.fit(data)
  File "/usr/lib/python3/tf_keras/src/utils/traceback_utils.py", line 70, in error_handler
    raise e.with_traceback(filtered_tb) from None
ValueError: Exception encountered when calling layer "dense"

  input shape (None, 7) does not fit
"""


def stamped(log: str) -> str:
    """Returns the log as the engine does, with its own time in front of each line."""
    return "".join(
        f"2025-03-01T10:00:{i % 60:02}.123456789Z {line}\n"
        for i, line in enumerate(log.splitlines())
    )


def test_log_lines_of_tensorflow_alone_are_no_error() -> None:
    assert last_words(stamped(NOISE)) == ""


def test_a_deprecation_warning_is_no_error() -> None:
    warning = (
        "WARNING:tensorflow:From /program/train.py:7: experimental_run (from tf) is deprecated.\n"
        "Instructions for updating:\nuse distribute.MultiWorkerMirroredStrategy instead\n"
    )
    assert last_words(stamped(warning)) == ""
    assert last_words(stamped(f"{warning}{warning}waits\n")) == "waits"


KERAS = "/opt/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py"
CALLED_BACK = f"""\
Traceback (most recent call last):
  File "/opt/trainer/trainer/agent/injected/runner.py", line 90, in run
    exec(code, module.__dict__)
  File "/program/train.py", line 12, in <module>
    model.fit(data, callbacks=[Save()])
  File "{KERAS}", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "/tmp/__autograph_generated_file1.py", line 12, in tf__f
    g()
  File "/program/saving.py", line 8, in on_epoch_end
    self.model.save_to(path)
  File "{KERAS}", line 80, in wrapper
    return call(*args)
  File "/usr/lib/python3.11/shutil.py", line 3, in copy
    open(path)
ValueError: no such place
"""


@pytest.mark.parametrize("error", ["", "ValueError: no such place"])
def test_a_traceback_ends_in_the_programs_own_frames(error: str) -> None:
    output = last_words(stamped(NOISE + CALLED_BACK), error=error).splitlines()
    assert output == [
        '  File "/program/train.py", line 12, in <module>',
        "    model.fit(data, callbacks=[Save()])",
        "  …",
        '  File "/program/saving.py", line 8, in on_epoch_end',
        "    self.model.save_to(path)",
        "  …",
        *(["ValueError: no such place"] if not error else []),
    ]


def test_the_frames_of_an_error_are_found_that_is_saved_without_its_module() -> None:
    said = 'errors_impl.AbortedError: in user code:\n    File "/program/train.py", line 9, in f\n'
    log = stamped(CALLED_BACK.replace("ValueError: no such place\n", said))
    frames = last_words(stamped(CALLED_BACK), error="ValueError: no such place")
    assert last_words(log, error="AbortedError: other shapes") == frames


@pytest.mark.parametrize("error", ["", "the program ended with exit code 1"])
def test_a_traceback_ends_with_its_error(error: str) -> None:
    said = f"chief-0: {error}\n" if error else ""  # a program can print it, and exit by itself
    output = without_message(
        last_words(stamped(NOISE + TRACEBACK + said), error=error), error
    ).splitlines()
    assert output[-2:] == [
        'ValueError: Exception encountered when calling layer "dense"',
        "  input shape (None, 7) does not fit",
    ]
    assert "    model.fit(data)" in output
    assert len(output) <= 12


def test_log_lines_after_the_traceback_do_not_hide_it() -> None:
    output = last_words(stamped(TRACEBACK + NOISE))
    assert output.splitlines()[-1] == "  input shape (None, 7) does not fit"


def test_of_two_chained_tracebacks_the_last_one_counts() -> None:
    first = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n'
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    output = last_words(stamped(first + between + TRACEBACK))
    assert "ValueError: Exception encountered" in output
    assert "KeyError" not in output


def test_a_traceback_during_shutdown_is_not_the_error() -> None:
    ignored = (
        "Exception ignored in: <function Server.__del__ at 0x7f>\n"
        'Traceback (most recent call last):\n  File "x.py", line 1, in __del__\n'
        "AttributeError: 'NoneType' object has no attribute 'close'\n"
    )
    for log in (TRACEBACK + ignored, ignored + TRACEBACK):
        output = last_words(stamped(log))
        assert "ValueError: Exception encountered" in output
        assert "AttributeError" not in output


def test_a_traceback_that_the_program_survived_is_not_the_error() -> None:
    went_on = "".join(f"step {step}: loss 0.5\n" for step in range(100))
    output = last_words(stamped(TRACEBACK + went_on + "out of paper\n"))
    assert output.splitlines()[-1] == "out of paper"
    assert "ValueError" not in output


def test_without_a_traceback_the_last_lines_are_kept() -> None:
    log = NOISE + "".join(f"line {number}\n" for number in range(30)) + "Killed\n"
    output = last_words(stamped(log)).splitlines()
    assert output[-1] == "Killed"
    assert len(output) == 12


def test_an_incomplete_traceback_is_shown_unchanged() -> None:
    cut = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
    assert last_words(stamped(cut)) == cut.rstrip()


def test_text_that_only_begins_like_a_traceback_is_shown_with_its_error() -> None:
    told = "Traceback (most recent call last):\nValueError: wrong"
    assert last_words(stamped(told)) == told
    assert last_words(stamped(f"{told}\n"), error="ValueError: wrong") == told.partition("\n")[0]


def test_a_deep_traceback_keeps_its_error_and_its_nearest_frames() -> None:
    frames = "".join(f'  File "f{i}.py", line {i}, in f\n    g()\n' for i in range(50))
    output = last_words(
        stamped(f"Traceback (most recent call last):\n{frames}RuntimeError: deep\n")
    )
    assert output.splitlines()[-1] == "RuntimeError: deep"
    assert "f49.py" in output
    assert len(output.splitlines()) <= 12


def test_what_other_threads_log_into_a_traceback_is_left_out() -> None:
    failed = "ERROR:tensorflow: /job:worker/task:0 encountered the following error: no\n"
    begin, frame = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n', "    g()\n"
    log = f"{failed}{begin}{failed}{frame}{failed}ValueError: no\n{failed}"
    assert last_words(stamped(log)) == f'  File "a.py", line 1, in f\n{frame}ValueError: no'
    assert last_words(stamped(failed)) == failed.rstrip()


def test_an_empty_log_has_no_error() -> None:
    assert last_words("") == ""
    assert last_words(stamped("\n\n")) == ""


SITE = "/opt/venv/lib/python3.11/site-packages/tensorflow/python"
MADE = f"""\
Detected at node 'save/SaveV2' defined at (most recent call last):
    File "/opt/trainer/trainer/runner.py", line 129, in <module>
    File "/program/train.py", line 53, in <module>
    File "{SITE}/absl/app.py", line 410, in run
    File "/program/train.py", line 40, in main
Node: 'save/SaveV2'
"""
GRAPH_ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/program/train.py", line 40, in main\n    with session() as s:\n         ^^^^^^\n'
    + "".join(f'  File "{SITE}/training/s{i}.py", line {i}, in f\n    g()\n' for i in range(20))
    + "tensorflow.python.framework.errors_impl.NotFoundError: Graph execution error:\n\n"
    + MADE * 2
    + "From /job:worker/replica:0/task:0:\n"
    "/tmp/train/model.ckpt-0_temp; No such file or directory\n"
    "\t [[{{node save/SaveV2}}]]\n"
    "Additional GRPC error information from remote target /job:ps/replica:0/task:0:\n"
    ':UNKNOWN:Error received from peer  {grpc_status:5, grpc_message:"/tmp"}\n'
    "\t [[save/Identity_S29]]\n\n"
    "Original stack trace for 'save/SaveV2':\n"
    + "".join(f'  File "{SITE}/training/s{i}.py", line {i}, in f\n' for i in range(60))
)


def test_a_graph_mode_error_is_reported_once_with_the_programs_own_line() -> None:
    output = last_words(stamped(NOISE + GRAPH_ERROR)).splitlines()
    assert output[:4] == [
        '  File "/program/train.py", line 40, in main',
        "    with session() as s:",
        "         ^^^^^^",
        "  …",
    ]
    assert output[-6:] == [
        "tensorflow.python.framework.errors_impl.NotFoundError: Graph execution error:",
        '    File "/program/train.py", line 40, in main',
        "Node: 'save/SaveV2'",
        "From /job:worker/replica:0/task:0:",
        "/tmp/train/model.ckpt-0_temp; No such file or directory",
        "\t [[{{node save/SaveV2}}]]",
    ]
    assert len(output) <= 12


def test_after_a_graph_mode_error_a_later_message_of_the_program_counts() -> None:
    output = last_words(stamped(GRAPH_ERROR + "worker-0: the program ended with exit code 1\n"))
    assert "No such file or directory" in output


KNOWN_ERRORS = [
    (
        "NotImplementedError: Only `tf.keras.utils.experimental.DatasetCreator`, `tf.Tensor`, "
        "numpy arrays and pandas dataframes are supported types at this time.",
        "give `fit` and `evaluate` a `DatasetCreator`",
    ),
    (
        "ValueError: When using a `tf.keras.utils.experimental.DatasetCreator`, `steps_per_epoch`, "
        "`validation_steps`, `steps`, or `pss_evaluation_shards` argument must be provided in "
        "`Model.fit`, `Model.evaluate`, or `Model.predict`.",
        "give `fit` its `steps_per_epoch`",
    ),
    (
        "TypeError: int() argument must be a string, a bytes-like object or a real number, not "
        "'MirroredVariable'",
        "read its value by `.numpy()`",
    ),
    (
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node "
        "__wrapped__Identity_device_/job:chief/replica:0/task:0/device:CPU:0}} Expects 1 "
        "arguments, but 0 is provided [Op:Identity] name: ",
        "with TensorFlow's operations",
    ),
    (GRAPH_ERROR, "save below /output"),
    ("OSError: [Errno 30] Read-only file system: 'ckpt'", "write below /output"),
    ("ModuleNotFoundError: No module named 'pandas'", '`requirements = "FILE"`'),
    ("ModuleNotFoundError: No module named 'tensorflow_hub'", '`requirements = "FILE"`'),
    (
        "ModuleNotFoundError: No module named 'yaml'",
        'list its package, PyYAML, in a file, and run with `requirements = "FILE"`',
    ),
    ("ModuleNotFoundError: No module named 'cv2'", "its package, opencv-python-headless,"),
    ("ModuleNotFoundError: No module named 'sklearn'", "its package, scikit-learn,"),
    ("ModuleNotFoundError: No module named 'sklearn.externals'", "another version of `sklearn`"),
    ("ModuleNotFoundError: No module named 'keras.utils.np_utils'", "`tf.keras`"),
    ("ModuleNotFoundError: No module named 'utils.a'; 'utils' is not a package", "a file of yours"),
    ("ModuleNotFoundError: No module named 'cPickle'", "`import pickle`"),
    ("ModuleNotFoundError: No module named 'PIL'", "its package, pillow,"),
    ("ModuleNotFoundError: No module named 'skimage'", "its package, scikit-image,"),
    ("ModuleNotFoundError: No module named 'dateutil'", "its package, python-dateutil,"),
    ("ModuleNotFoundError: No module named 'google.protobuf.any_pb2'", "its package, protobuf,"),
    ("ModuleNotFoundError: No module named 'google.other'", "list its package in a file"),
    ("ModuleNotFoundError: No module named 'tensorflow.examples'", "`tf1 = true`"),
    ("ModuleNotFoundError: No module named 'tensorflow.contrib'", "`tf1 = true`"),
    ("AttributeError: module 'tensorflow' has no attribute 'placeholder'", "`tf1 = true`"),
    ("ModuleNotFoundError: No module named 'tensorflow.examples.tutorials.word2vec'", ""),
    ("AttributeError: module 'tensorflow' has no attribute 'estimator'", '"2.15"'),
    ("AttributeError: module 'tensorflow.compat.v1' has no attribute 'estimator'", '"2.15"'),
    ("ModuleNotFoundError: No module named 'tensorflow_estimator'", '"2.15"'),
    ("ModuleNotFoundError: No module named 'tensorflow.compat.v1.estimator'", '"2.15"'),
    ("ImportError: cannot import name 'estimator' from 'tensorflow' (/opt/v)", '"2.15"'),
    (
        "NotImplementedError: tf.keras.estimator.model_to_estimator function not available in "
        "your installation.",
        '"2.15"',
    ),
    (
        'ValueError: If "cluster" is set in TF_CONFIG, it must have one "chief" node.',
        "`chief = 1`",
    ),
    (
        "ValueError: If `master` node exists in `cluster`, task_type `evaluator` is not supported.",
        'chief_job = "chief"',
    ),
    ("AttributeError: module 'tensorflow' has no attribute 'no_such'", ""),
    (
        "Exception: URL fetch failure on https://storage.googleapis.com/mnist.npz: None -- "
        "[Errno -2] Name or service not known",
        "`[data] fetch`",
    ),
    ("urllib.error.URLError: <urlopen error [Errno -2] Name or service>", '`data = "DIR"`'),
    ("requests.exceptions.ConnectionError: HTTPConnectionPool(host='h')", "if it is a download"),
    ("socket.gaierror: [Errno -2] Name or service not known", "`[data] fetch`"),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'wget'", "`[data] fetch`"),
    ("sh: 1: curl: not found", "`[data] fetch`"),
    (
        "FileNotFoundError: train-images-idx3-ubyte.gz: not in MNIST_data/ nor in /opt/datasets"
        "/digits. Nothing is downloaded in a cluster: put the four files",
        '`data = "DIR"`',
    ),
    ("ModuleNotFoundError: No module named 'horovod'", "Horovod's tasks"),
    ("ModuleNotFoundError: No module named 'horovod.tensorflow'", "Horovod's tasks"),
    ("KeyError: 'RANK'\n    os.environ['RANK']", "for each role that runs the program"),
    ("KeyError: 'OMPI_COMM_WORLD_SIZE'\n    environ['OMPI_COMM_WORLD_SIZE']", "num_workers"),
    ("KeyError: 'RANK'\n    table['RANK']", ""),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/vocab.txt'",
        "/tmp is not shared",
    ),
    (
        "NotFoundError: {{node}} /tmp/a/b; No such file or directory [Op:ReadFile]",
        "/tmp is not shared",
    ),
    (
        "NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any "
        "matching files for /tmp/x/ckpt",
        "/tmp is not shared",
    ),
    ("OSError: No file or directory found at /tmp/x/model.h5", "/tmp is not shared"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/output/tmp/a'", ""),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'vocab.txt'", ""),
    (
        "RuntimeError: Collective ops must be configured at program startup",
        "create the strategy first",
    ),
    (
        "ValueError: Variable (<tf.Variable 'dense/kernel:0' numpy=\narray([[ 0.1]],\n"
        "      dtype=float32)>) was not created in the distribution strategy scope of (<tensorflow",
        "inside `with strategy.scope():`",
    ),
    (
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Collective ops is aborted "
        "by: Shape mismatch in the collective instance 332. Op at device /job:worker/replica:0/"
        "task:0/device:CPU:0 expected shape [] but another member in the group expected shape [9].",
        "take the same number of steps",
    ),
    (
        "tensorflow.python.framework.errors_impl.OutOfRangeError: End of sequence\n"
        '  File "/program/train.py", line 16, in <module>\n\t [[{{node IteratorGetNext}}]]',
        "read to its end: add `.repeat()`",
    ),
    (
        'errors_impl.InternalError: Job "ps" was not defined in cluster',
        "name its jobs as TF_CONFIG does",
    ),
    (
        'errors_impl.InternalError: Job "chief" was not defined in cluster',
        "or start the cluster with `chief = 0`",
    ),
    (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
        "tensor with shape[1073741824] and type float on /job:localhost/replica:0/task:0/device:"
        "GPU:0 by allocator GPU_0_bfc [Op:Fill] name:",
        "`gpu_memory`",
    ),
    (
        "InternalError: Collective ops is aborted by: Device /job:worker/replica:0/task:0/device:"
        "GPU:0 is joining a group with incompatible device typeCPU (group_key=1)",
        'all of its tasks or in none: run with `gpus = "auto"`',
    ),
    (
        "the cluster spec has 2 ps: MultiWorkerMirroredStrategy would wait forever. Run it",
        '`style = "all-tasks"` and `ps = 0`',
    ),
    (
        "ValueError: ParameterServerStrategy in worker-0: only the chief makes it, and would wait",
        '`style = "coordinator"`',
    ),
    ("RuntimeError: can't start new thread", "`container.pids`"),
    (
        "terminate called after throwing an instance of 'std::system_error'\n"
        "  what():  Resource temporarily unavailable",
        "`timeout_seconds`",
    ),
    (
        "2026-01-01 10:00:00.000000: F external/local_xla/env.cc:74] Check failed: ret == 0 (11 "
        "vs. 0)Thread tf_ creation via pthread_create() failed.",
        "`container.pids`",
    ),
    ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "`container.pids`"),
    ("InvalidArgumentError: Unable to parse tensor proto", "create_per_worker_dataset"),
    (
        "AlreadyExistsError: There appears to be a concurrent caching iterator running - cache "
        "lockfile already exists ('cache_0.lockfile').",
        "`cache('/tmp/cache')`",
    ),
    (
        "tensorflow.python.framework.errors_impl.CancelledError: The corresponding function is "
        "cancelled. Please reschedule the function.",
        "if it is `End of sequence`",
    ),
    (
        "keras_tuner.src.errors.FatalTypeError: Expected the model-building function, or "
        "HyperModel.build() to return a valid Keras Model instance. Received: <tf_keras.src.engine."
        "sequential.Sequential object at 0x7f80c638eed0> of type <class '...'>.",
        "`import keras`",
    ),
    ("CancelledError: RemoteExecuteNode::RunAsync [Op:__inference_train_1]", "`steps_per_epoch`"),
    ("CancelledError: the operation was cancelled", ""),
    ("EOFError: EOF when reading a line", 'with `args = ["--answer=yes"]`'),
    ("EOFError: Ran out of input", ""),
    ("AttributeError: 'numpy.ndarray' object has no attribute 'tostring'", "tobytes()"),
    (
        "ValueError: Layer 'embedding' expected 1 variables, but received 2 variables during "
        "loading. Expected: ['embedding/embeddings:0']",
        "variable_partitioner",
    ),
    (
        "ValueError: Weight count mismatch for layer #0 (named embedding in the current model, "
        "embedding in the save file). Layer expects 1 weight(s). Received 2 saved weight(s)",
        "variable_partitioner",
    ),
    (
        "ValueError: Batch-level `Callback`s are not supported with `ParameterServerStrategy`. "
        "Found unsupported callbacks: [<__main__.Losses object at 0x7fa4457009d0>]",
        "not get the loss of single steps",
    ),
    (
        "TypeError: RemoteValueImpl.get() takes 1 positional argument but 2 were given",
        "TerminateOnNaN",
    ),
    (
        "ValueError: Invalid Reduction Key: None. Expected keys are \"('auto', 'none', 'sum')\"",
        '`reduction="none"`',
    ),
    ("AttributeError: module 'tf_keras.api._v2.keras' has no attribute 'ops'", "`import keras`"),
    ("AttributeError: module 'tf_keras' has no attribute 'lyers'. Did you mean: 'layers'?", ""),
    (
        "ValueError: Unrecognized keyword arguments passed to LSTM: "
        "{'batch_input_shape': [None, 48, 1], 'time_major': False}",
        "`tf_keras.models.load_model`",
    ),
    (
        "ValueError: Unrecognized keyword arguments passed to LSTM: "
        "{'batch_input_shape': (1, 10, 1)}",
        "`keras.Input(batch_shape=...)`",
    ),
    ("TypeError: 'RemoteValueImpl' object is not subscriptable", "`fetch(value)`"),
    (
        "TypeError: unsupported format string passed to PerReplica.__format__",
        "`strategy.reduce('SUM', value, axis=None)`",
    ),
    ("AttributeError: 'PerReplica' object has no attribute 'numpy'", "experimental_local_results"),
    ("RuntimeError: Virtual devices cannot be modified after being initialized", "set devices"),
    ("RuntimeError: Visible devices cannot be modified after being initialized", "set devices"),
    ("AttributeError: 'Sequential' object has no attribute '_training_state'", "each `fit`"),
    (
        "ValueError: Trying to create optimizer slot variable under the scope for "
        "tf.distribute.Strategy (<S>), which is different from the scope used for the original "
        "variable (<tf.Variable 'w:0'>).",
        "inside `with strategy.scope():`",
    ),
    (
        "TypeError: unsupported operand type(s) for +: 'RemoteValueImpl' and 'float'",
        "`fetch(value)`",
    ),
    ("AttributeError: 'RemoteValueImpl' object has no attribute 'numpy'", "`fetch(value)`"),
    (
        "InvalidArgumentError: Could not satisfy device specification '/job:localhost/replica:0"
        "/task:0/device:GPU:0'. enable_soft_placement=0.",
        '`gpus = "auto"`',
    ),
    (
        "InvalidArgumentError: Cannot assign a device for operation x: Could not satisfy "
        "explicit device specification '/device:GPU:0' because",
        '`gpus = "auto"`',
    ),
    (
        "InvalidArgumentError: Cannot assign a device for operation Variable: {{node Variable}}"
        " was explicitly assigned to /job:worker/task:0/device:GPU:0 but available devices are",
        '`gpus = "auto"`',
    ),
    (
        'IndexError: list index out of range\n  File "/program/a.py", line 3, in <module>\n'
        '    tf.config.set_visible_devices(gpus[0], "GPU")',
        '`gpus = "auto"`',
    ),
    ("IndexError: list index out of range\n    print(rows[3])", ""),
    (
        "InvalidArgumentError: allow_missing_files was set to false and "
        "/output/model/ckpt_temp/part-00000-of-00001 did not exist.NOT_FOUND: no",
        "in an all-reduce all tasks must save",
    ),
    (
        "NotFoundError: /output/model/ckpt-1_temp/part-00000-of-00001.data-00000-of-00001; No "
        "such file or directory",
        "in an all-reduce all tasks must save",
    ),
    (
        "NotFoundError: saved_model/variables/variables_temp/part-00000-of-00001.data-00000-of-"
        "00001; No such file or directory [Op:MergeV2Checkpoints]",
        "several tasks write the same files",
    ),
    (
        "NotFoundError: Failed to rename: /output/m/checkpoint.tmp1f to: /output/m/checkpoint "
        ": /output/m/checkpoint.tmp1f; No such file or directory",
        "in an all-reduce all tasks must save",
    ),
    (
        "BlockingIOError: [Errno 11] Unable to synchronously open file (unable to lock file, "
        "errno = 11, error message = 'Resource temporarily unavailable')",
        "another process has this file open",
    ),
    (
        "UnimplementedError: Collectives are not yet implemented for CPU devices when compiling "
        "with XLA. Attempted to compile a collective running on/job:worker/replica:0/task:0",
        "leave out `jit_compile=True`",
    ),
    (
        "ValueError: Unexpected result of `train_function` (Empty logs). This could be due to "
        "issues in input pipeline that resulted in an empty dataset.",
        "the dataset has fewer files than tasks, set `experimental_distribute.auto_shard_policy`",
    ),
    (
        "Could not apply FILE based sharding: the dataset only has 1 file(s), which is not enough "
        "for the required 2 shards/workers.",
        "to `AutoShardPolicy.DATA`",
    ),
    ("ValueError: Cannot set an empty vocabulary, you passed [].", "/tmp is each task's own"),
    ("ValueError: No objects to concatenate", "if it found no file: relative paths start at"),
    (
        "NotFoundError: /data/city_temp.csv; No such file or directory",
        "nothing is mounted at /data",
    ),
    ("NotFoundError: city_temp.csv; No such file or directory [Op:ReadFile]", ""),
    ("NotFoundError: /program/page.tmpl; No such file or directory [Op:ReadFile]", ""),
    ("NotFoundError: /mnt/city_temp.csv; No such file or directory [Op:ReadFile]", ""),
    (
        "FileNotFoundError: [Errno 2] Unable to synchronously create file (unable to open file: "
        "name = '/tmp/a/x.h5', errno = 2, error message = 'No such file or directory', flags = 13)",
        "its directory does not exist: create it first",
    ),
    (
        "InternalError: Collective ops is aborted by: Collective instance 198 expected type 0 and "
        "data_type 9 but got type 0 and data_type 1",
        "the tasks were at different places of the program",
    ),
    (
        "ValueError: Received incompatible tensor with shape (4, 16) when attempting to restore "
        "variable with shape (4, 8) and name model/bias/.ATTRIBUTES/VARIABLE_VALUE.",
        "the checkpoint was saved by a model of other sizes",
    ),
    (
        "ValueError: Cannot assign value to variable ' lm/bias:0': Shape mismatch.The variable "
        "shape (4, 8), and the assigned value shape (4, 16) are incompatible.\n"
        '  File "/program/train.py", line 68, in <module>\n    ckpt.restore(latest)',
        "the checkpoint was saved by a model of other sizes",
    ),
    (
        "ValueError: Cannot assign value to variable ' v:0': Shape mismatch.The variable shape "
        "(2,), and the assigned value shape (3,) are incompatible.\n"
        '  File "/program/train.py", line 68, in <module>\n    v.assign([1.0, 2.0, 3.0])',
        "",
    ),
    (
        "Inputs to operation gradient_tape/sequential/conv2d/ReluGrad of type ReluGrad must have "
        "the same size and shape.  Input 0: [0,6,6,16] != input 1: [0,8,8,1]",
        "the task got an empty batch",
    ),
    (
        "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server",
        "the task has a server already",
    ),
    ("the program was still running after 40 s; where each task stands is in", "; `--resume` ("),
    (
        "the program was still running after 99 s; where each task stands is in stacks/ of the "
        "output; the last step was 60 s before",
        "if it hangs, `cluster-kit stacks`",
    ),
    ("evaluator-0 was still running after its grace", "`deadline.evaluator_grace`"),
    ("the evaluator was still running 60 s after the job's end", "`deadline.evaluator_grace`"),
    ("the program was still running 10 s after the leader's end, and was stopped", ""),
    ("ValueError: shapes do not match", ""),
    ("", ""),
]


def test_frequent_errors_have_a_hint(subtests: pytest.Subtests) -> None:
    for words, advice in KNOWN_ERRORS:
        with subtests.test(words=words):
            assert advice in known_hint(words)
            assert bool(advice) == bool(known_hint(words))


@pytest.mark.parametrize(
    "words",
    [
        "ModuleNotFoundError: No module named 'trainer.model'",
        "ImportError: cannot import name 'model' from 'trainer' (/opt/trainer/trainer/__init__.py)",
    ],
)
def test_a_program_inside_a_package_gets_a_hint_where_to_start(words: str) -> None:
    hint = known_hint(words, [Mount("/home/you/trainer", "/program")])
    assert "next to the directory `trainer`" in hint
    assert "runpy.run_module('trainer.train', run_name='__main__')" in hint
    missing = "ModuleNotFoundError: No module named 'mlflow'"
    assert "list its package" in known_hint(missing, [Mount("/home/you/mlflow", "/program")])
    assert "beside `" not in known_hint(words, [Mount("/home/you/src", "/program")])
    assert "beside `" not in known_hint(words, [Mount("/home/you/trainer", "/cache")])


def test_a_relative_import_in_the_program_gets_a_hint_where_to_start() -> None:
    words = "ImportError: attempted relative import with no known parent package"
    mounts = [Mount("/home/you/src", "/program")]
    assert "next to the directory `src`" in known_hint(words, mounts)
    assert "run_module('src.go', " in known_hint(words, mounts, program="/program/go.py")
    assert not known_hint(words)


def test_relative_paths_of_missing_files() -> None:
    words = (
        "FileNotFoundError: [Errno 2] No such file or directory: 'conf/lr.json'\n"
        "NotFoundError: {{node ReadFile}} vocab.txt; No such file or directory\n"
        "NotFoundError: /tmp/x; No such file or directory\n"
    )
    assert relative_paths(words) == ["conf/lr.json", "vocab.txt"]


MISSING_RELATIVE = (
    "ValueError: No files match `file_pattern` data/x.csv.",
    "ValueError: No files match `file_pattern` ['data/x.csv'].",
    "InvalidArgumentError: Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. "
    "Summarized data: b'No files matched pattern: data/x.csv'",
    "NotFoundError: data/x.csv; No such file or directory",
    "NotFoundError: {{function_node __wrapped__ReadFile_device_/job:localhost/replica:0/task:0/"
    "device:CPU:0}} data/x.csv; No such file or directory [Op:ReadFile]",
    "NotFoundError: Could not find directory data/x.csv",
    "OSError: No file or directory found at data/x.csv",
    "OSError: SavedModel file does not exist at: data/x.csv/{saved_model.pbtxt|saved_model.pb}",
    "NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
    "for data/x.csv",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/x.csv'",
    "FileNotFoundError: data/x.csv not found.",
    "FileNotFoundError: [Errno 2] Unable to synchronously open file (unable to open file: "
    "name = 'data/x.csv', errno = 2, error message = 'No such file or directory', flags = 0)",
    "ValueError: File not found: filepath=data/x.csv. Please ensure the file is an accessible "
    "`.keras` zip file.",
)
"""As Python, NumPy, h5py and TensorFlow 2.15 report them."""
IN_PROGRAM = Mount("/home/you/ml", "/program")


@pytest.mark.parametrize("words", MISSING_RELATIVE)
def test_a_missing_relative_path_has_a_hint_where_it_starts_and_how_to_mount_it(words: str) -> None:
    assert relative_paths(words) == ["data/x.csv"]
    hint = relative_hint(words, [IN_PROGRAM], Caller.SHELL)
    assert "unless the program calls `os.chdir`, and data/x.csv does not exist there" in hint
    assert "run with `--data DIR`, and open /data/x.csv; to write it, create data first" in hint
    mounted = relative_hint(words, [IN_PROGRAM, Mount("/home/you/data", "/data")])
    assert "the data of this run is at /data" in mounted
    above = relative_hint(words.replace("data/x.csv", "../data/x.csv"), [IN_PROGRAM])
    assert above and "to write it" not in above, "there only /output and /tmp can be written"
    assert not relative_hint(words, []), "a built-in program opens no path of the user's"
    absolute = words.replace("data/x.csv", "/data/x.csv")
    assert not relative_paths(absolute)
    assert "nothing is mounted at /data" in known_hint(absolute)


@pytest.mark.parametrize("words", MISSING_RELATIVE)
def test_a_missing_path_of_this_host_has_a_hint_how_to_mount_it(words: str) -> None:
    words = words.replace("data/x.csv", "/home/me/sets/x.csv")
    hint = absolute_hint(words, [IN_PROGRAM], Caller.SHELL)
    assert "so it has no /home/me/sets/x.csv: to read it, run with `--data DIR`" in hint
    mounted = absolute_hint(words, [IN_PROGRAM, Mount("/home/you/data", "/data")])
    assert "the data of this run is at /data" in mounted
    assert not absolute_hint(words, []), "a built-in program opens no path of the user's"
    assert not absolute_hint(words, [IN_PROGRAM, Mount("/home/you/sets", "/home/me/sets")])
    assert not absolute_hint(words.replace("/home/me", "/output"), [IN_PROGRAM])


def test_what_to_open_for_each_form_of_a_relative_path() -> None:
    for path, opened in (
        ("x.csv", "/data/x.csv"),
        ("../sets/train/*.csv", "/data/train/*.csv"),
        ("data", "it as /data"),
    ):
        words = f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'"
        assert relative_hint(words, [IN_PROGRAM]).endswith(f"and open {opened}")


def test_a_command_or_an_address_is_no_relative_path() -> None:
    for words in (
        "FileNotFoundError: [Errno 2] No such file or directory: 'git'",
        "NotFoundError: Could not find directory gs://bucket/data",
        "ValueError: No files match `file_pattern` [].",
    ):
        assert not relative_hint(words, [IN_PROGRAM])


MISSING_DATA = (
    "FileNotFoundError: [Errno 2] No such file or directory: '/data'",
    "NotFoundError: {{node}} /data/train.tfrecord; No such file or directory [Op:IteratorGetNext]",
    "InvalidArgumentError: Summarized data: b'No files matched pattern: /data/*.jpg'",
)


@pytest.mark.parametrize("words", MISSING_DATA)
def test_a_missing_data_file_gets_a_hint_if_no_data_is_mounted(words: str) -> None:
    assert "nothing is mounted at /data" in known_hint(words)
    assert not known_hint(words, [Mount("/home/you/images", "/data")])
    assert not known_hint(words.replace("/data", "/output/data"))


@pytest.mark.parametrize(
    "words",
    ["PermissionDeniedError: /shards/a.tmp; Read-only file system",
     "OSError: [Errno 30] Read-only file system: '/shards'"],
)  # fmt: skip
def test_what_is_written_to_a_read_only_mount_names_its_key(words: str) -> None:
    mount = Mount("/home/you/shards", "/shards")
    assert "write `read_only = false` in its `[[mount]]`" in known_hint(words, [mount])
    for other in (Mount("/x", "/shard"), Mount("/x", "/shards", read_only=False)):
        assert known_hint(words, [other]).startswith("write below /output")


PROBLEMS = """\
/data/pipeline.toml: 2 problems
  train_config.batch_sise = 8: no such key
    → did you mean `batch_size`?
  train_input_reader.input_path = "/data/x": no file
    → write a path seen from /data"""


@pytest.mark.parametrize("blamed", [PROBLEMS, f"worker-1: {PROBLEMS}"])
def test_the_text_of_the_message_is_not_repeated(blamed: str) -> None:
    headline = PROBLEMS.splitlines()[0]
    log = f"reading 3 files\nerror: {PROBLEMS}\nworker-1: {headline}\n"
    assert without_message(last_words(stamped(log)), blamed) == "reading 3 files"


def test_a_refusal_in_the_message_is_not_repeated_with_its_class() -> None:
    assert without_message("step 1\nValueError: there are 2 ps", "there are 2 ps") == "step 1"


def test_the_carets_below_a_repeated_line_of_code_go_with_it() -> None:
    message = 'AttributeError: no a\n  File "t.py", line 11, in step\n    return {self.a}'
    code = '  File "t.py", line 11, in step\n    return {self.a}\n            ^^^^^^'
    assert without_message(f"    m.fit(data)\n    ~~~~~^^^^^^\n{code}", message) == (
        "    m.fit(data)\n    ~~~~~^^^^^^"
    )


def test_a_frame_stays_above_its_line_of_code() -> None:
    """A coordinator's error names the frames that made the graph's node, without their code."""
    frame = '  File "train.py", line 67, in <module>'
    words = f"{frame}\n    h = model.fit(data)\n        ^^^^^^^^^^^^^^^"
    assert without_message(words, f"ClosureInputError: no files\n{frame}") == words
    assert (
        without_message(words, f"ClosureInputError: no files\n{frame}\n    h = model.fit(data)")
        == ""
    )


def test_a_traceback_stays_complete() -> None:
    words = last_words(stamped(TRACEBACK + "chief-0: the program ended with exit code 1\n"))
    assert without_message(words, "the program ended with exit code 1") == last_words(
        stamped(TRACEBACK)
    )


def test_paths_are_the_hosts_if_a_directory_is_mounted() -> None:
    mounts = (Mount("/data/mine", "/program"), Mount("/home/you/shards", "/data"))
    output = on_host(PROBLEMS, mounts).splitlines()
    assert output[0] == "/home/you/shards/pipeline.toml: 2 problems"
    assert output[3] == '  train_input_reader.input_path = "/data/x": no file', "as it was written"
    assert output[4] == "    → write a path seen from /home/you/shards"
    assert on_host("/program/a.py (/data): ", mounts) == "/data/mine/a.py (/home/you/shards): "
    for other in ("/opt/data/x", "x/data", "/database/x", "/data.txt", "./data/x"):
        assert on_host(other, mounts) == other
    assert on_host(PROBLEMS, ()) == PROBLEMS


@pytest.mark.parametrize("separator", ["\r", "\n", "\u2028"])
@pytest.mark.parametrize(
    "stamp", ["2026-99-99T99:99:99Z", "0000-00-00T00:00:00Z", "2026-01-01T::Z"]
)
def test_text_that_only_looks_like_the_engines_time_stays(separator: str, stamp: str) -> None:
    log = f"2026-11-23T10:00:00.1Z ended{separator}{stamp} with this"
    assert last_words(log, stderr=log).endswith("with this")


@pytest.mark.parametrize(
    "word", ["/output/_temp", "/output/x.tmp;", "GPU ", "/tmp//output/_temp", "x_temp"]
)
def test_hints_are_found_in_bounded_time(word: str) -> None:
    began = time.process_time()
    known_hint(word * 100_000)
    assert time.process_time() - began < 5


LINES = [
    "Traceback (most recent call last):", "Traceback (most recent", "  Traceback (most recent",
    '  File "/program/train.py", line 1, in f', '  File "/opt/venv/a.py", line 1, in f',
    'File "', ' File ""', "    main()", "    ^^^^", "ValueError: x", "ValueError", "ValueError: ",
    ":", "\t", " [[{{node x}}]]", "Detected at node 'x' defined at (most recent call last):",
    "Original stack trace for 'x'", "Additional GRPC error information from remote",
    "Exception ignored in: <x>", "During handling of the above exception, another one:", "", " ",
    "2025-99-01T10:00:00Z ", "2025-03-01T10:00:00Z 2025-03-01T10:00:00Z x", "error: ValueError: x",
    "x" * 3000, "\x00\u2028\ud800", "worker-0: ValueError: x", "/data: No such file or directory",
]  # fmt: skip
malformed = st.lists(st.sampled_from(LINES) | st.text(max_size=30), max_size=30).map("\n".join)


@given(
    log=malformed,
    stderr=malformed,
    error=st.sampled_from(["", "ValueError: x", "ValueError", ":", "\n", "Traceback (most recent"]),
    limit=st.integers(1, 20),
    engine=st.booleans(),
)
def test_any_text_like_a_traceback_is_read(
    log: str, stderr: str, error: str, limit: int, engine: bool
) -> None:
    log, stderr = (stamped(log), stamped(stderr)) if engine else (log, stderr)
    words = last_words(log, limit, error=error, stderr=stderr)
    assert set(words.splitlines()) <= {
        "  …", *(line.rstrip() for line in [*LINES, *log.splitlines(), *stderr.splitlines()]),
        *(without_stamp(line).rstrip() for line in [*log.splitlines(), *stderr.splitlines()]),
    }  # fmt: skip
    shown = without_message(words, error)
    assert len(shown) <= len(words)
    on_host(words, [Mount("/home/me", "/data")])
    known_hint(words)


def without_stamp(line: str) -> str:
    return re.sub(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", "", line)


OF_AUTOGRAPH = """\
Traceback (most recent call last):
  File "/program/train.py", line 9, in <module>
    model.fit(DatasetCreator(data))
  File "/tmp/__autograph_generated_filej_2en1_7.py", line 16, in tf__making
    retval_ = ag__.converted_call(ag__.ld(dataset_fn), tuple(ag__.ld(given)))
^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/program/train.py", line 8, in data
    return dataset.map(lambda a: tf.reshape(a, [8, 4]))
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/tmp/__autograph_generated_file05bc2qae.py", line 5, in <lambda>
    tf__lam = lambda a: ag__.converted_call(tf.reshape, (a, [8, 4]))
                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: in user code:

    File "/program/train.py", line 8, in None  *
        lambda a: tf.reshape(a, [8, 4])

    ValueError: Dimension size must be evenly divisible by 3 but is 32
"""


@pytest.mark.parametrize("kind", ["ValueError: ", ""])  # what the kit refuses has no kind
def test_markers_below_a_line_of_autograph_do_not_end_the_traceback(kind: str) -> None:
    error = f"{kind}Dimension size must be evenly divisible by 3 but is 32"
    assert last_words(OF_AUTOGRAPH, error=error).splitlines() == [
        '  File "/program/train.py", line 9, in <module>',
        "    model.fit(DatasetCreator(data))",
        "  …",
        '  File "/program/train.py", line 8, in data',
        "    return dataset.map(lambda a: tf.reshape(a, [8, 4]))",
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "  …",
    ]


def test_the_name_that_python_suggests_is_part_of_the_error() -> None:
    error = "NameError: name 'modle' is not defined"
    suggested = f"{error}. Did you mean: 'model'?"
    log = f"2026-11-26T10:00:00.5Z Traceback …\n2026-11-26T10:00:00.6Z {suggested}\n"
    assert with_suggestion(error, log) == suggested
    assert with_suggestion(f"{error}\nnote", log) == f"{suggested}\nnote"
    assert with_suggestion("NameError: name 'm' is not defined", log).endswith("defined")
    assert with_suggestion("", "") == ""
