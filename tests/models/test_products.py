"""Products by oneDNN on a CPU: the same numbers as torch's own, in every order that a matrix may lie in."""

import pytest
import torch
from torch.nn import Linear, ModuleList, Parameter
from torch.nn.functional import gelu, linear
from transformers import AutoModelForMaskedLM
from transformers.pytorch_utils import Conv1D

from clinometer.models.load import load_model
from clinometer.models.local.fast import products
from clinometer.models.local.fast.layers import known_layers, own_layers
from clinometer.models.local.fast.products import is_plain, product, speed_up_linear_layers, speed_up_products
from clinometer.train.base import load_base
from clinometer.types import Fill
from tests.models.watching import WatchedProducts

pytestmark = pytest.mark.skipif(not products._has_onednn(), reason="not an x86 processor, or torch without oneDNN")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [(1,), (7,), (3, 5), (64, 16)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("order", ["as it is", "turned", "packed"])
def test_equal_to_the_plain_product(rows, bias, order):
    values, weight, added = drawn(*rows, 48), drawn(80, 48, seed=1), drawn(80, seed=2) if bias else None
    wanted = linear(values.double(), weight.double(), None if added is None else added.double())
    if order == "turned":
        weight = weight.t().contiguous().t()
    if order == "packed":
        weight = torch.ops.mkldnn._reorder_linear_weight(weight)
    with torch.inference_mode(), WatchedProducts() as watched:
        found = product(values, weight, added)
        active = product(values, weight, added, then_gelu=True)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(active.double(), gelu(wanted), rtol=1e-5, atol=1e-5)
    assert len(watched.shapes) == 2  # each was one product
    assert watched.computed_by == {"mkldnn::_linear_pointwise"}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("layer", [Linear(48, 80), Conv1D(80, 48)], ids=["linear", "GPT-2"])
def test_a_layer_computes_what_it_did(layer, packed):
    values = drawn(6, 48)
    with torch.inference_mode():
        before = layer(values)
        speed_up_linear_layers(ModuleList([layer]), packed=packed)
        after = layer(values)
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)


def test_where_a_derivative_is_wanted_torch_computes():
    values, weight = drawn(4, 8).requires_grad_(), drawn(3, 8, seed=1)
    product(values, weight, None, then_gelu=True).sum().backward()
    assert values.grad is not None
    assert values.grad.abs().sum() > 0


def test_other_number_formats_are_left_to_torch():
    values, weight = drawn(4, 8).bfloat16(), drawn(3, 8, seed=1).bfloat16()
    with torch.inference_mode():
        assert torch.equal(product(values, weight, None), linear(values, weight))


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_a_model_that_is_asked_multiplies_by_onednn_and_one_that_is_trained_does_not(family, tiny_folder):
    folder = str(tiny_folder(family))
    asked = load_model(folder, device="cpu")
    model = asked._model if family == "bert" else asked._decoder.model
    faster = [module for module in model.modules() if type(module).__module__.endswith("fast.products")]
    assert faster
    assert [module for module in faster if module.weight.is_mkldnn]  # in oneDNN's own order
    head = model.get_output_embeddings()
    assert is_plain(head)
    assert not head.weight.is_mkldnn
    kind = "masked" if family == "bert" else "causal"
    trained = load_base(folder, device="cpu", dtype="float32", kinds=(kind,)).model
    assert not [module for module in trained.modules() if type(module).__module__.endswith("fast.products")]


def test_without_onednn_nothing_changes(tiny_folder, monkeypatch):
    asked = [Fill(text="The nurse is [MASK].", top_k=5)]
    folder = str(tiny_folder("bert"))
    usual = load_model(folder, device="cpu").fill(asked)
    monkeypatch.setattr(products, "_has_onednn", lambda: False)
    model = load_model(folder, device="cpu")
    assert not [module for module in model._model.modules() if type(module).__module__.endswith("fast.products")]
    (found,), (wanted,) = model.fill(asked), usual
    assert found.words == wanted.words
    assert found.logprobs == pytest.approx(wanted.logprobs, abs=1e-5)


class _Quantised(Linear):
    """Keeps its matrix in eighths of a whole number, as libraries for quantised models do."""

    def __init__(self, plain: Linear) -> None:
        super().__init__(plain.in_features, plain.out_features)
        self.weight = Parameter((plain.weight * 8).round().to(torch.int8), requires_grad=False)
        self.bias = plain.bias

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear(input, self.weight.float() / 8, self.bias)


def test_a_layer_that_computes_something_else_is_left_alone(tiny_folder):
    """A feed-forward layer whose first product is quantised: its matrix is not what it multiplies by."""
    network = AutoModelForMaskedLM.from_pretrained(tiny_folder("bert")).eval()
    for layer in network.base_model.encoder.layer:
        layer.intermediate.dense = _Quantised(layer.intermediate.dense)
    ids = torch.arange(5, 17).reshape(2, 6)
    with torch.inference_mode():
        wanted = network.base_model(input_ids=ids)[0]
        speed_up_products(network)
        own_layers(known_layers(network))
        found = network.base_model(input_ids=ids)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_matrix_that_only_looks_like_one_is_left_alone():
    class Packed(torch.Tensor):
        """Says that it is float32, as torchao's tensors do."""

    layer = Linear(8, 4)
    layer.weight = Parameter(layer.weight.detach().as_subclass(Packed), requires_grad=False)
    speed_up_linear_layers(ModuleList([layer]), packed=True)
    assert type(layer) is Linear
    assert not is_plain(layer)
