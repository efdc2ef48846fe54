"""A program that prints its secrets in every way, in a real run: no file that leaves the machine
has one."""

from __future__ import annotations

import json
import tarfile

import pytest

from tests.kit import Kit, why_no_engine

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(bool(why_no_engine()), reason="takes the engine and the image"),
]
LINE, FILE, CALLER, OPTION = (f"{kind}-X7k2{kind}$'9q\"Z" for kind in "lfco")
OPEN = 'X7k2-of-a-file$9q"Z'
BODY = ("MIIEvQIBADANBgkqhkiG9w0BAQEF", "AASCBKcwggSjAgEAAoIBAQC7VJTU")
PEM = "\n".join(("-----BEGIN PRIVATE KEY-----", *BODY, "-----END PRIVATE KEY-----", ""))
IN_JSON = PEM.swapcase()
ACCOUNT = json.dumps({"type": "service_account", "private_key": IN_JSON, "client_secret": "s3cr3t"})
TELLING = (LINE, OPEN, FILE, CALLER, OPTION, *BODY, *(one.swapcase() for one in BODY), "s3cr3t")
PROGRAM = """
import json, os, pathlib, sys, time
files = [path.read_text() for path in sorted(pathlib.Path("/run/secrets").iterdir())]
names = ("API_TOKEN", "PEM_KEY", "ACCOUNT_SECRET", "MY_PASSWORD", "OWN_TOKEN")
values = [*(os.environ[name] for name in names), *files, sys.argv[-1]]
for value in values:
    print(value, repr(value), json.dumps({"value": value}), sep="\\n", flush=True)
    print("in one line:", value.replace("\\n", " "), file=sys.stderr, flush=True)
progress = pathlib.Path("/output/progress/worker-0.jsonl")
def report(event, **fields):
    with progress.open("a") as file:
        file.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\\n")
report("metrics", **{f"of {number}": value for number, value in enumerate(values)})
report("metrics", **{f"named {value[:40]}": 1.0 for value in values if "\\n" not in value})
for value in values:
    report("phase", name=value)
    report("training", strategy=value)
    report("straggling", of="worker-0", seconds=1, message=value, cause=value)
    report(value, step=1, checkpoint=value)
pathlib.Path("/output/progress/notes.txt").write_text("\\n".join(values))
pathlib.Path("/output/result.json").write_text(json.dumps(values))
time.sleep(1)
raise ValueError("bad keys: " + "\\n".join(values))
"""
MANIFEST = """
format = 1
name = "{name}"
chief = 0
worker = 1
ps = 0
evaluator = 0
program = "../mine/train.py"
args = ["--api-token", {option}]
[secret]
account = "../private/account.json"
own = "../private/own"
mine = {{ environment = "MINE" }}
[role.worker]
secrets = ["MY_PASSWORD", "OWN_TOKEN"]
env_file = "../private/own.env"
environment = {{ PEM_KEY = {pem} }}
"""


VARIABLES = {"MY_PASSWORD": CALLER, "OWN_TOKEN": PEM, "MINE": LINE}


@pytest.fixture
def kit(kit: Kit) -> Kit:
    kit.program(PROGRAM)
    private = kit.root / "private"
    private.mkdir()
    (private / "account.json").write_text(ACCOUNT)
    (private / "own").write_text(FILE + "\n")
    (private / "own.env").write_text(f"API_TOKEN='{OPEN}'\nACCOUNT_SECRET='{ACCOUNT}'\n")
    text = MANIFEST.format(name=kit.name, option=json.dumps(OPTION), pem=json.dumps(PEM))
    (kit.root / "compose" / f"{kit.name}.toml").write_text(text)
    return kit


def shown(text: str) -> list[str]:
    """Returns the secrets in a text, also as JSON, Python and YAML write them."""
    plain = text.replace("''", "'").replace("$$", "$")
    return [
        part
        for part in TELLING
        if any(form in where for form in (part, json.dumps(part)[1:-1], repr(part)[1:-1])
               for where in (text, plain))
    ]  # fmt: skip


def leaks(kit: Kit) -> dict[str, list[str]]:
    """Returns the secrets in the files of the newest run, except files of the program itself."""
    run = (kit.root / "runs" / kit.name / "latest").resolve()
    files = [path for path in run.rglob("*") if path.is_file()]
    kept = [path for path in files if path.relative_to(run).parts[0] != "output"]
    assert {"outcome.json", "report.html", "metrics.prom", "worker-0.log"} <= {p.name for p in kept}
    found = {str(path): shown(path.read_text(errors="replace")) for path in kept}
    return {name: parts for name, parts in found.items() if parts}


def archived(kit: Kit, name: str) -> tuple[dict[str, list[str]], set[str]]:
    """Returns (the contents of the files of a bug report, their names)."""
    assert kit.run("bug-report", kit.name, "-o", name).returncode == 0
    with tarfile.open(kit.root / name) as made:
        texts = {one: made.extractfile(one).read().decode() for one in made.getnames()}  # type: ignore[union-attr]
    return {one: parts for one, text in texts.items() if (parts := shown(text))}, set(texts)


def test_nothing_that_leaves_the_machine_has_a_secret(kit: Kit) -> None:
    done = kit.run("up", kit.name, "--keep")
    assert done.returncode == 5, done.stderr
    output = done.stdout + done.stderr
    assert shown(output) == [] and "ValueError: bad keys" in output, output
    assert shown(json.dumps(kit.outcome())) == [] and "***" in str(kit.outcome()["metrics"])
    assert leaks(kit) == {}
    while_up, names = archived(kit, "up.tgz")
    assert while_up == {} and any(name.endswith("progress/worker-0.jsonl") for name in names)
    for verb in ("logs", "status", "summary", "report", "metrics", "runs"):
        words = [verb, *(["list"] if verb == "runs" else []), kit.name]
        done = kit.run(*words)
        assert done.returncode == 0, done.stderr
        assert shown(done.stdout + done.stderr) == [], verb
    assert kit.run("down", kit.name).returncode == 0
    later = Kit(kit.root, kit.name, {"MINE": "", "MY_PASSWORD": "", "OWN_TOKEN": ""})
    told = later.run("report", kit.name)
    assert told.returncode == 0, told.stderr
    assert leaks(kit) == {}
    after, names = archived(later, "later.tar.gz")
    assert after == {} and not any("/output/" in name for name in names)


def test_files_that_tasks_write_are_not_masked(kit: Kit) -> None:
    kit.run("up", kit.name)
    output = kit.root / "runs" / kit.name / "latest" / "output"
    assert json.loads((output / "result.json").read_text())[0] == OPEN
    assert BODY[0] in (output / "progress" / "notes.txt").read_text()
    assert leaks(kit) == {}
