"""What Kubernetes has none of, and what cannot be done to a pod from here."""

from __future__ import annotations

from cluster_kit.engine.containers import Container
from cluster_kit.engine.elsewhere import Elsewhere


class Unreachable(Elsewhere):
    """Methods of an engine: those about this host find nothing, those inside a container raise."""

    _refusal = (
        "that cannot be done to a pod: the kit has no hand on its node",
        "`kubectl exec POD -- …` runs a command in it",
    )

    def networks(self) -> list[tuple[str, str, str]]:
        return []

    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        return []

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        return ()

    def gpus_reserved(self) -> tuple[tuple[str, str], ...]:
        return ()

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        return ""

    def comes_back(self, container_id: str, within_s: float) -> bool:
        return False
