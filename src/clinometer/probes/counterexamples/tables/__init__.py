"""One file for each question that the counterexamples audit answers: the rows of its finding tables."""
