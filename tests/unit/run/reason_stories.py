"""Stories of runs: what tasks do, and the outcome.json that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cluster_kit.run.verdict import Reason
from tests.fakes.acting import (
    LEADS,
    SCORES,
    Life,
    Step,
    dies,
    ends,
    prints,
    runs_out_of_memory,
    says,
)
from tests.fakes.clock import BEGAN

Acting = Mapping[str, Sequence[Life]]
UNAVAILABLE = "UnavailableError: failed to connect to all addresses"
TRAINING = (says(0.1, "start", attempt=1), says(0.4, "ready"), says(0.9, "step", step=1))
AT = f"{datetime.fromtimestamp(BEGAN):%H:%M:%S}"
CUT_OFF = 'worker-1: was still running; `success = "all"` waits for it'
KILLED = "chief-0 ended with exit code 137 (killed by signal 9), and was started again"
ALL_TASKS = {"chief": 0, "ps": 0, "evaluator": 0, "style": "all-tasks"}


STARTED = (says(0.1, "start", attempt=1), says(0.4, "ready"))
STARVES = Life(
    (
        says(0.1, "start", attempt=1),
        replace(ends(2.0, 137, "failed", "the program was killed by SIGKILL"), oom=True),
    )
)
SMALL = {"role": {"worker": {"memory": "250m"}}}


def leader(*steps: Step) -> Sequence[Life]:
    return (Life((*TRAINING, *steps)),)


@dataclass(frozen=True)
class Story:
    """What tasks do, and the outcome.json that follows."""

    acting: Acting
    reason: Reason
    code: int
    blame: str | None
    message: str = ""
    exit_codes: Mapping[str, int | None] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)


STORIES = {
    "all goes well": Story({}, Reason.FINISHED, 0, None),
    "the loss is not a number": Story(
        {"chief-0": leader(says(1.8, "step", step=2, loss=0.5),
                           says(1.9, "step", step=3, loss=math.nan), ends(2.0, 0, "finished"))},
        Reason.FINISHED, 0, None, notes=["the last loss of chief-0 is nan"],
    ),
    "all goes well without a chief": Story(
        {"worker-1": [Life((*TRAINING, ends(2.5, 0, "finished")))]},
        Reason.FINISHED, 0, None, overrides=ALL_TASKS,
    ),
    "a worker crashes, comes back, and the job succeeds": Story(
        {"worker-1": [Life((says(0.2, "ready"), dies(1.0))), Life((says(0.1, "ready"),))]},
        Reason.FINISHED, 0, None, restarts={"worker-1": 1}, exit_codes={"worker-1": 0},
        notes=[KILLED.replace("chief-0", "worker-1")],
    ),
    "a worker's program fails by itself, is started again, and the job succeeds": Story(
        {"worker-1": [Life((*STARTED, ends(1.0, 1, "failed", "ValueError: bad record"))),
                      Life((*STARTED,), last=ends(0.0, 0, "finished"))]},
        Reason.FINISHED, 0, None, restarts={"worker-1": 1},
        notes=["worker-1: failed once (exit code 1), and was started again; its last words: "
               "ValueError: bad record"],
        overrides=ALL_TASKS,
    ),
    "a worker loses its connection, is started again, and the job succeeds": Story(
        {"worker-1": [Life((*STARTED, ends(1.0, 1, "failed", UNAVAILABLE))),
                      Life((*STARTED,), last=ends(0.0, 0, "finished"))]},
        Reason.FINISHED, 0, None, restarts={"worker-1": 1}, overrides=ALL_TASKS,
    ),
    "the leader is killed, is started again, and ends well": Story(
        {"chief-0": [*leader(dies(1.0)), LEADS]},
        Reason.FINISHED, 0, None, restarts={"chief-0": 1}, notes=[KILLED],
    ),
    "the evaluator crashes after the training, comes back and scores": Story(
        {"evaluator-0": [Life((says(0.1, "start", attempt=1), dies(3.1, 1)), deaf=True), SCORES]},
        Reason.FINISHED, 0, None, restarts={"evaluator-0": 1},
    ),
    "a worker is cut off after the leader's end": Story(
        {"worker-1": [Life(TRAINING, last=ends(0.0, 0, "cut-off", "was still running"),
                           after_job_s=10.0)]},
        Reason.FINISHED, 0, None, notes=[CUT_OFF], overrides=ALL_TASKS,
    ),
    "a worker comes too late to make a step": Story(
        {"worker-0": leader(says(1.9, "metrics", **{"steps_of_worker-1": 0}),
                            ends(2.0, 0, "finished")),
         "worker-1": [Life(TRAINING[:1], last=ends(0.0, 0, "cut-off", "was still running"))]},
        Reason.FINISHED, 0, None,
        notes=["worker-1 had no part in the training: it made no step before the others were done",
               CUT_OFF],
        overrides=ALL_TASKS,
    ),
    "a worker falls over the end of a job that went well": Story(
        {"worker-1": [Life(TRAINING, last=ends(0.0, 0, "finished",
                                               "after the job's end: UnavailableError: Socket",
                                               after_job=True))]},
        Reason.FINISHED, 0, None, overrides=ALL_TASKS,
    ),
    "a worker fails by itself after the end of a job that went well": Story(
        {"worker-1": [Life(TRAINING, last=ends(0.0, 0, "finished",
                                               "after the job's end: ValueError: no\n  more",
                                               after_job=True))]},
        Reason.FINISHED, 0, None,
        notes=["worker-1: its program failed after the job's end: ValueError: no; the verdict is "
               "the leader's"],
        overrides=ALL_TASKS,
    ),
    "a worker fails over a file of its own after the end of a job that went well": Story(
        {"worker-1": [Life(TRAINING, last=ends(0.0, 0, "finished",
                                               "after the job's end: NotFoundError: /data/x; "
                                               "No such file or directory", after_job=True))]},
        Reason.FINISHED, 0, None,
        notes=["worker-1: its program failed after the job's end: NotFoundError: /data/x; No such "
               "file or directory; the verdict is the leader's"],
        overrides=ALL_TASKS,
    ),
    "a worker runs out of memory after the end of a job that went well": Story(
        {"worker-1": [Life(TRAINING, last=replace(
            ends(0.0, 0, "finished", "after the job's end: the program was killed by SIGKILL",
                 after_job=True), oom=True))]},
        Reason.FINISHED, 0, None,
        notes=["worker-1 ran out of memory (raise its `memory` limit, if any)"],
        overrides=ALL_TASKS,
    ),
    "a ps loses its leader and ends by itself": Story(
        {"ps-0": [Life((says(0.2, "ready"),), last=ends(0.0, 0, "leader-lost", "gone for 30 s"))]},
        Reason.FINISHED, 0, None, exit_codes={"ps-0": 0},
    ),
    "the leader ends without a worker that has failed as often as it may": Story(
        {"worker-1": [Life((says(0.1, "start", attempt=1), ends(0.3, 1, "failed", "E: no")))]},
        Reason.FINISHED, 0, None, restarts={"worker-1": 2}, exit_codes={"worker-1": 1},
        notes=["worker-1: failed 3 times (exit code 1), and the leader ended without it; "
               "its last words: E: no"],
        overrides=ALL_TASKS,
    ),
    "half of the workers decide, and one has failed for good": Story(
        {"worker-0": leader(says(2.0, "end", exit_code=0, reason="finished", decided="1 of 2 …"),
                            dies(2.1, 0)),
         "worker-1": [Life((*TRAINING, says(1.0, "end", exit_code=3, reason="failed", message="E",
                                            tasks=[], stays=True)), last=dies(0.0, 0))]},
        Reason.FINISHED, 0, None, exit_codes={"worker-0": 0, "worker-1": 3},
        restarts={"worker-1": 0},
        notes=["worker-1: failed once (exit code 3), and the leader ended without it; its last "
               "words: E"],
        overrides={**ALL_TASKS, "success": {"worker": 0.5}, "restart": {"permanent": [3]}},
    ),
    "a permanent exit code of a worker ends the job": Story(
        {"worker-0": leader(says(2.0, "end", exit_code=1, reason="failed", message="worker-1: E",
                                 tasks=["worker-1"], decided="worker-1 ended with 3, which …"),
                            dies(2.1, 1)),
         "worker-1": [Life((*TRAINING, says(1.0, "end", exit_code=3, reason="failed", message="E",
                                            tasks=[], stays=True)), last=dies(0.0, 0))]},
        Reason.FAILED, 5, "worker-1", "E", exit_codes={"worker-1": 3}, restarts={"worker-1": 0},
        overrides={**ALL_TASKS, "restart": {"permanent": [3]}},
    ),
    "the leader's program raises": Story(
        {"chief-0": leader(prints(1.0, "Traceback (most recent call last):"),
                           prints(1.0, '  File "/program/train.py", line 3, in <module>'),
                           prints(1.0, "ValueError: shapes differ"),
                           ends(1.1, 1, "failed", "ValueError: shapes differ"))},
        Reason.FAILED, 5, "chief-0", "ValueError: shapes differ", exit_codes={"chief-0": 1},
    ),
    "a worker's program raises and takes the leader down": Story(
        {"worker-1": [Life((*TRAINING, ends(1.0, 1, "failed", "OSError: no such file")))],
         "worker-0": leader(says(1.2, "failure", exit_code=1),
                            ends(1.9, 1, "failed", "worker-1: OSError: no such file", "worker-1"))},
        Reason.FAILED, 5, "worker-1", "OSError: no such file", overrides=ALL_TASKS,
    ),
    "a ps is killed and the leader falls over it": Story(
        {"ps-0": [Life((says(0.2, "ready"), dies(1.0)), deaf=True)],
         "chief-0": leader(ends(1.9, 1, "failed", UNAVAILABLE))},
        Reason.FAILED, 5, "ps-0", "ps-0 ended with exit code 137 (killed by signal 9)",
    ),
    "a ps runs out of memory": Story(
        {"ps-0": [Life((says(0.2, "ready"), runs_out_of_memory(1.0)))],
         "chief-0": leader(ends(1.2, 1, "failed", UNAVAILABLE))},
        Reason.FAILED, 5, "ps-0", "out of memory: raise its `memory` limit, if any",
    ),
    "the leader runs out of memory each time": Story(
        {"chief-0": leader(runs_out_of_memory(1.0))},
        Reason.FAILED, 5, "chief-0", "out of memory", restarts={"chief-0": 2},
    ),
    "the leader is killed more often than it may be": Story(
        {"chief-0": leader(dies(1.0))},
        Reason.FAILED, 5, "chief-0", "chief-0 ended with exit code 137 (killed by signal 9)",
        restarts={"chief-0": 2}, exit_codes={"chief-0": 137},
    ),
    "the leader has used up its retries": Story(
        {"chief-0": leader(ends(1.0, 139, "failed", "killed by SIGSEGV (2 of 2 retries used)"))},
        Reason.FAILED, 5, "chief-0", "retries used", restarts={"chief-0": 0},
    ),
    "the evaluator raises as often as it may": Story(
        {"evaluator-0": [Life((says(0.1, "start", attempt=1),
                               ends(0.5, 1, "failed", "ValueError: no model")))]},
        Reason.FAILED, 5, "evaluator-0", "ValueError: no model", restarts={"evaluator-0": 2},
    ),
    "a task does not come": Story(
        {"worker-1": [Life(())],
         "chief-0": leader(ends(30.0, 6, "start-deadline", "worker-1 is missing", "worker-1"))},
        Reason.START_DEADLINE, 6, "worker-1", "worker-1 is missing",
    ),
    "a task runs out of memory while it starts": Story(
        {"worker-1": [Life((runs_out_of_memory(0.5),))],
         "chief-0": leader(ends(30.0, 6, "start-deadline", "worker-1 is missing", "worker-1"))},
        Reason.START_DEADLINE, 6, "worker-1", "worker-1 ran out of memory: raise its `memory` ",
    ),
    "a server runs out of memory while the leader waits for it": Story(
        {"worker-1": [Life((says(0.2, "ready"), runs_out_of_memory(0.5)))],
         "chief-0": [Life((says(0.1, "start", attempt=1),
                           ends(110.0, 6, "start-deadline", "worker-1 is missing", "worker-1")))]},
        Reason.FAILED, 5, "worker-1", "worker-1 ran out of memory before the job could begin: it "
        "has 100 MiB", overrides={"role": {"worker": {"memory": "100m"}}},
    ),
    "a server that has worked runs out of memory and comes back": Story(
        {"worker-1": [Life((says(0.2, "ready"), runs_out_of_memory(0.9))),
                      Life((says(0.2, "ready"),))],
         "chief-0": leader(says(1.0, "start", attempt=2), says(2.5, "ready"),
                           ends(3.0, 0, "finished"))},
        Reason.FINISHED, 0, None, restarts={"worker-1": 1},
        notes=["worker-1 ran out of memory (raise its `memory` limit, if any), and was started "
               "again"],
    ),
    "the leader is killed after another task has used up its retries": Story(
        {"worker-1": [Life((says(0.1, "start", attempt=1),
                            ends(0.5, 7, "failed", "ValueError: no file")))],
         "worker-0": [*leader(dies(4.0)),
                      Life((*TRAINING[:2], ends(110.0, 6, "start-deadline", "no", "worker-1")))]},
        Reason.FAILED, 5, "worker-1", "ValueError: no file (3 times; 2 retries), and worker-0, "
        "which began again, needs it", restarts={"worker-0": 1, "worker-1": 2},
        exit_codes={"worker-1": 7}, overrides=ALL_TASKS,
    ),
    "the leader's program begins again after a server was killed for good": Story(
        {"worker-1": [Life((says(0.2, "ready"), dies(0.5)))],
         "chief-0": [Life((*TRAINING, says(5.0, "failure", exit_code=1),
                           says(5.1, "start", attempt=2),
                           ends(110.0, 6, "start-deadline", "no", "worker-1")))]},
        Reason.FAILED, 5, "worker-1", "worker-1 ended with exit code 137 (killed by signal 9) (3 "
        "times; 2 retries), and chief-0, which began again, needs it",
    ),
    "the leader is killed, and the job can succeed without a task that has failed": Story(
        {"worker-1": [Life((says(0.1, "start", attempt=1), ends(0.5, 7, "failed", "no file")))],
         "worker-0": [*leader(dies(4.0)), LEADS]},
        Reason.FINISHED, 0, None, restarts={"worker-0": 1},
        notes=[KILLED.replace("chief", "worker"), "worker-1: failed 3 times (exit code 7), and the "
               "leader ended without it; its last words: no file"],
        overrides={**ALL_TASKS, "success": {"worker": 0.5}},
    ),
    "a worker runs out of memory twice before anybody has made a step": Story(
        {"worker-0": [Life((*STARTED, ends(60.0, 1, "failed", "worker-1 was lost (4 times)")))],
         "worker-1": [STARVES]},
        Reason.FAILED, 5, "worker-1", "worker-1 ran out of memory twice, soon after its start: it "
        "has 250 MiB", restarts={"worker-1": 1}, overrides={**ALL_TASKS, **SMALL},
    ),
    "the leader's program runs out of memory twice before anybody has made a step": Story(
        {"worker-0": [Life((*STARTED, Step(2.0, oom=True), says(2.1, "failure", exit_code=137),
                            says(3.0, "start", attempt=2), Step(5.0, oom=True),
                            says(5.1, "failure", exit_code=137),
                            says(5.1, "start", attempt=3), ends(60.0, 1, "failed")))],
         "worker-1": [Life(STARTED)]},
        Reason.FAILED, 5, "worker-0", "worker-0 ran out of memory twice, soon after its start",
        overrides={**ALL_TASKS, **SMALL},
    ),
    "a server runs out of memory twice before anybody has made a step": Story(
        {"chief-0": [Life((*STARTED, ends(60.0, 1, "failed", "ps-0 was lost (4 times)")))],
         "ps-0": [Life((says(0.2, "ready"), runs_out_of_memory(3.0)))]},
        Reason.FAILED, 5, "ps-0", "ps-0 ran out of memory twice, soon after its start: it has "
        "200 MiB", restarts={"ps-0": 1}, overrides={
            "evaluator": 0, "role": {"ps": {"memory": "200m"}}
        },
    ),
    "a worker runs out of memory twice, and others go on meanwhile": Story(
        {"worker-0": [Life((*STARTED, says(3.0, "step", step=1), ends(12.0, 0, "finished")))],
         "worker-1": [STARVES, STARVES, Life(TRAINING)]},
        Reason.FINISHED, 0, None, restarts={"worker-1": 2},
        notes=["worker-1 ran out of memory (raise its `memory` limit, if any), and was started "
               "again"],
        overrides={**ALL_TASKS, **SMALL},
    ),
    "the program never ends": Story(
        {"chief-0": leader(ends(50.0, 6, "job-deadline", "still running after 50 s"))},
        Reason.JOB_DEADLINE, 6, "chief-0", "still running after 50 s",
    ),
    "nothing ends, and nobody in the containers notices": Story(
        {"chief-0": [Life(TRAINING)]}, Reason.JOB_DEADLINE, 6, "chief-0",
        "went past its deadlines", overrides={"deadline": {"job": 20.0, "start": 10.0}},
    ),
    "the evaluator says that its grace is over": Story(
        {"evaluator-0": [Life(TRAINING, after_job_s=9.0,
                              last=ends(0.0, 6, "evaluator-grace", "ckpt-8 is not scored"))]},
        Reason.EVALUATOR_GRACE, 6, "evaluator-0", "ckpt-8 is not scored",
    ),
    "the evaluator never ends": Story(
        {"evaluator-0": [Life(TRAINING, deaf=True)]}, Reason.EVALUATOR_GRACE, 6, "evaluator-0",
        "still running after its grace", overrides={"deadline": {"evaluator_grace": 10.0}},
    ),
    "a task is silent, and nobody may start it again": Story(
        {"worker-1": [Life((says(0.2, "ready"),))],
         "chief-0": leader(says(1.5, "silent", of="worker-1", last_heard=BEGAN, server=False),
                           ends(9.0, 6, "silent", "worker-1 has been silent", "worker-1"))},
        Reason.SILENT, 6, "worker-1", "worker-1 has been silent", restarts={"worker-1": 0},
        notes=[f"worker-1 has been silent for 2 s (frozen or cut off; last heard {AT})"],
        overrides={"retries": 0},
    ),
    "there is no progress for the second time": Story(
        {"chief-0": leader(ends(9.0, 6, "stall", "no progress for 31 s after another start"))},
        Reason.STALL, 6, "chief-0", "no progress for 31 s",
    ),
    "a task does not see its GPU": Story(
        {"chief-0": leader(ends(1.0, 3, "gpu-missing", "worker-0 sees none of 1", "worker-0"))},
        Reason.GPU_MISSING, 3, "worker-0", "worker-0 sees none",
    ),
    "the evaluator does not see its GPU": Story(
        {"evaluator-0": [Life((ends(0.2, 3, "gpu-missing", "sees none", "evaluator-0"),))]},
        Reason.GPU_MISSING, 3, "evaluator-0", "sees none",
    ),
    "a bandwidth cannot be had": Story(
        {"chief-0": leader(ends(1.0, 3, "cannot-shape", "ps-0: no ifb device", "ps-0"))},
        Reason.CANNOT_SHAPE, 3, "ps-0", "no ifb device",
    ),
    "somebody stops the leader": Story(
        {"chief-0": leader(ends(1.0, 143, "stopped", "stopped by SIGTERM"))},
        Reason.STOPPED, 7, None, "chief-0 was stopped from outside: by `docker stop`, say",
        exit_codes={"chief-0": 143},
    ),
    "the disk of the output is full": Story(
        {"chief-0": leader(ends(1.0, 4, "disk-full", "the disk of /output is full"))},
        Reason.DISK_FULL, 3, None, "output was full (", restarts={"chief-0": 0},
    ),
    "the output is lost, and nothing can be said any more": Story(
        {"chief-0": leader(dies(1.0, 4))},
        Reason.OUTPUT_LOST, 3, None, "cannot be written any more", restarts={"chief-0": 0},
    ),
}  # fmt: skip
