"""Five steps that train nothing, without TensorFlow, for tests of the code around a program.

With an argument it then waits until a file of that name is in its directory, the output.
"""

import json
import os
import sys
import time
from pathlib import Path

with Path(os.environ["CLUSTER_KIT_PROGRESS"]).open("a", buffering=1) as progress:
    for step in range(1, 6):
        event = {"time": time.time(), "event": "step", "step": step}
        print(json.dumps(event), file=progress)
        print("step", step, flush=True)
        time.sleep(0.5)
for awaited in sys.argv[1:]:
    while not Path(awaited).exists():
        time.sleep(0.05)
