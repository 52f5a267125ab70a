"""Which words each test calls biased: how many, how many by chance, and how tests, wordings and models agree."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinometer.data.files import packaged, read_csv
from clinometer.probes.kit import Floats, Ints, Label, model_rng, with_q
from clinometer.probes.kit.before_after import pairs_of
from clinometer.probes.sentiment_words.answers import Bools, Classes, share_finding
from clinometer.probes.sentiment_words.measures import (
    ALL_KS,
    ASSOCIATION,
    GRADED,
    OPPOSITE,
    PAPER,
    PAPER_AND_Q,
    RELATIVE_GRADED,
    RELATIVE_SHIFT,
    RULES,
    SHIFT,
    ModelMeasures,
    Shift,
    chance_p,
    draws_for,
    signs_by_rule,
)
from clinometer.probes.sentiment_words.options import LABELS
from clinometer.stats import cohens_kappa, paired_share_interval, sign_flip_test
from clinometer.types import Finding

AS_LABELLED, SHUFFLED = "as labelled", "labels shuffled"
TOP = 50  # words at each end of a ranking (§4.4); a shorter one is cut into halves
_NAMED = 10  # words in a cell
SIGN_NAMES = {1: "positive", -1: "negative", 0: "none"}
_SIGNS = (1, -1)
_COUNTED_SIGNS = {"positive": (1,), "negative": (-1,), "either": _SIGNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class WordVerdicts:
    """What one test says of each word of one model: a sign, a q-value, and how strong."""

    model: str
    test: str
    at: str  # the threshold m or the K
    words: tuple[str, ...]
    classes: Classes
    signs: Ints
    q: Floats
    size: Floats

    def neutral(self) -> WordVerdicts:
        """Return the verdicts on the neutral words."""
        chosen = self.classes == "neutral"
        words = tuple(np.array(self.words, dtype=np.str_)[chosen].tolist())
        kept = {name: getattr(self, name)[chosen] for name in ("classes", "signs", "q", "size")}
        return replace(self, words=words, **kept)

    def labels(self, rule: str) -> dict[str, Label]:
        """Return the labels of a row about these verdicts."""
        return {"model": self.model, "test": self.test, "m_or_k": self.at, "rule": rule}

    def called(self, rule: str) -> Ints:
        """Return the signs of the words that a rule calls biased, 0 elsewhere."""
        return signs_by_rule(self.signs, self.q, rule)

    def sign_of(self, rule: str) -> dict[str, int]:
        """Return the same, by word."""
        return dict(zip(self.words, self.called(rule).tolist(), strict=True))

    def found(self, rule: str, sign: int) -> set[str]:
        """Return the words that are called biased with that sign."""
        return {word for word, called in self.sign_of(rule).items() if called == sign}


def at_m(m: float) -> str:
    """Return how tables name a threshold.

    >>> at_m(1.0), at_m(0.5)
    ('m = 1', 'm = 0.5')
    """
    return f"m = {m:g}"


def _association_verdicts(measures: ModelMeasures, template: str = "") -> list[WordVerdicts]:
    """Return what the association test says at each m; with the main template if none is named."""
    found = measures.associations.get(template or measures.main_template)
    if found is None:
        return []
    answers = measures.answers
    return [
        WordVerdicts(
            model=measures.model,
            test=ASSOCIATION,
            at=at_m(m),
            words=answers.words.tested,
            classes=answers.classes,
            signs=signs,
            q=found.effect.q,
            size=found.effect.estimate,
        )
        for m, signs in found.polarity.items()
    ]


def _shift_verdicts(measures: ModelMeasures, found: Shift | None) -> list[WordVerdicts]:
    """Return what the shift test says: of both strengths, of either against the average word, and at each K."""
    if found is None:
        return []
    every: tuple[slice | int, ...] = (slice(None),)
    parts = [(SHIFT, ALL_KS, found.strength, every), (RELATIVE_SHIFT, ALL_KS, found.relative, every)]
    parts += [(GRADED, ALL_KS, found.graded, every), (RELATIVE_GRADED, ALL_KS, found.relative_graded, every)]
    parts += [(SHIFT, f"K = {k}", found.by_k, (*every, place)) for place, k in enumerate(measures.options.ks)]
    answers = measures.answers
    return [
        WordVerdicts(
            model=measures.model,
            test=test,
            at=at,
            words=answers.words.shift,
            classes=answers.shift_classes,
            signs=scores.signs[at_k],
            q=scores.q[at_k],
            size=scores.estimate[at_k],
        )
        for test, at, scores, at_k in parts
    ]


def _main_verdicts(measures: ModelMeasures) -> list[WordVerdicts]:
    """Return what both tests say of words of all classes, with the main template and label words."""
    return [*_association_verdicts(measures), *_shift_verdicts(measures, measures.main_shift)]


def _neutral_verdicts(measures: ModelMeasures) -> list[WordVerdicts]:
    return [verdicts.neutral() for verdicts in _main_verdicts(measures)]


def _some(words: Sequence[str]) -> str:
    """Return the words as text, or only the first ones of many.

    >>> _some(["a", "b"]), _some("abcdefghijkl")
    ('a, b', 'a, b, c, d, e, f, g, h, i, j, …')
    """
    return ", ".join([*words[:_NAMED], "…"] if len(words) > _NAMED else words)


# ---- counts: the % columns of Tables 1 and 2, and how many words chance would call


def count_rows(measures: ModelMeasures) -> list[Finding]:
    """Return the share of neutral words that each test calls biased, with the main template and label words."""
    rows = [
        row
        for verdicts in _neutral_verdicts(measures)
        for rule in RULES
        for row in _counts_by_rule(measures, verdicts, rule)
    ]
    if measures.main_shift is not None:
        neutral = measures.answers.shift_classes == "neutral"
        opposite = measures.main_shift.opposite[neutral].T
        truly_neutral = measures.main_shift.truly_neutral[neutral].T
        for k, signs, chosen in zip(measures.options.ks, opposite, truly_neutral, strict=True):
            labels = {"model": measures.model, "test": SHIFT, "m_or_k": f"K = {k}", "rule": PAPER}
            labels |= {"sign": "truly neutral", "reviews": AS_LABELLED}
            rows.append(share_finding(int(chosen.sum()), len(chosen), labels))
            for name, counted in _COUNTED_SIGNS.items():
                labels = labels | {"rule": OPPOSITE, "sign": name}
                rows.append(share_finding(int(np.isin(signs, counted).sum()), len(signs), labels))
    return with_q(rows)


def _counts_by_rule(measures: ModelMeasures, verdicts: WordVerdicts, rule: str) -> Iterator[Finding]:
    called, n = verdicts.called(rule), len(verdicts.words)
    m = {at_m(m): m for m in measures.options.ms}.get(verdicts.at)
    chance = None if m is None else measures.chances[measures.main_template][m, rule]
    labels = verdicts.labels(rule)
    for name, signs in _COUNTED_SIGNS.items():
        count = int(np.isin(called, signs).sum())
        p = chance_p(chance, count / n) if chance is not None and name == "either" else math.nan
        yield share_finding(count, n, {**labels, "sign": name, "reviews": AS_LABELLED}, p=p)
    if chance is not None:
        low, high = np.quantile(chance, [0.025, 0.975])
        labels |= {"sign": "either", "reviews": SHUFFLED}
        yield Finding(
            labels=labels, estimate=float(chance.mean()), low=float(low), high=float(high), n=len(chance)
        )


def leading_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield the words of Tables 1 and 2: the strongest at every m and K, with the share of all that are called."""
    pair, found = measures.main_pair or "", measures.main_shift
    for verdicts in _neutral_verdicts(measures):
        by_rule = {rule: verdicts.called(rule) for rule in RULES}
        for place, k in enumerate(measures.options.ks if found is not None else ()):
            if found is not None and (verdicts.test, verdicts.at) == (SHIFT, f"K = {k}"):
                by_rule[OPPOSITE] = found.opposite[measures.answers.shift_classes == "neutral", place]
        strongest = np.argsort(-np.abs(verdicts.size), kind="stable")
        for rule, called in by_rule.items():
            for sign in _SIGNS:
                words = [verdicts.words[at] for at in strongest if called[at] == sign]
                labels = verdicts.labels(rule) | {"template": measures.main_template}
                labels |= {"labels": "" if verdicts.test == ASSOCIATION else pair, "sign": SIGN_NAMES[sign]}
                yield share_finding(len(words), len(called), labels | {"words": _some(words)})


