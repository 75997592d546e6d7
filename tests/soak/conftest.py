"""What is no test."""

collect_ignore = ["timed_training"]
