"""What is reported of the errors of real TensorFlow and Keras programs: the important line first,
and without TensorFlow's own frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.agent.last_words import LONGEST, telling

ERRORS = Path(__file__).parents[1] / "errors"
TF = "tensorflow.python.framework.errors_impl."
FIRST_LINES = {
    "damaged_records": f"{TF}DataLossError: corrupted record at 12",
    "disk_full_checkpoint": f"{TF}ResourceExhaustedError: /full/ckpt-1_temp/part-00000-of-00001",
    "disk_full_graph": f"{TF}ResourceExhaustedError: /full/model.ckpt.data-00000-of-00001",
    "disk_full_python": "OSError: 1000000 requested and 131056 written",
    "dtypes": f"{TF}InvalidArgumentError: cannot compute AddV2 as input #1(zero-based) was",
    "feed_shape": "ValueError: Cannot feed value of shape (8, 20) for Tensor Placeholder:0, which",
    "generator": f"{TF}InvalidArgumentError: ValueError: row 2 of train.csv has 20 columns, not 21",
    "keras_call_shape": f"{TF}InvalidArgumentError: Matrix size-incompatible: In[0]: [8,20], In[1]",
    "keras_fit_shape": 'ValueError: Input 0 of layer "sequential" is incompatible with the layer: '
    "expected shape=(None, 21), found shape=(None, 20)",
    "label_out_of_range": f"{TF}InvalidArgumentError: Received a label value of 7 which is outside "
    "the valid range of [0, 3).",
    "loop_of_steps": "ValueError: Cannot reshape a tensor with 36 elements to shape [7,5] (35 elem",
    "matmul": f"{TF}InvalidArgumentError: Matrix size-incompatible: In[0]: [3,4], In[1]: [5,6]",
    "no_checkpoint": f"{TF}NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to",
    "no_file": f"{TF}NotFoundError: /data/train.csv; No such file or directory",
    "no_image": f"{TF}InvalidArgumentError: Error in user-defined function passed to MapDataset:1 "
    "transformation with iterator: Iterator::Root::ParallelMapV2: Unknown image file format.",
    "no_model": "OSError: No file or directory found at /output/model",
    "no_module": "ModuleNotFoundError: No module named 'pandas'",
    "not_compiled": "RuntimeError: You must compile your model before training/testing.",
    "not_finite": f"{TF}InvalidArgumentError: the loss is not finite : Tensor had NaN values",
    "not_initialized": f"{TF}FailedPreconditionError: Attempting to use uninitialized value w",
    "other_shapes_in_checkpoint": "ValueError: Received incompatible tensor with shape (3,) when",
    "other_strategy": "ValueError: Variable (<tf.Variable 'dense/kernel:0' shape=(4, 3) dtype=",
    "py_function": f"{TF}UnknownError: Error in user-defined function passed to MapDataset:1 "
    "transformation with iterator: Iterator::Root::Prefetch::Map: OSError: [Errno 5] Input/output "
    "error: '/data/images/0007.png'",
    "says_and_exits": "the data set in /data has no class folders",
    "too_much_memory": f"{TF}ResourceExhaustedError: OOM when allocating tensor with shape[200000,",
    "two_roots": f"{TF}InvalidArgumentError: indices[0] = 8 is not in [0, 3)",
    "user_code": "ValueError: Cannot reshape a tensor with 36 elements to shape [7,5] (35 elem",
    "while_handling": "RuntimeError: settings.json is not JSON:",
}


def told(name: str) -> list[str]:
    return telling((ERRORS / f"{name}.words").read_text()).splitlines()


def test_the_first_line_of_a_real_error_says_what_is_wrong(subtests):
    for name in FIRST_LINES:
        with subtests.test(name=name):
            assert told(name)[0].startswith(FIRST_LINES[name])
            assert not [line for line in told(name) if "Graph execution error" in line]


def test_every_recorded_error_is_tested():
    assert {path.stem for path in ERRORS.glob("*.words")} == FIRST_LINES.keys()


def test_only_the_programs_own_frames_are_left_in_an_error(subtests):
    for name in sorted(FIRST_LINES.keys() - {"generator", "py_function"}):
        with subtests.test(name=name):
            assert not [line for line in told(name) if 'File "' in line and "/program/" not in line]


def test_layers_around_the_error_stay_named_without_autographs_wrappers():
    lines = told("loop_of_steps")
    assert lines[2] == '  File "/program/loop_of_steps.py", line 11, in call'
    contexts = [line for line in lines if line.startswith("Exception encountered when calling")]
    assert [line.split("'")[1] for line in contexts] == ["inner", "outer"]
    for wrapper in ("in user code", "must be defined", "AutoGraph"):
        assert not [line for line in lines if wrapper in line]


def test_the_error_of_a_coordinators_data_set_comes_first():
    """A function's input is another function, whose whole error TensorFlow quotes in one line."""
    kind = "tensorflow.python.distribute.coordinator.cluster_coordinator.ClosureInputError: "
    begun = f"{kind}Input has an error, the original exception is "
    missing = "assertion failed: [No files matched pattern: /data/trian-*]"
    graph = (ERRORS / "two_roots.words").read_text().partition(": ")[2]
    graph = graph.replace("indices[0] = 8 is not in [0, 3)", missing)
    told = telling(f"{begun}InvalidArgumentError(), error message is {graph}.").splitlines()
    assert told[:2] == [f"{kind}{missing}", '  File "/program/two_roots.py", line 8, in <module>']
    assert not [line for line in told if "/opt/" in line]
    plain = f"{begun}ValueError('no file'), error message is no file."
    assert telling(plain) == f"{kind}no file."


