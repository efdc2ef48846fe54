"""How tasks of one job hear of each other: the leader's TCP server, the clients, the messages."""
