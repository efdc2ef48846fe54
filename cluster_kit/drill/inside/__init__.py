"""Programs that a drill runs inside containers, with nothing but Python: they are sent as text."""
