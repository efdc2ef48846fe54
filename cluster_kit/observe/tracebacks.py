"""Finds a failed task's own error in its log, between TensorFlow's messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import dropwhile, takewhile, zip_longest
from pathlib import Path, PurePath

from cluster_kit.contract.endings import TMP_FULL
from cluster_kit.errors import TOML_STYLE, HintText, KeyStyle, Setting, hint_text
from cluster_kit.observe import log_patterns
from cluster_kit.programs.resolve import PROGRAM, in_package, module_of
from cluster_kit.resolved import Mount
from cluster_kit.roles import CHIEF, PS

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
_IGNORED = "Exception ignored in"
"""Python prints this for errors during its shutdown, after the error that matters."""
_RECENT = 40
"""Minimum number of lines after a traceback that show that the program continued, and ended for
another reason."""
_LAST_LINES, _LAST_TRACEBACKS = 5_000, 50
"""The maximum number of tracebacks of a log to check: a log can contain nothing else."""
_LONGEST, _MOST = 1_000, 50_000
"""Characters per line and in total that are searched for a common error."""
_LATE_S = 5.0
"""Seconds: lines on stderr in the last seconds before the end can be its reason."""
_NODE_TRACE = re.compile(r"Detected at node .* defined at \(most recent call last\):")
_REPEATED = re.compile(r"Original stack trace for |Additional GRPC error information")
_FRAME = re.compile(r' *File "([^"]*)"')
_NOT_OWN = re.compile(
    r"/opt/(venv|trainer)/|/usr/(local/)?lib|.*/(site|dist)-packages/|/tmp/__autograph_|<"
)
"""The beginning of a frame's path in TensorFlow, another package, Python or the kit."""
_MARKS = re.compile(r"[\^~]+")
"""Python's markers below a part of a line; with AutoGraph's files they can begin without a
blank."""
_LEFT_OUT = "  …"
_SPEAKER = re.compile(r"^((error|[a-z_]+-\d+): )+")
_KIND = re.compile(r"^[\w.]*(Error|Exception): ")
_MISSING = (
    r"^(?=.*(?:No such file or directory|[Nn]ot found|No file or directory found"
    r"|Failed to find any matching files|No files match|[Uu]nable to (?:synchronously )?open file"
    r"|Could not find directory|SavedModel file does not exist))"
    r".*(?<![\w./])"
)
"""The beginning of a line that reports that the file with the following path does not exist."""
_READ_ONLY = r"^(?=.*Read-only file system).*(?<![\w./])"
DATA = Setting("data", "DIR")
ARGS = Setting("args", ("--answer=yes",))
_TF1: HintText = (
    "TensorFlow 2 does not have this: run a program for TensorFlow 1 with ",
    Setting("tf1", True),
)


def _package_hint(no_module: re.Match[str]) -> HintText:
    """The hint for a module that the image does not have."""
    from cluster_kit.programs.packages import PYTHON_2_MODULES, is_of_namespace, package_of

    requirements, module = Setting("requirements", "FILE"), no_module[1]
    if module in PYTHON_2_MODULES:
        return f"this is a module of Python 2: write `import {PYTHON_2_MODULES[module]}`"
    root = module.partition(".")[0]
    if root == "keras" != module:
        older = "`tf.keras`, which is Keras 2 in a task, may have it"
        return f"this version of `keras` has no such module: {older}"
    if root != module and not is_of_namespace(module):  # Python has found what it is in
        other = f"another version of `{root}`, or a further package, may have it"
        return f"`{root}` has no such module: {other}, or a file of yours has its name"
    if package := package_of(module):
        return f"list its package, {package}, in a file, and run with ", requirements
    own = "; put a module of yours into the program's directory, which is mounted"
    return "list its package in a file, and run with ", requirements, own


def _job_hint(undefined: re.Match[str]) -> HintText:
    """The hint for a job of the cluster that the program's ClusterSpec lacks."""
    names = (
        "the program's ClusterSpec has no such job: name its jobs as TF_CONFIG does (chief or "
        "master, worker, ps)"
    )
    is_chief = undefined[1] == CHIEF.name
    return (names, ", or start the cluster with ", Setting(CHIEF.name, 0)) if is_chief else names


_BY_EXAMPLES = (
    "set `experimental_distribute.auto_shard_policy` of its `tf.data.Options` to "
    "`AutoShardPolicy.DATA`"
)
"""What divides a dataset among the tasks of an all-reduce without regard to its files."""
_NO_PACKAGE = r"ModuleNotFoundError: No module named '((?!tensorflow\.)[\w.]+)'"


