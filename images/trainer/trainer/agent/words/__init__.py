"""What is told of a program's error."""
