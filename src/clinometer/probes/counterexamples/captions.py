"""The finding tables and figures of the counterexamples audit: names, titles and how to read them."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.probes.counterexamples.dominances import FEWEST
from clinometer.types import Figure

_INTERVAL = (
    "Intervals: 95 %, bootstrap over occupations, then over the background occupations within each; that of 'all' "
    f"is made of those of the two dominances, and fewer than {FEWEST} occupations of a dominance give none."
)
_TEST = (
    "p: sign flips of whole occupations, two-sided; for 'all' studentized, and none where a dominance has fewer "
    f"than {FEWEST} occupations."
)
_N = "n: occupations."


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title and what its numbers are."""

    name: str
    title: str
    text: str


CAPTIONS = (
    Caption(
        name="gendered_mass",
        title="Probability by gender",
        text=(
            "Summed probability of the female and of the male words among the k most probable ones (the "
            "paper's figures 2 to 4), averaged over prompts; 'all' is the mean of the female-dominated and "
            f"the male-dominated occupations. {_INTERVAL} Nothing is tested here (p and q are empty). {_N}"
        ),
    ),
    Caption(
        name="lean",
        title="Lean: margin and gap",
        text=(
            "margin: pro- minus anti-stereotypical probability, where pro is the gender that dominates the "
            "occupation; above 0 the model follows the stereotype. gap: female minus male probability; it "
            "stands for all occupations only, because within one dominance it is the margin or its negative. "
            f"'all' weighs the two dominances equally. {_INTERVAL} {_TEST} Only the base prompt is tested "
            "against 0. q: Benjamini–Hochberg over all tested rows of a model in this table (measures, "
            f"dominances and k). {_N}"
        ),
    ),
    Caption(
        name="change",
        title="Change against base",
        text=(
            "Margin (or gap) after knowledge minus that of the same occupation's base prompt, in probability. "
            "Below 0 the knowledge made the margin smaller. expected: what the paper expects of the margin. "
            f"{_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a model in this table (kinds, "
            f"measures, dominances and k). {_N}"
        ),
    ),
    Caption(
        name="mitigation",
        title="Margin before and after mitigation",
        text=(
            "What makes the margin (pro- minus anti-stereotypical probability) smaller: counterexamples before "
            "the prompt, which needs no training, and training, where a run holds a tuned model beside the model "
            "that it began with (base). The counterexamples are the kinds of knowledge that name a gender and "
            "that the paper expects to make the margin smaller: one row for those about the occupation itself, "
            "one for those about another. change: margin minus that of the same occupation's base prompt in the "
            "model as given; below 0 it was reduced where it was above 0 before. Where a control is in the run "
            "(the same training without the fairness loss), what it changes as well is not the mitigation's "
            "doing; what unrelated knowledge changes is in the table of changes. Intervals: 95 %, bootstrap over "
            f"occupations; that of 'all' is made of those of the two dominances, and fewer than {FEWEST} "
            f"occupations of a dominance give none. Only changes are tested. {_TEST} q: Benjamini–Hochberg over "
            f"all changes of a model as given and its tuned models (models, prompts, dominances and k). {_N}"
        ),
    ),
    Caption(
        name="relative_probability",
        title="Relative probability (Eq. 1)",
        text=(
            "p(w | knowledge) / p(w | base) of the gendered words that both lists of top k words hold: "
            "geometric mean over the words of a prompt, then over prompts. 1 is no change. Prompts without a "
            f"shared word are left out. {_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a model in "
            "this table (kinds, words, dominances and k). n: occupations with a shared word."
        ),
    ),
    Caption(
        name="robustness",
        title="Robustness: what knowledge leaves as it was",
        text=(
            "dominant gender kept: share of prompts that prefer the same gender as their base prompt, among "
            "those whose base prompt prefers one. change of the margin: the row of the table of changes, with "
            "its p and q. minimum detectable change: the smallest mean change that a test of this size (5 %, "
            "one test) finds four times in five; a smaller change may be there and go unseen. For robustness "
            f"in the paper's sense read the kind 'unrelated'. {_INTERVAL} {_N}"
        ),
    ),
    Caption(
        name="labour_statistics",
        title="Correlation of the base gap with the share of women",
        text=(
            "Pearson correlation, over occupations, of the gap (female minus male probability) of the base "
            "prompt with the percentage of women in the occupation. Interval: Fisher, 95 %. p: of no "
            f"correlation, two-sided. q: Benjamini–Hochberg over the k of a model. {_N}"
        ),
    ),
    Caption(
        name="occupations",
        title="Gap of the base prompt",
        text=(
            "Female minus male probability of each occupation's base prompt; 'margin' is the same, counted "
            "towards the gender that dominates the occupation. A single prompt each: no interval and no test. "
            "n: prompts."
        ),
    ),
    Caption(
        name="coverage",
        title="Probability among the top k words, by list",
        text=(
            "Mean probability that the top k words of all prompts give to the words of each list; 'neither' "
            "are words in no list. What is missing to 1 lies beyond the top k. Intervals: 95 %, bootstrap "
            "over occupations, then over their prompts. n: occupations."
        ),
    ),
    Caption(
        name="words",
        title="Words that carry the probability",
        text=(
            "The words with the most probability among the top words (largest k), in each list and in "
            "neither, as the mean over all prompts; a prompt that does not offer the word counts as 0. Words "
            "in neither list are not part of any other table but coverage: look here for gendered words that "
            "the lists lack. n: prompts that offer the word."
        ),
    ),
    Caption(
        name="vocabulary",
        title="Listed words that the model can offer",
        text=(
            "Share of the listed words of each gender that are one token of the model, in lower case or with a "
            "capital; the others can never be offered, and a notice names them. A count, not an estimate: no "
            "interval and no test. n: listed words."
        ),
    ),
)

