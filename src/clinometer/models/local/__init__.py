"""Models that run in this process, on torch and transformers."""