def missing_package_hint(words: str, caller: KeyStyle = TOML_STYLE) -> str:
    """The hint for a module that the image does not have; "" for any other error."""
    match = re.search(_NO_PACKAGE, words)
    return hint_text(_package_hint(match), caller) if match else ""


_RESUME = "; `--resume` (make: RESUME=1) continues, if the program has saved a checkpoint"

_HINTS: tuple[tuple[re.Pattern[str], HintText | Callable[[re.Match[str]], HintText]], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), advice)
    for pattern, advice in (
        (
            r"(?:/output/|(?<![^\s:'\"])[\w.])[^\s;:]*"
            r"(_temp(_\w+)?(?=/part-|[;:])|tempstate|\.tmp(?!l))[^\s;:]*+"
            r"([;:].*No such file| did not exist)",
            "several tasks write the same files: give each task a directory of its own (with ps, "
            "one task alone may save; in an all-reduce all tasks must save)",
        ),
        (
            r"unable to lock file",
            "another process has this file open, perhaps another task's: let each task write files "
            "of its own (in an all-reduce all tasks must save)",
        ),
        (
            r"_temp(_\w+)?(/part-\S*)?; No such file or directory",
            "each ps writes its part of a checkpoint: save below /output, which all tasks share",
        ),
        (
            r"[Uu]nable to (?:synchronously )?create file .*\berrno = 2\b",
            "its directory does not exist: create it first, for example by `os.makedirs`; relative "
            "paths start at /output",
        ),
        (
            rf"\({TMP_FULL}: ",
            (
                "/tmp is in memory: write large files below /output, or set its size: ",
                Setting("container.tmp_size", "8g"),
            ),
        ),
        (
            r"Read-only file system",
            "write below /output, which is kept, or below /tmp: the rest of a container is "
            "read-only",
        ),
        (
            _MISSING + r"/tmp/",
            (
                "/tmp is not shared between tasks, and empty at their start: write files for other "
                "tasks below /output, which all tasks share; files of this host come by ",
                DATA,
                " or a `[[mount]]`",
            ),
        ),
        (
            r"module 'tensorflow[\w.]*' has no attribute 'estimator'"
            r"|No module named 'tensorflow\S*[._]estimator"
            r"|cannot import name 'estimator' from 'tensorflow"
            r"|model_to_estimator function not available",
            ("TensorFlow has Estimators up to 2.15 only: run with ", Setting("tensorflow", "2.15")),
        ),
        (
            r'TF_CONFIG, it must have one "chief" node',
            ("an Estimator needs a chief: run with ", Setting(CHIEF.name, 1)),
        ),
        (
            r"If `master` node exists in `cluster`, task_type `evaluator` is not supported",
            (
                "with an Estimator's evaluator, the chief's job must have this name: run with ",
                Setting("chief_job", CHIEF.job),
            ),
        ),
        (
            r"Expects 1 arguments, but 0 is provided \[Op:Identity\]",
            "the chief runs the Python of a scheduled function (`tf.py_function`, "
            "`tf.numpy_function`), and its results cannot be fetched from a worker: write it with "
            "TensorFlow's operations",
        ),
        (
            r"(int|float)\(\) argument must be .* not '(Mirrored|SyncOnRead)Variable'",
            "a strategy's variable has a copy for each replica: read its value by `.numpy()`",
        ),
        (
            r"^EOFError: EOF when reading a line",
            ("nobody can answer `input()` in a task: take the answer as an argument, with ", ARGS),
        ),
        (
            r"'numpy\.ndarray' object has no attribute 'tostring'",
            (
                "NumPy has no `tostring` any more: write `tobytes()`, or run with an older NumPy: ",
                Setting("tensorflow", "2.15"),
            ),
        ),
        (
            r"expected \d+ variables, but received \d+ variables during loading"
            r"|Layer expects \d+ weight\(s\)\. Received \d+ saved weight\(s\)",
            "the saved model has other layers; if a `variable_partitioner` has split its variables,"
            " save it as a directory (`model.save('model')`), which joins the parts",
        ),
        (r"No module named 'tensorflow\.(examples|contrib)'", _TF1),
        (
            r"module 'tensorflow' has no attribute '(app|ConfigProto|contrib|flags|get_variable"
            r"|gfile|global_variables_initializer|InteractiveSession|layers|log|logging|placeholder"
            r"|reset_default_graph|Session|set_random_seed|truncated_normal|variable_scope)'",
            _TF1,
        ),
        (
            r"No module named 'horovod[.']|No such file or directory: '(mpirun|horovodrun)'",
            "Horovod's tasks are started by its own launcher, which the kit does not have: "
            "MultiWorkerMirroredStrategy trains in the same way, and is in the image",
        ),
        (
            r"\AKeyError: '((LOCAL_)?RANK|WORLD_SIZE|(LOCAL|OMPI|PMI|HOROVOD|SLURM)_[A-Z_]+)'"
            r"(?=[\s\S]*\benviron\b)|SLURM_\w+ not found in environment",
            "set it in the manifest, for each role that runs the program, as in "
            "`[role.worker.environment]`: there `{{ index }}` is the task's number, and "
            "`{{ num_workers }}` the number of workers",
        ),
        (_NO_PACKAGE, _package_hint),
        (
            r"Collectives are not yet implemented for CPU devices when compiling with XLA",
            "XLA cannot compile an all-reduce on a CPU: leave out `jit_compile=True` and "
            "`set_jit(True)`",
        ),
        (
            r"Could not apply FILE based sharding",
            "an all-reduce gives each task files of its own, and the dataset has fewer files than "
            f"tasks: {_BY_EXAMPLES}",
        ),
        (
            r"\(Empty logs\)",
            (
                "the task got no data: in an all-reduce each task gets files of its own, so if "
                f"the dataset has fewer files than tasks, {_BY_EXAMPLES}; if no file was found: "
                "relative paths start at /output, and a directory of this host comes by ",
                DATA,
                ", as /data",
            ),
        ),
        (
            r"\bempty vocabulary\b|non-empty array or dataset"
            r"|No objects to concatenate|need at least one array to concatenate"
            r"|No files (found|match(ed)?)\b(?!.*[ '\"]/(?!tmp/))|matched no files"
            r"|with 0 sample\(s\)",
            (
                "if it found no file: relative paths start at /output, which all tasks share; "
                "/tmp is each task's own; files beside the program are in /program; a directory of "
                "this host comes by ",
                DATA,
                ", as /data",
            ),
        ),
        (
            r"URL fetch failure on |<urlopen error |HTTPS?ConnectionPool\(|NameResolutionError"
            r"|DownloadError|gaierror|Temporary failure in name resolution"
            r"|[Cc]ould(n't| not) resolve host|(?<!\w)(wget|curl|gsutil): (command )?not found"
            r"|No such file or directory: '(wget|curl|gsutil|aws|kaggle)'"
            r"|Nothing is downloaded in a cluster",
            (
                "the task could not get that: if it is a download, let `[data] fetch` in the "
                "manifest fetch it before the start, or run with ",
                DATA,
                " or mount an existing copy by `[[mount]]`",
            ),
        ),
        (
            r"the cluster spec has \d+ ps: MultiWorkerMirroredStrategy would wait",
            ("run with ", Setting("style", "all-tasks"), " and ", Setting(PS.name, 0)),
        ),
        (
            r"ParameterServerStrategy in \w+-\d+: only the chief makes it",
            ("run with ", Setting("style", "coordinator")),
        ),
        (
            r"Collective ops must be configured at program startup",
            "create the strategy first, before other code creates a tensor",
        ),
        (
            r"was not created in the distribution strategy scope"
            r"|which is different from the scope used for the original variable",
            "create the model, its optimizer and its metrics inside `with strategy.scope():`",
        ),
        (
            r"Shape mismatch in the collective instance|Collective instance \d+ expected type ",
            "the tasks were at different places of the program: all must make the same model, take "
            "the same number of steps, save and evaluate together, and continue from the same "
            "checkpoint (a task that was started again has an empty /tmp)",
        ),
        (
            r"Received incompatible tensor with shape .* when attempting to restore variable"
            r"|Shape mismatch\. ?The variable shape [^\n]*\n[\s\S]*\b(restore|load_weights)\(",
            "the checkpoint was saved by a model of other sizes: give the arguments of the run "
            "that saved it, or restore another one; a run without `--resume` (make: RESUME=1) "
            "begins with an empty /output",
        ),
        (
            r"must have the same size and shape\. +Input 0: \[0,[\d,]*\] != input 1: \[0,",
            "the task got an empty batch: MultiWorkerMirroredStrategy divides each batch of the "
            "dataset among its replicas: `.batch(64 * strategy.num_replicas_in_sync)`",
        ),
        (
            r"Could not start gRPC server",
            "the task has a server already (MultiWorkerMirroredStrategy starts one): the program "
            "must not make a `tf.distribute.Server`, too",
        ),
        (
            r"OutOfRangeError: End of sequence",
            "a dataset was read to its end: add `.repeat()` to it, or take fewer steps",
        ),
        (
            r'\bJob "(\w+)" was not defined in cluster',
            _job_hint,
        ),
        (
            r"^RuntimeError: can't start new thread|pthread_create(\(\))? failed"
            r"|^ *what\(\): +Resource temporarily unavailable"
            r"|^BlockingIOError: \[Errno 11\] Resource temporarily unavailable$",
            (
                "the task has as many processes and threads as it may: end those that are done "
                "(TensorFlow keeps one for each sum if CommunicationOptions has `timeout_seconds`)"
                ", or raise `container.pids`: ",
                Setting("container.pids", 16384),
            ),
        ),
        (
            r"concurrent caching iterator running",
            "several tasks cache into the same files, or one was stopped before its cache was "
            "complete: name a path below /tmp, which is each task's own, such as "
            "`cache('/tmp/cache')`",
        ),
        (
            r"valid Keras Model instance\. Received: <tf_keras\.",
            "Keras Tuner takes models of Keras 3: build them with `import keras`; `tf.keras` is "
            "tf_keras, Keras 2, in a task",
        ),
        (
            r"CancelledError: (The corresponding function is cancelled|RemoteExecuteNode::)",
            "a coordinator cancels its functions after one has failed, whose error is further up "
            "in the log; if it is `End of sequence`, a data set was read to its end: let it begin "
            "again with `.repeat()`, and give `fit` the `steps_per_epoch` (and `validation_steps`)",
        ),
        (
            r"NotImplementedError: Only `tf\.keras\.utils\.experimental\.DatasetCreator`",
            "under ParameterServerStrategy give `fit` and `evaluate` a `DatasetCreator` "
            "with a function that returns a data set that repeats, and their number of steps, also "
            "as `validation_data`: the program that `cluster-kit new` writes has one",
        ),
        (
            r"ValueError: When using a `tf\.keras\.utils\.experimental\.DatasetCreator`, `steps",
            "under ParameterServerStrategy Keras does not count the steps, not even of arrays: "
            "give `fit` its `steps_per_epoch` (of arrays: `len(x) // batch_size`) and, with a "
            "validation, `validation_steps`; give `evaluate` its `steps`",
        ),
        (
            r"Unable to parse tensor proto",
            "a worker cannot use a data set that the chief has created: create it inside the "
            "function that create_per_worker_dataset (or DatasetCreator) gets",
        ),
        (
            r"Batch-level `Callback`s are not supported|RemoteValueImpl\.get\(\) takes 1 ",
            "under ParameterServerStrategy, callbacks do not get the loss of single steps"
            " (TerminateOnNaN needs it, too): read it in on_epoch_end",
        ),
        (
            r"^TypeError: .*\bRemoteValueImpl\b|^AttributeError: 'RemoteValueImpl'",
            "a RemoteValue is a value that a worker still computes: read it with the "
            "coordinator's `fetch(value)`, or in a Keras callback in on_epoch_end",
        ),
        (
            r"^TypeError: .*\bPerReplica\b|^AttributeError: 'PerReplica'",
            "a PerReplica has one value for each replica: `strategy.reduce('SUM', value, "
            "axis=None)` adds them, `strategy.experimental_local_results(value)` returns those of "
            "this task",
        ),
        (
            r"devices cannot be modified after being initialized",
            "set devices first, before a strategy or a tensor is created: both initialize them",
        ),
        (
            r"has no attribute '_training_state'",
            "tf_keras's BackupAndRestore removes this attribute at the end of `fit`: give the "
            "callback to each `fit` of the model",
        ),
        (
            r"Unrecognized keyword arguments passed to \w+: \{.*'batch_input_shape': \(",
            "Keras 3 does not have this argument: write `keras.Input(batch_shape=...)` as the "
            "first layer, or `import tf_keras as keras`, which is Keras 2",
        ),
        (
            r"Unrecognized keyword arguments passed to \w+: \{.*'batch_input_shape': \[",
            "tf_keras has saved this model, which is `tf.keras` in a task, and Keras 3 loads it: "
            "write `tf_keras.models.load_model`",
        ),
        (
            r"Invalid Reduction Key: None"
            r"|module 'tf_keras[\w.]*' has no attribute(?!.*Did you mean: ')",
            "`tf.keras` is tf_keras, Keras 2, in a task: Keras 3 is `import keras`; "
            '`reduction=None` is `reduction="none"` in both',
        ),
        (
            r"(Could not satisfy (explicit )?device specification|unknown device).*GPU"
            r"|GPU.*(unknown device)|explicitly assigned to \S*(GPU|gpu):\d"
            r"|\AIndexError: list index out of range(?=[\s\S]*\bgpus?\w*\[)",
            (
                "the program names a GPU that its task does not have: run with ",
                Setting("gpus", "auto"),
                " if there are GPUs, or let TensorFlow choose the device",
            ),
        ),
        (
            r"OOM when allocating tensor .* by allocator GPU_"
            r"|failed to allocate memory.*\[Op:|CUDA_ERROR_OUT_OF_MEMORY",
            (
                "the task has used up the memory that it may take of its GPU: make the batch or "
                "the model smaller; `gpus_per_worker` gives a worker more GPUs, `gpu_memory` sets "
                "the part of a shared one",
            ),
        ),
        (
            r"is joining a group with incompatible device type",
            (
                "an all-reduce needs GPUs in all of its tasks or in none: run with ",
                Setting("gpus", "auto"),
                ", or ",
                Setting("gpus", "none"),
            ),
        ),
        (
            r"the program was still running after \d.*; the last step was \d+ s before",
            (
                "if it hangs, `cluster-kit stacks` shows where, while it is up; if it needs longer,"
                " raise `deadline.job`: ",
                Setting("deadline.job", "2h", for_once=True),
                _RESUME,
            ),
        ),
        (
            r"the program was still running after \d|the run went past its deadlines",
            (
                "if it needs longer, raise `deadline.job`: ",
                Setting("deadline.job", "2h", for_once=True),
                _RESUME,
            ),
        ),
        (
            r"was still running (after its grace|[\d.]+ s after the job's end)",
            (
                "if it needs longer, raise `deadline.evaluator_grace`: ",
                Setting("deadline.evaluator_grace", "5m", for_once=True),
                "; if it still waits for a checkpoint, it may look in another directory than below "
                "/output, or never end",
            ),
        ),
    )
)
_NO_MODULE = re.compile(r"No module named '(\w+)|from '(\w+)' \(/opt/trainer/")
"""The image's package `trainer` is imported if a user's package of this name is not found."""


