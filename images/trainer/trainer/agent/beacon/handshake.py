"""Handshake: both sides of a connection prove that they know the run's secret, without sending it.

    leader to follower    challenge NONCE
    follower to leader    answer NONCE PROOF
    leader to follower    answer PROOF

The secret is the host's (VARIABLE). A task without one, as after a plain `docker compose up`, uses
the file FILE in the directory of the progress files: the leader creates it, and only its user may
read it.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import time
from collections.abc import Mapping

from trainer.agent.atomic import read_untrusted, write_new
from trainer.agent.task import Task

VARIABLE = "CLUSTER_KIT_BEACON_SECRET"
FILE = ".beacon-secret"
LONGEST_SECRET = 256
"""Maximum bytes of the file to read."""
NONCE_BYTES = 16
CHALLENGE, ANSWER = b"challenge ", b"answer "
LONGEST = 256
"""Maximum bytes of a line of the handshake."""
ANSWER_S = 5.0
"""Seconds after which a connection without a proof is closed."""
PATIENCE_S = 10.0
"""Seconds that a follower waits after the leader accepted the connection: the leader may be
starved."""
LEADER, FOLLOWER = b"leader", b"follower"


def make_secret(task: Task, env: Mapping[str, str] = os.environ) -> bytes:
    """Returns the leader's secret: the host's, or a new one that is saved in FILE.

    Raises:
        OSError: the file cannot be written.
    """
    if secret_text := env.get(VARIABLE):
        return secret_text.encode()
    secret = os.urandom(NONCE_BYTES).hex()
    file = task.progress_file.with_name(FILE)
    new = file.with_name(f"{FILE}.{os.urandom(8).hex()}")
    write_new(new, secret.encode())
    new.replace(file)
    return secret.encode()


def read_secret(task: Task, env: Mapping[str, str] = os.environ) -> bytes:
    """Returns a follower's secret.

    Raises:
        OSError: the host gave none, and the leader has not created one yet.
    """
    if secret_text := env.get(VARIABLE):
        return secret_text.encode()
    file = task.progress_file.with_name(FILE)
    return read_untrusted(file, LONGEST_SECRET)


def forget_secret(task: Task) -> None:
    """Remove the file that `make_secret` has written."""
    task.progress_file.with_name(FILE).unlink(missing_ok=True)


def nonce() -> bytes:
    """Returns a new random challenge, which the other side must answer."""
    return os.urandom(NONCE_BYTES).hex().encode()


def challenge(leaders: bytes) -> bytes:
    """Returns the leader's first line."""
    return CHALLENGE + leaders + b"\n"


def admitted(secret: bytes, leaders: bytes, line: bytes) -> bytes | None:
    """Returns the leader's answer to a follower's first line; None if the line has no valid proof.

    The proof is compared first, in constant time; nothing else of the line is read before.
    """
    start, end = len(ANSWER), len(ANSWER) + 2 * NONCE_BYTES
    followers, proof = line[start:end], line[end + 1 :]
    if not hmac.compare_digest(proof, _proof(secret, FOLLOWER, leaders, followers)):
        return None
    return ANSWER + _proof(secret, LEADER, leaders, followers) + b"\n"


def join(leader: socket.socket, secret: bytes, patience_s: float = PATIENCE_S) -> bytes:
    """Authenticate to the leader, and the leader to this task; returns the data after that.

    Raises:
        OSError: the leader closed the connection, was too slow, or does not know the secret.
    """
    until = time.monotonic() + patience_s
    line, rest = _line(leader, b"", until)
    leaders, followers = line[len(CHALLENGE) :], nonce()
    proof = _proof(secret, FOLLOWER, leaders, followers)
    leader.sendall(ANSWER + followers + b" " + proof + b"\n")
    line, rest = _line(leader, rest, until)
    expected = ANSWER + _proof(secret, LEADER, leaders, followers)
    if not (secret and hmac.compare_digest(line, expected)):
        raise ConnectionAbortedError("what listens there does not know this run's secret")
    return rest


def _proof(secret: bytes, side: bytes, leaders: bytes, followers: bytes) -> bytes:
    message = b" ".join((side, leaders, followers))
    return hmac.new(secret, message, "sha256").hexdigest().encode()


def _line(leader: socket.socket, unread: bytes, until: float) -> tuple[bytes, bytes]:
    """Returns a line, and the bytes received after it."""
    while b"\n" not in unread[:LONGEST]:
        if len(unread) >= LONGEST:
            raise ConnectionAbortedError("what listens there is not a beacon")
        leader.settimeout(max(0.001, until - time.monotonic()))
        received = leader.recv(LONGEST)
        if not received or time.monotonic() > until:
            raise ConnectionAbortedError("it closed the connection, or was too slow")
        unread += received
    line, _, rest = unread.partition(b"\n")
    return line, rest


def send(connection: socket.socket, line: bytes, last: bool) -> None:
    """Send a line to a follower, if still connected; after the `last` line nothing more is sent.

    A follower that does not receive it is disconnected; the reader of the connection then closes
    it.
    """
    try:
        if connection.send(line) < len(line):
            raise OSError("its buffer is full")
        if last:
            connection.shutdown(socket.SHUT_WR)
    except OSError:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def keep_asking(leader: socket.socket) -> None:
    """Let the kernel detect within 30 s that the other side is lost."""
    leader.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
