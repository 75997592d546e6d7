"""Speed of qflock, alone and beside other simulators. `python -m benchmarks --help` lists the commands."""
