"""Local clusters for distributed TensorFlow, one container per task."""

__version__ = "0.1.0"
