"""Docker labels of the kit's containers and networks; nothing without them is ever touched."""

CLUSTER = "cluster-kit.cluster"
ROLE = "cluster-kit.role"
INDEX = "cluster-kit.index"
GPUS = "cluster-kit.gpus"
LEADER = "cluster-kit.leader"
PLAN = "cluster-kit.plan"
RUN = "cluster-kit.run"
"""Which run started it; empty under plain `docker compose up`."""
SECRETS = "cluster-kit.secrets"
"""Names of the variables that a container has from its caller, separated by commas."""
BOARD = "cluster-kit.tensorboard"
"""Which runs a TensorBoard shows; it is no task, and has no label CLUSTER."""
BOARD_OF = "cluster-kit.tensorboard.cluster"
"""The cluster with which a TensorBoard began, and goes; it has `RUN` then."""
SIDECAR = "cluster-kit.sidecar"
"""The name of a sidecar; its container is no task's."""
HELPER = "cluster-kit.helper"
"""The cluster of a container that breaks another one from outside, in a drill."""


def project_of(cluster: str) -> str:
    """The Compose project of a cluster; the prefix keeps it apart from the user's projects."""
    return f"cluster-kit-{cluster}"


def kubernetes_name(cluster: str) -> str:
    """The Service of a cluster on Kubernetes, and the beginning of all other names of it there.

    A Service's name begins with a letter. With the longest name of a cluster each one derived from
    it has at most 63 characters.
    """
    return f"ck-{cluster}"


def kubernetes_secrets(cluster: str) -> tuple[str, str]:
    """The Secrets of a cluster: of its variables, and of its files."""
    return f"{kubernetes_name(cluster)}-env", f"{kubernetes_name(cluster)}-files"


def kubernetes_job(cluster: str, role: str, *, in_set: bool) -> str:
    """The Job of a role: in a JobSet the first, and only, one of its role."""
    return f"{kubernetes_name(cluster)}-{role}{'-0' if in_set else ''}"


def kubernetes_host(cluster: str, role: str, index: int, *, in_set: bool) -> str:
    """The name by which a pod is found: its Job's, its index, and the Service."""
    return f"{kubernetes_job(cluster, role, in_set=in_set)}-{index}.{kubernetes_name(cluster)}"
