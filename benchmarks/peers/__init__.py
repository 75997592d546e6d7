"""The same workload for other simulators, each run in a virtual environment of its own."""
