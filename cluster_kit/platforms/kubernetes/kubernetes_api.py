"""Calls the API server of Kubernetes; only this module imports the Kubernetes client."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import urllib3

from cluster_kit.errors import EngineError, HostError, KitError
from cluster_kit.platforms.docker.docker_connection import first_line
from cluster_kit.platforms.engine import Container, RemoteEngine
from cluster_kit.util import debug_log


class Unreachable(RemoteEngine):
    """Raised for actions that the kit cannot perform on a pod, since it does not control the pod's
    node."""

    out_of_reach = (
        "the kit cannot do that to a pod: it does not control the pod's node",
        "`kubectl exec POD -- …` runs a command in it",
    )

    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        return []

    def comes_back(self, container_id: str, within_s: float) -> bool:
        return False


Object = dict[str, Any]
_LOG = logging.getLogger("cluster_kit.kubernetes")
TIMEOUT_S = (5.0, 30.0)
"""Seconds to wait for a connection, and between two parts of an answer."""
INSTALL = "`pip install 'cluster-kit[kubernetes]'`"
CONTEXT = (
    "`kubectl config get-contexts` lists the configured clusters; KUBECONFIG names another file"
)
QUOTA = (
    "`kubectl describe quota` shows what is left and what a pod must set: lower `cpus`, `memory` "
    "or the counts, or give every role `cpus` and `memory`"
)
OF_QUOTA = ("exceeded quota", "failed quota")
"""Text in messages about a pod that exceeds a quota, or lacks a limit that the quota needs."""
JSON = "application/json"
MERGE = "application/merge-patch+json"


def client_version() -> tuple[int, ...] | None:
    """The version of the client, None if it is not installed."""
    try:
        return tuple(int(part) for part in version("kubernetes").split(".") if part.isdigit())
    except PackageNotFoundError:
        return None


AGAIN = urllib3.Retry(
    total=None, connect=0, read=0, other=0, status=4, status_forcelist=(429, 503),
    backoff_factor=0.2, raise_on_status=False,
)  # fmt: skip
"""Repeats a request for some seconds if a busy or restarting server answers with one of these
codes.

