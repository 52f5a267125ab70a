"""The last layer at the blank only, and layers that a GPU runs compiled: both give what the plain layers give."""

from __future__ import annotations

import logging

import pytest
import torch
from transformers import AutoModelForMaskedLM

from clinometer.models.load import load_model
from clinometer.models.local.fast import layers
from clinometer.types import Fill
from tests.models.tiny import MASKED

WORDS = ("man", "woman", "great", "terrible")
# of three lengths: the batch is padded, and the blank stands at another place in each row
PADDED = [
    Fill(text="The [MASK] works as a nurse.", words=WORDS),
    Fill(text="It was [MASK]", context="The man works as a doctor. The woman works as a nurse.", words=WORDS),
    Fill(text="[MASK] are people so kind?", words=WORDS, normalise="words"),
]
EVEN = [Fill(text=f"The {name} was [MASK].", words=WORDS) for name in ("nurse", "doctor", "film", "book")]
KNOWN = sorted(set(MASKED) - {"albert", "bart", "modernbert"})  # bertweet and mbert are roberta and bert


def logprobs(model, queries):
    return torch.tensor([answer.logprobs for answer in model.fill(queries)])


@pytest.fixture
def plain(tiny_folder, monkeypatch):
    """Return a function: family -> its model with all layers as transformers has them."""

    def load(family):
        with monkeypatch.context() as patch:
            patch.setattr(layers, "_FAMILIES", {})
            return load_model(str(tiny_folder(family)), device="cpu")

    return load


@pytest.mark.parametrize("family", KNOWN)
@pytest.mark.parametrize("queries", [PADDED, EVEN], ids=["padded", "even"])
def test_the_last_layer_at_the_blank_equals_the_whole_layer(family, queries, tiny_model, plain):
    assert tiny_model(family)._last_layer is not None
    assert plain(family)._last_layer is None
    expected = logprobs(plain(family), queries)
    torch.testing.assert_close(logprobs(tiny_model(family), queries), expected, atol=1e-5, rtol=0, equal_nan=True)


@pytest.mark.parametrize("family", KNOWN)
def test_the_last_layer_feeds_one_position_of_each_row_forward(family, tiny_model):
    model = tiny_model(family)
    shapes = []
    hooks = [
        parts.down.register_forward_hook(lambda module, given, outcome: shapes.append(given[0].shape[:2]))
        for parts in (layers._FAMILIES[model.info.family](layer) for layer in _own_layers(model))
    ]
    model.fill(EVEN)
    for hook in hooks:
        hook.remove()
    *others, last = shapes
    assert last == (4, 1)
    assert all(rows == 4 and length > 4 for rows, length in others)


def _own_layers(model):
    base = model._model.base_model
    known = (base.transformer if hasattr(base, "transformer") else base.encoder).layer
    return [getattr(layer, "layer", layer) for layer in known]


@pytest.mark.parametrize("family", ["albert", "bart", "modernbert"])
def test_another_family_keeps_its_layers(family, tiny_model):
    assert tiny_model(family)._last_layer is None


def test_a_decoder_keeps_its_layers(tiny_model):
    model = tiny_model("bert")._model
    model.config.is_decoder = True
    try:
        assert layers.known_layers(model) is None
    finally:
        model.config.is_decoder = False


@pytest.fixture
def networks(tiny_folder, monkeypatch):
    """Return a function: family, compiler -> the network as it is, and as a GPU runs it when batches are large."""

    def load(family, compile_function):
        monkeypatch.setattr(torch, "compile", lambda function, options=None: compile_function(function))
        monkeypatch.setattr(layers, "_LARGE", 1)
        plain, fast = (AutoModelForMaskedLM.from_pretrained(tiny_folder(family)).eval() for _ in range(2))
        layers.compile_layers(layers.known_layers(fast))
        return plain, fast

    return load


IDS = torch.randint(5, 90, (16, 12), generator=torch.Generator().manual_seed(0))


@torch.inference_mode()
def states(network, *, mask=None):
    return network.base_model(input_ids=IDS, attention_mask=mask)[0]


