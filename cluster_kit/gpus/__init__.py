"""Which task gets which GPU: devices and their names, and who is given what. Pure."""
