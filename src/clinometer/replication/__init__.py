"""The papers' numbers, recomputed with our own code from what their authors published."""

from clinometer.replication import stereotypes, stigma
from clinometer.replication.items import Cell, Item, Outputs, Paper, Settings, find_paper, outputs_in

# three of the five published nothing to recompute from; docs/replication.md says what there is beside their tables
PAPERS = {
    paper.name: paper
    for paper in (
        Paper(name="sentiment_words", title="Garg, Srivastava, Xu & Huang (2022), Token-level sentiment bias"),
        stereotypes.PAPER,
        stigma.PAPER,
        Paper(name="counterfactual", title="Huang et al. (2020), Reducing sentiment bias in language models"),
        Paper(name="counterexamples", title="Zhang (2023), Counteracts: testing stereotypical representation"),
    )
}

__all__ = ["PAPERS", "Cell", "Item", "Outputs", "Paper", "Settings", "find_paper", "outputs_in"]
