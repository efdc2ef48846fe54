"""Lines as containers printed them, not shortened in any relevant place."""

from __future__ import annotations

from collections.abc import Iterator

STEPS = 60


def _keras() -> Iterator[str]:
    """Keras 3, `fit(verbose=1)`: colours, and as many backspaces as the previous bar was wide."""
    before = 0
    for step in range(1, STEPS + 1):
        done = step * 20 // STEPS
        bar = f"\x1b[32m{'━' * done}\x1b[0m\x1b[37m{'━' * (20 - done)}\x1b[0m"
        left = f"{(STEPS - step) * 2}s" if step < STEPS else "12s"
        text = f"\x1b[1m{step:>2}/{STEPS}\x1b[0m {bar} \x1b[1m{left}\x1b[0m 200ms/step"
        text += f" - accuracy: {step / 100:.4f} - loss: {2.5 - step / 50:.4f}"
        padding = " " * max(0, before - len(text))
        yield "\b" * before + "\r" + text + padding
        before = len(text)


def _tf_keras() -> Iterator[str]:
    """tf_keras: the same without colours; its bar of dots is always shorter than the text
    before."""
    before = 0
    for step in range(1, STEPS + 1):
        done = step * 30 // STEPS
        arrow = "" if step == STEPS else ">"
        bar = f"[{'=' * done}{arrow}{'.' * (30 - done - len(arrow))}]"
        left = f"ETA: {(STEPS - step) * 2}s" if step < STEPS else "12s 198ms/step"
        text = f"{step:>2}/{STEPS} {bar} - {left} - loss: {2.5 - step / 50:.4f}"
        padding = " " * max(0, before - len(text))
        yield "\b" * before + "\r" + text + padding
        before = len(text)


KERAS_BAR = "".join(_keras())
TF_KERAS_BAR = "".join(_tf_keras())

NATIVE_NOISE = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1763751823.512345       7 port.cc:153] oneDNN custom operations are on. You may "
    "see slightly different numerical results due to floating-point round-off errors from "
    "different computation orders. To turn them off, set the environment variable "
    "`TF_ENABLE_ONEDNN_OPTS=0`.",
    "2026-11-21 19:03:43.512345: I tensorflow/core/util/port.cc:153] oneDNN custom operations are "
    "on. You may see slightly different numerical results due to floating-point round-off errors",
    "2026-11-21 19:03:44.101010: I tensorflow/core/platform/cpu_feature_guard.cc:210] This "
    "TensorFlow binary is optimized to use available CPU instructions in performance-critical "
    "operations.",
    "To enable the following instructions: AVX2 AVX512F AVX512_VNNI FMA, in other operations, "
    "rebuild TensorFlow with the appropriate compiler flags.",
    "W0000 00:00:1763751824.000000       7 computation_placer.cc:177] computation placer already "
    "registered. Please check linkage and avoid linking the same target more than once.",
    "E0000 00:00:1763751824.000000       7 cuda_dnn.cc:8579] Unable to register cuDNN factory: "
    "Attempting to register factory for plugin cuDNN when one has already been registered",
    "2026-11-21 19:03:44.2: E external/local_xla/xla/stream_executor/cuda/cuda_platform.cc:51] "
    "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
    "E0000 00:00:1795671502.456029      13 utils.cc:181] NOT_FOUND: TensorFlow device GPU:0 was "
    "not registered",
)

WORDS = (
    "epoch 1/6  step 60  loss 1.2123  accuracy 0.6036",
    "WARNING:tensorflow:5 out of the last 5 calls to <function f> triggered tf.function retracing.",
    "INFO:tensorflow:loss = 0.5, step = 100",
    "2026-11-21 19:03:44.2: E tensorflow/core/common_runtime/executor.cc:1] disk full",
    "ValueError: shapes (3, 4) and (4, 3) differ",
    "I think, therefore I am",
    "To enable it, pass --fast",
)
"""What a user should see."""
