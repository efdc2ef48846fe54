"""Takes a trace of all tasks by TensorFlow's profilers, and computes where a step's time goes."""
