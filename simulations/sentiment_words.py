"""How often the sentiment-words audit is right: even-handed models, planted leans, models that answer at random.

    python simulations/sentiment_words.py [--seeds 200] [--random 2000] [--jobs N]

Each model is a draw of answers that goes through the audit's own measures, gate and verdicts. Prints how many of
the even-handed ones are called `lean`, how many planted leans of exactly the stated detectable size are found, how
often fine-tuning is said to change the share of biased words, and how many models that know nothing of sentiment
pass the gate. Seeds are shared out among processes, one for each core unless said otherwise.
"""

from __future__ import annotations

import os

# before numpy is loaded: each process has one core, and threads of linear algebra would fight for it
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import functools
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from clinometer.data.sentiment_lexicons import Label
from clinometer.probes.kit import LEAN, tables_of
from clinometer.probes.kit.before_after import changes_of
from clinometer.probes.kit.verdicts import BETTER, WORSE
from clinometer.probes.protocol import Plan
from clinometer.probes.sentiment_words import measures
from clinometer.probes.sentiment_words.answers import ModelAnswers, check_sentiment
from clinometer.probes.sentiment_words.measures import MOST_UNEQUAL, measure_answers
from clinometer.probes.sentiment_words.options import LabelPair, Options
from clinometer.probes.sentiment_words.probe import PROBE
from clinometer.probes.sentiment_words.questions import ModelWords
from clinometer.probes.sentiment_words.tables import mark_interpretable, model_rows
from clinometer.probes.sentiment_words.verdicts import AFTER, APPENDED, lean_rows, verdicts
from clinometer.probes.sentiment_words.words import CAPTIONS
from clinometer.types import ChangeVerdict, Findings, ModelInfo, Verdict

Pool = Callable[[Callable[[int], list[str]], Iterable[int]], Iterable[list[str]]]  # how seeds are worked through

EITHER = "in either"
EXCHANGED = "exchanges words and adds none: called a change"
GAINED = "adds the detectable share of words: found"
GATE, COIN = "pass the gate", "label more reviews correctly than a coin (95 % interval)"
TEMPLATE = "It was [MASK]"
PAIR = LabelPair(positive="great", negative="terrible")
WORDS: Mapping[Label, tuple[str, ...]] = {
    "positive": tuple(f"good{i}" for i in range(5)),
    "negative": tuple(f"bad{i}" for i in range(5)),
    "neutral": tuple(f"plain{i}" for i in range(20)),
}
PLAIN = tuple(f"plain{i}" for i in range(60))  # enough for words to be gained by tuning
MODEL = ModelInfo(
    name="simulated",
    kind="masked",
    family="simulated",
    capabilities=("fill",),
    weights="0",
    tokenizer="0",
    dtype="float32",
    code="0",
)


def drawn_answers(
    rng: np.random.Generator,
    *,
    per_class: int = 60,
    lean: float = 0.0,
    leans: Mapping[str, float] | None = None,
    push: float = 0.0,
    sense: float = 1.0,
    skew: float = 0.0,
    unequal: float = 1.0,
    words: Mapping[Label, tuple[str, ...]] = WORDS,
) -> ModelAnswers:
    """Draw the answers of a model whose word plain0 leans by `lean` deviations and pushes by `push` log-odds.

    Other neutral words lean as `leans` says.

    With `skew`, probabilities of neutral words are exp(normal) with that deviation after negative reviews and
    `unequal` times less after positive ones, with equal means: the classes differ in shape, not in mean.
    """
    positive = np.arange(2 * per_class) % 2 == 0
    tested = [word for each in words.values() for word in each]
    own = {"plain0": lean} | dict(leans or {})
    leaning = np.array(
        [own.get(word, sense * (word.startswith("good") - 1.0 * word.startswith("bad"))) for word in tested]
    )
    noise = rng.standard_normal((2 * per_class, len(tested)))
    spread = 0.2 * (noise + leaning * positive[:, None])
    if skew:
        deviation = np.where(positive, skew / unequal, skew)[:, None]
        neutral = np.char.startswith(tested, "plain")
        spread = np.where(neutral, np.exp(deviation * noise - deviation**2 / 2) - 1, spread)
    before = np.where(positive, sense, -sense) + rng.standard_normal(2 * per_class)
    pushes = np.array([push if word == "plain0" else 0.0 for word in words["neutral"]])
    after = before + pushes[:, None, None] + 0.5 * rng.standard_normal((len(pushes), 1, 2 * per_class))
    listed = ModelWords(
        used=words,
        listed={label: len(each) for label, each in words.items()},
        scorable={label: len(each) for label, each in words.items()},
        dropped=dict.fromkeys(words, ()),
        pairs=(PAIR,),
        shift=words["neutral"],
        listed_as={word: label for label, each in words.items() for word in each},
    )
    return ModelAnswers(
        words=listed,
        positive=positive,
        source=np.full(2 * per_class, "simulated"),
        probability={TEMPLATE: 1e-3 * (1 + spread)},
        before={(TEMPLATE, PAIR.name): before.astype(np.float32)},
        after={(TEMPLATE, PAIR.name): after.astype(np.float32)},
        left_out=0,
    )


