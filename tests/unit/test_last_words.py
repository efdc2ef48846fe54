"""What a failed task said itself, found in the noise that TensorFlow makes."""

from __future__ import annotations

from cluster_kit.evidence import last_words

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
    """As the engine hands logs out, its own time in front of each line."""
    return "".join(
        f"2025-03-01T10:00:{i % 60:02}.123456789Z {line}\n"
        for i, line in enumerate(log.splitlines())
    )


def test_noise_alone_says_nothing() -> None:
    assert last_words(stamped(NOISE)) == ""


def test_a_traceback_ends_with_its_error() -> None:
    said = last_words(stamped(NOISE + TRACEBACK)).splitlines()
    assert said[-2:] == [
        'ValueError: Exception encountered when calling layer "dense"',
        "  input shape (None, 7) does not fit",
    ]
    assert "    model.fit(data)" in said
    assert len(said) <= 12


def test_noise_after_the_traceback_does_not_hide_it() -> None:
    said = last_words(stamped(TRACEBACK + NOISE))
    assert said.splitlines()[-1] == "  input shape (None, 7) does not fit"


def test_of_two_chained_tracebacks_the_last_one_counts() -> None:
    first = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n'
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    said = last_words(stamped(first + between + TRACEBACK))
    assert "ValueError: Exception encountered" in said
    assert "KeyError" not in said


def test_a_traceback_of_the_shutdown_is_not_the_error() -> None:
    ignored = (
        "Exception ignored in: <function Server.__del__ at 0x7f>\n"
        'Traceback (most recent call last):\n  File "x.py", line 1, in __del__\n'
        "AttributeError: 'NoneType' object has no attribute 'close'\n"
    )
    for log in (TRACEBACK + ignored, ignored + TRACEBACK):
        said = last_words(stamped(log))
        assert "ValueError: Exception encountered" in said
        assert "AttributeError" not in said


def test_a_traceback_that_the_program_outlived_is_history() -> None:
    went_on = "".join(f"step {step}: loss 0.5\n" for step in range(100))
    said = last_words(stamped(TRACEBACK + went_on + "out of paper\n"))
    assert said.splitlines()[-1] == "out of paper"
    assert "ValueError" not in said


def test_without_a_traceback_the_last_lines_are_kept() -> None:
    log = NOISE + "".join(f"line {number}\n" for number in range(30)) + "Killed\n"
    said = last_words(stamped(log)).splitlines()
    assert said[-1] == "Killed"
    assert len(said) == 12


def test_a_cut_off_traceback_is_shown_as_it_is() -> None:
    cut = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
    assert last_words(stamped(cut)) == cut.rstrip()


def test_a_deep_traceback_keeps_its_error_and_its_nearest_frames() -> None:
    frames = "".join(f'  File "f{i}.py", line {i}, in f\n    g()\n' for i in range(50))
    said = last_words(stamped(f"Traceback (most recent call last):\n{frames}RuntimeError: deep\n"))
    assert said.splitlines()[-1] == "RuntimeError: deep"
    assert "f49.py" in said
    assert len(said.splitlines()) <= 12


def test_an_empty_log_says_nothing() -> None:
    assert last_words("") == ""
    assert last_words(stamped("\n\n")) == ""
