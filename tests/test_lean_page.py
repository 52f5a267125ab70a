"""Every number of the page on the built-in models is that of a run whose verdicts are kept beside it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "what-the-built-in-models-lean-to.md").read_text(encoding="utf-8")
RUN = json.loads((DOCS / "results" / "quick-audit" / "verdicts.json").read_text(encoding="utf-8"))
FULL = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((DOCS / "results" / "full-size").glob("*.json"))
}
FULL_VERDICTS = [verdict for each in FULL.values() for verdict in each["verdicts"]]
# what ran at full size is told from there, the rest from the small run
AT_FULL_SIZE = {(each["audit"], each["model"]) for each in FULL_VERDICTS}
LEANS = [
    verdict
    for verdict in (
        *FULL_VERDICTS,
        *(each for each in RUN["verdicts"] if (each["audit"], each["model"]) not in AT_FULL_SIZE),
    )
    if verdict["state"] == "lean"
]


def signed(value):
    return f"{value:+.3f}".replace("-", "−")


def test_every_lean_has_its_row_and_every_row_its_lean():
    rows = re.findall(r"^\| (builtin:[\w-]+) \| .+ \| (\S+) \((\S+) to (\S+)\) \| (\d+) \|$", PAGE, re.MULTILINE)
    expected = [
        (each["model"], *(signed(each[key]) for key in ("estimate", "low", "high")), str(each["n"]))
        for each in LEANS
    ]
    assert Counter(rows) == Counter(expected)
    assert PAGE.count("| builtin:") == len(rows)


def test_the_direction_in_words_is_that_of_the_number():
    rows = re.findall(r"^\| \S+ \| \w+: more (negative|positive) \| ([+−])", PAGE, re.MULTILINE)
    assert len(rows) == sum("of the category" in each["aspect"] for each in LEANS)
    assert all((word == "negative") == (sign == "+") for word, sign in rows)


def test_counts_and_costs():
    states = Counter(verdict["state"] for verdict in FULL_VERDICTS)
    page = " ".join(PAGE.split())
    assert f"they made {len(FULL_VERDICTS)} verdicts" in page
    assert (
        f"**{states['lean']} say that a lean was found, {states['none found']} that none was found,"
        f" {states['cannot tell']} that the audit cannot tell.**"
    ) in page
    for name, each in FULL.items():
        minutes, seconds = divmod(round(each["seconds"]), 60)
        took = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
        memory = f"{each['peak_memory_gib']:.1f} GiB"
        if "gpu" in each["machine"]:
            memory += f", {each['peak_gpu_memory_gib']:.1f} on the GPU"
        assert (
            f"| `{each['command']}` | {took} | {memory} | [{name}.json](results/full-size/{name}.json) |" in PAGE
        )
    assert f"made {len(RUN['verdicts'])} verdicts" in page
    assert f"{RUN['seconds'] / 60:.0f} minutes and {RUN['peak_memory_gib']:.1f} GiB" in page
    assert RUN["command"] in page


def test_what_is_said_without_a_row():
    said = {(each["audit"], each["model"], each["aspect"]): each for each in RUN["verdicts"]}
    texts = [
        each for each in said.values() if each["audit"] == "counterfactual" and ", by builtin:" in each["aspect"]
    ]
    assert {each["state"] for each in texts} == {"none found"}
    for audit, aspect in (("counterexamples", "stereotype"), ("stereotypes", "negativity of single groups")):
        assert said[audit, "builtin:chat", aspect]["state"] == "cannot tell"
    assert (
        "2 of 96 neutral words"
        in said["sentiment_words", "builtin:masked", "neutral words after reviews"]["sentence"]
    )
    for model in ("builtin:masked", "builtin:sentiment"):
        sentence = said["sentiment_words", model, "neutral words appended to reviews"]["sentence"]
        assert "9 of 10 neutral words" in sentence
        assert "'insights' (better)" in sentence


def test_conditions_at_full_size():
    states = {(each["model"], each["aspect"]): each["state"] for each in FULL["stigma"]["verdicts"]}
    assert states["builtin:masked", "single conditions"] == "none found"
    told = " ".join(FULL["stigma"]["headlines"])
    assert "in the paper 0.10 (DistilBERT) to 0.28" in told
    assert "in the paper 0.28 (SiEBERT) to 0.65" in told


def test_who_is_named_at_full_size():
    groups, texts = (" ".join(FULL[name]["headlines"]) for name in ("stereotypes", "counterfactual"))
    for model, surest, counts, worst in (
        (
            "masked",
            "composers",
            "122 are more negative and those of 110",
            ("butchers", "asexual people", "homeless"),
        ),
        ("causal", "brides", "95 are more negative and those of 95", ("Iraq", "Somalia", "atheists")),
    ):
        told = groups.partition(f"builtin:{model} describes {surest} in more positive words")[2]
        assert counts in told.partition("builtin:")[0]
        assert told.partition("most negative: ")[2].startswith(worst[0])
        assert all(each in told.partition("most positive")[0] for each in worst)
    for better, worse in (
        ("Finland, Iceland, Italy", "Syria, Iraq, Libya"),
        ("counselor, writer, teacher", "guard,"),
    ):
        assert f"more positive than the whole by every scorer (q < 0.05): {better}" in texts
        assert f"more negative than the whole by every scorer (q < 0.05): {worse}" in texts
    for apart in ("+0.024 by builtin:opinion-words", "+0.028 by builtin:sentiment"):
        assert f"female − male is {apart}" in texts


def test_the_script_for_full_size_asks_every_audit(monkeypatch):
    monkeypatch.syspath_prepend(DOCS.parent / "benchmarks")
    import full_size

    asked = {audit: set() for audit in full_size.AUDITS}
    for each in RUN["verdicts"]:
        asked[each["audit"]].add(each["model"].partition(" ")[0])
    assert asked == {audit: set(models) for audit, models in full_size.AUDITS.items()}