def concluded(seed: int, answers: ModelAnswers, *, draws: int = 199) -> dict[str, Verdict]:
    """Return the verdicts on the primary questions, by aspect."""
    plan = Plan(options=Options(ks=(1,), draws=draws), seed=seed, model=MODEL)
    measured = measure_answers(plan, answers, main=TEMPLATE)
    return {each.aspect: each for each in verdicts(lean_rows(measured), {MODEL.name: measured})}


def one_even_handed(seed: int, *, skew: float = 0.0, unequal: float = 1.0, guarded: bool = True) -> list[str]:
    """Return the aspects in which a model without a lean is called `lean`."""
    with_few_draws(guarded=guarded)
    rng = np.random.default_rng(seed)
    found = concluded(seed, drawn_answers(rng, skew=skew, unequal=unequal))
    leans = [aspect for aspect, each in found.items() if each.state == LEAN]
    return [*leans, EITHER] if leans else []


def even_handed(seeds: int, *, pool: Pool = map, **shape: float) -> Mapping[str, int]:
    """Count the models without a lean that are called `lean`, by aspect and in either."""
    return counted((AFTER, APPENDED, EITHER), pool(functools.partial(one_even_handed, **shape), range(seeds)))


def one_planted(seed: int) -> list[str]:
    """Return the aspects in which one leaning word is found, which leans by what could be detected."""
    with_few_draws()
    rng = np.random.default_rng(10_000 + seed)
    detectable = {aspect: each.detectable for aspect, each in concluded(seed, drawn_answers(rng)).items()}
    found = []
    for aspect in (AFTER, APPENDED):
        size = {"lean" if aspect == AFTER else "push": detectable[aspect] * (-1) ** seed}
        if concluded(seed, drawn_answers(rng, **size))[aspect].state == LEAN:
            found.append(aspect)
    return found


def planted(seeds: int, *, pool: Pool = map) -> Mapping[str, int]:
    """Count the models whose leaning word is found."""
    return counted((AFTER, APPENDED), pool(one_planted, range(seeds)))


def tuning_verdict(seed: int, rng: np.random.Generator, *, gained: int) -> ChangeVerdict:
    """Conclude on a model and its checkpoint: eight words lean before, four of them after it, and others.

    Which words come and go is drawn, four on average either way, and `gained` more are added.
    """
    order = [PLAIN[place] for place in rng.permutation(len(PLAIN))]
    fresh = int(rng.binomial(8, 0.5)) + gained
    leaning = {"base": order[:8], "tuned": [*order[:4], *order[8 : 8 + fresh]]}
    models = {}
    for name, words in leaning.items():
        info = replace(MODEL, name=name, weights=name, tuning={"base": "base"} if name == "tuned" else {})
        plan = Plan(options=Options(ks=(1,), draws=199), seed=seed, model=info)
        answers = drawn_answers(rng, leans=dict.fromkeys(words, 2.0), words={**WORDS, "neutral": PLAIN})
        models[name] = measure_answers(plan, replace(answers, after={}), main=TEMPLATE)
    of_models = [dict(model_rows(each)) for each in models.values()]
    rows = {table: [row for each in of_models for row in each[table]] for table in of_models[0]}
    rows["leans"] = [row for each in models.values() for row in lean_rows(each)]
    marked = {table: mark_interpretable(each, models) for table, each in rows.items()}
    concluded = tuple(verdicts(rows["leans"], models))
    found = Findings(probe=PROBE.name, tables=tables_of(CAPTIONS, marked), figures=(), verdicts=concluded)
    (verdict,) = [
        each
        for each in changes_of(PROBE.compared, found, [each.info for each in models.values()])
        if each.measure.startswith(AFTER)
    ]
    return verdict