def _is_packages(folder: str) -> bool:
    """Whether a directory has the name of a package of others, which the image may lack."""
    from cluster_kit.programs.packages import KNOWN_PACKAGES, PACKAGES

    return folder in PACKAGES or folder.replace("_", "-") in KNOWN_PACKAGES


_NO_PARENT = "attempted relative import with no known parent package"
_RELATIVE = re.compile(
    r"No such file or directory: '([^/'\n][^'\n]*)'"
    r"|(?<![\w./-])([\w.-][\w./-]*); No such file or directory"
    r"|[Uu]nable to (?:synchronously )?open file \(unable to open file: name = '([^/'\n][^'\n]*)'"
    r"|FileNotFoundError: ([^/\s\[]\S*) not found"
    r"|(?:No files match(?:ed)? (?:`?file_pattern`?|pattern:) \[?'?|Could not find directory "
    r"|(?:No file or directory found|SavedModel file does not exist) at:? "
    r"|Failed to find any matching files for |File not found: filepath=)([^/\s'\[\]][^\s',\]{]*)"
)
"""The relative paths that Python, NumPy, h5py, tf.io, tf.data and Keras report as missing."""
_COMMAND = re.compile(r"(?!.*data)[\w-]+", re.IGNORECASE)
"""A name that can be a program's, which was not found, either."""
_PATTERN = re.compile(r"[^/]*[*?\[].*")
_MISSING_FILE = re.compile(_MISSING + r"(/[\w./-]*\w)", re.MULTILINE)
_OWN_PATH = re.compile(
    r"(bin|boot|data|dev|etc|lib(64)?|opt|output|proc|program|run|sbin|sys|tmp|usr|var)(/|$)"
)
"""The relative part of a path that a container can have without a mount of a user's."""


