"""Bandwidth without a kernel: the numbers, the netlink requests, and the error messages."""

from __future__ import annotations

import errno
import sys
from types import ModuleType, SimpleNamespace

import pytest

from trainer.agent import outcome
from trainer.agent.beacon.messages import Report
from trainer.agent.errors import ContractError
from trainer.agent.network import bandwidth, privileges, reshape
from trainer.agent.supervisor import supervise
from trainer.contract import endings


@pytest.mark.parametrize(
    ("bits", "rate", "burst"), [(100_000_000, 12_500_000, 62_500), (64_000, 8_000, 10_240)]
)
def test_a_bucket_holds_a_few_milliseconds_but_at_least_some_packets(bits, rate, burst):
    bucket = bandwidth.Bucket.of(bits)
    assert (bucket.rate, bucket.burst) == (rate, burst)
    assert bucket.limit >= burst + (64 << 10)


@pytest.mark.parametrize("text", ["fast", "7", "-100", "1e8"])
def test_an_invalid_bandwidth_is_named(text):
    with pytest.raises(ContractError, match=f"BANDWIDTH_BPS = '{text}'"):
        bandwidth.bits_per_second(text)


def test_users_are_numbers(tmp_path):
    assert privileges.parse_user("1000:100", "WHO", tmp_path) == (1000, 100)
    for wrong in ("", "1000", "root:root", "1000:", "-1:0"):
        with pytest.raises(ContractError, match="WHO"):
            privileges.parse_user(wrong, "WHO", tmp_path)


def test_the_default_user_is_the_owner_of_the_output_directory(tmp_path):
    owner = tmp_path.stat()
    assert privileges.parse_user("owner", "WHO", tmp_path) == (owner.st_uid, owner.st_gid)


class NetlinkError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Kernel:
    """Replaces pyroute2's IPRoute: one interface eth7; `refuses` names what the kernel lacks."""

    def __init__(self, refuses: str = "", code: int = errno.ENOENT) -> None:
        self.refuses, self.code = refuses, code
        self.asked: list[tuple] = []
        self.links = {"eth7": 7}

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None: ...

    def get_addr(self, family: int) -> list:
        class Message(dict):
            def get_attr(self, name: str) -> str:
                return {"IFA_LOCAL": "10.0.0.5"}[name]

        return [Message(index=7)]

    def link_lookup(self, ifname: str) -> list[int]:
        return [self.links[ifname]] if ifname in self.links else []

    def link(self, verb: str, **keys: object) -> None:
        self._ask(verb, keys.get("kind", keys.get("state")), keys.get("index"))
        if verb == "del":
            self.links = {name: at for name, at in self.links.items() if at != keys["index"]}
        if verb == "add":
            self.links[str(keys["ifname"])] = 8

    def tc(self, verb: str, kind: str = "", index: int = 0, **keys: object) -> None:
        if verb == "del":
            self._ask(verb, keys["parent"], index)
        else:
            self._ask(verb, kind, index, keys.get("rate", keys.get("action")))

    def _ask(self, *request: object) -> None:
        if self.refuses in request:
            raise NetlinkError(self.code)
        self.asked.append(request)


@pytest.fixture
def kernel(monkeypatch):
    def install(made: Kernel) -> Kernel:
        exceptions = SimpleNamespace(NetlinkError=NetlinkError)
        for name, module in (("pyroute2", SimpleNamespace(IPRoute=lambda: made)),
                             ("pyroute2.netlink", ModuleType("pyroute2.netlink")),
                             ("pyroute2.netlink.exceptions", exceptions)):  # fmt: skip
            monkeypatch.setitem(sys.modules, name, module)
        return made

    return install


