"""One file for each question that the counterfactual audit answers: the rows of its finding tables."""
