"""What a person wrote: its schema, how it is read, and what is wrong with its shape."""