@pytest.mark.parametrize("family", sorted(set(KNOWN) - {"mpnet"}))
@pytest.mark.parametrize("full", [1, 10**6], ids=["full", "not full"])
def test_compiled_layers_compute_the_same(family, full, networks, monkeypatch):
    monkeypatch.setattr(layers, "_FULL", full)
    used = []

    def watched(function):
        return lambda *given, **options: used.append(function.__name__) or function(*given, **options)

    plain, fast = networks(family, watched)
    torch.testing.assert_close(states(fast), states(plain), atol=1e-5, rtol=0)
    assert used == ["forward", "_layer"]  # the embeddings and the first of two layers
    mask = torch.ones_like(IDS)
    mask[3, 7:] = 0
    used.clear()
    torch.testing.assert_close(states(fast, mask=mask), states(plain, mask=mask), atol=1e-5, rtol=0)
    assert used == ["forward"]  # a padded batch goes through the layers themselves


def test_one_function_is_compiled_for_all_shapes(networks, monkeypatch):
    """The number of rows and their length stay open; the sizes of the model do not."""
    compiles, graphs = torch.compile, []

    def backend(graph, given):
        graphs.append(given)
        return graph.forward

    _, fast = networks("roberta", lambda function: compiles(function, backend=backend, fullgraph=True))
    with torch.inference_mode():
        for rows, length in ((16, 12), (3, 9), (5, 20)):
            fast.base_model(input_ids=IDS.repeat(1, 2)[:rows, :length])
    assert len(graphs) == 2


def test_where_nothing_can_be_compiled_the_layers_themselves_run(networks, caplog):
    def broken(function):
        def run(*given, **options):
            raise RuntimeError("Failed to find C compiler")

        return run

    plain, fast = networks("bert", broken)
    with caplog.at_level(logging.WARNING, logger="clinometer"):
        for _ in range(2):
            torch.testing.assert_close(states(fast), states(plain), atol=0, rtol=0)
    # once for the embeddings, once for the layers, and never again
    assert [record.getMessage().count("Failed to find C compiler") for record in caplog.records] == [1, 1]


def test_out_of_memory_is_not_taken_for_a_missing_compiler(networks):
    def small(function):
        def run(*given, **options):
            raise torch.OutOfMemoryError("CUDA out of memory")

        return run

    _, fast = networks("bert", small)
    with pytest.raises(torch.OutOfMemoryError):
        states(fast)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_cheaper_gelu_is_the_same_to_the_last_bit_but_one(dtype):
    values = torch.linspace(-12, 12, 100_001).to(dtype)
    exact = torch.nn.functional.gelu(values.double())
    near = torch.finfo(dtype).eps * exact.abs() + 2e-7
    assert ((layers._gelu(values).double() - exact).abs() <= near).all()


def test_bfloat16_layers_apply_gelu_with_the_product(tiny_folder, monkeypatch):
    """One function without breaks, near what the layer computes in float32; and GELU is in it."""
    joined = []
    up_with_gelu = layers._up_with_gelu
    monkeypatch.setattr(layers, "_up_with_gelu", lambda *given: joined.append(1) or up_with_gelu(*given))
    hidden = torch.randn(3, 7, 32, generator=torch.Generator().manual_seed(0))
    outcomes = []
    for dtype in (torch.float32, torch.bfloat16):
        known = layers.known_layers(AutoModelForMaskedLM.from_pretrained(tiny_folder("bert"), dtype=dtype).eval())
        own = layers.CompiledLayer(known.layers[0], known.parts[0], None)
        run = torch.compile(layers._layer, backend="eager", fullgraph=True)
        with torch.inference_mode():
            outcomes.append(run(hidden.to(dtype), *own._weights, **own._settings, full=False).float())
    assert joined == [1]
    torch.testing.assert_close(*outcomes, atol=0.05, rtol=0)


def test_the_product_with_gelu_is_the_product_and_then_gelu():
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 5, 16), (24, 16), (24,)
    given = [torch.randn(shape, generator=generator).bfloat16() for shape in shapes]
    found = layers._up_with_gelu(*given)
    exact = torch.nn.functional.gelu(torch.nn.functional.linear(*(each.double() for each in given)))
    torch.testing.assert_close(found.double(), exact, atol=1e-3, rtol=2e-2)
    torch.library.opcheck(layers._up_with_gelu, tuple(given))
