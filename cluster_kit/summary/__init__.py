"""How a run ended, on one page: for a terminal, for a job summary of CI, and as values."""