def test_the_error_comes_first_that_a_layer_and_a_traced_function_have_wrapped():
    step = '    File "/program/train.py", line 9, in step  *\n        model(x)\n'
    layer = "Exception encountered when calling layer 'net' (type Net)."
    inner = f"    InvalidArgumentError: {layer}\n    \n    Shape mismatch: [9] and [10]\n"
    told = telling(f"{TF}InvalidArgumentError: in user code:\n\n{step}\n{inner}").splitlines()
    assert told == [
        "InvalidArgumentError: Shape mismatch: [9] and [10]",
        layer,
        '  File "/program/train.py", line 9, in step',
        "    model(x)",
    ]


def test_the_worker_that_ran_a_coordinators_function_is_named():
    """The error ends the coordinator's program, whichever worker has met it."""
    where = "Additional GRPC error information from remote target /job:{}/replica:0/task:1"
    shapes = "Incompatible shapes: [64,128] vs. [63,128]"
    kind, node = f"{TF}InvalidArgumentError: ", "\t [[{{node mul}}]]"
    text = f"{kind}Graph execution error:\n\n{shapes}\n{node}\n"
    calling = " while calling /tensorflow.eager.EagerService/Enqueue:\n:UNKNOWN:Error received from"
    told = telling(text + where.format("worker") + calling)
    assert told.splitlines() == [
        f"{kind}{shapes}",
        node,
        "in a function that worker-1 ran",
    ]
    assert "ran" not in telling(text + where.format("ps") + calling)
    assert "ran" not in telling(text + where.format("worker") + ":\n:UNKNOWN:Error received from")


def test_text_that_is_not_a_frame_stays():
    assert told("while_handling")[1:] == ["  {rate: 1}", "  mend it"]
    assert told("other_strategy")[-1] == "  model.compile(...)"
    assert told("keras_call_shape")[1:] == [
        "Exception encountered when calling layer 'net' (type Net).",
        "Call arguments received by layer 'net' (type Net):",
        "  • inputs=tf.Tensor(shape=(8, 20), dtype=float32)",
    ]


def test_the_programs_own_line_inside_an_error_stays():
    assert told("user_code")[1:] == [
        '  File "/program/user_code.py", line 5, in step', "    x = tf.reshape(x, (7, 5))",
    ]  # fmt: skip
    assert told("not_initialized")[1:3] == [
        '  File "/program/not_initialized.py", line 4, in <module>', "Node: 'w/read'",
    ]  # fmt: skip


def test_a_full_disk_is_reported_as_a_full_disk():
    for name in ("disk_full_checkpoint", "disk_full_graph"):
        assert "No space left on device" in told(name)[0]


def test_a_syntax_error_comes_before_its_place():
    where = '  File "/program/helper.py", line 1\n    print("a"\n         ^\n'
    text = f"{where}SyntaxError: never closed\n"
    assert telling(text).splitlines() == [
        "SyntaxError: never closed", 'File "/program/helper.py", line 1', '    print("a"',
        "         ^",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n", "ValueError", "ValueError: in user code:\n", "a: b\nc"])
def test_other_messages_are_unchanged(text):
    assert telling(text) == text.strip()


def test_an_error_that_would_fill_a_disk_is_cut_in_its_middle():
    text = telling("ValueError: begins " + "x" * 1_000_000 + " ends")
    assert len(text) < LONGEST + 100
    assert text.startswith("ValueError: begins") and text.endswith(" ends")
    assert "characters left out here" in text
