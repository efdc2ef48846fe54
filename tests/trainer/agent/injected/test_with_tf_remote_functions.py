"""With TensorFlow: functions that a coordinator sent to its servers are not removed from them."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from tensorflow.python.eager import context

from trainer.agent.injected import tensorflow_patches


def test_functions_are_not_removed_from_the_servers(monkeypatch):
    monkeypatch.setattr(context.Context, "remove_function", context.Context.remove_function)
    assert tensorflow_patches.keep_remote_functions()
    context.context().remove_function("a name that nobody ever registered")