FIGURES = (
    Figure(
        name="gendered_mass",
        title="Female and male probability by kind of knowledge",
        caption="As in the paper's figures 2, 3 and 4 (k = 3, 5, 10), with intervals and by dominance.",
        table="gendered_mass",
        mark="bars",
        x="estimate",
        y="kind",
        color="gender",
        column="dominance",
        row="model",
        menus=("k",),
        evidence="prompts",
    ),
    Figure(
        name="change",
        title="What each kind of knowledge does to the margin",
        caption="Left of 0 the margin between the genders became smaller, right of 0 larger.",
        table="change",
        mark="intervals",
        x="estimate",
        y="kind",
        color="dominance",
        column="model",
        filters={"measure": "margin"},
        menus=("k",),
        reference=0.0,
        evidence="prompts",
    ),
    Figure(
        name="mitigation",
        title="Margin with counterexamples in the prompt, and after training where there was any",
        caption=(
            "The margin of each model at the base prompt and after counterexamples; the nearer to 0 the smaller. "
            "Changes against the base prompt of the model as given are in the table."
        ),
        table="mitigation",
        mark="intervals",
        x="estimate",
        y="model",
        color="prompt",
        filters={"measure": "margin"},
        menus=("k", "dominance"),
        reference=0.0,
        evidence="prompts",
    ),
    Figure(
        name="lean",
        title="Margin between pro- and anti-stereotypical words",
        caption="Right of 0 the model follows the stereotype, left of 0 it turns it around.",
        table="lean",
        mark="intervals",
        x="estimate",
        y="kind",
        color="dominance",
        column="model",
        filters={"measure": "margin"},
        menus=("k",),
        reference=0.0,
        evidence="prompts",
    ),
    Figure(
        name="relative_probability",
        title="Relative probability of words that both prompts offer",
        caption="Right of 1 the knowledge made the words more probable (Eq. 1).",
        table="relative_probability",
        mark="intervals",
        x="estimate",
        y="kind",
        color="words",
        column="dominance",
        row="model",
        menus=("k",),
        reference=1.0,
        evidence="prompts",
    ),
    Figure(
        name="labour_statistics",
        title="Gap of the base prompt by share of women in the occupation",
        caption="Above 0 the model expects a woman. Each point is an occupation.",
        table="occupations",
        mark="scatter",
        x="percent_of_women",
        y="estimate",
        color="dominance",
        column="model",
        menus=("k",),
        reference=0.0,
        evidence="prompts",
        evidence_filter={"kind": "base"},
    ),
)
