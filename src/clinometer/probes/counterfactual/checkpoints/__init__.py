"""What changed from a model to a checkpoint that began with it: comparison, tables, words."""
