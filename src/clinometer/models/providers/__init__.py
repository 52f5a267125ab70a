"""Who opens a model by its name."""
