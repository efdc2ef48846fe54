"""The rules that a manifest must keep, by topic; each problem has a hint. Pure."""
