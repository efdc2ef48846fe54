"""Which task gets which GPU. Pure."""
