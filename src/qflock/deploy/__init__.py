"""One job file, run on a laptop or on Kubernetes."""