def _below(target: str) -> str:
    """The pattern of a container's path that is a mount's target, or below it."""
    return re.escape(target) + r"(?=[/'\";:,) ]|$)"


_MISSING_DATA = re.compile(_MISSING + _below("/data"), re.MULTILINE)


def last_words(log: str, limit: int = 12, *, error: str = "", stderr: str = "") -> str:
    """The end of a task's log: its last traceback, or else its last lines, `limit` at most.

    TensorFlow's messages are left out. The error, after the frames, is always complete.

    Args:
        error: the program's error, if it has saved it. Then only its frames are returned, even if
            more was printed after them.
        stderr: the lines of the log from stderr. A program's last message can be far above the end
            of a log if much else is printed at the same moment.
    """
    relevant = list(_without_repeats(_relevant(log)))[-_LAST_LINES:]
    if any(line.startswith("Traceback") for line in relevant):  # threads write into it
        relevant = [line for line in relevant if not line.startswith("ERROR:tensorflow:")]
    starts = [i for i, line in enumerate(relevant) if _begins(relevant, i, line)]
    if error and (frames := _frames_of(relevant, starts, error, limit)):
        return "\n".join(frames)
    traceback = relevant[starts[-1] :] if starts else []
    end = _end_of_traceback(traceback)
    if traceback[end:] and len(traceback) - end <= _RECENT:
        after_traceback = list(
            takewhile(lambda line: not line.startswith(_IGNORED), traceback[end:])
        )
        room = max(2, limit - min(len(after_traceback), 6))
        return "\n".join([*_last_frames(traceback[:end], room), *after_traceback])
    return "\n".join(_last_lines(relevant, _relevant(_late(stderr, log)), limit))


