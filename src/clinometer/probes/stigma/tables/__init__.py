"""One file for each question that the stigma audit answers: the rows of its finding tables."""