@functools.cache
def published() -> Mapping[tuple[str, str], float]:
    """Return what the paper prints, by measure and model."""
    rows = read_csv(packaged("published", "sentiment_words.csv"), columns=("measure", "model", "value", "source"))
    return {(row.text("measure"), row.text("model")): float(row.text("value")) for row in rows}


def published_share(test: str, at: str) -> dict[str, float]:
    """Return the shares of neutral words, positive and negative together, that the paper prints, by model.

    >>> [round(share, 4) for share in published_share("association", "m = 1").values()]
    [0.04, 0.2425, 0.0225, 0.1675]
    """
    shares: dict[str, float] = {}
    for (measure, model), value in published().items():
        if measure.endswith(f"by the {test} test at {at}"):
            shares[model] = shares.get(model, 0.0) + value
    return shares


def table_2_rows(counts: Sequence[Finding]) -> Iterator[Finding]:
    """Yield how far the shares of each rule lie from those of the paper's Table 2; `counts`: rows of a model."""
    for row in counts:
        shares = published_share(SHIFT, str(row.labels["m_or_k"])).values()
        if shares and row.labels["sign"] == "either" and row.labels["rule"] in (PAPER, OPPOSITE):
            low, high = min(shares), max(shares)
            labels = {name: row.labels[name] for name in ("model", "m_or_k", "rule")}
            labels |= {"paper_lowest": round(low, 4), "paper_highest": round(high, 4)}
            labels["outside"] = round(max(low - row.estimate, row.estimate - high, 0.0), 6)
            yield replace(row, labels=labels, p=math.nan, q=math.nan)


