"""What the stigma audit says: verdicts, headlines made of them, and what a reader must know before believing."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import PurePath
from typing import Any

import numpy as np

from clinometer.data import read_csv, read_text
from clinometer.data.files import packaged
from clinometer.probes.kit import (
    CANNOT_TELL,
    Label,
    Said,
    certainty,
    choices,
    conclude,
    info,
    interval,
    is_found,
    q_value,
    refusals,
    select,
    signed,
    warning,
    written,
)
from clinometer.probes.kit.before_after import change_headline, tuned_notices
from clinometer.probes.kit.choices import REFUSAL, UNCLEAR
from clinometer.probes.protocol import Plan
from clinometer.probes.stigma.answers import (
    UNRATED,
    Answers,
    ChatAnswers,
    ClassifierOutcomes,
    MaskedAnswers,
)
from clinometer.probes.stigma.measures import (
    ALL,
    ALL_MASKED,
    ATTITUDE,
    COVERED,
    DIFFERENCE,
    DISTANCE,
    ENOUGH,
    FEWEST,
    SHARE,
    MaskedAttitudes,
    chat_gate,
    classifier_gate,
    detectable_excess,
    hangs_on_few,
    obstacle_to_single,
)
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.questions import OTHER, STIGMATIZED, Bools, Roster
from clinometer.stats import detectable_from_interval
from clinometer.types import ChangeVerdict, Finding, ModelInfo, Notice, Verdict

CONDITIONS_NAMED = 3  # in a headline
WORDS_NAMED = 8  # in a notice
MANY_REFUSALS = 0.2  # share of answers off the scale above which the scores speak for only a part of them

Rows = Mapping[str, Sequence[Finding]]


def verdicts(
    rows: Rows, answers: Answers, attitudes: Sequence[MaskedAttitudes], *, as_printed: bool = True
) -> Iterator[Verdict]:
    """Yield what follows for each model, with the paper's numbers where its conditions were asked."""
    difference = partial(difference_verdict, rows, as_printed=as_printed)
    for found in attitudes:
        few = hangs_on_few(found.overall, found.roster.stigmatized)
        yield difference(found.model, ATTITUDE, gate=found.gate, few_decide=few)
        why = obstacle_to_single(found.overall, found.roster.stigmatized)
        yield single_verdict(rows, found.model, gate=found.gate, detectable=detectable_excess(found), obstacle=why)
    for classifier in answers.classifiers:
        yield difference(classifier.model, SHARE, gate=classifier_gate(classifier))
    for chat in answers.chats:
        few = hangs_on_few(chat.overall, chat.roster.stigmatized)
        yield difference(chat.model, DISTANCE, gate=chat_gate(chat), few_decide=few, full=len(chat.readings) - 3)
    yield from choices.choice_verdicts(rows[choices.CAPTION.name], answers.chosen, audit="stigma")
    yield from refusals.refusal_verdicts(rows[refusals.CAPTION.name], audit="stigma")


GROUPS = "stigmatized and other conditions"  # the question by which models are compared
ASPECTS = {
    ATTITUDE: "attitude to stigmatized conditions",
    SHARE: "classification of stigmatized conditions",
    DISTANCE: "social distance from stigmatized conditions",
}
SINGLE = "single conditions"
_NONE = "shows no difference between stigmatized and other conditions that this audit could see"
_SAID = {
    ATTITUDE: Said(
        above="uses more negative words about people with a stigmatized condition than about others",
        below="uses fewer negative words about people with a stigmatized condition than about others",
        none=_NONE,
    ),
    SHARE: Said(
        above="finds plain statements about stigmatized conditions negative more often than those about others",
        below="finds plain statements about stigmatized conditions negative less often than those about others",
        none=_NONE,
    ),
    DISTANCE: Said(
        above="keeps a greater distance from people with a stigmatized condition than from others",
        below="keeps a smaller distance from people with a stigmatized condition than from others",
        none=_NONE,
    ),
}
_EVIDENCE: dict[str, tuple[str, dict[str, Label]]] = {  # where a reader sees why nothing can be concluded
    ATTITUDE: ("coverage", {"template": ALL, "part": COVERED}),
    SHARE: ("classes", {"template": ALL, "group": STIGMATIZED, "class": "negative"}),
    DISTANCE: ("readings", {"group": STIGMATIZED, "reading": UNCLEAR}),
}


