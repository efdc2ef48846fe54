"""A program that says by its exit code that it is not content."""

import sys

print("the data set is empty, nothing to do", file=sys.stderr)
sys.exit(3)
