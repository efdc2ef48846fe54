"""An API server of Kubernetes in this process, with its controller of Jobs, and simulated failures.

Paths, answers and messages are those of a real server (shapes recorded from Kubernetes' reference).
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.pods import Object, Pods, job_of, made_of, now, task_of
from tests.kubelet import sets

SETS = "/apis/jobset.x-k8s.io/v1alpha2"
IN_SET = f"{sets.PREFIX}/jobset-name"
OVER = ("Succeeded", "Failed")


@dataclass
class FakeKubernetes(Pods):
    """What the server has, and how it behaves."""

    says: dict[str, list[Object]] = field(default_factory=dict)
    """Progress entries by task; the leader's are created if there are none."""
    unmounted: str = ""
    """The reason why no pod gets its volumes."""
    complaint: str = ""
    """The reason why the controller creates no pods."""
    refuses: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """(status, message) by method and kind."""
    denied: set[str] = field(default_factory=set)
    """Kinds that an access review denies."""
    knows_sets: bool = False
    """Whether JobSet is installed."""
    controls_sets: bool = True
    """Whether JobSet's controller runs."""
    minor: str = "35"
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    scans: int = 0

    def answer(self, method: str, path: str, query: dict[str, str], body: Object) -> Any:
        """(status, object or text)."""
        parts = urlsplit(path).path.strip("/").split("/")
        if parts == ["version"]:
            return 200, {"major": "1", "minor": self.minor, "gitVersion": f"v1.{self.minor}.0"}
        if parts[-1] == "selfsubjectaccessreviews":
            kind = body["spec"]["resourceAttributes"]["resource"]
            return 201, {"status": {"allowed": kind not in self.denied}}
        if SETS in path and not self.knows_sets:
            return 404, "404 page not found\n"
        if "namespaces" not in parts:
            return 200, {"kind": "APIResourceList", "groupVersion": "/".join(parts[1:])}
        kind, *rest = parts[parts.index("namespaces") + 2 :]
        self.asked.append((method, "/".join([kind, *rest])))
        if refusal := self.refuses.get((method, kind)):
            return refusal[0], _status(*refusal)
        if rest[1:] == ["log"]:
            return self._log(rest[0])
        return getattr(self, method.lower())(kind, "".join(rest), query, body)

    def get(self, kind: str, name: str, query: dict[str, str], _body: Object) -> Any:
        self._live()
        self._end_sets()
        if kind == "events":
            return 200, {"items": self._events()}
        if name:
            found = self.objects.get((kind, name))
            return (200, found) if found else (404, _status(404, f'{kind} "{name}" not found'))
        wanted = query.get("labelSelector", "").split(",")
        items = [one for (of, _), one in self.objects.items() if of == kind]
        return 200, {"items": [one for one in items if all(_fits(one, part) for part in wanted)]}

    def post(self, kind: str, _name: str, _query: dict[str, str], body: Object) -> Any:
        name = body["metadata"]["name"]
        if (kind, name) in self.objects:
            return 409, _status(409, f'{kind} "{name}" already exists')
        if kind == "jobsets" and (words := sets.refused(body)):
            return 403, _status(
                403, f'admission webhook "vjobset.kb.io" denied the request: {words}'
            )
        body["metadata"]["creationTimestamp"] = now()
        texts = body.pop("stringData", {}) if kind == "secrets" else {}
        for key, text in texts.items():
            body.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()
        self.objects[kind, name] = body
        for job in sets.jobs_of(body) if kind == "jobsets" and self.controls_sets else ():
            self.post("jobs", job["metadata"]["name"], {}, job)
        suspended = body.get("spec", {}).get("suspend", False)
        if kind == "jobs" and not self.complaint and not suspended:
            self._make_pods(body)
        return 201, body

    def patch(self, kind: str, name: str, _query: dict[str, str], body: Object) -> Any:
        found = self.objects.get((kind, name))
        if found is None:
            return 404, _status(404, f'{kind} "{name}" not found')
        found["spec"] = {**found.get("spec", {}), **body.get("spec", {})}
        notes = {**found["metadata"].get("annotations", {})}
        found["metadata"]["annotations"] = notes | body.get("metadata", {}).get("annotations", {})
        suspend = found["spec"].get("suspend", False)
        if kind == "jobs":
            self._suspend(name) if suspend else self._resume(found)
        for job in self._of_set(name) if kind == "jobsets" else ():
            self.patch("jobs", job, {}, {"spec": {"suspend": suspend}})
        return 200, found

    def _suspend(self, job: str) -> None:
        self._live()
        for key in [key for key, one in self.objects.items() if job_of(one) == job]:
            if self.objects[key]["status"]["phase"] in ("Pending", "Running"):
                del self.objects[key]

    def _resume(self, job: Object) -> None:
        if not any(job_of(one) == job["metadata"]["name"] for one in self.objects.values()):
            self._make_pods(job)

    def delete(self, kind: str, name: str, _query: dict[str, str], _body: Object) -> Any:
        if self.objects.pop((kind, name), None) is None:
            return 404, _status(404, f'{kind} "{name}" not found')
        for key in [key for key, one in self.objects.items() if job_of(one) == name]:
            if kind == "jobs":
                del self.objects[key]
        for job in self._of_set(name) if kind == "jobsets" else ():
            self.delete("jobs", job, {}, {})
        return 200, {"status": "Success"}

    def _of_set(self, name: str) -> list[str]:
        """Returns the Jobs of a JobSet."""
        jobs = [(known, one) for (kind, known), one in self.objects.items() if kind == "jobs"]
        return [known for known, one in jobs if one["metadata"]["labels"].get(IN_SET) == name]

    def _end_sets(self) -> None:
        """Delete the Jobs that have not ended of each JobSet that has succeeded or failed."""
        for name, one in [(n, o) for (kind, n), o in self.objects.items() if kind == "jobsets"]:
            mine = {job: self._end_of(job) for job in self._of_set(name)}
            ended = {job: how for job, how in mine.items() if how}
            if how := sets.end_of(one, ended):
                one["status"] = {"conditions": [{"type": how, "status": "True"}]}
                for job in mine.keys() - ended.keys():
                    self.delete("jobs", job, {}, {})

    def _end_of(self, job: str) -> str:
        """Returns how a Job has ended; "" if it has not."""
        phases = [o["status"]["phase"] for o in self.objects.values() if job_of(o) == job]
        spec = self.objects["jobs", job]["spec"]
        if "Failed" in phases and spec.get("backoffLimitPerIndex", 0) == 0:
            return "Failed"
        return "Complete" if phases.count("Succeeded") == spec["completions"] else ""

    def _make_pods(self, job: Object) -> None:
        for pod in made_of(job):
            self.objects["pods", pod["metadata"]["name"]] = pod

    def _live(self) -> None:
        """Let time pass: pods start at once, and end for good at their time."""
        for (kind, _), pod in self.objects.items():
            if kind == "pods" and "since" in pod and pod["status"]["phase"] not in OVER:
                age_s, began = time.monotonic() - pod["since"], pod["metadata"]["creationTimestamp"]
                pod["status"] = self.status_of(task_of(pod), age_s, began)

    def _events(self) -> list[Object]:
        jobs = [name for kind, name in self.objects if kind == "jobs"]
        about = [{"kind": "Job", "name": name} for name in jobs if self.complaint]
        pods = [name for kind, name in self.objects if kind == "pods" and self.unmounted]
        return [
            *({"involvedObject": one, "message": self.complaint} for one in about),
            *({"involvedObject": {"kind": "Pod", "name": name}, "reason": "FailedMount",
               "message": self.unmounted} for name in pods),
        ]  # fmt: skip

    def _log(self, pod: str) -> Any:
        if pod.endswith("-reader"):
            return 200, "".join(f"2026-11-22T10:00:00.5Z {json.dumps(x)}\n" for x in self._read())
        if ("pods", pod) not in self.objects:
            return 404, _status(404, f'pods "{pod}" not found')
        return 200, f"2026-11-22T10:00:00.123456789Z hello from {pod}\n"

    def _read(self) -> Iterator[Object]:
        """Return everything that the reader has printed, each time."""
        self.scans += 1
        for task, entries in self.says.items():
            text = "".join(json.dumps({"time": time.time(), **one}) + "\n" for one in entries)
            data = base64.b64encode(text.encode()).decode()
            yield {"path": f"progress/{task}.jsonl", "at": 0, "data": data}
        yield {"scan": self.scans}


def _status(code: int, words: str) -> Object:
    return {"kind": "Status", "status": "Failure", "message": words, "code": code}


def _fits(one: Object, part: str) -> bool:
    key, equals, value = part.partition("=")
    marks = one["metadata"].get("labels", {})
    return not part or (marks.get(key) == value if equals else key in marks)