def verification_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield which share of the positive and negative words gets its own sign, and which the other one."""
    checked = [each for each in _main_verdicts(measures) if each.test == ASSOCIATION]
    checked += _shift_verdicts(measures, measures.main_shift)[:1]
    for rule in RULES:
        for verdicts in checked:
            for listed in LABELS[:2]:
                called = verdicts.called(rule)[verdicts.classes == listed]
                for sign in _SIGNS if len(called) else ():
                    labels = verdicts.labels(rule) | {"listed_as": listed, "found": SIGN_NAMES[sign]}
                    yield share_finding(int((called == sign).sum()), len(called), labels)


# ---- how far the two tests agree on the neutral words that both were asked about


def _both_tests(measures: ModelMeasures) -> list[tuple[WordVerdicts, WordVerdicts]]:
    """Return the association test at each m together with the shift test over all K."""
    return [
        (association.neutral(), shift.neutral())
        for shift in _shift_verdicts(measures, measures.main_shift)[:1]
        for association in _association_verdicts(measures)
    ]


def scatter_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield the strength of each neutral word together with its effect in the association test."""
    found = measures.main_shift
    for association, shift in _both_tests(measures):
        if found is None or association.at != at_m(measures.options.main_m):
            continue
        effect = dict(zip(association.words, association.size.tolist(), strict=True))
        by_association, by_shift = association.sign_of(PAPER_AND_Q), shift.sign_of(PAPER_AND_Q)
        for at, word in enumerate(measures.answers.words.shift):
            if word in by_shift and word in effect:  # the shift test also takes words of several tokens
                labels: dict[str, Label] = {
                    "model": measures.model,
                    "word": word,
                    "association_effect": effect[word],
                    "called_by": _called_by(by_association[word], by_shift[word]),
                }
                yield found.strength.numbers.finding((at,), labels)


def _called_by(association: int, shift: int) -> str:
    if association and shift:
        return "both" if association == shift else "both, with opposite signs"
    if association:
        return ASSOCIATION
    return SHIFT if shift else "neither"


