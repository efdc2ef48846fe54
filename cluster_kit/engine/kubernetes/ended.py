"""Pods of a JobSet that have ended: the set's end deletes them, so what they were is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from cluster_kit import labels
from cluster_kit.engine.kubernetes.pods import Record, by_task, exit_code, task_of
from cluster_kit.engine.kubernetes.sets import IN_SET

_PARALLEL = 16


class Ended:
    """The part of the engine that remembers them, from when it has seen them end."""

    _kept: dict[str, list[str]]
    """What tasks had said, by their ids."""
    _ended: dict[str, Record]
    """Pods by name."""

    @abstractmethod
    def _read(self, pod: str, since: float | None) -> list[str]:
        """What a pod has said, each line with its time in front."""

    def _keep(self, pods: Sequence[Record]) -> None:
        """Keep the records of pods that have ended, and the logs of those that are about to go."""
        going = [pod for pod in pods if self._is_going(pod)]
        every = by_task(pods) if going else {}
        tasks = sorted(set(map(task_of, going)))
        with ThreadPoolExecutor(_PARALLEL) as pool:
            said = pool.map(lambda task: self._said(every[task]), tasks)
            self._kept |= dict(zip(tasks, said, strict=True))
        for pod in going:
            if exit_code(pod) is not None:
                self._ended[pod["metadata"]["name"]] = pod

    def _is_going(self, pod: Record) -> bool:
        """Whether its set may delete a pod from now on, or does; and its log is to be read."""
        metadata = pod["metadata"]
        if IN_SET not in metadata["labels"] or metadata["name"] in self._ended:
            return False
        return exit_code(pod) is not None or "deletionTimestamp" in metadata

    def _said(self, pods: Sequence[Record]) -> list[str]:
        return [line for pod in pods for line in self._read(str(pod["metadata"]["name"]), None)]

    def _with_ended(self, listed: list[Record], cluster: str, run: str) -> list[Record]:
        """The pods that are there, and those of this cluster that are not there any more."""
        there = {pod["metadata"]["name"] for pod in listed}
        wanted = {labels.CLUSTER: cluster} | ({labels.RUN: run} if run else {})
        gone = (pod for name, pod in self._ended.items() if name not in there)
        return [*listed, *(p for p in gone if wanted.items() <= p["metadata"]["labels"].items())]

    def _forget(self, cluster: str) -> None:
        for name, pod in [*self._ended.items()]:
            if pod["metadata"]["labels"][labels.CLUSTER] == cluster:
                del self._ended[name]
