"""The shared training image: its name, its base, how it is built."""
