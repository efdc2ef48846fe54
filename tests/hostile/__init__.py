"""Attacks by a hostile program, another user of the host, or a web page."""
