"""Messages between the tasks of a job: the leader's TCP server, the clients, the messages."""