def top_words_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield how many of the strongest and weakest words of the shift test the association test finds too."""
    for association, shift in _both_tests(measures):
        strength = dict(zip(shift.words, np.abs(shift.size).tolist(), strict=True))
        for rule in RULES:
            for sign in _SIGNS:
                known = shift.found(rule, sign) & set(association.words)
                ranked = sorted(known, key=lambda word: (strength[word], word), reverse=True)
                count = min(TOP, len(ranked) // 2)
                found = association.found(rule, sign)
                for part, words in (("strongest", ranked[:count]), ("weakest", ranked[len(ranked) - count :])):
                    labels = _agreement_labels(measures.model, association, rule, sign) | {"part": part}
                    yield share_finding(len(found & set(words)), len(words), labels)


def overlap_rows(models: Sequence[ModelMeasures]) -> Iterator[Finding]:
    """Yield which share of one test's words the other calls biased too, by model and over all (footnote 3)."""
    by_model = {measures.model: _both_tests(measures) for measures in models}
    for model, tests in by_model.items():
        for each in tests:
            yield from _overlaps(model, [each])
    for name, alike in asked_alike(models, "all models together").items():
        sensed = [by_model[each.model] for each in alike if each.interpretable() and by_model[each.model]]
        for at_same_m in zip(*sensed, strict=True) if len(alike) > 1 else ():
            yield from _overlaps(name, at_same_m)


def asked_alike(models: Sequence[ModelMeasures], name: str) -> dict[str, list[ModelMeasures]]:
    """Return the models by the way in which they were asked: exact and drawn probabilities are not pooled.

    Where they were asked in several ways, the name says in which.
    """
    ways = dict.fromkeys(each.answers.way.name for each in models)
    return {
        name if len(ways) == 1 else f"{name} ({way})": [each for each in models if each.answers.way.name == way]
        for way in ways
    }


def _overlaps(model: str, tests: Sequence[tuple[WordVerdicts, WordVerdicts]]) -> Iterator[Finding]:
    for rule in RULES:
        for sign in _SIGNS:
            # words that only one of the tests was asked about say nothing about their agreement
            found = {
                ASSOCIATION: {w for one, other in tests for w in one.found(rule, sign) & set(other.words)},
                SHIFT: {word for _, other in tests for word in other.found(rule, sign)},
            }
            shared = len(found[ASSOCIATION] & found[SHIFT])
            for test, words in found.items():
                labels = _agreement_labels(model, tests[0][0], rule, sign) | {"of_the_words_of": test}
                yield share_finding(shared, len(words), labels)


def _agreement_labels(model: str, association: WordVerdicts, rule: str, sign: int) -> dict[str, str]:
    return {"model": model, "association_at": association.at, "rule": rule, "sign": SIGN_NAMES[sign]}


# ---- other templates and label words (Appendix A.2)


