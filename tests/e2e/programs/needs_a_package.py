"""A program that requires a further package, in addition to TensorFlow."""

from importlib.metadata import version

import iniconfig
import tensorflow as tf

assert version("tensorflow") == tf.__version__
print(f"iniconfig {version('iniconfig')} from {iniconfig.__file__}, TensorFlow {tf.__version__}")