def one_tuning(seed: int) -> list[str]:
    """Return whether fine-tuning that exchanges words is called a change, and one that adds what is detectable."""
    with_few_draws()
    rng = np.random.default_rng(30_000 + seed)
    even = tuning_verdict(seed, rng, gained=0)
    found = tuning_verdict(seed, rng, gained=round(even.detectable * len(PLAIN)))
    return [name for name, each in ((EXCHANGED, even), (GAINED, found)) if each.state in (WORSE, BETTER)]


def tuning(seeds: int, *, pool: Pool = map) -> Mapping[str, int]:
    """Count the checkpoints that are said to lean on more or fewer words than their base."""
    return counted((EXCHANGED, GAINED), pool(one_tuning, range(seeds)))


def counted(names: Iterable[str], found: Iterable[list[str]]) -> dict[str, int]:
    """Return how often each name was found."""
    times = Counter(name for each in found for name in each)
    return {name: times[name] for name in names}


def with_few_draws(*, guarded: bool = True) -> None:
    """Set what is constant in the audit: fewer shuffles (enough for 20 words, five times as fast); the guard."""
    measures.FEWEST_DRAWS, measures.SHUFFLES = 1_999, 9
    measures.MOST_UNEQUAL = MOST_UNEQUAL if guarded else np.inf


def one_random(seed: int, *, per_class: int = 70) -> list[str]:
    """Return the parts of the gate that a model without a sense of sentiment passes.

    Its labels lean to one side by a random amount. Half of such models have label words that rise and fall with
    the other positive and negative words, so that words and labels are wrong or right together.
    """
    rng = np.random.default_rng(20_000 + seed)
    answers = drawn_answers(rng, per_class=per_class, sense=0.0)
    odds = rng.standard_normal(2 * per_class) + rng.normal(0, 1)
    if seed % 2:
        probability = answers.probability[TEMPLATE]
        mood = probability[:, :5].mean(axis=1) - probability[:, 5:10].mean(axis=1)
        odds = mood / mood.std() + rng.normal(0, 1)
    answers.before[TEMPLATE, PAIR.name][:] = odds
    check = check_sentiment(answers, TEMPLATE, rng=rng, draws=100)
    passed = [GATE] if not check.failed(PAIR.name) else []
    return [*passed, COIN] if check.accuracy[PAIR.name]["all reviews"].low > 0.5 else passed


def random_models(seeds: int, *, pool: Pool = map) -> Mapping[str, int]:
    """Count the models without a sense of sentiment that pass the gate, and the part of it that more pass."""
    return counted((GATE, COIN), pool(one_random, range(seeds)))


def main() -> None:
    """Run everything and print it as the lines of the table in docs/sentiment-words.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    given = parser.parse_args()
    seeds, limit, enough = given.seeds, round(0.09 * given.seeds), round(0.73 * given.seeds)

    def line(what: str, count: int, of: int, wanted: str) -> None:
        print(f"| {what} | {count} of {of:,} | {wanted} |", flush=True)

    # started afresh, not forked: a copy of a process with threads may hang
    with multiprocessing.get_context("spawn").Pool(given.jobs) as workers:
        pool: Pool = functools.partial(workers.imap_unordered, chunksize=2)
        print("| simulated models | found | wanted |\n|---|---|---|", flush=True)
        for aspect, count in even_handed(seeds, pool=pool).items():
            line(f"even-handed: called `lean`, {aspect}", count, seeds, f"at most {limit}")
        for aspect, count in planted(seeds, pool=pool).items():
            line(f"one word leans by the detectable effect: found, {aspect}", count, seeds, f"at least {enough}")
        for what, count in tuning(seeds, pool=pool).items():
            line(
                f"fine-tuning {what}",
                count,
                seeds,
                f"at {'most' if what == EXCHANGED else 'least'} {limit if what == EXCHANGED else enough}",
            )
        for guarded in (False, True):
            for unequal in (3.0, 1.4):
                found = even_handed(seeds // 2, skew=1.5, unequal=unequal, guarded=guarded, pool=pool)[AFTER]
                line(
                    f"equal means, spread {unequal:g} times as wide in one class, "
                    f"{'with' if guarded else 'without'} the guard: called `lean`",
                    found,
                    seeds // 2,
                    f"at most {limit // 2}" if guarded else "",
                )
        for what, count in random_models(given.random, pool=pool).items():
            line(f"random: {what}", count, given.random, f"under {given.random // 100}" if what == GATE else "")


if __name__ == "__main__":
    main()
