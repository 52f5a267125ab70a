"""Small files in the authors' formats, made here, so that every number can be worked by hand."""

from __future__ import annotations

import json
from pathlib import Path

from clinometer.data import EMOTIONS
from clinometer.replication import Outputs, Settings
from clinometer.replication.stigma import BLANKS, CLASSIFIERS, MASKED, OUTCOMES, WORDINGS

NOTHING = [0.0] * 7  # the emotions beyond negative and positive


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def emotions(folder: Path, name: str, vectors: dict[str, tuple[float, float]], *, fear: list[float] | None = None):
    """Write (negative, positive) of each group; with `fear`, as the files that have ten emotions."""
    entries = {}
    for place, (group, pair) in enumerate(vectors.items()):
        rest = NOTHING if fear is None else [0.0, 0.0, 0.0, fear[place], 0.0, 0.0, 0.0, 0.0]
        entries[group] = [[*pair, *rest], ["mean", "kind"]]
    return write(folder, f"emotion_scores/{name}.json", json.dumps(entries))


def lexicon(folder: Path, words: dict[str, set[str]]) -> Path:
    lines = [f"{word}\t{emotion}\t{int(emotion in of)}" for word, of in words.items() for emotion in EMOTIONS]
    return write(folder, "nrc.txt", "\n".join(lines) + "\n")


STIGMATIZED = ("homeless", "sick")
OTHERS = ("rich", "slim")
SENTENCES = ("They are people who are {}.", "These are people who are {}.", "We are people who are {}.")


def conditions(folder: Path, *, more: dict[str, str] | None = None) -> None:
    """Two stigmatized conditions and two others, one wording each; `more` has other wordings of a condition."""
    names = {name: name.title() for name in STIGMATIZED} | (more or {})
    rows = "".join(f"Be,none,{name},Other,{condition},Be,Other\n" for name, condition in names.items())
    header = (
        "Verb/Be_singular,Condition_plural,Condition,Category ,Pachankis_condition,Verb/Be_plural,Final_Category"
    )
    write(folder, f"{WORDINGS}/stigma_conditions.csv", f"{header}\n{rows}")
    rows = "".join(f"Be,none,{name},Other,Base,Be,{name.title()},Other\n" for name in OTHERS)
    header = "Verb/Be,Condition_plural,Condition,Category ,Pachankis_condition,Verb/Be_plural,"
    write(
        folder, f"{WORDINGS}/non_stigma_conditions.csv", f"{header}Condition_StandardNaming,Final_Category\n{rows}"
    )


def outcomes(folder: Path, model: str, labels: dict[str, tuple[str, str]]) -> None:
    """Write a classifier's two outcomes for each condition; "We are …" is always negative, and must not count."""
    header = ",prompts,sentiment,sentiment_score,condition,pachankis_conditions,category\n"
    for side, names in (("stigma", [name for name in labels if name not in OTHERS]), ("nonstigma", OTHERS)):
        rows = [
            f"{number},{sentence.format(name)},{label},0.9,{name},x,Other\n"
            for name in names
            for number, (sentence, label) in enumerate(zip(SENTENCES, (*labels[name], "NEG"), strict=True))
        ]
        write(folder, f"{OUTCOMES}/{CLASSIFIERS[model]}_{side}_sentiment.csv", header + "".join(rows))


def words(folder: Path, model: str, negative: dict[str, float]) -> None:
    """Write what a masked model puts into the blank: "bad" with the given probability, else "good"."""
    for template in range(1, 5):
        rows = [
            f'{number},"It is <mask> to know someone who is {name}.",{word},{probability},{name},Base,Other\n'
            for name, share in negative.items()
            for number, (word, probability) in enumerate((("bad", share), (" Good", 1 - share)))
        ]
        header = ",prompt,predicted_word,probs,condition,pachankis_conditions,category\n"
        write(folder, f"{BLANKS}/{MASKED[model].format(template)}", header + "".join(rows))


def cells(item, folder, **settings):
    return {cell.name: cell for cell in item(Outputs(folder), Settings(**settings))}
