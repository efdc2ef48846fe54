"""A program that waits for something that never comes, on every task."""

import time

print("still here", flush=True)
while True:
    time.sleep(1)
