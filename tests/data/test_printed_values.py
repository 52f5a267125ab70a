"""The numbers that the papers print: complete, each once, and shown where reports measure the same."""

from __future__ import annotations

import pytest

from clinometer.data import load_occupations
from clinometer.data.printed_values import in_print, load_printed_values
from clinometer.data.sentiment_lexicons import load_neutral_words
from clinometer.errors import DataError
from clinometer.probes.counterfactual.figures import CAPTIONS as COUNTERFACTUAL
from clinometer.probes.sentiment_words.words import CAPTIONS as SENTIMENT_WORDS

AUDITS = ("sentiment_words", "stereotypes", "stigma", "counterfactual", "counterexamples")


def captions(of):
    return {caption.name: caption.text for caption in of}


@pytest.mark.parametrize("audit", AUDITS)
def test_each_number_is_there_once(audit):
    values = load_printed_values(audit)
    assert len({(each.measure, each.model) for each in values}) == len(values)


@pytest.mark.parametrize(
    ("table", "model", "first", "last"),
    [
        (3, "fine-tuned RoBERTa-base", -0.0, 0.02),
        (4, "fine-tuned RoBERTa-base", 20.62, 8.18),
        (5, "fine-tuned RoBERTa-base", -24.48, -6.31),
        (6, "RoBERTa-base", 15.52, 8.73),
        (7, "RoBERTa-base", -36.74, -10.14),
        (8, "RoBERTa-base", -0.04, 0.1),
    ],
)
def test_the_scores_of_words_are_ten_a_table(table, model, first, last):
    """As printed: the strongest first; of words near 0 the five below it, then the five above."""
    rows = [each for each in load_printed_values("sentiment_words") if each.source.startswith(f"Table {table}")]
    scores = [each.value for each in rows]
    assert {each.model for each in rows} == {model}
    assert (len(scores), scores[0], scores[-1]) == (10, first, last)
    halves = (scores[:5], scores[5:]) if table in (3, 8) else (scores,)
    for half in halves:
        size = [abs(score) for score in half]
        assert size == sorted(size, reverse=table not in (3, 8))


def test_no_printed_score_follows_from_the_formula():
    """(1/3) Σ (Neg_Diff − Pos_Diff)/K² with differences of at most 100 %: (200/3)(1/25 + 1/100 + 1/225) = 3.63."""
    scores = [each for each in load_printed_values("sentiment_words") if each.measure.startswith("score of")]
    assert len(scores) == 60
    largest = 200 / 3 * (1 / 25 + 1 / 100 + 1 / 225)
    assert sum(abs(each.value) > largest for each in scores) == 40  # all but the words near 0


def test_the_shares_of_sections_4_3_and_4_4():
    shares = [each for each in load_printed_values("sentiment_words") if each.source in ("§4.3", "§4.4")]
    printed = [in_print("sentiment_words", each.measure, each.model, percent=True) for each in shares]
    told = "41.66 52.7 96.0 124.6 268 70.6 56.8 2.25 70 100 76 56"
    assert printed == [f"{number} %" for number in told.split()]


def test_a_number_keeps_its_digits_and_names_its_models():
    assert in_print("counterfactual", "S.S.c country", "WMT-19 baseline") == "0.230"
    growth = in_print("sentiment_words", "growth of the number of words of the association test by fine-tuning")
    assert growth == "1.246 (RoBERTa-base), 2.68 (RoBERTa-large)"
    with pytest.raises(DataError, match=r"counterfactual.csv has no 'S.S. age'"):
        in_print("counterfactual", "S.S. age")


def test_our_occupations_are_as_many_as_the_paper_has():
    printed = {(each.measure, each.model): each.value for each in load_printed_values("counterexamples")}
    jobs = load_occupations()
    female = sum(job.percent_female > 50 for job in jobs)
    assert printed["job titles", "all"] == len(jobs)
    assert (printed["job titles", "female-dominated"], printed["job titles", "male-dominated"]) == (
        female,
        len(jobs) - female,
    )


def test_the_model_that_names_no_corpus_is_given_none():
    models = {each.model for each in load_printed_values("counterfactual") if "irrelevant" in each.measure}
    assert models == {"embedding regularization, λ = 1000"}


def test_tables_of_the_counterfactual_audit_quote_the_models_before_a_mitigation():
    text = captions(COUNTERFACTUAL)
    for attribute in ("occupation", "country", "name"):
        for table, measures in (("relevance", ("S.S.", "S.S.c")), ("perplexity", ("PPL", "PPL^s"))):
            for measure in measures:
                first, second = (
                    in_print("counterfactual", f"{measure} {attribute}", f"{corpus} baseline")
                    for corpus in ("WMT-19", "WikiText-103")
                )
                quoted = text[table].split(f"{attribute} {measures[0]} ")[1]
                assert f"{measure} {first} and {second}" in f"{measures[0]} {quoted}"


def test_tables_of_the_sentiment_audit_quote_what_the_paper_finds():
    text = captions(SENTIMENT_WORDS)
    for table, quoted in {
        "biased_words": "In the paper 2.25 % are truly neutral",
        "overlap": "100 % of the positive and 70 % of the negative words",
        "top_words": "fine-tuned RoBERTa-base, 76 % and 56 %",
        "shared_words": "41.66 % and 52.7 % of the positive and negative words, shift test 70.6 %",
        "tuning": "124.6 % (RoBERTa-base), 268 % (RoBERTa-large)",
        "ranked_words": "from shone (15.52) to deadly (-36.74)",
    }.items():
        assert quoted in text[table]


def test_the_scored_words_are_words_of_our_neutral_list():
    known = {each.word for each in load_neutral_words()}
    measures = [each.measure for each in load_printed_values("sentiment_words")]
    scored = {measure.split('"')[1] for measure in measures if measure.startswith("score of")}
    assert scored <= known
