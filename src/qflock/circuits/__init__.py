"""What circuits mean: gates, symbols, observables, and their form in string tensors."""
