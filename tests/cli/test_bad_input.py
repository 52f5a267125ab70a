"""Bad input gets one sentence on what is wrong and what would be right, exit code 2, and nothing is written."""

from __future__ import annotations

import json

import pytest

from clinometer.types import SPEC_VERSION

SPEC = f'version = {SPEC_VERSION}\nprobes = ["counterexamples"]\nmodels = [{{name = "builtin:causal"}}]\n'


def refuses(result, *words, code=2):
    """The command failed as it should: one line, the right words, no traceback."""
    assert result.code == code, result
    assert result.out == ""
    assert result.err.startswith("clinometer: ")
    assert result.err.strip().count("\n") == 0, f"more than one line: {result.err}"
    for word in words:
        assert word in result.err, result


def nothing_written(tmp_path, *expected):
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(expected)


def test_unknown_probe_names_the_nearest(clinometer, tmp_path):
    refuses(clinometer("audit", "--probe", "counterexample"), "counterexample", "'counterexamples'")
    nothing_written(tmp_path)


def test_unknown_profile_lists_the_valid_ones(clinometer, tmp_path):
    refuses(clinometer("audit", "--profile", "quik"), "profile", "'quik'", "'quick'")
    nothing_written(tmp_path)


def test_unknown_builtin_model_names_the_nearest(clinometer, tmp_path):
    refuses(clinometer("audit", "builtin:casual"), "builtin:casual", "'builtin:causal'")
    nothing_written(tmp_path)


def test_a_model_that_is_nowhere(clinometer, tmp_path):
    refuses(clinometer("audit", "nobody/no-such-model"), "nobody/no-such-model")
    nothing_written(tmp_path)


def test_the_second_model_is_checked_before_the_first_is_asked(clinometer, tmp_path):
    refuses(clinometer("audit", "builtin:masked", "nobody/no-such-model"), "nobody/no-such-model")
    nothing_written(tmp_path)


def test_a_folder_without_a_model(clinometer, tmp_path):
    (tmp_path / "empty").mkdir()
    refuses(clinometer("audit", tmp_path / "empty"), "empty", "config.json")
    nothing_written(tmp_path, "empty")


def test_a_folder_with_pickled_weights_only(clinometer, tmp_path):
    folder = tmp_path / "pickled"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertForMaskedLM"]}))
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02")
    refuses(clinometer("audit", folder), "safetensors", "save_pretrained")
    nothing_written(tmp_path, "pickled")


def test_a_file_as_model(clinometer, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    refuses(clinometer("audit", tmp_path / "notes.txt"), "notes.txt")
    nothing_written(tmp_path, "notes.txt")


def test_an_encoder_cannot_be_audited_with_a_cloze(clinometer, tmp_path):
    refuses(clinometer("audit", "builtin:encoder", "--probe", "counterexamples"), "fill or next_word", "embed")
    nothing_written(tmp_path)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("counterexamples.background=3", ["'background'", "'backgrounds'"]),
        ("counterexamples.backgrounds=three", ["backgrounds", "'three'"]),
        ("counterexamples.occupations=winobia", ["occupations", "winobia"]),
        ("counterexamples.ks=[]", ["ks"]),
        ("counterexamples.ks=[0]", ["ks"]),
        ("counterexamples.backgrounds=-1", ["backgrounds"]),
        ("counterexamples.backgrounds=1000", ["backgrounds", "29"]),
        ("counterexample.backgrounds=3", ["'counterexamples'"]),
        ("backgrounds=3", ["probe.option=value"]),
        ("counterexamples", ["probe.option=value"]),
    ],
)
def test_a_wrong_setting(clinometer, tmp_path, setting, words):
    refuses(clinometer("audit", "--set", setting), *words)
    nothing_written(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["empty"]),
        (b"occupation,percent_female\n", ["no rows"]),
        (b"\x00\x01\x02\xff\xfe", ["text"]),
        (b"job,share\nnurse,88.5\n", ["occupation", "percent_female"]),
        (b"occupation,percent_female\nnurse,many\n", ["line 2", "many"]),
        (b"occupation,percent_female\nnurse,120\n", ["line 2", "120"]),
        (b"occupation,percent_female\nnurse,88.5\nnurse,88.5\n", ["nurse"]),
        (b"occupation,percent_female\n,88.5\n", ["line 2"]),
    ],
)
def test_a_bad_list_of_occupations(clinometer, tmp_path, content, words):
    (tmp_path / "mine.csv").write_bytes(content)
    result = clinometer("audit", "--set", f"counterexamples.occupations_file={tmp_path / 'mine.csv'}")
    refuses(result, "mine.csv", *words)
    nothing_written(tmp_path, "mine.csv")