def variant_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield how many words keep their verdict when another template or pair of label words is used."""
    for template in measures.associations:
        if template == measures.main_template:
            continue
        others = _association_verdicts(measures, template)
        for main, other in zip(_association_verdicts(measures), others, strict=True):
            yield from _compared(template, "", main.neutral(), other.neutral())
    for template, pair in measures.shifts:
        if (template, pair) == (measures.main_template, measures.main_pair):
            continue
        others = _shift_verdicts(measures, measures.shifts[template, pair])
        for main, other in zip(_shift_verdicts(measures, measures.main_shift), others, strict=True):
            yield from _compared(template, pair, main.neutral(), other.neutral())


def _compared(template: str, pair: str, main: WordVerdicts, other: WordVerdicts) -> Iterator[Finding]:
    strongest = np.argsort(-np.abs(main.size), kind="stable")
    for rule in RULES:
        first, second = main.called(rule), other.called(rule)
        changed = first != second
        labels = main.labels(rule) | {"template": template, "labels": pair, "measure": "same verdict"}
        labels["changed_words"] = _some([main.words[at] for at in strongest if changed[at]])
        yield share_finding(int((~changed).sum()), len(changed), labels)
        kappa = cohens_kappa(first.tolist(), second.tolist())
        labels = labels | {"measure": "kappa"}
        yield Finding(labels=labels, estimate=kappa.estimate, low=kappa.low, high=kappa.high, n=kappa.n)


# ---- several models: what they share, and what fine-tuning adds (§4.3)


def shared_rows(models: Sequence[ModelMeasures]) -> Iterator[Finding]:
    """Yield which share of the words that any model leans on is shared by at least two that were asked alike."""
    # the shift test may be missing in a model that lacks the label words
    by_test: dict[tuple[str, str, str], list[WordVerdicts]] = {}
    for measures in models:
        for verdicts in _neutral_verdicts(measures) if measures.interpretable() else ():
            key = (measures.answers.way.name, verdicts.test, verdicts.at)
            by_test.setdefault(key, []).append(verdicts)
    for (way, test, at), every in by_test.items():
        for rule in RULES if len(every) > 1 else ():
            for name, signs in _COUNTED_SIGNS.items():
                times = Counter(
                    (word, sign) for verdicts in every for sign in signs for word in verdicts.found(rule, sign)
                )
                shared = [word for (word, _), count in times.items() if count > 1]
                labels: dict[str, Label] = {
                    "models": len(every),
                    "asked": way,
                    "test": test,
                    "m_or_k": at,
                    "rule": rule,
                    "sign": name,
                    "words": _some(sorted(set(shared))),
                }
                yield share_finding(len(shared), len(times), labels)


def tuning_rows(models: Sequence[ModelMeasures], *, seed: int) -> list[Finding]:
    """Return how the number of biased words changes from a model to the checkpoints tuned from it."""
    rows: list[Finding] = []
    # in the order of the checkpoints in the run
    for pair in sorted(pairs_of([measures.info for measures in models]), key=lambda pair: pair.after):
        if models[pair.before].answers.way is not models[pair.after].answers.way:
            continue  # asked as chat and as a causal model: what differs is not the training alone
        base, tuned = with_one_template(models[pair.before], models[pair.after])
        rng = model_rng(seed, f"{base.model}\0{tuned.model}")
        afterwards = {(verdicts.test, verdicts.at): verdicts for verdicts in _neutral_verdicts(tuned)}
        for before in _neutral_verdicts(base):
            after = afterwards.get((before.test, before.at))
            if after is not None and set(before.words) & set(after.words):
                for rule in RULES:
                    rows += _changes(before, after, rule, rng=rng)
    return with_q(rows)


def with_one_template(first: ModelMeasures, second: ModelMeasures) -> tuple[ModelMeasures, ModelMeasures]:
    """Return two models with one main template, so that what differs is the model: one that both sense, if any."""
    shared = [template for template in first.checks if template in second.checks]
    sensed = [each for each in shared if first.interpretable(each) and second.interpretable(each)]
    template = next(iter((*sensed, *shared)), first.main_template)
    return replace(first, main_template=template), replace(second, main_template=template)


def _changes(
    before: WordVerdicts, after: WordVerdicts, rule: str, *, rng: np.random.Generator
) -> Iterator[Finding]:
    first, second = before.sign_of(rule), after.sign_of(rule)
    words = [word for word in before.words if word in second]
    growths: list[float] = []
    for name, signs in _COUNTED_SIGNS.items():
        had = np.array([first[word] in signs for word in words])
        has = np.array([second[word] in signs for word in words])
        if name == "either":
            growth = float(np.mean(growths))  # the paper's footnote 2: averaged over positive and negative
        else:
            growth = 100 * float(has.sum() - had.sum()) / float(had.sum()) if had.any() else math.nan
            growths.append(growth)
        change: Floats = has.astype(np.float64) - had
        limits = paired_share_interval((has & ~had).sum(), (had & ~has).sum(), len(words))
        labels: dict[str, Label] = {
            "model": before.model,
            "tuned": after.model,
            "test": before.test,
            "m_or_k": before.at,
            "rule": rule,
            "sign": name,
            "before": int(had.sum()),
            "after": int(has.sum()),
            "kept": int((had & has).sum()),
            "lost": _counted_words(words, had & ~has),
            "gained": _counted_words(words, has & ~had),
            "growth_percent": "" if math.isnan(growth) else f"{growth:+.1f}",
        }
        yield Finding(
            labels=labels,
            estimate=float(change.mean()),
            low=float(limits.low),
            high=float(limits.high),
            p=float(sign_flip_test(change, rng=rng, draws=draws_for(1)).p),
            n=len(words),
        )


def _counted_words(words: Sequence[str], chosen: Bools) -> str:
    named = [word for word, kept in zip(words, chosen, strict=True) if kept]
    return f"{len(named)}: {_some(named)}" if named else "0"
