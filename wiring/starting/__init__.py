"""What is settled before the processes of a run start: the spec of its kind of game, and their commands."""
