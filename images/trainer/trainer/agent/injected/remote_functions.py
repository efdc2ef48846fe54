"""Functions that a coordinator sent to its servers stay there until the job ends.

When Python lets go of a `tf.function`, TensorFlow takes it back from every server, one after the
other, waiting for each and holding the interpreter's lock (`Context.remove_function`). At the end
of `fit` that are hundreds: seen were 4 to 40 seconds between the last epoch and the end, and hangs.
The servers of a job end with it, so there is nothing to take back for.
"""

from __future__ import annotations


def keep() -> bool:
    """Let removals do nothing; False if this TensorFlow does not have the method any more."""
    try:
        from tensorflow.python.eager import context
    except ModuleNotFoundError:
        return False
    if not hasattr(context.Context, "remove_function"):
        return False
    context.Context.remove_function = lambda self, name: None
    return True
