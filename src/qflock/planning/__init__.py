"""What a training will take, before it starts: measured for a few seconds, then reckoned."""
