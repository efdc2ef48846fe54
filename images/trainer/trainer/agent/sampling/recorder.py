"""Writes down each second what this task uses, in `progress/<task>.usage`: a JSON object a line."""

from __future__ import annotations

import threading
import time

from trainer.agent.outcome import traffic
from trainer.agent.progress_file import Progress
from trainer.agent.sampling.connections import Sent, connections
from trainer.agent.sampling.gpus import Driver
from trainer.agent.sampling.memory import memory
from trainer.agent.task import Address, Task, addresses_by_task
from trainer.agent.usage import of_processes

SUFFIX = ".usage"
EVERY_S = 1.0
LATER_S, SELDOM_S = 3600.0, 5.0
"""After an hour less often: a file that is written for days stays small."""
PATIENCE_S = 1.0
"""For the last sample: a container that is stopped has no time to lose."""
PEERS_EVERY = 10
"""Each so many samples it is written down what was sent to whom."""
PEERS_SELDOM = 5
"""Samples between two looks at that in a long run. In its beginning there are fewer: a program may
have ended by the next look, and its connections with it."""


class Recorder:
    """Samples from its start to `stop`; the first and the last sample are written at once."""

    def __init__(self, task: Task) -> None:
        self._progress = Progress(task.progress_file.with_suffix(SUFFIX), again=False)
        self._sent = Sent(tasks_by_ip(task))
        self._told: dict[str, int] = {}
        self._gpus = Driver([gpu.uuid for gpu in task.gpus if gpu.uuid])
        self._samples = self._look_at = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write the last sample."""
        self._over.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        began = time.monotonic()
        over = False
        while not over:
            self._sample(last=False)
            late = time.monotonic() - began > LATER_S
            over = self._over.wait(SELDOM_S if late else EVERY_S)
        self._sample(last=True)

    def _sample(self, last: bool) -> None:
        network = traffic()
        keys: dict[str, object] = {
            "cpu_s": round(of_processes()[0], 3),
            "memory": memory(),
            "rx_bytes": network.get("rx_bytes", 0),
            "tx_bytes": network.get("tx_bytes", 0),
        }
        if last or self._samples >= self._look_at:
            self._told = self._sent.look(connections())
            self._look_at = self._samples + min(1 + self._samples // 2, PEERS_SELDOM)
        if last or self._samples % PEERS_EVERY == 0:
            keys["sent_to"] = self._told
        if gpus := self._gpus.look():
            keys["gpus"] = [{"busy": gpu.busy, "memory": gpu.memory} for gpu in gpus]
        self._samples += 1
        self._progress.write("usage", **keys)


def tasks_by_ip(task: Task) -> dict[str, str]:
    """Names of the cluster's other tasks by IP address; {} if several share one."""
    addresses = addresses_by_task(task.cluster)
    found = {Address.parse(text, "TF_CONFIG").host: name for name, text in addresses.items()}
    if len(found) < len(addresses):
        return {}
    return {ip: name for ip, name in found.items() if name != task.name}
