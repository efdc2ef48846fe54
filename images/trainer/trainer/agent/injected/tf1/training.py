"""Parts of tf.contrib.training that no package has today: hyperparameters, and placement by
size."""

from __future__ import annotations

import json
import random
import re


class HParams:
    """Named values as attributes, each of which keeps the type that it began with."""

    def __init__(self, **values: object) -> None:
        self._names: list[str] = []
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: object) -> None:
        """Add a hyperparameter; raises ValueError if the name is already in use."""
        if hasattr(self, name):
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        self._names.append(name)
        setattr(self, name, list(value) if isinstance(value, (list, tuple)) else value)

    def set_hparam(self, name: str, value: object) -> None:
        """Set an existing one; texts and integers are converted to its type. Raises ValueError."""
        if name not in self._names:
            raise ValueError(f"Unknown hyperparameter: {name}")
        before = getattr(self, name)
        if isinstance(before, list):
            values = value if isinstance(value, (list, tuple)) else [value]
            kind = before[0] if before else ""
            setattr(self, name, [_like(kind, each, name) for each in values])
        else:
            setattr(self, name, _like(before, value, name))

    def del_hparam(self, name: str) -> None:
        """Remove one, if it exists."""
        if name in self._names:
            self._names.remove(name)
            delattr(self, name)

    def parse(self, values: str) -> HParams:
        """Set the values in a text such as `rate=0.1,layers=[2,3],name=x`; returns this object."""
        for name, bracket, plain in re.findall(
            r"\s*(\w+)\s*=\s*(?:\[([^\]]*)\]|([^,]*)),?", values
        ):
            listed = [part.strip() for part in bracket.split(",") if part.strip()]
            self.set_hparam(name, listed if isinstance(self.get(name), list) else plain.strip())
        return self

    def override_from_dict(self, values: dict[str, object]) -> HParams:
        """Set several values; returns this object."""
        for name, value in values.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, text: str) -> HParams:
        """Set the values in a JSON object; returns this object."""
        return self.override_from_dict(json.loads(text))

    def values(self) -> dict[str, object]:
        """All values, by name."""
        return {name: getattr(self, name) for name in self._names}

    def get(self, key: str, default: object = None) -> object:
        """The value of this name, or `default`."""
        return getattr(self, key) if key in self._names else default

    def to_json(self, **keys: object) -> str:
        """All values, as a JSON object."""
        return json.dumps(self.values(), **keys)

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({self})"


def _like(before: object, value: object, name: str) -> object:
    """`value` converted to the type of `before`; raises ValueError if that fails."""
    if before is None or value is None or isinstance(before, str):
        return value
    if isinstance(before, bool):
        known = {"true": True, "1": True, "false": False, "0": False}
        if str(value).lower() not in known:
            raise ValueError(f"Could not parse hyperparameter {name}: {value!r} is not a bool")
        return known[str(value).lower()]
    try:
        converted = type(before)(value)
    except (TypeError, ValueError):
        converted = None
    if converted is None or (
        isinstance(before, int) and isinstance(value, float) and converted != value
    ):
        kind = type(before).__name__
        raise ValueError(f"Could not parse hyperparameter {name}: {value!r} is no {kind}")
    return converted


class GreedyLoadBalancingStrategy:
    """A ps_strategy for replica_device_setter: the next variable goes to the ps with the least
    load."""

    def __init__(self, num_tasks: int, load_fn: object) -> None:
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op: object) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """A ps_strategy for replica_device_setter: a random ps, always the same for the same seed."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num, self._random = num_ps_tasks, random.Random(seed)

    def __call__(self, op: object) -> int:
        return self._random.randrange(self._num)


def byte_size_load_fn(op: object) -> int:
    """The bytes of an op's only output; raises ValueError if its shape is unknown."""
    (output,) = op.outputs
    count = output.get_shape().num_elements()
    if count is None:
        raise ValueError(f"{op.name}: the shape of its output is not known")
    return count * output.dtype.size
