"""One replica at work: its server and session, its steps, and its end."""
