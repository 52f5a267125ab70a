"""One file for each question that the sentiment-words audit answers: the rows of its finding tables."""
