"""python3 -m trainer COMMAND: see `contract.interface.COMMANDS`."""

from __future__ import annotations

import os
import sys

from trainer.agent.errors import TrainerError
from trainer.agent.task import read_task
from trainer.contract.endings import EXIT_USAGE

USAGE = (
    "usage: python3 -m trainer serve | data-service | run PROGRAM [ARG…] | stacks"
    " | profile SECONDS [TASK…] | arguments PROGRAM [ARG…] | verdict RUN OPTION…\n"
    "To run something else in this image: docker run --entrypoint python3 IMAGE [ARG…]"
)


def main(arguments: list[str]) -> int:
    """Run this container's task; its exit code."""
    try:
        if os.environ.get("CLUSTER_KIT_SHARED"):
            from trainer.agent import task_environment

            task_environment.start_anew_with_shared(arguments)
        if arguments == ["stacks"] or arguments[:1] == ["profile"]:
            become_the_tasks_user()  # a command for a task that already runs
        if arguments == ["stacks"]:
            from trainer.agent.stacks import show

            return show(read_task())
        if arguments[:1] == ["profile"]:
            from trainer.agent.profiling import profile

            return profile.show(read_task(), arguments[1:])
        if arguments[:1] == ["arguments"] and arguments[1:]:
            from trainer.programs.arguments import check

            return check(arguments[1], arguments[2:])
        if arguments[:1] == ["verdict"] and arguments[1:]:
            from trainer.agent import verdict

            return verdict.main(arguments[1:])
        if speed := os.environ.get("CLUSTER_KIT_BANDWIDTH_BPS"):
            from trainer.agent.network.bandwidth import start_anew_shaped

            start_anew_shaped(speed, arguments)
        if os.environ.get("CLUSTER_KIT_USER"):
            from trainer.agent.network import privileges

            if privileges.wanted():
                privileges.start_anew_as_owner(arguments)
        if os.environ.get("CLUSTER_KIT_SECRETS"):
            from trainer.agent import task_environment

            task_environment.write_secrets()
        if arguments[:1] in (["serve"], ["run"], ["data-service"]):
            share_cpus(computes=arguments[0] != "data-service")
        if arguments == ["serve"]:
            from trainer.agent.servers.serve import serve

            return serve(read_task())
        if arguments == ["data-service"]:
            from trainer.agent.servers import data_service

            return data_service.serve(read_task())
        if arguments[:1] == ["run"] and arguments[1:]:
            from trainer.agent.supervisor.supervise import supervise

            return supervise(read_task(), arguments[1], arguments[2:])
    except TrainerError as problem:
        print(f"error: {problem}", file=sys.stderr, flush=True)
        return problem.exit_code
    print(USAGE, file=sys.stderr)
    return EXIT_USAGE


def become_the_tasks_user() -> None:
    """Give up root and all capabilities if this container has them only to start with."""
    user = os.environ.get("CLUSTER_KIT_USER")
    if user and os.getuid() == 0:
        from trainer.agent.network import privileges

        privileges.drop(privileges.parse_user(user, "CLUSTER_KIT_USER", read_task().output))


def share_cpus(*, computes: bool) -> None:
    """Share the machine's CPUs with other tasks; TensorFlow's threads only if it `computes` ops."""
    from trainer.agent import cpu_sharing, usage

    cpu_sharing.set_scheduling(os.environ)
    if computes:
        cpus = len(os.sched_getaffinity(0))
        cpu_sharing.set_threads(os.environ, cpus, usage.cpu_limit())


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # TensorFlow's threads neither stop nor need to: leave without waiting for them.
    os._exit(code)
