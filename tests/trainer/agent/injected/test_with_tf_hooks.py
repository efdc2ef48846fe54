"""With TensorFlow: what the hooks give to a user's unchanged program, and when they end it."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from reading import programs_lines

if not find_spec("tensorflow"):
    pytest.skip("TensorFlow is in the image, not here", allow_module_level=True)

ALONE = {"worker": ["127.0.0.1:1"]}


@pytest.fixture
def output(run_task, tmp_path: Path):
    """Returns a function that runs a user's program as worker-0, which must end with the `expected`
    exit code, and returns the program's own lines."""

    def run(text: str, expected: int = 0, **variables: object) -> list[str]:
        path = tmp_path / "program.py"
        path.write_text(text)
        task = run_task("worker-0", ALONE, "run", str(path), **variables)
        found = task.communicate(timeout=60)[0]
        assert task.returncode == expected, found
        return programs_lines(found)

    return run


IMPORTS_LAZILY = """
import importlib.util
assert importlib.util.find_spec("tensorflow").origin.endswith("__init__.py")
def use():
    try:
        import tensorflow as tf
    except BaseException:
        print("caught")
    print("went on")
use()
"""


@pytest.mark.usefixtures("cold")
def test_a_program_without_its_gpu_ends_during_the_import(output, events):
    began = time.monotonic()
    found = output(IMPORTS_LAZILY, 3, CLUSTER_KIT_GPUS='["GPU-5c1d"]', CLUSTER_KIT_RETRIES=1)
    assert time.monotonic() - began < 30
    assert found == ["worker-0: worker-0 was promised GPU-5c1d, sees none"]
    devices, end = events("worker-0")[-2:]
    assert (devices["event"], devices["of"]) == ("devices", "worker-0")
    assert (devices["promised"], devices["sees"]) == (["GPU-5c1d"], [])
    assert (end["reason"], end["tasks"]) == ("gpu-missing", ["worker-0"])


@pytest.mark.parametrize(
    ("first_line", "variables"),
    [
        ("", {"CLUSTER_KIT_GPU_CHECK": "off"}),
        ("import os; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'", {}),
    ],
    ids=["check off", "hidden by the program"],
)
def test_programs_that_are_not_ended(output, first_line, variables):
    program = first_line + IMPORTS_LAZILY
    assert output(program, CLUSTER_KIT_GPUS='["0"]', **variables) == ["went on"]


def test_a_program_that_never_imports_tensorflow(output):
    assert output("print('done')", CLUSTER_KIT_GPUS='["0"]') == ["done"]


SAVES = """
import os, signal, time
def save(*_):
    print("saved", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
import tensorflow as tf
tf.distribute.MultiWorkerMirroredStrategy()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(1)
print("the handler is lost")
"""


def test_a_handler_from_before_the_strategy_runs(run_task, free_port, tmp_path: Path) -> None:
    (tmp_path / "saves.py").write_text(SAVES)
    cluster = {"worker": [f"127.0.0.1:{free_port()}"]}
    task = run_task("worker-0", cluster, "run", str(tmp_path / "saves.py"))
    assert programs_lines(task.communicate(timeout=300)[0])[-1] == "saved"


MIRRORED = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import json, sys
import tensorflow as tf
names = [device.name for device in tf.config.list_logical_devices("CPU")]
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
model.fit(tf.ones((8, 4)), tf.zeros((8, 1)), batch_size=4, epochs=1, verbose=0)
own = {"devices": names, "replicas": strategy.num_replicas_in_sync, "keras": model.__module__}
with tf.Graph().as_default(), tf.compat.v1.Session(
    config=tf.compat.v1.ConfigProto(allow_soft_placement=True)
) as session:
    own["session"] = len(session.list_devices())
server = tf.distribute.Server({"local": ["127.0.0.1:PORT"]}, "local", 0)
own["server"] = dict(server.server_def.default_session_config.device_count)
print(json.dumps(own))
"""


def test_simulated_gpus_in_an_unchanged_program(output, free_port):
    program = MIRRORED.replace("PORT", str(free_port()))
    found = json.loads(output(program, CLUSTER_KIT_SIMULATE_GPUS=2)[-1])
    assert found["devices"] == ["/device:CPU:0", "/device:CPU:1"]
    assert (found["replicas"], found["session"]) == (2, 2)
    assert found["server"]["CPU"] == 2
    assert found["keras"].startswith("tf_keras")


SETS_ITSELF = """
import tensorflow as tf
[cpu] = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
try:
    tf.config.experimental.set_memory_growth(cpu, True)
except ValueError:
    print(len(tf.config.list_logical_devices("CPU")))
