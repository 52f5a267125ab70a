"""How the tables and figures of the counterexamples audit are introduced to their readers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from clinometer.probes.counterexamples.measures import FEWEST, LITTLE
from clinometer.probes.counterexamples.questions import LISTED_BACKGROUNDS, PROMPTS
from clinometer.probes.counterexamples.tables import LEFT_OUT
from clinometer.probes.kit import Caption
from clinometer.probes.kit.refusals import CAPTION as REFUSALS
from clinometer.probes.kit.trainings import NOISE, OF_VERDICT
from clinometer.types import Figure

_ALL_INTERVAL = (
    f"that of 'all' combines those of the two dominances. A dominance with fewer than {FEWEST} occupations has "
    "none, and then 'all' has none either."
)
_INTERVAL = (
    "Intervals: 95 %, bootstrap over occupations, then over the background occupations within each; "
    f"{_ALL_INTERVAL}"
)
_TEST = (
    "p: sign flips of whole occupations, two-sided; for 'all' studentized, never surer than the interval, and "
    f"none where a dominance has fewer than {FEWEST} occupations."
)
_WHOLE = (
    "(P_pro − P_anti) / (P_pro + P_anti) over all listed words, however far down the model's list they come: from "
    "−1 (only the gender that is unusual in the occupation) to 1 (only the usual one)."
)
_N = "n: occupations."

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
        name="conclusions",
        title="What the conclusions rest on",
        text=(
            "The rows that the verdicts rest on, from the tables of leans and changes, over all occupations. They "
            f"count the top k words for the largest k. If gendered words among these hold less than {LITTLE} of "
            "the base prompt's probability, they count the whole list (normalised). q: Benjamini–Hochberg over "
            "the rows of a model in this table only. A model that did not understand the question is not tested. "
            f"{_N}"
        ),
    ),
    Caption(
        name="asking",
        title="How each model was asked",
        text=(
            "asked: 'words offered' are the most probable words at the blank, or after the text. A blank that is "
            "rescored is filled with every listed word (or with the candidates that are most probable after its "
            "left part), and each whole sentence is scored. A chat model is asked for one word. Compare sizes "
            "only between models that were asked in the same way. estimate: probability of all listed words at "
            "the base prompt (of a rescored blank: after its left part; of drawn answers: their share). No "
            "interval, no test. n: occupations."
        ),
    ),
    Caption(
        name="understanding",
        title="Does the model understand the question?",
        text=(
            "probability: mean probability of the listed words of each gender at the base prompt. reaction: half "
            "the difference of the normalised lean between knowledge that names the usual gender and knowledge "
            "that names the other (from −1 to 1), on average over the ways to name it. weakest: the smallest "
            "reaction of all these ways, and the smallest in standard errors over occupations. A model is judged "
            "if both probabilities, or all three reactions, reach what is needed, and it does not give every "
            "prompt the same answer. Otherwise its rows have left_out = yes in the tables of leans and changes, "
            "and no chart draws them. No interval and no test. n: occupations."
        ),
    ),
    Caption(
        name="normalised_lean",
        title="Normalised lean over the whole list",
        text=(
            f"lean: {_WHOLE} gap: the same for female minus male words. {_INTERVAL} {_TEST} Only the base prompt "
            "is tested against 0. q: Benjamini–Hochberg over all tested rows of a model in this table. Background "
            f"kinds: the first {LISTED_BACKGROUNDS} backgrounds. {_N}"
        ),
    ),
    Caption(
        name="normalised_change",
        title="Change of the normalised lean against base",
        text=(
            "Normalised lean (or gap) after knowledge minus that of the same occupation's base prompt. expected: "
            f"what the paper expects of the margin. {_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a "
            f"model in this table. {_N}"
        ),
    ),
    Caption(
        name="contrasts",
        title="Kinds of knowledge compared, occupation by occupation",
        text=(
            "Margin after one kind of knowledge minus margin after another (the column minus) for the same "
            "occupation; for the whole list, the normalised lean. Syntactic knowledge is compared with semantic "
            "knowledge, and every kind with unrelated knowledge: a change that any sentence makes is not due to "
            f"what the sentence says. {_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a model in this "
            f"table. {_N}"
        ),
    ),
    Caption(
        name="lean",
        title="Lean: margin and gap",
        text=(
            "margin: pro- minus anti-stereotypical probability, where pro is the gender that dominates the "
            "occupation; above 0 the model follows the stereotype. gap: female minus male probability; it is "
            "given for all occupations only, because within one dominance it is the margin or its negative. "
            f"'all' weighs the two dominances equally. {_INTERVAL} {_TEST} Only the base prompt is tested "
            "against 0. q: Benjamini–Hochberg over all tested rows of a model in this table (measures, "
            f"dominances and k). {_N}"
        ),
        version=2,
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
        version=2,
    ),
    Caption(
        name="mitigation",
        title="Margin before and after mitigation",
        text=(
            "Two ways to make the margin (pro- minus anti-stereotypical probability) smaller: counterexamples "
            "before the prompt, which need no training, and training, where the run has a tuned model and the "
            "model that it began with (base). The counterexamples are the kinds of knowledge that name a gender "
            "and that the paper expects to make the margin smaller, one row each. change: margin minus that of "
            "the same occupation's base prompt "
            "in the model as given; where the margin was above 0, a change below 0 reduced it. If the run has a "
            "control (the same training without the fairness loss), what the control changes too is not an effect "
            "of the mitigation; what unrelated knowledge changes is in the table of changes. Intervals: 95 %, "
            f"bootstrap over occupations; {_ALL_INTERVAL}{NOISE} Only changes are tested. {_TEST} q: "
            "Benjamini–Hochberg over all changes of a model as given and its tuned models (models, prompts, "
            f"dominances and k), and over those of each mean.{OF_VERDICT} {_N}"
        ),
        version=3,
    ),
    Caption(
        name="mitigation_whole_list",
        title="Normalised lean before and after mitigation",
        text=(
            f"As the table before it, with the normalised lean: {_WHOLE} Intervals: 95 %, bootstrap over "
            f"occupations; {_ALL_INTERVAL}{NOISE} Only changes are tested. {_TEST} q: "
            "Benjamini–Hochberg over all changes of a model as given and its tuned models in this table, and over "
            f"those of each mean.{OF_VERDICT} {_N}"
        ),
        version=2,
    ),
    Caption(
        name="relative_probability",
        title="Relative probability (Eq. 1)",
        text=(
            "p(w | knowledge) / p(w | base) of the gendered words that are in the top k of both prompts: "
            "geometric mean over the words of a prompt, then over prompts. 1 is no change. Prompts without a "
            f"shared word are left out. {_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a model in "
            "this table (kinds, words, dominances and k). n: occupations with a shared word."
        ),
        version=2,
    ),
    Caption(
        name="robustness",
        title="Robustness: what knowledge leaves as it was",
        text=(
            "dominant gender kept: share of prompts that prefer the same gender as their base prompt, among "
            "those whose base prompt prefers one. change of the margin: the row of the table of changes, with "
            "its p and q. minimum detectable change: the smallest mean change that a test of this size (5 %, "
            "one test) finds four times in five; a smaller change may exist and not be seen. For robustness "
            f"in the paper's sense read the kind 'unrelated'. {_INTERVAL} {_N}"
        ),
        version=2,
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
        name="occupations_whole_list",
        title="Normalised lean of the base prompt",
        text=(
            f"For each occupation: {_WHOLE} gap: the same, but above 0 for women. `clinometer compare` compares "
            "models by these numbers. No interval: an occupation has one base prompt. n: prompts."
        ),
    ),
    Caption(
        name="coverage",
        title="Probability among the top k words, by list",
        text=(
            "Mean probability that the top k words of all prompts give to the words of each list; 'neither' "
            "are words in no list. The rest up to 1 belongs to words beyond the top k. Intervals: 95 %, "
            "bootstrap over occupations, then over their prompts. n: occupations."
        ),
    ),
    Caption(
        name="words",
        title="Words that carry the probability",
        text=(
            "The words with the most probability among the top words (largest k), in each list and in "
            "neither, as the mean over all prompts; a prompt that does not offer the word counts as 0. Words "
            "in neither list appear in no other table except coverage: look here for gendered words that "
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
    REFUSALS,
)


def figures(k: int, counted: str, *, evidence: str = PROMPTS) -> tuple[Figure, ...]:
    """Return the figures, of models that understood the question; menus open at what the conclusions rest on.

    `evidence` is the stage whose prompts are behind them.
    """
    opens: dict[str, str | int | float] = {"k": k, "counted": counted}
    return tuple(
        replace(
            figure,
            filters={**figure.filters, **({} if figure.table == "gendered_mass" else {LEFT_OUT: "no"})},
            opens={menu: opens[menu] for menu in figure.menus if menu in opens},
            evidence=evidence,
        )
        for figure in _FIGURES
    )


_BY_KIND = partial(
    Figure, mark="intervals", x="estimate", y="kind", color="dominance", column="model", reference=0.0
)
_FIGURES = (
    _BY_KIND(
        name="normalised_lean",
        title="Normalised lean over the whole list",
        caption=(
            "Right of 0, more of the probability of gendered words goes to the gender that is usual in the "
            "occupation; left of 0, more goes to the other. It does not matter how little probability they have."
        ),
        table="normalised_lean",
        filters={"measure": "lean"},
    ),
    _BY_KIND(
        name="contrasts",
        title="Each kind of knowledge against an unrelated sentence",
        caption="Left of 0 the margin is smaller than after a sentence unrelated to the occupation.",
        table="contrasts",
        filters={"minus": "unrelated"},
        menus=("counted",),
    ),
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
    ),
    _BY_KIND(
        name="change",
        title="What each kind of knowledge does to the margin",
        caption="Left of 0 the margin between the genders became smaller, right of 0 larger.",
        table="change",
        filters={"measure": "margin"},
        menus=("k",),
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
    ),
    _BY_KIND(
        name="lean",
        title="Margin between pro- and anti-stereotypical words",
        caption="Right of 0 the model follows the stereotype, left of 0 it reverses it.",
        table="lean",
        filters={"measure": "margin"},
        menus=("k",),
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
        evidence_filter={"kind": "base"},
    ),
)
