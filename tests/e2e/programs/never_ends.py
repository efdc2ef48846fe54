"""A program that waits forever, on every task."""

import time

print("still here", flush=True)
while True:
    time.sleep(1)
