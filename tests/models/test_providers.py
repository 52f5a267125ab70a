"""Who opens a name: our own providers, models in memory, and what other packages register."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import EntryPoint

import pytest

from clinometer.errors import ModelError, SpecError
from clinometer.models import load
from clinometer.models.callable_scorer import CallableScorer
from clinometer.models.fake import FakeModel
from clinometer.models.load import Providers, capabilities_of, check_model, load_model
from clinometer.models.providers.protocol import GivenModels, Provider, models_by_name
from clinometer.types import Classify, Fill, ModelSpec, WordAnswer

# a provider as another package would write it; {claims} is its answer to "is this name yours?"
PACKAGE = """
from clinometer.models.fake import FakeModel
from clinometer.types import WordAnswer

class Shouting:
    name = "shouting"

    def claims(self, name):
        return {claims}

    def check(self, spec):
        pass

    def capabilities(self, spec):
        return ("fill",)

    def load(self, spec, *, device):
        def answer(request):
            return WordAnswer(words=request.words, logprobs=(-2.0,) * len(request.words))
        return FakeModel(answer=answer, name=spec.name)

provider = Shouting()

def make():
    return Shouting()

def nothing():
    return None

def fail():
    raise RuntimeError("the   licence\\nran out")
"""


@pytest.fixture
def register(tmp_path, monkeypatch):
    """Return a function that installs entry points (name, "module:object") and the modules behind them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    points: list[EntryPoint] = []
    monkeypatch.setattr(load, "entry_points", lambda group: [point for point in points if point.group == group])
    load._opened.cache_clear()
    load._warn_once.cache_clear()

    def add(name, what, claims="name.startswith('loud:')"):
        module = f"other_package_{len(points)}"
        (tmp_path / f"{module}.py").write_text(PACKAGE.replace("{claims}", claims))
        points.append(EntryPoint(name=name, value=f"{module}:{what}", group="clinometer.models"))
        return module

    yield add
    load._opened.cache_clear()
    for at in range(len(points)):
        sys.modules.pop(f"other_package_{at}", None)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("builtin:masked", "built-in models"),
        ("builtin:no-such-model", "built-in models"),
        ("builtin:opinion-words", "opinion words"),
        ("builtin:opinion-words:/some/folder", "opinion words"),
        ("gpt2", "folder or hub"),
        ("./folder", "folder or hub"),
    ],
)
def test_our_own_names(name, provider, register):
    found = Providers().of(name)
    assert found.name == provider
    assert isinstance(found, Provider)


@pytest.mark.parametrize("name", ["builtin:sentiment", "builtin:opinion-words"])
def test_what_scorers_offer_is_known_without_loading_them(name):
    assert capabilities_of(ModelSpec(name=name)) == ("classify",)


def test_an_unknown_built_in_name_is_refused_before_anything_is_loaded():
    for ask in (check_model, capabilities_of, load_model):
        with pytest.raises(ModelError, match="no built-in model 'builtin:casual'; did you mean 'builtin:causal'"):
            ask(ModelSpec(name="builtin:casual"))


# -- models in memory


def test_a_model_in_memory_is_opened_by_its_name():
    scorer = CallableScorer("mine", lambda texts: [0.5] * len(texts))
    fake = FakeModel(answer=lambda request: WordAnswer(words=("a",), logprobs=(0.0,)), name="fake")
    providers = Providers(GivenModels(models_by_name([scorer, fake, fake])))
    assert load_model("mine", providers=providers) is scorer
    assert load_model(ModelSpec(name="fake", dtype="float16"), device="cuda:7", providers=providers) is fake
    assert capabilities_of(ModelSpec(name="mine"), providers=providers) == ("classify",)
    check_model(ModelSpec(name="fake"), providers=providers)
    assert load_model("mine", providers=providers).classify([Classify(text="a")])[0].positive == 0.5


def test_models_in_memory_come_before_all_others():
    mine = FakeModel(answer=print, name="builtin:masked")
    providers = Providers(GivenModels(models_by_name([mine])))
    assert load_model("builtin:masked", providers=providers) is mine
    assert providers.of("builtin:causal").name == "built-in models"
    assert Providers().of("builtin:masked").name == "built-in models"  # nothing was registered for good


def test_two_models_of_one_name_are_refused():
    pair = [FakeModel(answer=print, name="m"), FakeModel(answer=print, name="m")]
    with pytest.raises(SpecError, match="two models in memory are named 'm'; give each a name of its own"):
        models_by_name(pair)


def test_what_is_not_a_model_is_refused():
    with pytest.raises(SpecError, match=r"<built-in function len> is not a model; .*CallableScorer"):
        models_by_name([len])


# -- providers of other packages


@pytest.mark.parametrize("what", ["provider", "Shouting", "make"])
def test_another_package_opens_its_names(what, register):
    register("loud", what)
    model = load_model("loud:anything")
    assert model.info.name == "loud:anything"
    assert model.fill([Fill(text="[MASK]", words=("a", "b"))])[0].logprobs == (-2.0, -2.0)
    assert capabilities_of(ModelSpec(name="loud:anything")) == ("fill",)
    assert Providers().of("quiet:anything").name == "folder or hub"


def test_other_packages_are_not_imported_for_our_own_names(register):
    module = register("loud", "provider", claims="True")
    load_model("builtin:opinion-words")
    assert Providers().of("builtin:masked").name == "built-in models"  # and cannot take them over
    assert module not in sys.modules
    assert Providers().of("gpt2").name == "shouting"
    assert module in sys.modules


def test_of_two_that_claim_a_name_the_first_by_name_opens_it(register):
    register("b", "provider", claims="True")
    first = register("a", "provider", claims="True")
    assert type(Providers().of("x")).__module__ == first


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("no_such_object", "has no attribute 'no_such_object'"),
        ("fail", "(the licence ran out)"),
        ("FakeModel", "__init__() missing 1 required keyword-only argument: 'answer'"),
        ("WordAnswer.__doc__", "'str' object is not callable"),
        ("nothing", "NoneType lacks one of: name, claims, check, capabilities, load"),
    ],
)
def test_a_broken_provider_is_named_once_and_breaks_no_other_name(what, wrong, register, caplog):
    module = register("broken", what)
    register("loud", "provider")
    caplog.set_level(logging.WARNING, logger="clinometer")
    assert load_model("loud:a").info.name == "loud:a"
    assert Providers().of("gpt2").name == "folder or hub"
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"the provider 'broken' ({module}:{what}) cannot be used" in message
    assert wrong in message
    with pytest.raises(
        ModelError, match=r"'broken:b' cannot be opened: the provider 'broken' .*pip uninst"
    ) as said:
        load_model("broken:b")
    assert wrong in str(said.value)


def test_a_provider_that_fails_on_a_name_breaks_no_other(register, caplog):
    register("broken", "provider", claims="1 / 0")
    register("loud", "provider")
    for _ in range(2):
        assert load_model("loud:a").info.name == "loud:a"
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == (
        "the provider 'broken' (other_package_0:provider) failed on the name 'loud:a' (division by zero)"
    )
