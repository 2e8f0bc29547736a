"""What computes the cells of a run."""
