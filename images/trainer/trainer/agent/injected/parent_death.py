"""Become the command that follows, and die with the supervisor: parent_death.py SUPERVISOR COMMAND…

Run as a file by a bare interpreter. The setting to die with the parent survives exec.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
SIGKILL = 9
"""A literal, since importing the module `signal` would take longer than everything else here."""

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() == int(sys.argv[1]):
        os.execv(sys.argv[2], sys.argv[2:])
