"""The variables and arguments of a container, as the kubelet makes them.

https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
and k8s.io/kubernetes, third_party/forked/golang/expansion and pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]
FIELD = re.compile(r"metadata\.(annotations|labels)\['([^']+)'\]")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Returns the text with `$(NAME)` replaced by its value, or unchanged if there is none; `$$`
    becomes `$`."""
    made, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            made, at = made + text[at], at + 1
        elif text[at + 1] == "(" and ")" in text[at:]:
            end = text.index(")", at)
            name = text[at + 2 : end]
            made, at = made + known.get(name, f"$({name})"), end + 1
        else:  # `$$` is `$`; any other character is kept, with the `$` before it
            made, at = made + ("$" if text[at + 1] == "$" else text[at : at + 2]), at + 2
    return made


def environment(container: Object, metadata: Object, objects: Objects) -> dict[str, str]:
    """Returns all variables: first those of `envFrom`, then those of `env`, each with access to
    earlier ones."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        kind = "ConfigMap" if "configMapRef" in source else "Secret"
        name = source["configMapRef" if kind == "ConfigMap" else "secretRef"]["name"]
        prefix = source.get("prefix", "")
        found |= {f"{prefix}{key}": value for key, value in objects.data(kind, name).items()}
    for variable in container.get("env", ()):
        if value := variable.get("value"):
            found[variable["name"]] = expand(value, found)
        else:
            found[variable["name"]] = _taken(variable.get("valueFrom"), metadata, objects)
    return found


def _taken(source: Object | None, metadata: Object, objects: Objects) -> str:
    if source is None:
        return ""
    if "fieldRef" in source:
        path = source["fieldRef"]["fieldPath"]
        if match := FIELD.fullmatch(path):
            return str(metadata.get(match[1], {}).get(match[2], ""))
        return str(metadata[path.removeprefix("metadata.")])
    kind, key = ("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")
    of, ref = kind if kind[1] in source else key
    return objects.data(of, source[ref]["name"])[source[ref]["key"]]


class Objects:
    """ConfigMaps and Secrets by name."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self.all = {(one["kind"], one["metadata"]["name"]): one for one in found}

    def data(self, kind: str, name: str) -> dict[str, str]:
        one = self.all[kind, name]
        return {**one.get("data", {}), **one.get("stringData", {})}

    def binary(self, kind: str, name: str) -> dict[str, str]:
        """Returns contents as base64, by key."""
        return dict(self.all[kind, name].get("binaryData", {}))
