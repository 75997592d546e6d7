"""What a run was, as a page; what a run will take, before it starts."""
