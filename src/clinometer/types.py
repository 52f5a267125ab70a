"""What the rooms exchange: specs, requests, answers and findings. Frozen, typed, no logic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

# ---------------------------------------------------------------------------------------------------------
# Specs: what the user wants to know

SPEC_VERSION = 1

Profile = Literal["quick", "standard", "paper"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
AskedAs = Literal["", "chat", "causal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model: a hub id, a folder or a built-in name, and how to load it."""

    name: str
    dtype: Dtype = "auto"
    trust_remote_code: bool = False
    label_map: Mapping[str, str] = field(
        default_factory=dict
    )  # classifiers: their label -> negative|neutral|positive
    alias: str = ""  # what the model is called in the run; "": a hub id as it is, a folder by its last part
    kind: AskedAs = ""  # how a model that continues text is asked; "": as chat where it has a chat template
    base_url: str = ""  # where an endpoint is, without any key; "": where its provider says
    # what an endpoint charges for a million tokens: "input", "output"; changes no answer
    price: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpec:
    """Everything that decides the findings of a run, and nothing else (no device, batch or worker)."""

    version: int = SPEC_VERSION
    probes: tuple[str, ...]
    models: tuple[ModelSpec, ...]
    roles: Mapping[str, tuple[ModelSpec, ...]] = field(default_factory=dict)  # who scores, who guards, …
    profile: Profile = "standard"
    seed: int = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # probe -> option -> value


# ---------------------------------------------------------------------------------------------------------
# Models: what is known of a loaded one