def test_both_directions_are_limited_on_the_interface_with_the_address(kernel):
    made = kernel(Kernel())
    bandwidth.shape("10.0.0.5", bandwidth.Bucket.of(8_000_000))
    mirred = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": 8}
    assert made.asked == [
        ("add", "ifb", None), ("set", "up", 8), ("add", "tbf", 7, 1_000_000),
        ("add", "ingress", 7, None), ("add-filter", "u32", 7, mirred), ("add", "tbf", 8, 1_000_000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lacks", "says"), [("ifb", "module ifb"), ("tbf", "sch_tbf"), ("u32", "act_mirred"),
                        ("ingress", "sch_ingress")],
)  # fmt: skip
def test_a_missing_kernel_feature_is_named_with_a_fix(kernel, lacks, says):
    kernel(Kernel(refuses=lacks))
    with pytest.raises(bandwidth.CannotShape, match=f"{says}.*take `bandwidth` out") as caught:
        bandwidth.shape("10.0.0.5", bandwidth.Bucket.of(8_000_000))
    assert caught.value.exit_code == 3


def test_a_missing_capability_is_reported(kernel):
    kernel(Kernel(refuses="ifb", code=errno.EPERM))
    with pytest.raises(bandwidth.CannotShape, match="NET_ADMIN"):
        bandwidth.shape("10.0.0.5", bandwidth.Bucket.of(8_000_000))


def test_an_existing_limit_is_kept(kernel):
    kernel(Kernel(refuses="tbf", code=errno.EEXIST))
    bandwidth.shape("10.0.0.5", bandwidth.Bucket.of(8_000_000))


def test_an_address_without_an_interface_is_named(kernel):
    kernel(Kernel())
    with pytest.raises(bandwidth.CannotShape, match=r"address 10\.0\.0\.9"):
        bandwidth.shape("10.0.0.9", bandwidth.Bucket.of(8_000_000))


def test_a_follower_without_its_limit_ends_the_job_with_its_name_and_message():
    message = f"worker-1 {bandwidth.REFUSED}this kernel lacks the device ifb"
    ended = supervise.meaning(Report(endings.CANNOT_SHAPE, "worker-1", message))
    assert (ended.exit_code, ended.reason, ended.tasks) == (3, "cannot-shape", ("worker-1",))
    assert ended.message == message
    gpu = supervise.meaning(Report(endings.GPU_MISSING, "worker-1", message))
    assert (gpu.exit_code, gpu.reason) == (3, "gpu-missing"), "told by its reason, not by its words"


def test_mirrored_packets_are_not_counted_as_traffic(tmp_path):
    table = tmp_path / "dev"
    row = "{}: 100 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
    table.write_text("".join(row.format(name) for name in ("lo", "eth0", bandwidth.MIRROR)))
    assert outcome.traffic(table) == {"rx_bytes": 100, "tx_bytes": 20}


def test_a_temporary_limit_is_removed_without_a_trace(kernel):
    made = kernel(Kernel())
    reshape.main(["10.0.0.5", "8000000", "-", "0.01"])
    assert ("add", "tbf", 7, 1_000_000) in made.asked
    assert made.asked[-3:] == [("del", 0xFFFFFFFF, 7), ("del", 0xFFFFFFF1, 7), ("del", None, 8)]
    assert made.links == {"eth7": 7}


def test_an_existing_limit_is_changed_and_restored(kernel):
    made = kernel(Kernel())
    bandwidth.shape("10.0.0.5", bandwidth.Bucket.of(80_000_000))
    made.asked.clear()
    reshape.main(["10.0.0.5", "8000000", "80000000", "0.01"])
    low, usual = (("change", "tbf", at, rate) for at, rate in ((7, 1_000_000), (7, 10_000_000)))
    assert [made.asked[0], made.asked[2]] == [low, usual]
    assert made.asked[1] == ("change", "tbf", 8, 1_000_000)


def test_a_permanent_limit_stays(kernel, capsys):
    made = kernel(Kernel())
    reshape.main(["10.0.0.5", "8000000", "-", "-"])
    assert not any(request[0] == "del" for request in made.asked)
    assert capsys.readouterr().out == "ready\n"