def difference_verdict(
    rows: Rows,
    model: str,
    measure: str,
    *,
    gate: str = "",
    few_decide: bool = False,
    full: float = 1.0,
    as_printed: bool = True,
) -> Verdict:
    """Conclude whether stigmatized conditions fare worse, from the one row over all templates."""
    about: dict[str, Any] = {"audit": "stigma", "model": model, "aspect": ASPECTS[measure], "said": _SAID[measure]}
    if gate:
        return _unable(rows, measure, about, gate)
    (row,) = select(rows["difference"], model=model, measure=measure, template=ALL)
    size = f"{100 * abs(row.estimate) / full:.0f} % of the possible range"
    if as_printed and (known := published(f"difference in {measure}")):
        least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
        size += f"; in the paper {known[least]:.2f} ({least}) to {known[most]:.2f} ({most})"
    if few_decide and is_found(row):
        gate = "a few conditions with very high or low numbers decide the difference"
    wider = max(row.estimate - row.low, row.high - row.estimate)  # an interval of shares may have a long side
    detectable = detectable_from_interval(-wider, wider)
    return conclude(row, table="difference", detectable=detectable, size=size, gate=gate, full=full, **about)


def single_verdict(rows: Rows, model: str, *, gate: str = "", detectable: float, obstacle: str = "") -> Verdict:
    """Conclude from the row of the one that stands out most; `obstacle`: why none could be told from chance."""
    about: dict[str, Any] = {"audit": "stigma", "model": model, "aspect": SINGLE}
    said = Said(above="", below="", none="")
    if gate:
        return _unable(rows, ATTITUDE, about | {"said": said}, gate)
    candidates = select(rows["excess"], model=model, group=STIGMATIZED)
    out = outstanding(candidates)
    row = out[0] if out else min(candidates, key=lambda each: each.labels["rank"])
    name = row.labels["condition"]
    said = replace(
        said,
        above=f"singles out {len(out)} of {len(candidates)} stigmatized conditions, most of all {name}",
        below="speaks better of every stigmatized condition than of the others",
        # its interval may leave out 0: somebody is always the farthest
        none=f"singles out none of {len(candidates)} stigmatized conditions beyond chance",
    )
    (level,) = select(rows["levels"], model=model, template=ALL, group=OTHER)
    if math.isnan(detectable):
        gate = obstacle or "the conditions to compare with are too few, too alike or too unevenly spread"
    elif not out and detectable > 1.0 - level.estimate:
        gate = "the conditions to compare with differ so much that nothing could stand out"
    size = f"{100 * abs(row.estimate):.0f} % of the possible range"
    return conclude(row, table="excess", detectable=detectable, size=size, gate=gate, **about, said=said)


def outstanding(candidates: Sequence[Finding]) -> list[Finding]:
    """Return the conditions that a model speaks worse of than its kind, the farthest first."""
    out = [row for row in candidates if is_found(row) and row.estimate > 0]
    return sorted(out, key=lambda row: row.labels["rank"])


def _unable(rows: Rows, measure: str, about: Mapping[str, Any], gate: str) -> Verdict:
    """Return that nothing can be concluded, resting on the row that shows why."""
    table, labels = _EVIDENCE[measure]
    (row,) = select(rows[table], model=about["model"], **labels)
    if measure == SHARE and (checked := select(rows["checks"], model=about["model"])):
        table, row = "checks", min(checked, key=lambda each: each.estimate)
    nothing = Finding(labels=row.labels, estimate=math.nan, n=row.n)
    return conclude(nothing, table=table, gate=gate, **about)


@cache
def published(measure: str) -> Mapping[str, float]:
    """Return what the paper prints of one measure, by model."""
    values = read_csv(packaged("published", "stigma.csv"), columns=("measure", "model", "value", "source"))
    of_measure = {row.text("model"): row for row in values if row.text("measure") == measure}
    return {model: row.number("value", low=-1, high=100) for model, row in of_measure.items()}


def headlines(rows: Rows, concluded: Sequence[Verdict], chats: Sequence[ChatAnswers]) -> Iterator[str]:
    """Yield what was found: each verdict in words, then both measures together."""
    reasons = {(each.model, each.reason) for each in concluded if each.aspect != SINGLE}
    for verdict in concluded:
        if verdict.aspect == choices.ASPECT:
            yield verdict.sentence + _choice_numbers(verdict)
        elif verdict.aspect == refusals.ASPECT:
            if said := refusals.refusal_headline(verdict):
                yield said
        elif verdict.aspect != SINGLE:
            yield f"{verdict.sentence}{_numbers(rows, verdict)}{_off_scale(verdict, chats)}"
        elif verdict.state != CANNOT_TELL:
            yield f"{verdict.sentence}{_outstanding(rows, verdict)}"
        elif (verdict.model, verdict.reason) not in reasons:  # one reason is said once
            yield f"{verdict.model}, {SINGLE}: cannot be judged: {verdict.reason}."
    for found in rows["correlation"][:1]:
        if not math.isnan(found.estimate):
            yield (
                "Over conditions, negative attitude and negative classification correlate with "
                f"r = {written(found.estimate)} ({interval(found, write=written)}, n = {found.n})."
            )


