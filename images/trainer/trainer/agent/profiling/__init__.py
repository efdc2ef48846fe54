"""One trace of all tasks, taken by TensorFlow's own profilers, and where a step's time goes."""
