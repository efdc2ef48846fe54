"""Sidecars."""

from __future__ import annotations

ONE = '[sidecar.metrics]\nimage = "redis:7"\n'
NINE = "".join(f'[sidecar.s{number}]\nimage = "redis:7"\n' for number in range(9))
MISTAKES = {
    "sidecar called like a task": (
        '[sidecar.worker-0]\nimage = "redis:7"',
        "sidecar.worker-0", "", "taken: a task is called so", "[sidecar.metrics]",
    ),
    "sidecar called like a task that might come": (
        '[sidecar.ps-77]\nimage = "redis:7"', "sidecar.ps-77", "", "taken", "another name",
    ),
    "sidecar called localhost": (
        '[sidecar.localhost]\nimage = "redis:7"', "sidecar.localhost", "", "taken", "another name",
    ),
    "sidecar whose name is no host's": (
        '[sidecar.My_Board]\nimage = "redis:7"',
        "sidecar.My_Board", "", "must be a DNS label", "[sidecar.my-board]",
    ),
    "nine sidecars": (NINE, "sidecar", "9", "at most 8 sidecars", "remove some of them"),
    "sidecar without command": (
        "[sidecar.board]\n",
        "sidecar.board", "", "with the image of the tasks it needs a command", "command = [",
    ),
    "sidecar without anything to run": (
        ONE + "entrypoint = []",
        "sidecar.metrics", "", "with no entry point it needs a command", "command = [",
    ),
    "sidecar with an image that has no such name": (
        '[sidecar.board]\nimage = "No Image"',
        "sidecar.board.image", '"No Image"', "not a valid name of an image", '"redis:7"',
    ),
    "sidecar with an unknown key": (
        '[sidecar.board]\nimage = "redis:7"\ncomand = ["x"]',
        "sidecar.board.comand", '["x"]', "no such key", "did you mean `command`?",
    ),
    "sidecar with a limit of tasks": (
        '[sidecar.board]\nimage = "redis:7"\nshm_size = "1g"',
        "sidecar.board.shm_size", '"1g"', "no such key", "known keys: command, entrypoint",
    ),
    "sidecar with the kit's variable": (
        ONE + 'environment = { TF_CONFIG = "{}" }',
        "sidecar.metrics.environment.TF_CONFIG", "", "the kit sets this variable", "remove it",
    ),
    "sidecar with one variable twice": (
        ONE + 'secrets = ["A"]\nenvironment = { A = "1" }',
        "sidecar.metrics.secrets", '"A"', "a value in `environment`, too", "remove one of them",
    ),
    "sidecar with a secret of no name": (
        ONE + 'secrets = ["a b"]',
        "sidecar.metrics.secrets", '"a b"', "not a valid name", "letters",
    ),
    "secret whose value stands where its variable's name belongs": (
        '[secret.key]\nenvironment = "MINE=hunter22"',
        "secret.key.environment", '"MINE=***"', "not a valid name", "letters",
    ),
    "sidecar on a task's port": (
        '[role.chief]\nports = [6006]\n' + ONE + "ports = [6006]",
        "sidecar.metrics.ports", "6006", "role.chief.ports already publishes", "another port",
    ),
    "sidecar's port on an internal network": (
        "[network]\ninternal = true\n" + ONE + "ports = [6006]",
        "network.internal", "true", "cannot publish ports: 6006", "remove this",
    ),
    "sidecar's mount of nothing": (
        ONE + '[[sidecar.metrics.mount]]\nsource = "gone"\ntarget = "/x"',
        "sidecar.metrics.mount.0.source", '"gone"', "neither a file nor a directory", "make it",
    ),
    "sidecar's mount at the root": (
        ONE + '[[sidecar.metrics.mount]]\nsource = "."\ntarget = "/"',
        "sidecar.metrics.mount.0.target", '"/"', "mounted at /", "another directory",
    ),
    "sidecar's mount at no path": (
        ONE + '[[sidecar.metrics.mount]]\nsource = "."\ntarget = "x"',
        "sidecar.metrics.mount.0.target", '"x"', "an absolute path", "for example",
    ),
    "sidecar's mount at a place twice": (
        ONE + '[[sidecar.metrics.mount]]\nsource = "."\ntarget = "/x"\n' * 2,
        "sidecar.metrics.mount.1.target", '"/x"', "taken", "another directory",
    ),
    "sidecar's mount with roles": (
        ONE + '[[sidecar.metrics.mount]]\nsource = "."\ntarget = "/x"\nroles = ["ps"]',
        "sidecar.metrics.mount.0.roles", '["ps"]', "no such key", "known keys: read_only",
    ),
    "sidecar in a small subnet": (
        'subnet = "172.28.0.0/26"\n' + ONE,
        "subnet", '"172.28.0.0/26"', "a subnet of /24 or larger", 'use a /24, or "auto"',
    ),
    "address of a sidecar": (
        'subnet = "172.28.0.0/24"\n[task.worker-0]\nip = "172.28.0.12"\n' + ONE,
        "task.worker-0.ip", '"172.28.0.12"', "taken by the sidecar metrics", "a free address",
    ),
}  # fmt: skip