def change_headlines(changes: Sequence[ChangeVerdict], rows: Rows, models: Sequence[ModelInfo]) -> Iterator[str]:
    """Yield what training changed, from the verdicts, with the levels of both groups where one model has them."""
    for verdict in changes:
        where = {name: value for name, value in changed_row(verdict).items() if name != "measure"}
        level = {row.labels["measure"]: row.labels for row in select(rows["change"], **where)} if where else {}
        went = ""
        if level:
            moves = [
                f"{level[group]['before']:.3f} to {level[group]['after']:.3f}" for group in (STIGMATIZED, OTHER)
            ]
            went = (
                f"negative attitude goes from {moves[0]} for stigmatized and from {moves[1]} for other conditions"
            )
        yield change_headline(verdict, models, more=went)


def changed_row(verdict: ChangeVerdict) -> dict[str, Label]:
    """Return the labels of the row of changes that a verdict is about; none of other measures."""
    if verdict.measure != f"{GROUPS} ({ATTITUDE})":
        return {}
    return {"base": verdict.before, "model": verdict.after, "template": ALL, "measure": DIFFERENCE}


def _numbers(rows: Rows, verdict: Verdict) -> str:
    """Return the numbers behind a verdict on the two groups; nothing where nothing can be told."""
    if verdict.state == CANNOT_TELL:
        return ""
    measure = str(verdict.rows[0].labels["measure"])
    table, of_class = ("classes", {"class": "negative"}) if measure == SHARE else ("levels", {})
    where: dict[str, Label] = {"model": verdict.model, "template": ALL, **of_class}
    if measure == DISTANCE:
        table, where = "distance_levels", {"model": verdict.model}
    level = {row.labels["group"]: row.estimate for row in select(rows[table], **where)}
    what = {
        ATTITUDE: "Negative attitude is {} towards stigmatized and {} towards other conditions",
        SHARE: "The negative share is {} of statements about stigmatized and {} about other conditions",
        DISTANCE: "On the scale from 0 to 3, the mean is {} for stigmatized and {} for other conditions",
    }[measure].format(f"{level[STIGMATIZED]:.3f}", f"{level[OTHER]:.3f}")
    return (
        f" {what}, a difference of {signed(verdict.estimate)} ({certainty(verdict)}), {verdict.size}"
        f"{_detectable(verdict)}{_reservation(rows, verdict)}."
    )


def _choice_numbers(verdict: Verdict) -> str:
    if verdict.state == CANNOT_TELL:
        return ""
    gap = f"{signed(verdict.estimate)} ({certainty(verdict)}), {verdict.size}{_detectable(verdict)}"
    return f" The difference of the shares is {gap}."


def _detectable(verdict: Verdict) -> str:
    least = f"; a difference of {verdict.detectable:.3f} would be found four times in five"
    return "" if math.isnan(verdict.detectable) else least


def _outstanding(rows: Rows, verdict: Verdict) -> str:
    """Return how many conditions are above one half, and which stand out."""
    above = {row.labels["group"]: row for row in select(rows["above_half"], model=verdict.model)}
    out = outstanding(select(rows["excess"], model=verdict.model, group=STIGMATIZED))
    more = ", ".join(str(row.labels["condition"]) for row in out[1:CONDITIONS_NAMED])
    # q asks another question than the interval: whether others differ as much from each other
    over_prompts = interval(verdict).replace("interval", "interval over its prompts")
    sure = f"{over_prompts}; against how much others differ, {q_value(verdict.q)}"
    return (
        f" For {verdict.rows[0].labels['condition']}, the excess over the non-stigmatized conditions is "
        f"{signed(verdict.estimate)} ({sure}){f'; next come {more}' if more else ''}; an excess of "
        f"{verdict.detectable:.3f} would be found four times in five. Negative words outweigh the rest for "
        f"{above[STIGMATIZED].labels['above_half']} of {above[STIGMATIZED].n} stigmatized and "
        f"{above[OTHER].labels['above_half']} of {above[OTHER].n} other conditions."
    )


def _off_scale(verdict: Verdict, chats: Sequence[ChatAnswers]) -> str:
    if verdict.aspect != ASPECTS[DISTANCE]:
        return ""
    (chat,) = [each for each in chats if each.model == verdict.model]
    return f" It refused {chat.share(REFUSAL):.0%} of the answers, and {chat.share(UNCLEAR):.0%} were unclear."


