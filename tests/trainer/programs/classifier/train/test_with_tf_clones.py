"""With TensorFlow: the clones of one task equal one large batch, and train in every way."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.agent.errors import ContractError  # noqa: E402
from trainer.programs.classifier import clones, options  # noqa: E402
from trainer.programs.classifier.clones import Cloned  # noqa: E402

keras = tf.keras
SHORT = ("--model", "cnn", "--image-size", "8", "--batch-size", "8", "--no-flip", "--epochs", "2",
         "--steps-per-epoch", "10", "--learning-rates", "0:1e-3")  # fmt: skip
SERVED = ("worker-0", "worker-1", "ps-0")
WAYS = {
    "mirrored": (("worker-0",), (), {}),
    "all-reduce, devices": (("worker-0", "worker-1"), (), {"CLUSTER_KIT_SIMULATE_GPUS": 2}),
    "async, devices": (("chief-0", *SERVED), (), {"CLUSTER_KIT_SIMULATE_GPUS": 2}),
    "sync": (("chief-0", *SERVED), ("--update", "sync"), {}),
}
"""The first task leads. Without separate devices the clones share one, as under `sync`."""


def test_a_step_of_clones_equals_that_of_a_plain_model() -> None:
    def trained(devices: tuple[str, ...]) -> list:
        keras.utils.set_random_seed(1)
        image = keras.Input((4,))
        model = Cloned(image, keras.layers.Dense(3, activation="softmax")(image))
        model.compile(keras.optimizers.Adam(0.1), "categorical_crossentropy",
                      [keras.metrics.CategoricalAccuracy(name="accuracy")])  # fmt: skip
        model.clone_devices = devices
        x = tf.random.stateless_uniform((32, 4), (1, 2))
        y = tf.one_hot(tf.argmax(x[:, :3], 1), 3)
        history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history
        return [*model.get_weights()[:2], history["loss"], history["accuracy"]]

    for ours, plain in zip(trained(("CPU:0", "CPU:0")), trained(()), strict=True):
        assert abs(tf.constant(ours) - tf.constant(plain)).numpy().max() < 1e-5


@pytest.mark.parametrize("way", WAYS)
def test_clones_train_in_every_way(run_task, events, pictures: Path, free_port, way: str) -> None:
    names, more, variables = WAYS[way]
    cluster: dict[str, list[str]] = {}
    for name in names:
        cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{free_port()}")
    shared = {
        "CLUSTER_KIT_DATA": pictures, "CLUSTER_KIT_LEADER": names[0],
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}",
    }  # fmt: skip
    if "ps-0" not in names:
        shared["CLUSTER_KIT_SERVERS"] = ""
    clones_of = {"worker-0": variables, "worker-1": variables}
    tasks = [
        run_task(name, cluster, "serve", **shared, **clones_of.get(name, {}))
        if name in SERVED and "ps-0" in names
        else run_task(name, cluster, "run", "classifier", *SHORT, *more, "--num-clones", "2",
                      **shared, **clones_of.get(name, {}))
        for name in names
    ]  # fmt: skip
    output = tasks[0].communicate(timeout=150)[0]
    assert tasks[0].returncode == 0, output
    if way == "mirrored":
        assert "training on CPU:0, CPU:1" in output
    else:
        second = "CPU:1" if variables else "CPU:0"
        assert f"2 clones in each task, on CPU:0, {second}" in output
    metrics = next(e for e in events(names[0]) if e["event"] == "metrics")
    assert 20 <= metrics["updates"] <= 20 + ("async" in way) * len(SERVED)
    losses = [e["loss"] for e in events(names[0]) if e["event"] == "epoch"]
    assert losses[1] < losses[0]


def test_too_few_gpus_are_refused_with_a_fix() -> None:
    def chosen(*arguments: str) -> options.Options:
        return options.parse(arguments, Path("/d"), Path("/o"))

    two = chosen("--num-clones", "2")
    assert clones.devices_in_a_task(two, "worker-0", 2, 1) == ("/device:GPU:0", "/device:GPU:1")
    with pytest.raises(ContractError, match=r"worker-0 sees 1 GPU: .*gpus_per_worker.*on-cpu"):
        clones.devices_in_a_task(two, "worker-0", 1, 1)
    on_cpu = chosen("--num-clones", "2", "--clone-on-cpu")
    assert clones.devices_in_a_task(on_cpu, "w", 1, 1) == ("/device:CPU:0",) * 2
    assert clones.devices_in_a_task(chosen(), "w", 4, 1) == ()
    assert clones.devices_in_a_task(chosen("--clone-on-cpu"), "w", 4, 1) == ("/device:CPU:0",)


def test_a_low_loss_ends_the_training_and_keep_limits_checkpoints(
    run_task, events, pictures
) -> None:
    task = run_task(
        "worker-0", {"worker": ["127.0.0.1:1"]}, "run", "classifier", *SHORT, "--epochs", "40",
        "--learning-rates", "0:1e-4", "--keep", "2", "--loss-threshold", "0.2",
        CLUSTER_KIT_DATA=pictures,
    )  # fmt: skip
    output = task.communicate(timeout=150)[0]
    assert task.returncode == 0, output
    losses = [e["loss"] for e in events("worker-0") if e["event"] == "epoch"]
    assert 2 < len(losses) < 40 and losses[-1] <= 0.2 < min(losses[:-1])
    metrics = next(e for e in events("worker-0") if e["event"] == "metrics")
    assert metrics["reached"] == "loss-threshold"
    kept = {file.name for file in (pictures.parent / "checkpoints").glob("ckpt-*.index")}
    assert kept == {f"ckpt-{len(losses) - 1}.index", f"ckpt-{len(losses)}.index"}
    assert re.search(rf"epoch {len(losses)}/40 ", output)


def test_an_option_without_effect_ends_the_program_before_it_starts(run_task, events, pictures):
    task = run_task(
        "worker-0", {"worker": ["127.0.0.1:1"]}, "run", "classifier", *SHORT, "--save-secs", "3",
        CLUSTER_KIT_DATA=pictures,
    )  # fmt: skip
    output = task.communicate(timeout=60)[0]
    assert task.returncode == 2, output
    assert "--save-secs does nothing with --strategy mirrored: only graph mode saves" in output
    assert not (pictures.parent / "checkpoints").exists()
