"""How often the sentiment-words audit is right: even-handed models, planted leans, models that answer at random.

    python simulations/sentiment_words.py [--seeds 200] [--random 2000]

Each model is a draw of answers that goes through the audit's own measures, gate and verdicts. Prints how many of
the even-handed ones are called `lean`, how many planted leans of exactly the stated detectable size are found, and
how many models that know nothing of sentiment pass the gate.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from clinometer.probes.kit import LEAN
from clinometer.probes.protocol import Plan
from clinometer.probes.sentiment_words import measures
from clinometer.probes.sentiment_words.answers import ModelAnswers, check_sentiment
from clinometer.probes.sentiment_words.measures import MOST_UNEQUAL, measure_answers
from clinometer.probes.sentiment_words.options import LabelPair, Options
from clinometer.probes.sentiment_words.questions import ModelWords
from clinometer.probes.sentiment_words.verdicts import AFTER, APPENDED, lean_rows, verdicts
from clinometer.types import ModelInfo, Verdict

TEMPLATE = "It was [MASK]"
PAIR = LabelPair(positive="great", negative="terrible")
WORDS = {
    "positive": tuple(f"good{i}" for i in range(5)),
    "negative": tuple(f"bad{i}" for i in range(5)),
    "neutral": tuple(f"plain{i}" for i in range(20)),
}
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
    push: float = 0.0,
    sense: float = 1.0,
    skew: float = 0.0,
    unequal: float = 1.0,
) -> ModelAnswers:
    """Draw the answers of a model whose word plain0 leans by `lean` deviations and pushes by `push` log-odds.

    With `skew`, probabilities of neutral words are exp(normal) with that deviation after negative reviews and
    `unequal` times less after positive ones, with equal means: the classes differ in shape, not in mean.
    """
    positive = np.arange(2 * per_class) % 2 == 0
    tested = [word for words in WORDS.values() for word in words]
    leans = np.array([sense * (word.startswith("good") - 1.0 * word.startswith("bad")) for word in tested])
    leans[tested.index("plain0")] = lean
    noise = rng.standard_normal((2 * per_class, len(tested)))
    spread = 0.2 * (noise + leans * positive[:, None])
    if skew:
        deviation = np.where(positive, skew / unequal, skew)[:, None]
        neutral = np.char.startswith(tested, "plain")
        spread = np.where(neutral, np.exp(deviation * noise - deviation**2 / 2) - 1, spread)
    before = np.where(positive, sense, -sense) + rng.standard_normal(2 * per_class)
    pushes = np.array([push if word == "plain0" else 0.0 for word in WORDS["neutral"]])
    after = before + pushes[:, None, None] + 0.5 * rng.standard_normal((len(pushes), 1, 2 * per_class))
    words = ModelWords(
        used=WORDS,
        listed={label: len(each) for label, each in WORDS.items()},
        scorable={label: len(each) for label, each in WORDS.items()},
        dropped=dict.fromkeys(WORDS, ()),
        pairs=(PAIR,),
        shift=WORDS["neutral"],
        listed_as={word: label for label, each in WORDS.items() for word in each},
    )
    return ModelAnswers(
        words=words,
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


def even_handed(seeds: int, *, skew: float = 0.0, unequal: float = 1.0) -> Mapping[str, int]:
    """Count the models without a lean that are called `lean`, by aspect and in either."""
    found = {AFTER: 0, APPENDED: 0, "either": 0}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        found_now = concluded(seed, drawn_answers(rng, skew=skew, unequal=unequal))
        leans = [aspect for aspect, each in found_now.items() if each.state == LEAN]
        for aspect in leans:
            found[aspect] += 1
        found["either"] += bool(leans)
    return found


def planted(seeds: int) -> Mapping[str, int]:
    """Count the models whose one leaning word is found, which leans by what could be detected."""
    found = {AFTER: 0, APPENDED: 0}
    for seed in range(seeds):
        rng = np.random.default_rng(10_000 + seed)
        detectable = {aspect: each.detectable for aspect, each in concluded(seed, drawn_answers(rng)).items()}
        for aspect in found:
            size = {"lean" if aspect == AFTER else "push": detectable[aspect] * (-1) ** seed}
            found[aspect] += concluded(seed, drawn_answers(rng, **size))[aspect].state == LEAN
    return found


def random_models(seeds: int, *, per_class: int = 70) -> Mapping[str, int]:
    """Count the models without a sense of sentiment that pass the gate, and the parts of it that they pass.

    Their labels lean to one side by a random amount. Half of them have label words that rise and fall with the
    other positive and negative words, so that words and labels are wrong or right together.
    """
    passed = {"gate": 0, "labels better than a coin by 95 %": 0}
    for seed in range(seeds):
        rng = np.random.default_rng(20_000 + seed)
        answers = drawn_answers(rng, per_class=per_class, sense=0.0)
        odds = rng.standard_normal(2 * per_class) + rng.normal(0, 1)
        if seed % 2:
            probability = answers.probability[TEMPLATE]
            mood = probability[:, :5].mean(axis=1) - probability[:, 5:10].mean(axis=1)
            odds = mood / mood.std() + rng.normal(0, 1)
        answers.before[TEMPLATE, PAIR.name][:] = odds
        check = check_sentiment(answers, TEMPLATE, rng=rng, draws=100)
        passed["gate"] += not check.failed(PAIR.name)
        passed["labels better than a coin by 95 %"] += check.accuracy[PAIR.name]["all reviews"].low > 0.5
    return passed


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--random", type=int, default=2000)
    given = parser.parse_args()
    measures.FEWEST_DRAWS = 1_999  # enough for 20 words and two questions, and five times as fast
    limit, enough = round(0.09 * given.seeds), round(0.73 * given.seeds)
    for aspect, count in even_handed(given.seeds).items():
        print(f"even-handed, {aspect}: {count} of {given.seeds} called lean (at most {limit})", flush=True)
    for aspect, count in planted(given.seeds).items():
        print(f"planted, {aspect}: {count} of {given.seeds} found (at least {enough})", flush=True)
    for guarded in (False, True):
        measures.MOST_UNEQUAL = MOST_UNEQUAL if guarded else np.inf
        for unequal in (3.0, 1.4):
            count = even_handed(given.seeds // 2, skew=1.5, unequal=unequal)[AFTER]
            print(
                f"equal means, spread {unequal:g} times as wide after negative reviews, "
                f"{'with' if guarded else 'without'} the guard: {count} of {given.seeds // 2} called lean",
                flush=True,
            )
    for what, count in random_models(given.random).items():
        print(f"random models, {what}: {count} of {given.random}", flush=True)


if __name__ == "__main__":
    main()