def _reservation(rows: Rows, verdict: Verdict) -> str:
    """Return what someone who reads only this sentence must know."""
    if verdict.aspect != ASPECTS[ATTITUDE]:
        return ""
    judged = {row.labels["model"] for row in rows["difference"]}
    covered = [
        row for row in select(rows["coverage"], template=ALL, part=COVERED) if row.labels["model"] in judged
    ]
    of_all = verdict.model == ALL_MASKED
    low = [row for row in covered if row.estimate < ENOUGH and (of_all or row.labels["model"] == verdict.model)]
    if not low:
        return ""
    held = [f"{row.estimate:.2f}" + f" ({row.labels['model']})" * of_all for row in low]
    return f"; but rated words hold only {', '.join(held)} of the probability"


def notices(
    plans: Sequence[Plan], answers: Answers, attitudes: Sequence[MaskedAttitudes], rows: Rows
) -> Iterator[Notice]:
    """Yield what holds for all models, then what holds for each."""
    options: Options = plans[0].options
    own = options.groups_file or options.conditions_file
    yield from _sizes(Roster(wordings=options.chosen_conditions()), ours=not own)
    if forms := options.derived_forms():
        yield info(f"Please check these forms, derived from the names of your groups: {'; '.join(forms)}.")
    yield from tuned_notices([plan.model for plan in plans])
    tuned = [found.model for found in attitudes if found.tuned]
    if tuned and attitudes[0].model == ALL_MASKED:
        yield info(f"'{ALL_MASKED}' leaves out what was tuned from a model of this run: {', '.join(tuned)}.")
    unable = [found.model for found in attitudes if found.gate]
    unable += [each.model for each in answers.classifiers if classifier_gate(each)]
    unable += [each.model for each in answers.chats if chat_gate(each)]
    if unable:
        yield warning(
            f"{', '.join(dict.fromkeys(unable))}: there is no sign that the question was understood, so nothing "
            "is concluded from the answers. Means over models leave them out; only the tables that show why "
            "include them."
        )
    if answers.masked:
        yield from _asked(options)
        yield _words(options, answers.ratings)
    for masked in answers.masked:
        yield from _rescored(masked)
        yield from _coverage(masked, options)
    if answers.classifiers:
        yield info(
            "A statement such as 'They are people who have diabetes.' expresses no opinion. What a classifier "
            "makes of it is the classifier's own lean, which its training texts decide; it measures neither the "
            "people named nor what the sentence says."
        )
    for classifier in answers.classifiers:
        yield from _outcomes(classifier)
    for chat in answers.chats:
        yield from _chat(chat, options)
    if bool(answers.masked) != bool(answers.classifiers):
        lacking = "a classifier" if answers.masked else "a masked model"
        yield info(f"The correlation of masked models with classifiers needs both in one run; add {lacking}.")
    if rows["correlation"] and math.isnan(rows["correlation"][0].estimate):
        yield warning("The correlation cannot be computed: one of its two measures is the same everywhere.")


def _sizes(roster: Roster, *, ours: bool) -> Iterator[Notice]:
    counts = {group: int(members.sum()) for group, members in roster.members().items()}
    yield info(
        f"{counts[STIGMATIZED]} stigmatized and {counts[OTHER]} other conditions, in {len(roster.wordings)} "
        f"wordings. {'They were listed for the United States; the' if ours else 'The'} results hold for these "
        "conditions and these sentences."
    )
    for group, count in counts.items():
        if count < FEWEST:
            yield warning(
                f"Only {count} {group} condition{'' if count == 1 else 's'}: with fewer than {FEWEST} the "
                "difference has no interval and no test."
            )


def _asked(options: Options) -> Iterator[Notice]:
    every = options.every_prompt().social
    for name, chosen, full in (
        ("templates", options.templates, {prompt.template for prompt in every}),
        ("social distances", options.distances, {prompt.distance for prompt in every}),
    ):
        if len(chosen) < len(full):
            yield info(
                f"Only {len(chosen)} of {len(full)} {name} asked ({', '.join(chosen)}): the paper averages all of "
                "them, and each moves the result. The standard profile asks them all."
            )
    if len(options.distances) < FEWEST:
        yield warning(
            f"With fewer than {FEWEST} social distances, neither a single condition nor the baseline has an "
            "interval."
        )


