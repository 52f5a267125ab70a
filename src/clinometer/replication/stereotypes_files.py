"""The files that Choenni, Shutova & van Rooij (2021) published: where they are, and how they are read."""

from __future__ import annotations

from clinometer.data.stereotypes_data import Lexicon
from clinometer.errors import DataError
from clinometer.probes.stereotypes.options import Options
from clinometer.replication.items import Outputs, Settings

CATEGORIES = ("religion", "profession", "lifestyle", "sexuality", "race", "gender", "country", "age", "political")
# the names in the paper -> those of the files of pretrained models
MODELS = {
    "BERT-B": "bert-base-uncased",
    "BERT-L": "bert-large-uncased",
    "RoBERTa-B": "roberta-base",
    "RoBERTa-L": "roberta-large",
    "BART-B": "bart-base",
    "BART-L": "bart-large",
    "mBERT": "bert-base-multilingual-uncased",
    "XLMR-B": "xlm-roberta-base",
    "XLMR-L": "xlm-roberta-large",
}
TUNED = {"mBERT": "mbert"}  # named otherwise among the fine-tuned ones
SOURCES = {
    "NewYorker": "new_yorker",
    "Guardian": "guardian",
    "Reuters": "reuters",
    "FOX news": "fox",
    "BreitBart": "breitbart",
}
# the order of the authors' vectors; some files have fear among them, which their comparison leaves out
ORDER = ("negative", "positive", "disgust", "anger", "sadness", "fear", "trust", "joy", "surprise", "anticipation")
NINE = tuple(emotion for emotion in ORDER if emotion != "fear")
PRETRAINED = "emotion_scores/pretrained_models"
FINETUNED = "emotion_scores/finetuned1epoch"
# of Figure 4, by the share of the articles that the model was tuned on
PARTS = {
    "10 %": "mlm_output/tenth-finetuned/bert-base",
    "25 %": "mlm_output/quart-finetuned/bert-base",
    "50 %": "mlm_output/half-finetuned/bert-base",
    "100 %": "mlm_output/finetuned/bert-base",
}
HUMAN = "data_collection/stereo_dataset/single_word_stereo_dataset.csv"
EVERY_HUMAN = "data_collection/stereo_dataset/stereo_dataset.csv"

Vectors = dict[str, list[float]]  # group, in lower case -> its nine emotions


def vectors_of(outputs: Outputs, name: str) -> Vectors | None:
    """Return the emotion vectors of one file, without fear; None where it is missing."""
    if name in outputs.known:
        known: Vectors = outputs.known[name]
        return known
    found = outputs.json(name)
    if found is None:
        return None
    vectors: Vectors = {}
    for group, entry in found.items():
        vector = checked_entry(outputs, name, group, entry)[0]
        order = NINE if len(vector) == len(NINE) else ORDER
        vectors[group.lower()] = [x for x, emotion in zip(vector, order, strict=True) if emotion in NINE]
    outputs.known[name] = vectors
    return vectors


def checked_entry(outputs: Outputs, name: str, group: str, entry: object) -> tuple[list[float], list[str]]:
    """Return the vector and the words of one group; raise DataError where the file has something else."""
    match entry:
        case [list(vector), list(words)] if (
            len(vector) in (len(NINE), len(ORDER))
            and all(isinstance(x, int | float) and 0 <= x <= 100 for x in vector)
            and all(isinstance(word, str) for word in words)
        ):
            return vector, words
    raise DataError(
        f"'{outputs.folder / name}': {group!r} has no emotions; "
        "expected a list of nine or ten percentages, and a list of words"
    )


def word_lists(outputs: Outputs, name: str) -> dict[str, list[str]]:
    """Return the words of each group, in lower case; none where the file is missing."""
    listed = outputs.json(name) if (outputs.folder / name).is_file() else {}
    # other models' files of this name hold a vector as well
    return {
        group.lower(): words for group, words in (listed or {}).items() if all(isinstance(w, str) for w in words)
    }


def full_lexicon(settings: Settings) -> Lexicon:
    """Return the full NRC lexicon as the authors read it; empty where it is not given."""
    if not settings.nrc:
        return {}
    return Options(emotions="published", emotions_file=settings.nrc).chosen_lexicon().words


def ranked_words(outputs: Outputs, name: str) -> dict[str, list[str]]:
    """Return the words of each prompt, the most typical first; none where the file is missing."""
    found = outputs.json(name) or {}
    ranked = {}
    for prompt, scored in found.items():
        match scored:
            case [*pairs] if all(
                isinstance(pair, list)
                and len(pair) == 2
                and isinstance(pair[0], str)
                and isinstance(pair[1], float)
                for pair in pairs
            ):
                ranked[prompt.strip().lower()] = [word for word, _ in sorted(pairs, key=lambda each: -each[1])]
            case _:
                raise DataError(f"'{outputs.folder / name}': {prompt!r} has no list of words with their scores")
    return ranked