"""


@pytest.mark.usefixtures("cold")
def test_the_programs_own_settings_take_precedence(output):
    assert output(SETS_ITSELF, CLUSTER_KIT_SIMULATE_GPUS=2) == ["3"]


def test_an_error_in_the_hook_is_printed(output, tmp_path):
    """In this case, the progress file cannot be written."""
    program = "import os; os.environ['CLUSTER_KIT_PROGRESS'] = '/nowhere/x'\nimport tensorflow\n"
    assert "FileNotFoundError" in "\n".join(output(program, 1, CLUSTER_KIT_GPUS='["0"]'))


PRETENDS = """
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.training import server_lib
from trainer.agent.injected import mailbox
from trainer.agent.injected import gpu_promises, tensorflow_devices
ours = context.context()
gpus = [tf.config.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(2)]
ours._initialize_physical_devices()
ours._physical_devices += gpus
ours._visible_device_list += gpus
ours._memory_growth_map.update(dict.fromkeys(gpus))
tf.config.experimental.get_device_details = lambda gpu: {"device_name": "NVIDIA H200"}
tensorflow_devices.prepare(tf, gpu_promises, mailbox, hidden=False)
limits = lambda config: [
    list(one.memory_limit_mb) for one in config.gpu_options.experimental.virtual_devices
]
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
asked = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(allow_growth=True))
cluster = server_lib.ClusterSpec({"local": ["127.0.0.1:1"]})
for config in (None, asked):
    made = server_lib._make_server_def(cluster, "local", 0, None, config).default_session_config
    print(limits(made), made.gpu_options.allow_growth)
print(limits(ours.config), ours.config.gpu_options.allow_growth)
"""


@pytest.mark.parametrize(
    ("limit", "limits", "growth"), [(500, "[[500.0], [500.0]]", False), ("", "[]", True)]
)
def test_two_pretended_gpus_are_limited_or_grow(output, events, limit, limits, growth):
    """TensorFlow's own configuration code, with simulated GPUs."""
    variables = {"CLUSTER_KIT_GPUS": '["0","1"]', "CLUSTER_KIT_GPU_MEMORY_MB": str(limit)}
    assert output(f"import os; os.environ |= {variables}\n" + PRETENDS) == [
        f"{limits} {growth}", f"{limits} True", f"{limits} {growth}",
    ]  # fmt: skip
    [seen] = [event for event in events("worker-0") if event["event"] == "devices"]
    assert seen["sees"] == ["NVIDIA H200"] * 2


DRIVER = """
from trainer.agent.injected import gpu_promises
in_driver = [gpu_promises.CudaDevice(f"0000:{bus}:00.0", "") for bus in ("3b", "5e")]
gpu_promises.cuda_devices = lambda: in_driver
"""


@pytest.mark.parametrize(("second", "code"), [("5E", 0), ("86", 3)], ids=["the same", "another"])
def test_gpus_are_identified_by_the_driver(output, events, second, code):
    told = [
        {"name": f"GPU {index}", "pci": f"00000000:{bus}:00.0"}
        for index, bus in enumerate(["3B", second])
    ]
    variables = {"CLUSTER_KIT_GPUS": json.dumps(told)}
    output(f"import os; os.environ |= {variables}\n" + DRIVER + PRETENDS, code)
    [seen] = [event for event in events("worker-0") if event["event"] == "devices"]
    assert seen["sees"] == [f"NVIDIA H200 (pci 0000:{bus}:00.0)" for bus in ("3b", "5e")]
    if code:
        assert events("worker-0")[-1]["message"] == (
            "worker-0 was promised 2 GPUs (GPU 0, pci 0000:3b:00.0, GPU 1, pci 0000:86:00.0), "
            "sees NVIDIA H200 (pci 0000:3b:00.0), NVIDIA H200 (pci 0000:5e:00.0)"
        )


@pytest.mark.parametrize(("second", "code"), [("5e", 0), ("86", 3)], ids=["the same", "another"])
def test_gpus_that_a_swarm_assigned_are_identified_by_uuid(output, events, second, code):
    uuids = [f"{bus}000000-1111-2222-3333-444444444444" for bus in ("3b", "5e")]
    driver = f"""
from trainer.agent.injected import gpu_promises
gpu_promises.cuda_devices = lambda: [gpu_promises.CudaDevice("", uuid) for uuid in {uuids}]
"""
    variables = {
        "CLUSTER_KIT_GPUS": json.dumps([{"name": "one"}, {"name": "two"}]),
        "DOCKER_RESOURCE_GPU": f"GPU-{second}000000,GPU-{uuids[0]}",
    }
    output(f"import os; os.environ |= {variables}\n" + driver + PRETENDS, code)
    [seen] = [event for event in events("worker-0") if event["event"] == "devices"]
    assert seen["sees"] == ["NVIDIA H200"] * 2
    if code:
        assert events("worker-0")[-1]["message"] == (
            f"worker-0 was promised 2 GPUs (one (GPU-86000000), two (GPU-{uuids[0]})), "
            f"sees NVIDIA H200 (uuid {uuids[0]}), NVIDIA H200 (uuid {uuids[1]})"
        )
