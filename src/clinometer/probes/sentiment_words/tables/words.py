"""Every word with its effect, its strength and its verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clinometer.probes.kit.numbers import Floats, Label, Numbers
from clinometer.probes.sentiment_words.shift import Shift
from clinometer.probes.sentiment_words.verdicts import NAMES, SURE, by_rule
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding

SHOWN = 20  # words at each end of the ranking that the chart draws


def association_rows(view: View) -> Iterator[Finding]:
    """Yield the effect of every word, neutral words first and the most positive of a class first."""
    main_m = view.options.main_m
    for template, found in view.associations.items():
        called = by_rule(found.polarity[main_m], found.q, SURE)
        for at in _order(found.effect.estimate, view.classes):
            labels: dict[str, Label] = {
                "model": view.model,
                "template": template,
                "word": view.words[at],
                "listed_as": str(view.classes[at]),
                **{f"m_{m:g}": NAMES[int(signs[at])] for m, signs in found.polarity.items()},
                "called": NAMES[int(called[at])],
            }
            yield replace(found.effect.finding((at,), labels), q=float(found.q[at]))


def shift_rows(view: View) -> Iterator[Finding]:
    """Yield the strength of every appended word; ranks count the neutral words, the most positive first."""
    for (template, pair), found in view.shifts.items():
        called = by_rule(found.signs, found.strength_q, SURE)
        order = _order(found.strength.estimate, view.shift_classes)
        yield from _shift_rows(view, template, pair, order, found.strength, found.strength_q, called)


def relative_rows(view: View) -> Iterator[Finding]:
    """Yield the strength of every appended word against the average neutral word."""
    for (template, pair), found in view.shifts.items():
        called = by_rule(found.relative_signs, found.relative_q, SURE)
        order = _order(found.strength.estimate, view.shift_classes)
        yield from _shift_rows(view, template, pair, order, found.relative, found.relative_q, called)


def shift_by_k_rows(view: View) -> Iterator[Finding]:
    """Yield what each K does to the accuracy on negative and on positive reviews."""
    for (template, pair), found in view.shifts.items():
        for at in _order(found.strength.estimate, view.shift_classes):
            for place, k in enumerate(view.options.ks):
                labels: dict[str, Label] = {
                    "model": view.model,
                    "template": template,
                    "labels": pair,
                    "word": view.shift_words[at],
                    "listed_as": str(view.shift_classes[at]),
                    "k": k,
                    "neg_diff": float(found.neg_diff[at, place]),
                    "pos_diff": float(found.pos_diff[at, place]),
                    "moves": _moves(found, at, place),
                }
                yield replace(found.by_k.finding((at, place), labels), q=float(found.by_k_q[at, place]))


def ranked_rows(views: Sequence[View]) -> list[Finding]:
    """Return the neutral words at both ends of the ranking, with the main template and label words.

    Rows go by rank and then by model, so that a chart with a menu of models keeps each model's words in order.
    """
    rows: list[tuple[int, Finding]] = []
    for view in views:
        found = view.main_shift
        if found is None:
            continue
        order = [at for at in _order(found.strength.estimate, view.shift_classes) if _neutral(view, at)]
        for rank, at in enumerate(order, start=1):
            if SHOWN < rank <= len(order) - SHOWN:
                continue
            place = f"{rank}. {view.shift_words[at]}"
            for measure, numbers, q in (
                ("strength", found.strength, found.strength_q),
                ("against the average word", found.relative, found.relative_q),
            ):
                labels: dict[str, Label] = {"model": view.model, "rank_and_word": place, "measure": measure}
                rows.append((rank, replace(numbers.finding((at,), labels), q=float(q[at]))))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _shift_rows(
    view: View,
    template: str,
    pair: str,
    order: NDArray[np.int64],
    numbers: Numbers,
    q: Floats,
    called: NDArray[np.int64],
) -> Iterator[Finding]:
    rank = 0
    for at in order:
        neutral = _neutral(view, at)
        rank += neutral
        labels: dict[str, Label] = {
            "model": view.model,
            "template": template,
            "labels": pair,
            "word": view.shift_words[at],
            "listed_as": str(view.shift_classes[at]),
            "rank": str(rank) if neutral else "",
            "called": NAMES[int(called[at])],
        }
        yield replace(numbers.finding((at,), labels), q=float(q[at]))


def _neutral(view: View, at: int) -> bool:
    return bool(view.shift_classes[at] == "neutral")


def _moves(found: Shift, at: int, place: int) -> str:
    if found.truly_neutral[at, place]:
        return "both the same way"
    return NAMES[int(found.signs_by_k[at, place])]


def _order(estimate: Floats, classes: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return the places of the words: neutral, positive, negative ones; in each the largest estimate first."""
    turn = {"neutral": 0, "positive": 1, "negative": 2}
    return np.lexsort((-estimate, np.array([turn[str(name)] for name in classes])))
