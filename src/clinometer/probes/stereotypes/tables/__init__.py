"""One file for each question that the stereotypes audit answers: the rows of its finding tables."""
