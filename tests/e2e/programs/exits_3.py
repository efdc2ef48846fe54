"""A program that ends with exit code 3."""

import sys

print("the data set is empty, nothing to do", file=sys.stderr)
sys.exit(3)
