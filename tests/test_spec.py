from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.errors import SpecError
from clinometer.spec import build, dump_spec, parse_spec, read_spec
from clinometer.types import AuditSpec, ModelSpec

names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
plain = st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | names
specs = st.builds(
    AuditSpec,
    probes=st.lists(names, max_size=3).map(tuple),
    models=st.lists(
        st.builds(
            ModelSpec,
            name=names,
            dtype=st.sampled_from(["auto", "bfloat16"]),
            trust_remote_code=st.booleans(),
            label_map=st.dictionaries(names, names, max_size=2),
        ),
        max_size=3,
    ).map(tuple),
    profile=st.sampled_from(["quick", "standard", "paper"]),
    seed=st.integers(0, 2**62),
    options=st.dictionaries(
        names, st.dictionaries(names, plain | st.lists(names, max_size=2), max_size=3), max_size=2
    ),
)


@given(specs)
def test_what_is_written_is_read_back(spec):
    assert parse_spec(dump_spec(spec)) == spec


def test_lists_from_toml_and_tuples_from_python_are_the_same():
    values = {"probes": ["a"], "models": [{"name": "m"}]}
    as_tuples = {"probes": ("a",), "models": ({"name": "m"},)}
    assert build(AuditSpec, values, where="x") == build(AuditSpec, as_tuples, where="x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", "3"),
        ("seed", 1.5),
        ("seed", True),
        ("profile", 1),
        ("probes", "a"),
        ("models", {}),
        ("options", []),
    ],
)
def test_a_value_of_the_wrong_type_is_named(key, value):
    values = {"probes": ["a"], "models": [{"name": "m"}], key: value}
    with pytest.raises(SpecError, match=f"spec: {key}"):
        build(AuditSpec, values, where="spec")


def test_files_and_folders_are_meant_relative_to_the_spec(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "audit.toml").write_text(
        'version = 1\nprobes = ["p"]\nmodels = [{name = "model"}, {name = "org/hub"}]\n'
        '[options.p]\nwords_file = "words.csv"\nother = "words.csv"\nempty_file = ""\n'
    )
    spec = read_spec(tmp_path / "audit.toml")
    assert [model.name for model in spec.models] == [str(tmp_path / "model"), "org/hub"]
    assert spec.options["p"] == {"words_file": str(tmp_path / "words.csv"), "other": "words.csv", "empty_file": ""}
