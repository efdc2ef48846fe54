"""How a run has ended: its verdict, what is noted, what outcome.json says."""