def test_a_list_of_occupations_that_is_not_there(clinometer, tmp_path):
    refuses(clinometer("audit", "--set", "counterexamples.occupations_file=none.csv"), "none.csv")
    nothing_written(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no version"]),
        ("version = 99", ["version 99", f"version {SPEC_VERSION}"]),
        ("version = [", ["not valid TOML"]),
        (SPEC + "porfile = 'quick'", ["'porfile'", "'profile'"]),
        (SPEC.replace('["counterexamples"]', "[]"), ["probes", "empty"]),
        (SPEC.replace('[{name = "builtin:causal"}]', "[]"), ["models", "empty"]),
        (SPEC.replace("name", "nmae"), ["'nmae'", "'name'"]),
        (SPEC.replace('"counterexamples"', '"counterexamples", "counterexamples"'), ["twice"]),
        (SPEC + "seed = 'one'", ["seed", "'one'"]),
        (SPEC + "seed = -1", ["seed", "-1"]),
        (SPEC.replace('[{name = "builtin:causal"}]', '["builtin:causal"]'), ["{name = 'builtin:causal'}"]),
        (SPEC + "[options.counterexamples]\nbackgrounds = 1979-05-27", ["backgrounds"]),
        (SPEC + "[options.stigmata]\nx = 1", ["stigmata"]),
    ],
)
def test_a_bad_spec(clinometer, tmp_path, text, words):
    (tmp_path / "audit.toml").write_text(text)
    refuses(clinometer("audit", "--spec", "audit.toml"), *words)
    nothing_written(tmp_path, "audit.toml")


def test_a_binary_spec(clinometer, tmp_path):
    (tmp_path / "audit.toml").write_bytes(b"\xff\xfe\x00")
    refuses(clinometer("audit", "--spec", "audit.toml"), "audit.toml", "not text")


def test_a_spec_that_is_not_there_and_one_that_is_a_folder(clinometer, tmp_path):
    refuses(clinometer("audit", "--spec", "none.toml"), "none.toml")
    refuses(clinometer("audit", "--spec", tmp_path), str(tmp_path))


def test_a_spec_and_options_contradict(clinometer, tmp_path):
    (tmp_path / "audit.toml").write_text(SPEC)
    refuses(clinometer("audit", "--spec", "audit.toml", "--seed", 1), "--seed", "audit.toml")


def test_an_existing_folder_is_not_written_over(clinometer, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refuses(clinometer("audit", "--out", "mine"), "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_an_existing_folder_is_found_before_the_model_is_loaded(clinometer, tmp_path, monkeypatch):
    monkeypatch.setattr("clinometer.models.load.load_model", lambda *_, **__: pytest.fail("loaded a model"))
    (tmp_path / "file").write_text("")
    refuses(clinometer("audit", "--out", "file"), "file")


def test_an_unknown_device(clinometer, tmp_path):
    refuses(clinometer("audit", "--device", "gpu7"), "gpu7", "auto, cpu")
    nothing_written(tmp_path)


def test_the_same_model_twice(clinometer):
    refuses(clinometer("audit", "builtin:masked", "builtin:masked"), "model 'builtin:masked' is named twice")


def test_a_negative_seed(clinometer, tmp_path):
    refuses(clinometer("audit", "--seed", "-1"), "seed = -1")
    nothing_written(tmp_path)


def test_a_place_where_no_folder_can_be_made(clinometer, tmp_path, monkeypatch):
    monkeypatch.setattr("clinometer.models.load.load_model", lambda *_, **__: pytest.fail("loaded a model"))
    (tmp_path / "file").write_text("")
    refuses(clinometer("audit", "--out", "file/run"), "file/run", "not a folder")


def test_a_text_that_is_too_long_is_found_before_anything_is_written(clinometer, tmp_path):
    long = "very " * 2000 + "long"
    (tmp_path / "mine.csv").write_text(f"occupation,percent_female\n{long},97\nmason,3\n")
    settings = ("--set", "counterexamples.occupations_file=mine.csv", "--set", "counterexamples.backgrounds=1")
    refuses(clinometer("audit", "builtin:masked", *settings), "very very", "512")
    nothing_written(tmp_path, "mine.csv")


def test_trust_for_a_model_that_is_not_audited(clinometer):
    refuses(clinometer("audit", "builtin:causal", "--trust-remote-code", "other"), "other", "builtin:causal")


@pytest.mark.parametrize("command", ["resume", "verify", "report"])
def test_a_run_folder_that_is_not_one(clinometer, tmp_path, command):
    (tmp_path / "holiday").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("holiday", "file", "nowhere"):
        refuses(clinometer(command, name), name)
    nothing_written(tmp_path, "file", "holiday")


def test_an_unknown_command_and_option_are_usage_errors(clinometer):
    assert clinometer("audti").code == 2
    assert clinometer("audit", "--porfile", "quick").code == 2
