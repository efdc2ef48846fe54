"""A program with a requirement of its own, beside the TensorFlow that the image has."""

from importlib.metadata import version

import iniconfig
import tensorflow as tf

assert version("tensorflow") == tf.__version__
print(f"iniconfig {version('iniconfig')} from {iniconfig.__file__}, TensorFlow {tf.__version__}")