def _relevant(log: str) -> list[str]:
    lines = [_STAMP.sub("", line).rstrip() for line in log.splitlines()]
    relevant: list[str] = []
    instructs = False
    for line in filter(str.strip, lines):
        if line != log_patterns.INSTRUCTIONS and not instructs and not log_patterns.ANY.match(line):
            relevant.append(line)
        instructs = line == log_patterns.INSTRUCTIONS
    return relevant


def _begins(lines: Sequence[str], index: int, line: str) -> bool:
    """Whether a traceback begins here, except those of Python's shutdown."""
    ignored = index > 0 and lines[index - 1].startswith(_IGNORED)
    return line.startswith("Traceback (most recent") and not ignored


def _frames_of(
    lines: Sequence[str], starts: Sequence[int], error: str, limit: int
) -> Sequence[str]:
    """The last frames of the last traceback that ends with this error; [] if there is none."""
    for start in list(reversed(starts))[:_LAST_TRACEBACKS]:
        traceback = lines[start:]
        end = _end_of_traceback(traceback)
        if traceback[end:] and _is_error(traceback[end:], error.partition("\n")[0]):
            return _last_frames(traceback[:end], limit)
    return []


def _is_error(lines: Sequence[str], first: str) -> bool:
    """Whether these lines are the error with this first line.

    What the kit refuses has no kind there, and AutoGraph writes another traceback before it. A
    supervisor's line is no error of the program.
    """
    return _kind_of(lines[0]) == _kind_of(first) or any(
        line.endswith(f": {first}") and _SPEAKER.sub("", line) != first for line in lines
    )