ModelKind = Literal["masked", "permuted", "causal", "classifier", "encoder", "chat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What identifies a loaded model, and what it can be asked."""

    name: str
    kind: ModelKind
    family: str  # the architecture: "bert", "gpt2", …
    capabilities: tuple[str, ...]  # the names of the protocols it offers: "fill", "next_word", …
    weights: str  # SHA-256 of the weight files
    tokenizer: str  # SHA-256 of the tokenizer files
    dtype: str
    code: str  # SHA-256 of the source that answers: another adapter may answer differently
    parameters: int = 0
    window: int = 0  # the longest sequence in tokens; 0: unknown
    settings: Mapping[str, str] = field(default_factory=dict)  # what else changes answers: a label map, …
    # For a checkpoint that Clinometer made, from its card: "base" (weights checksum of the model it began with),
    # "method", "data", "amount", "seed". Tells which models of a run are before and after; changes no answer.
    tuning: Mapping[str, str] = field(default_factory=dict)
    # What an endpoint said of itself when the run began: model name, fingerprint, headers. Changes no answer.
    told: Mapping[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------------------------------------------------
# Requests: one question to a model

MASK = "[MASK]"  # the blank that is asked about; each adapter puts its model's mask token there
# A second blank that hides a word but is not read; "[HIDDEN:old people]" hides as many tokens as those words have.
HIDDEN = "[HIDDEN]"

Join = Literal["space", "separator"]
Normaliser = Literal["vocabulary", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuery:
    """A question about one word; `Fill`, `NextWord` and `Rescore` say where the word is.

    `context` comes before `text` and is never searched for blanks. It is encoded separately, once for all texts
    that share it. If both together exceed the model's window, the start of the context is cut.
    """

    text: str
    context: str = ""
    join: Join = "space"  # what is between context and text: a space, or the model's separator token
    words: tuple[str, ...] = ()  # ask for these words …
    top_k: int = 0  # … or for the k most probable ones
    normalise: Normaliser = "vocabulary"  # "words": softmax over the given words only (cheaper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(WordQuery):
    """Which word belongs at the one `MASK` in the text?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextWord(WordQuery):
    """Which word comes after the text?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescore(WordQuery):
    """Which word belongs at the one `MASK`, for a model that reads left to right?

    P(word | left, right) ∝ P(left word right): every candidate is scored with the whole text, and the answer is
    normalised over the candidates (`normalise` is not read). A word may have any number of tokens.

    `words` alone: they are the candidates; the answer keeps their order, NaN where a word was not scored. `top_k`:
    the candidates are the model's own `top_k` words after the left part, joined with `words`; the answer is the k
    most probable of them.
    """

    candidates: int = 0  # at most this many of `words`: those most probable after the left part; 0: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Continue the prefix `n` times; the draw depends on (seed, prefix, sample index, step) alone."""

    prefix: str
    n: int
    first: int = 0  # index of the first sample: a request may ask for some of them
    max_new_tokens: int = 50
    temperature: float = 1.0
    seed: int = 0
    top_k: int = 0  # draw only from the k most probable tokens, and any tied with the k-th; 0: off
    top_p: float = 1.0  # and among these, from the most probable with at least p of the probability; 1: off


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLikelihood:
    """How probable is the text, token by token, given its beginning?"""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify:
    """Is the text negative, neutral or positive?"""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """Which vector represents the text?"""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What does a chat model answer, `n` times?"""

    messages: tuple[Message, ...]
    n: int = 1
    max_new_tokens: int = 64
    temperature: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWord:
    """With which word does a chat model begin its answer? Read from its probabilities; nothing is drawn.

    A word counts in lower case and with a capital, with a space before it and without, and only as a whole word:
    "kind" is not the beginning of "kindness". It may have any number of tokens.
    """

    messages: tuple[Message, ...]
    words: tuple[str, ...] = ()  # ask for these words …
    top_k: int = 0  # … or for the k most probable ones, which come in lower case
    normalise: Normaliser = "vocabulary"  # "words": the given words' probabilities sum to 1
    candidates: int = 0  # at most this many of `words`: those whose first token is most probable; 0: all


Request = Fill | NextWord | Rescore | Sample | LogLikelihood | Classify | Embed | Ask | AnswerWord


Tag = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A request as a probe asks it: the question, and tags by which the probe will read its answer."""

    request: Request
    tags: Mapping[str, Tag]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Many requests of one kind as columns: what they share is given once, what differs is a column.

    A probe may yield blocks and items in any mix. The engine passes columns on; `clinometer.questions.items_of`
    turns them into items.
    """

    kind: type[Request]
    columns: Mapping[str, Sequence[Any]]  # fields of the request that differ, all of one length
    shared: Mapping[str, Any] = field(default_factory=dict)  # fields of the request that are the same for all
    tags: Mapping[str, Sequence[Tag]] = field(default_factory=dict)  # as long as the columns
    shared_tags: Mapping[str, Tag] = field(default_factory=dict)


Questions = Iterable[Item | Block]


# ---------------------------------------------------------------------------------------------------------
# Answers: what a model said, one class for each kind of request


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAnswer:
    """Words with their natural-log probabilities; NaN for a word that was not scored (is not one token, …).

    Given words keep their order; the top k come most probable first. An endpoint may tell only its most probable
    tokens, or none: `told` is the probability of all that it told, and `draws` how many answers were counted.
    Then NaN also stands for a word that was not among them.
    """

    words: tuple[str, ...]
    logprobs: tuple[float, ...]
    # `Rescore`, `AnswerWord`: the probability, before normalising, that one of the scored words comes next. Gates
    # rest on it: normalised over a list, the words of a random model look as sure as those of any other.
    covered: float = math.nan
    told: float = 1.0
    draws: int = 0  # 0: probabilities as the model gives them; else shares of so many drawn words


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAnswer:
    """Generated texts, without the prompt; `reasoning` is what the model thought aloud before each, if it did.

    Endpoints also say how each text ended: "stop", "length", "refusal", "content filter", "empty", "malformed" or
    "missing".
    """

    texts: tuple[str, ...]
    reasoning: tuple[str, ...] = ()  # one for each text, or none at all
    endings: tuple[str, ...] = ()  # one for each text; none at all: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLikelihoodAnswer:
    """The summed natural-log probability, and over how many tokens."""

    logprob: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyAnswer:
    """Probabilities of the three classes; NaN for a class that the classifier does not have."""

    negative: float
    neutral: float
    positive: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedAnswer:
    """A sentence vector of length 1."""

    vector: tuple[float, ...]


Answer = WordAnswer | TextAnswer | LogLikelihoodAnswer | ClassifyAnswer | EmbedAnswer


# ---------------------------------------------------------------------------------------------------------
# Findings: what a probe concludes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One number with its uncertainty. `labels` say what it is about; NaN means "not computed", never zero."""

    labels: Mapping[str, str | int | float]
    estimate: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    q: float = math.nan
    n: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingTable:
    """Findings of one kind; all rows have the same labels."""

    name: str  # a file name: lower case, digits and underscores
    title: str
    # what the estimate is, what the interval resamples, what p tests, what q is corrected over
    caption: str = field(repr=False)
    rows: tuple[Finding, ...] = field(repr=False)  # thousands
    version: int = 1  # of the estimator; raised when the same records give other numbers


Mark = Literal["bars", "intervals", "lines", "heatmap", "scatter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart of one finding table, described by what it shows, not by how it is drawn.

    `x`, `y`, `color`, `row` and `column` name labels of the table, or "estimate". `filters` keep the rows whose
    label has that value. The reader chooses the values of `menus` beside the chart. In a scatter plot, `text` is a
    label written at each point, and a line joins the points of one colour in the order in which the table first
    names the values of `joined`.
    """

    name: str
    title: str
    caption: str
    table: str
    mark: Mark
    x: str
    y: str
    color: str = ""
    row: str = ""
    column: str = ""
    filters: Mapping[str, str | int | float] = field(default_factory=dict)
    menus: tuple[str, ...] = ()
    measure: str = ""  # what the estimate is here, if the table's title says more than that
    reference: float | None = None  # the value that means "no lean": drawn as a line
    reversed: str = ""  # the x or y whose axis runs backwards, because less is better
    text: str = ""
    joined: str = ""
    colors: tuple[str, ...] = ()  # values of `color` that get the first colours, so that figures agree
    evidence: str = ""  # the stage whose prompts are behind the figure …
    evidence_filter: Mapping[str, str | int | float] = field(default_factory=dict)  # … and the tags that they have
    # the value at which a menu opens, where that is not its first
    opens: Mapping[str, str | int | float] = field(default_factory=dict)
    # the label that says what chance alone gives: a heat map is coloured by what the estimate has beyond it
    chance: str = ""
    sure: bool = False  # rows without an interval are not drawn: nothing can be told from them, even at 0
    # a label that counts: beside lines of several, those of one are thin and have no band
    repeated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the reader must know before believing a number."""

    level: Literal["info", "warning"]
    text: str


State = Literal["lean", "none found", "cannot tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReference:
    """A row of a finding table, by the labels that it has."""

    table: str
    labels: Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows for one model and one aspect of an audit: the unit of conclusion.

    `probes/kit/verdicts.py` decides the state; whatever is said, drawn or returned as an exit code reads it here.
    """

    audit: str
    model: str
    aspect: str  # of what: "attitude to stigmatized conditions", "I.F. of name by opinion words"
    state: State
    estimate: float
    low: float
    high: float
    p: float
    q: float
    n: int
    detectable: float  # the smallest effect that would be found four times in five; NaN: not known
    size: str  # how large the estimate is, beside something that a reader knows; "": nothing to compare with
    sentence: str  # for a reader without statistics
    reason: str = ""  # why nothing can be told
    # "robustness": the paper claims that something moves a model, or does not; no lean, no exit code counts it.
    # "refusals": that some groups are refused more is a lean; that all are refused alike says nothing of answers
    concerns: Literal["lean", "refusals", "robustness"] = "lean"
    rows: tuple[RowReference, ...] = ()  # what it rests on


ChangeState = Literal["worse", "better", "no change found", "cannot tell"]
EVERY_MEASURE = "every measure"  # of an audit that only one of two models was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeVerdict:
    """What follows for two models and one measure: is the second farther from even-handed than the first?

    `estimate` is how much farther (|lean after| − |lean before|); `probes/kit/compare.py` decides the state.
    """

    audit: str
    before: str
    after: str
    measure: str  # "negative attitude: stigmatized and other conditions"
    state: ChangeState
    estimate: float
    low: float
    high: float
    p: float
    q: float
    n: int  # units that both models have
    unit: str  # what a unit is called: "condition"
    lean_before: float
    lean_after: float
    change: float  # of the lean with its sign
    change_low: float
    change_high: float
    detectable: float  # the smallest change that would be found four times in five; NaN: not known
    sentence: str  # for a reader without statistics
    reason: str = ""  # why nothing can be told
    # the lean after each training that differs from the others in its seed alone; (): nobody trained one from the
    # other. One: what another seed would change is not in the interval
    trainings: tuple[float, ...] = ()
    training_changes: tuple[float, ...] = ()  # what each changed; since the control of its own seed, if of that
    seeds: tuple[str, ...] = ()  # of each training
    fewer_controls: bool = False  # several met one: what another seed changes of it is not in the interval
    change_p: float = math.nan  # of `change`, while p is of `estimate`; NaN: not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one probe concludes from the records of a run."""

    probe: str
    tables: tuple[FindingTable, ...] = field(repr=False)
    figures: tuple[Figure, ...] = field(repr=False)
    notices: tuple[Notice, ...] = field(default=(), repr=False)
    headlines: tuple[str, ...] = ()  # what was found, in plain sentences, each with its interval
    verdicts: tuple[Verdict, ...] = field(default=(), repr=False)
    changes: tuple[ChangeVerdict, ...] = field(default=(), repr=False)  # what training changed, within this run
    release: str = ""  # the release of Clinometer that chose the words
