"""Who this worker is, starting workers on one machine, and supervising them."""