def _kind_of(line: str) -> str:
    """The name of an exception's class, without its module: a saved error can lack it."""
    return line.partition(":")[0].strip().rpartition(".")[2]


def _last_lines(lines: Sequence[str], late: Sequence[str], limit: int) -> list[str]:
    """The last lines, including some of stderr even if other lines follow them."""
    end = list(lines[-limit:])
    missing = [line for line in late if line not in end][-(limit // 2) :]
    return [*missing, *end[-(limit - len(missing)) :]]


def _late(stderr: str, log: str) -> str:
    """The lines of stderr from the last seconds of a log."""
    end = max((_time(line) for line in log.splitlines()[-1:]), default=0.0)
    return "\n".join(line for line in stderr.splitlines() if _time(line) >= end - _LATE_S)


def _time(line: str) -> float:
    """The Unix time that the engine wrote before a line, 0 if there is none.

    A program can begin a line with a text that looks like a time.
    """
    stamp = _STAMP.match(line)
    try:
        return datetime.fromisoformat(stamp[0].strip()).timestamp() if stamp else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _last_frames(frames: Sequence[str], room: int) -> list[str]:
    """The program's frames, with `…` for other frames between and after them.

    At most `room` lines, the last ones; if no frame is the program's, the last frames of all.
    """
    starts = [i for i, line in enumerate(frames) if _FRAME.match(line)]
    user_frames: list[str] = []
    ends = [*starts[1:], len(frames)] if starts else []  # a program can print an invalid one
    for start, end in zip(starts, ends, strict=True):
        if _is_own(frames[start]):
            user_frames += frames[start:end]
        elif user_frames and user_frames[-1] != _LEFT_OUT:
            user_frames.append(_LEFT_OUT)
    if not user_frames:
        return list(dropwhile(lambda line: line.startswith("    "), frames[-room:]))
    return (
        list(dropwhile(lambda line: not _FRAME.match(line), user_frames[-room:]))
        or user_frames[-room:]
    )


def _is_own(line: str) -> bool:
    """Whether a line begins a frame of the program."""
    frame = _FRAME.match(line)
    return frame is not None and not _NOT_OWN.match(frame[1])


def _end_of_traceback(lines: Sequence[str]) -> int:
    """The index of the first line after the frames, which is the error."""
    ends = (
        i
        for i, line in enumerate(lines)
        if i > 0 and not line.startswith(" ") and not _MARKS.fullmatch(line)
    )
    return next(ends, len(lines))


def _without_repeats(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines without graph mode's repetitions of an error.

    Graph mode repeats it for every level, with the stack trace of each node's creation. The error,
    the program's frame that created the node, and the node remain.
    """
    yielded: set[str] = set()
    made_here = ""
    skipping = tracing = False
    for line in lines:
        frame = _FRAME.match(line)
        if _NODE_TRACE.match(line):
            tracing, made_here = True, ""
            continue
        if _REPEATED.match(line):
            skipping = True
            continue
        if skipping and (frame or line.startswith((":", "\t", " [["))):
            continue
        skipping = False
        if tracing and frame:
            made_here = line if _is_own(line) else made_here
            continue
        if tracing:
            tracing = False
            for kept in (made_here, line):
                if kept and kept not in yielded:
                    yield kept
                yielded.add(kept)
            continue
        yield line


def with_suggestion(message: str, log: str) -> str:
    """An error with the name that Python suggests for a wrong one.

    Python 3.11 has the suggestion only when it prints the traceback.
    """
    first, newline, rest = message.partition("\n")
    suggested = re.compile(re.escape(first) + r"\. Did you mean: '\w+'\?")
    lines = (_STAMP.sub("", line).rstrip() for line in log.splitlines())
    return next(filter(suggested.fullmatch, lines), first) + newline + rest


def without_message(words: str, message: str) -> str:
    """The lines of `words`, the end of a log, that are not in the message of the task's end.

    Programs print that message, and supervisors print its first line after `error: ` or a task's
    name. A refusal of the kit is printed with the kind of its exception. The carets below a line
    of code go with it; a frame stays if its line of code does.
    """
    repeated = {_SPEAKER.sub("", line).rstrip() for line in message.splitlines()}
    lines = words.splitlines()
    kept: list[str] = []
    is_kept = True
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        said = _SPEAKER.sub("", line)
        has_code = _FRAME.match(line) and following.startswith("    ")
        if has_code and following not in repeated:
            is_kept = True
        elif is_kept or not _MARKS.fullmatch(line.strip()):
            is_kept = repeated.isdisjoint((said, _KIND.sub("", said)))
        if is_kept:
            kept.append(line)
    return "\n".join(kept)


def on_host(text: str, mounts: Sequence[Mount]) -> str:
    """The text with this host's paths instead of those below a container's mounts.

    Quoted paths come from a user's file and are not changed.
    """
    sources = {mount.target: mount.source for mount in mounts}
    if not sources:
        return text
    targets = "|".join(map(re.escape, sources))
    path = re.compile(rf"(?<![\w./\"'-])({targets})(?=[/:;,)\s]|$)")
    return path.sub(lambda match: sources[match[1]], text)


def known_hint(
    words: str,
    mounts: Sequence[Mount] = (),
    caller: KeyStyle = TOML_STYLE,
    program: str = f"{PROGRAM}/train.py",
) -> str:
    """The hint for a common error, "" if none is known.

    Args:
        words: the error, with a container's paths.
        mounts: the container's mounts.
        caller: how the hint writes settings for the next run.
        program: the program's path in the container, or its built-in name.
    """
    lines = (line[:_LONGEST] for line in words[:_MOST].splitlines())
    words = "\n".join(lines)  # matching takes more than linear time
    if _MISSING_DATA.search(words) and not any(mount.target == "/data" for mount in mounts):
        return hint_text(("nothing is mounted at /data: run with ", DATA), caller)
    for mount in mounts:
        own = mount.target not in (PROGRAM, "/data")
        if own and mount.read_only and re.search(_READ_ONLY + _below(mount.target), words, re.M):
            rule = f"the mount at {mount.target} is read-only: write `read_only = false` in its "
            return f"{rule}`[[mount]]`, or write below /output"
    missing = {match[1] or match[2] for match in _NO_MODULE.finditer(words)}
    for source in (Path(mount.source) for mount in mounts if mount.target == PROGRAM):
        started = source / PurePath(program).name
        if _NO_PARENT in words:
            return in_package(module_of(started))
        if source.name in missing and not _is_packages(source.name):
            return in_package(f"{source.name}.{started.stem}")
    for pattern, hint in _HINTS:
        if match := pattern.search(words):
            return hint_text(hint(match) if callable(hint) else hint, caller)
    return ""


def relative_paths(words: str) -> list[str]:
    """The relative paths that an error reports as missing files, also patterns of paths."""
    lines = "\n".join(line[:_LONGEST] for line in words[:_MOST].splitlines())
    found = (match[match.lastindex or 0].rstrip("./") for match in _RELATIVE.finditer(lines))
    return [path for path in found if path and "://" not in path]


def missing_below(words: str, target: str) -> list[str]:
    """The paths below a mount's target that an error reports as missing, relative to it."""
    lines = "\n".join(line[:_LONGEST] for line in words[:_MOST].splitlines())
    found = (PurePath(match[1]) for match in _MISSING_FILE.finditer(lines))
    below = [path.relative_to(target) for path in found if path.is_relative_to(target)]
    return [str(path) for path in below if path.name and ".." not in path.parts]


def in_mount(path: str, mount: Mount) -> Iterator[tuple[str, str]]:
    """The paths in a mount that a program can mean by a relative path, each with what to open.

    The first is what must exist below the mount's source: of a pattern, its directory. A path can
    begin with the name of the directory that is mounted at /data.
    """
    parts = PurePath(path).parts
    inside = [parts]
    if mount.target == "/data" and parts[0] == PurePath(mount.source).name:
        inside.append(parts[1:])
    for one in inside:
        name = "/".join(one)
        if existing := _PATTERN.sub("", name).rstrip("/"):
            yield existing, f"{mount.target}/{name}"


def relative_hint(words: str, mounts: Sequence[Mount], caller: KeyStyle = TOML_STYLE) -> str:
    """The hint for a relative path that is in no mount of a user's program; "" if there is none.

    Args:
        words, mounts, caller: as in `known_hint`.
    """
    targets = {mount.target for mount in mounts}
    path = next((one for one in relative_paths(words) if not _COMMAND.fullmatch(one)), "")
    if not path or PROGRAM not in targets:
        return ""
    rule = "relative paths start at /output, unless the program calls `os.chdir`"
    start = f"{rule}, and {path} does not exist there: "
    folder = PurePath(path).parent
    may_write = folder != PurePath() and ".." not in folder.parts and not _PATTERN.search(path)
    write = f"; to write it, create {folder} first" if may_write else ""
    if "/data" in targets:
        rule = "the data of this run is at /data, and other directories come by a `[[mount]]`"
        return start + rule + write
    parts = [part for part in PurePath(path).parts if part != ".."]
    tail = "/".join(parts if len(parts) == 1 and "." in path else parts[1:])
    opened = f", and open {'/data/' + tail if tail else 'it as /data'}"
    run = "to read it, run with " if may_write else "run with "
    return hint_text((start, run, DATA, opened, write), caller)


def absolute_hint(words: str, mounts: Sequence[Mount], caller: KeyStyle = TOML_STYLE) -> str:
    """The hint for a missing absolute path that no container has, as that of a file of this host;
    "" if there is none.

    Args:
        words, mounts, caller: as in `known_hint`.
    """
    targets = {mount.target for mount in mounts}
    path = next(
        (
            path
            for path in missing_below(words, "/")
            if not _OWN_PATH.match(path)
            and not any(PurePath("/", path).is_relative_to(target) for target in targets)
        ),
        "",
    )
    if not path or PROGRAM not in targets:
        return ""
    start = f"a task sees no file of this host that is not mounted, so it has no /{path}: "
    write = "; what it writes belongs below /output"
    if "/data" in targets:
        rule = "the data of this run is at /data, and other directories come by a `[[mount]]`"
        return start + rule + write
    return hint_text((f"{start}to read it, run with ", DATA, ", which is /data", write), caller)
