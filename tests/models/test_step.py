"""The kernels of a step against PyTorch's own functions, and a step against the model; on a CUDA GPU only."""

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from clinometer.models.local.fast.decoder import Decoder
from clinometer.models.local.fast.draw import floors_of
from clinometer.models.local.fast.static import StaticSampler, _random_texts

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

SMALL = {
    "vocab_size": 60,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
KNOWN = {
    "gpt2": GPT2Config(vocab_size=61, n_embd=48, n_layer=2, n_head=3, n_positions=64),
    "llama": LlamaConfig(**SMALL),
    "mistral": MistralConfig(**SMALL, sliding_window=None),
    "qwen2": Qwen2Config(**SMALL),
}


@pytest.fixture
def kernels():
    from clinometer.models.local.fast import step_kernels

    torch.manual_seed(0)
    return step_kernels


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


@pytest.mark.parametrize("size", [24, 576, 768])
def test_norms_are_those_of_pytorch(kernels, size):
    hidden, more, weight, bias = normal(5, size), normal(5, size), normal(size), normal(size)
    summed = hidden + more
    centred = kernels.add_norm(hidden, more, weight, bias, eps=1e-5, centred=True)
    torch.testing.assert_close(hidden, summed)  # in place
    torch.testing.assert_close(centred, functional.layer_norm(summed, (size,), weight, bias, 1e-5))
    scaled = kernels.add_norm(hidden, None, weight, None, eps=1e-5, centred=False)
    torch.testing.assert_close(hidden, summed)
    torch.testing.assert_close(scaled, functional.rms_norm(summed, (size,), weight, 1e-5))


def test_a_gate_is_silu_times_the_other_half(kernels):
    given = normal(3, 2 * 1_536)
    torch.testing.assert_close(kernels.gate(given), functional.silu(given[:, :1_536]) * given[:, 1_536:])


def turned(vectors, cosines, sines):
    half = vectors.shape[-1] // 2
    across = torch.cat([-vectors[..., half:], vectors[..., :half]], dim=-1)
    return vectors * cosines[:, None] + across * sines[:, None]


@pytest.mark.parametrize(
    ("heads", "key_heads", "size", "rotary"),
    [(4, 4, 24, False), (4, 4, 16, True), (9, 3, 64, True), (6, 2, 24, True), (8, 1, 16, False)],
)
def test_a_step_attends_to_what_is_there_and_to_itself(kernels, heads, key_heads, size, rotary):
    places = torch.tensor([0, 1, 31, 32, 33, 64, 99], device="cuda")
    rows, row = len(places), torch.arange(len(places), device="cuda")
    keys, values = normal(rows, key_heads, 100, size), normal(rows, key_heads, 100, size)
    projected = normal(rows, (heads + 2 * key_heads) * size)
    angles = torch.rand(rows, size // 2, device="cuda").repeat(1, 2) * 6
    turn = (angles.cos(), angles.sin()) if rotary else None

    query, key, value = (
        part.view(rows, -1, size)
        for part in projected.split([heads * size, key_heads * size, key_heads * size], dim=1)
    )
    if turn:
        query, key = turned(query, *turn), turned(key, *turn)
    all_keys, all_values = keys.clone(), values.clone()
    all_keys[row, :, places], all_values[row, :, places] = key, value
    share = heads // key_heads
    expected = functional.scaled_dot_product_attention(
        query[:, :, None],
        all_keys.repeat_interleave(share, 1),
        all_values.repeat_interleave(share, 1),
        attn_mask=(torch.arange(100, device="cuda") <= places[:, None])[:, None, None],
        scale=0.2,
    )
    found = kernels.write_and_attend(projected, turn, keys, values, places, heads=heads, scale=0.2)
    torch.testing.assert_close(found, expected.reshape(rows, -1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(keys, all_keys)
    torch.testing.assert_close(values, all_values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [7, 300, 5_000, 49_152])
def test_floors_are_those_that_sorting_finds(size, dtype):
    from clinometer.models.local.fast import kernels

    torch.manual_seed(size)
    logits = (3 * normal(12, size + 5) - torch.linspace(0, 9, 12, device="cuda")[:, None]).to(dtype)[:, :size]
    logits[3, 1] = -torch.inf
    temperatures = torch.tensor([0, 0.5, 1, 1, 1, 1.3] * 2, device="cuda")
    top_k = torch.tensor([0, 0, 0, 1, 5, 5, 0, 3, 9_999_999, 2, 0, 6], device="cuda")
    top_p = torch.tensor([1, 0.9, 0.95, 1, 0.5, 0.99, 0.3, 0.9, 1, 0.2, 1e-6, 1.0], device="cuda")
    sorted_out = floors_of(logits, temperatures=temperatures, top_k=top_k.clamp(max=size), top_p=top_p, sort=size)
    found = kernels.floors(logits, temperatures=temperatures, top_k=top_k, top_p=top_p)
    # the sums of a float32 differ in their last bits, so that one more or less may pass among equals in weight
    kept, expected = ((logits.float() >= floor[:, None]).sum(dim=1) for floor in (found, sorted_out))
    assert ((kept - expected).abs() <= 1 + 1e-3 * expected).all()
    assert (found == sorted_out).float().mean() >= 0.75


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_model_is_run_by_our_own_step_and_gives_its_own_logits(name):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(KNOWN[name]).eval()
    for parameter in model.parameters():
        parameter.data.normal_(1, 0.2) if parameter.dim() == 1 else parameter.data.normal_(0, 0.3)
    decoder = Decoder(model.cuda())
    sampler = StaticSampler.of(decoder, torch.tensor([0], device="cuda"))
    assert sampler is not None
    assert sampler._fast is not None
    with torch.inference_mode():
        ids, lengths = _random_texts(decoder)
        expected = decoder.run(ids).logits(torch.arange(len(ids), device="cuda"), lengths)
        sampler._steps_like(expected, ids, lengths)
        storage = sampler._room(rows=len(ids), width=ids.shape[1])
        logits = sampler._run(storage, rows=len(ids), width=ids.shape[1])[:, : decoder.size]
    torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_a_model_with_other_layers_is_run_as_transformers_does():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(Qwen3Config(**SMALL, head_dim=8)).cuda().eval()  # norms its queries
    sampler = StaticSampler.of(Decoder(model), torch.tensor([0], device="cuda"))
    assert sampler is not None
    assert sampler._fast is None


def test_a_model_that_is_not_what_its_modules_look_like_is_found_out():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(KNOWN["llama"]).cuda().eval()
    model.model.layers[1].self_attn.o_proj.register_forward_hook(lambda _module, _given, result: 3 * result)
    sampler = StaticSampler.of(Decoder(model), torch.tensor([0], device="cuda"))
    assert sampler is not None
    assert sampler._fast is not None  # a hook is part of its module
    layer = model.model.layers[0]
    usual = layer.mlp.forward
    layer.mlp.forward = lambda hidden: 3 * usual(hidden)
    sampler = StaticSampler.of(Decoder(model), torch.tensor([0], device="cuda"))
    assert sampler is not None
    assert sampler._fast is None
