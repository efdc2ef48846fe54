"""Does this image work? Prints one JSON line per thing tried: name, ok, detail, seconds.

Run inside a container by `cluster-kit image check`. The server is the one every ps runs: started
through TensorFlow's C API in its own process, asked who it is, then given a product to compute.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PORT = 2222
ADDRESS = f"127.0.0.1:{PORT}"
DIGITS = Path("/opt/datasets/digits")
SERVER = f"""
import time
from trainer.agent.servers import tensorflow_server, wire
tensorflow_server.start_native(wire.server_def({{"worker": ["{ADDRESS}"]}}, "worker", 0, {PORT}))
time.sleep(3600)
"""


def main(arguments: list[str]) -> int:
    on_gpu = (("training step on a GPU", train_on_gpu),) if "--gpu" in arguments else ()
    checks = (
        ("tensorflow", import_tensorflow),
        ("tf_keras", import_tf_keras),
        ("training step", train_one_step),
        ("server round trip", compute_on_server),
        ("digits", read_digits),
        *on_gpu,
    )
    results = [tried(name, check) for name, check in checks]
    return 0 if all(results) else 1


def tried(name: str, check: Callable[[], str]) -> bool:
    started = time.monotonic()
    try:
        ok, detail = True, check()
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is this check's finding
        ok, detail = False, f"{type(problem).__name__}: {problem}"
    seconds = round(time.monotonic() - started, 3)
    print(json.dumps({"name": name, "ok": ok, "detail": detail, "seconds": seconds}), flush=True)
    return ok


def import_tensorflow() -> str:
    import tensorflow as tf

    gpus = len(tf.config.list_physical_devices("GPU"))
    return f"{tf.__version__}, {gpus} GPU" + ("" if gpus == 1 else "s")


def import_tf_keras() -> str:
    import tensorflow as tf
    import tf_keras

    package = tf.keras.Model.__module__.partition(".")[0]
    version = importlib.import_module(package).__version__
    if not version.startswith("2."):
        raise RuntimeError(f"tf.keras is Keras {version}; parameter servers need Keras 2")
    return f"{tf_keras.__version__}; tf.keras is Keras {version} ({package})"


def train_one_step() -> str:
    import tensorflow as tf
    import tf_keras

    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    history = model.fit(tf.ones((8, 4)), tf.zeros((8, 1)), epochs=1, verbose=0)
    return f"loss {history.history['loss'][0]:.3f}"


def train_on_gpu() -> str:
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        raise RuntimeError("TensorFlow sees no GPU in this container")
    with tf.device("/GPU:0"):
        weights = tf.Variable(tf.ones((256, 256)))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.ones((64, 256)) @ weights))
        step = tape.gradient(loss, weights)
    if "GPU:0" not in step.device:
        raise RuntimeError(f"the step was made on {step.device}")
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU 0"))


def compute_on_server() -> str:
    import tensorflow as tf

    from trainer.agent.servers import probe

    with subprocess.Popen([sys.executable, "-c", SERVER]) as server:
        try:
            match probe.wait_for({"worker-0": ADDRESS}, deadline_s=30):
                case probe.ServersMissing() as missing:
                    raise RuntimeError(str(missing))
            with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
                product = tf.constant(6) * tf.constant(7)
                with tf.compat.v1.Session(f"grpc://{ADDRESS}") as session:
                    answer = session.run(product)
        finally:
            server.kill()
    if answer != 42:
        raise RuntimeError(f"6 * 7 is {answer} there")
    return f"worker-0 at {ADDRESS}"


def read_digits() -> str:
    import tensorflow as tf

    images = sorted(DIGITS.glob("*/*/*.png"))
    shape = tf.io.decode_png(tf.io.read_file(str(images[0]))).shape
    return (
        f"{len(images)} images of {shape[0]}x{shape[1]} in {len(list(DIGITS.glob('*/*')))} folders"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