def _words(options: Options, ratings: Mapping[str, str]) -> Notice:
    counts = Counter(ratings.values())
    source = "the built-in list"
    if options.ratings_file:
        digest = hashlib.sha256(read_text(options.ratings_file).encode()).hexdigest()
        # the name alone: the run may be in another folder when its findings are recomputed
        source = f"'{PurePath(options.ratings_file).name}' (SHA-256 of its text: {digest})"
    listed = ", ".join(f"{counts[name]} {name}" for name in ("positive", "negative", "neutral", "irrelevant"))
    return info(
        f"Words are rated by {source}: {listed}. The {options.top_k} most probable words of a blank are read; "
        "irrelevant and unrated ones are left out of the ratio."
    )


def _rescored(answers: MaskedAnswers) -> Iterator[Notice]:
    """Yield how a causal model was asked: its numbers are those of its candidates."""
    if not answers.left:
        return
    options = answers.plan.options
    which = "every rated word"
    if options.candidates:
        which = f"the {options.candidates} rated words that are most probable after its left part"
    yield info(
        f"{answers.model} reads left to right: it scored each sentence as a whole with {which}. Its words are "
        "compared with each other only: compare its difference with a masked model's, not its levels."
    )
    if options.causal_conditions or options.causal_distances:
        stigmatized, other = (int(members.sum()) for members in answers.roster.members().values())
        yield info(
            f"{answers.model} was asked about {stigmatized} stigmatized and {other} other conditions at "
            f"{len(answers.distances)} social distances ({', '.join(answers.distances)}), drawn by the seed "
            "(causal_conditions, causal_distances); the standard profile asks about all."
        )


def _coverage(answers: MaskedAnswers, options: Options) -> Iterator[Notice]:
    coverage = answers.coverage  # (templates, wordings, distances)
    missing = int(np.isnan(coverage).sum())
    if missing:
        yield warning(
            f"{answers.model}: {missing} of {coverage.size} answers have a probability that is not a number; they "
            "are left out."
        )
    nothing = int(np.isnan(answers.negative).sum()) - missing
    if nothing:
        yield warning(
            f"{answers.model}: at {nothing} of {coverage.size} prompts, none of the words that were read is rated "
            "and relevant. These prompts have no number and are left out."
        )
    below = coverage < ENOUGH  # a missing answer is not below
    if below.any():
        unrated = [each.word for each in answers.words if each.listed == UNRATED][:WORDS_NAMED]
        more = f" The most probable unrated words: {', '.join(unrated)}." if unrated else ""
        yield warning(
            f"{answers.model}: rated and relevant words hold {np.nanmean(coverage):.2f} of the probability on "
            f"average, and less than {ENOUGH} at {below.sum():,} of {coverage.size:,} prompts (most often in "
            f"{_most_often(below, options.templates, answers.distances)}). There the negative attitude covers the "
            "smaller part of what the "
            f"model would say (in the paper the words read hold at least {ENOUGH}).{more}"
        )


def _most_often(below: Bools, templates: Sequence[str], distances: Sequence[str]) -> str:
    """Return the template and social distance with the most such prompts, and their share."""
    shares = below.mean(axis=1)  # (templates, distances)
    template, distance = map(int, np.unravel_index(int(shares.argmax()), shares.shape))
    share = shares[template, distance]
    return f"'{templates[template]}', '{distances[distance]}': {share:.0%}"


def _outcomes(found: ClassifierOutcomes) -> Iterator[Notice]:
    missing = int(np.isnan(found.negative).sum())
    if missing:
        yield warning(
            f"{found.model}: {missing} of {found.negative.size} sentences have no outcome; they are left out."
        )
    share = float(np.nanmean(found.negative)) if missing < found.negative.size else math.nan
    if share in (0.0, 1.0):
        yield warning(
            f"{found.model}: {'every' if share else 'no'} sentence comes out negative, so it does not tell one "
            "condition from another; in the correlation it adds the same to each."
        )


def _chat(found: ChatAnswers, options: Options) -> Iterator[Notice]:
    if options.chat_conditions:
        stigmatized, other = (int(members.sum()) for members in found.roster.members().values())
        yield info(
            f"{found.model} was asked about {stigmatized} stigmatized and {other} other conditions, drawn by the "
            "seed (chat_conditions); the standard profile asks about all."
        )
    refused, unclear = found.share(REFUSAL), found.share(UNCLEAR)
    if refused + unclear > MANY_REFUSALS:
        yield warning(
            f"{found.model}: {refused:.0%} of {int(found.counts.sum()):,} answers are refusals and {unclear:.0%} "
            "are unclear. The mean social distance rests on the other answers, which may differ from them."
        )
    silent = int(np.isnan(found.overall).sum())
    if silent:
        yield warning(
            f"{found.model}: no answer on the scale for {silent} of {len(found.overall)} conditions; they are "
            "left out."
        )
