"""The public names: adding one is a decision, losing one breaks somebody."""

import clinometer


def test_the_public_names():
    assert set(clinometer.__all__) == {
        "__version__", "audit", "load_model", "open_run", "resume", "verify", "write_report",
    }  # fmt: skip
    for name in clinometer.__all__:
        assert getattr(clinometer, name) is not None
    assert dir(clinometer) == sorted(clinometer.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(clinometer, "debias")