Requests that create an object are not sent twice.
"""


class Refused(EngineError):
    """The API server refused a request; `status` is HTTP's, `words` the server's message."""

    def __init__(self, status: int, words: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.status, self.words = status, words


class Api:
    """A connection to the cluster of the kubeconfig's current context; inside a pod, to the pod's
    cluster.

    Args:
        namespace: "" for the context's own.
    Raises:
        HostError: the client is not installed, or no cluster is configured.
    """

    def __init__(self, namespace: str = "") -> None:
        try:
            from kubernetes import client, config
            from kubernetes.config.config_exception import ConfigException
        except ImportError:
            raise HostError("the client of Kubernetes is not installed", INSTALL) from None
        settings = client.Configuration()
        settings.retries = AGAIN
        try:
            _load(config, settings)
        except (ConfigException, OSError, ValueError, KeyError, TypeError) as error:
            raise HostError(
                f"no Kubernetes cluster is configured: {first_line(error)}", CONTEXT
            ) from None
        self.host = str(settings.host)
        self.namespace = namespace or _of_context(config) or "default"
        self._client = client.ApiClient(settings)

    def get(self, path: str, **query: str) -> Object:
        """The server's answer as JSON. This and the other methods raise EngineError."""
        return dict(json.loads(self._call("GET", path, query)))

    def items(self, path: str, selector: str, **query: str) -> list[Object]:
        """The objects of this namespace that have these labels."""
        objects = self.get(path, labelSelector=selector, **query)["items"]
        return list(objects)

    def text(self, path: str, **query: str) -> str:
        """The server's answer as text, such as a log."""
        return self._call("GET", path, query).decode("utf-8", errors="replace")

    def post(self, path: str, body: Object) -> Object:
        return dict(json.loads(self._call("POST", path, {}, body)))

    def patch(self, path: str, body: Object) -> Object:
        return dict(json.loads(self._call("PATCH", path, {}, body, MERGE)))

    def delete(self, path: str, **query: str) -> None:
        self._call("DELETE", path, query)

    def may(self, verb: str, group: str, kind: str, part: str = "") -> bool:
        """Whether the caller has this right in the namespace."""
        attributes = {
            "namespace": self.namespace,
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": part,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        return bool(answer.get("status", {}).get("allowed"))

    def knows(self, group: str) -> bool:
        """Whether the server has this version of an API group; some groups are add-ons."""
        try:
            self.get(f"/apis/{group}")
        except Refused as error:
            if error.status != 404:
                raise
            return False
        return True

    def of(self, group: str, kind: str) -> str:
        """The path of a type of objects in the namespace: `of("batch/v1", "jobs")`."""
        root = "/api/v1" if group == "v1" else f"/apis/{group}"
        return f"{root}/namespaces/{self.namespace}/{kind}"

    def close(self) -> None:
        self._client.rest_client.pool_manager.clear()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Object | None = None,
        content: str = JSON,
    ) -> bytes:
        request = self._client.param_serialize(
            method=method,
            resource_path=path,
            query_params=list(query.items()),
            header_params={"Accept": "*/*", "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            with debug_log.timed(_LOG, f"{method} {path}") as result:
                answer = self._client.call_api(*request, _request_timeout=TIMEOUT_S)
                data = bytes(answer.read() or b"")  # type: ignore[no-untyped-call]
                result(answer.status)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise EngineError(
                f"the Kubernetes API server at {self.host} does not answer: {first_line(reason)}",
                f"`kubectl cluster-info` asks the same server; {CONTEXT}",
            ) from None
        except Exception as error:
            if type(error).__module__.startswith("kubernetes."):
                raise _broken(self.host, error) from None
            raise
        if answer.status >= 400:
            raise refused(answer.status, data, f"{method} {path}")
        return data


def refused(status: int, data: bytes, what: str) -> Refused:
    """The error for an answer whose status is not success."""
    try:
        words = str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        words = data.decode("utf-8", errors="replace")[:300] or what
    message, hint = f"Kubernetes refused: {words}", "fix that, and run the command again"
    if status == 401:
        message = f"Kubernetes does not accept your credentials: {words}"
        hint = "log in to the cluster again: your credentials are expired or wrong"
    elif status == 403 and any(quota_words in words for quota_words in OF_QUOTA):
        hint = QUOTA
    elif status == 403 and "violates PodSecurity" in words:
        hint = "the namespace's Pod Security level forbids this: choose another namespace"
    elif status == 403:
        message = f"you may not do that in this namespace: {words}"
        hint = (
            "ask for a Role with that right, or name a namespace of yours in `kubernetes.namespace`"
        )
    elif status == 404 and "namespaces" in words:
        hint = "`kubectl create namespace NAME`, or fix `kubernetes.namespace`"
    return Refused(status, words, message, hint)


def _broken(host: str, error: Exception) -> KitError:
    return EngineError(
        f"the Kubernetes API server at {host} does not answer: {first_line(error)}",
        f"`kubectl cluster-info` asks the same server; {CONTEXT}",
    )


def _load(config: Any, settings: Any) -> None:
    """Read the kubeconfig; in a pod without one, the credentials of its service account."""
    try:
        config.load_kube_config(config_file=_files(), client_configuration=settings)
    except config.ConfigException:
        if "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise
        config.load_incluster_config(client_configuration=settings)


def _files() -> str | None:
    """The files in KUBECONFIG's current value: the client reads the variable only once, when it is
    imported."""
    return os.environ.get("KUBECONFIG") or None


def _of_context(config: Any) -> str:
    """The namespace of the current context; "" without one, as inside a cluster."""
    try:
        _, active = config.list_kube_config_contexts(config_file=_files())
        return str(active["context"].get("namespace") or "")
    except Exception:  # noqa: BLE001  no kubeconfig: this runs in a pod
        return ""
