"""The sentiment projection: what it learns, that it is the network it says, and its file."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from safetensors import safe_open

from clinometer.errors import ModelError, StoreError
from clinometer.train.projection import (
    WIDTH,
    Examples,
    Projection,
    load_projection,
    save_projection,
    train_projection,
)

DIMENSIONS = 24


def examples(n, *, seed, gap=2.0, labels_at_random=False):
    """Classes that differ by `gap` standard deviations along one direction, beside one huge dimension and a
    constant one, as language models have them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    states = rng.normal(size=(n, DIMENSIONS))
    states[:, 3:7] += np.where(labels == 1, gap / 4, -gap / 4)[:, None]  # 4 dims · (gap/2)² = gap²
    states[:, 0] = 500 + 20 * states[:, 0]
    states[:, 1] = 7.3
    if labels_at_random:
        labels = rng.permutation(labels)
    return Examples(states=torch.tensor(states, dtype=torch.float32), labels=torch.tensor(labels))


def trained(*, seed=0, **options):
    parts = [examples(n, seed=place, **options) for place, n in enumerate((600, 100, 400))]
    return train_projection(*parts, seed=seed)


@pytest.fixture(scope="module")
def planted():
    return trained(gap=5.0)


def weights_of(projection):
    return {name: weight.numpy().astype(np.float64) for name, weight in projection.state_dict().items()}


def hidden_by_hand(weights, states):
    inner = np.maximum(states @ weights["first.weight"].T + weights["first.bias"], 0)
    return np.maximum(inner @ weights["second.weight"].T + weights["second.bias"], 0)


def test_a_planted_difference_is_learnt(planted):
    # half the gap is 2.5 standard deviations: the best rule is right on Φ(2.5) = 99.4 %
    figures = planted.figures
    assert figures["accuracy"] > 0.97
    assert figures["low"] < 0.9938 < figures["high"]
    expected = {"n": 400, "training": 600, "validation": 100, "positive": 300, "negative": 300, "majority": 0.5}
    assert {name: figures[name] for name in expected} == expected
    assert 1 <= figures["epoch"] <= 40


def test_the_accuracy_is_that_of_the_best_rule_where_classes_overlap():
    # half the gap is 1 standard deviation: Φ(1) = 84.1 %; an accuracy far above it would be a leak
    figures = trained(gap=2.0).figures
    assert 0.78 < figures["accuracy"] < 0.88
    assert figures["low"] < 0.841 < figures["high"]


def test_random_labels_are_not_learnt():
    figures = trained(labels_at_random=True).figures
    assert figures["low"] < 0.5 < figures["high"]
    assert figures["epoch"] < 5  # validation stops it before it has learnt the training examples by heart


def test_hidden_and_logits_are_those_of_the_saved_weights(planted, tmp_path):
    save_projection(tmp_path / "p.safetensors", planted.projection, {})
    with safe_open(tmp_path / "p.safetensors", framework="np") as file:
        weights = {name: file.get_tensor(name).astype(np.float64) for name in file.keys()}  # noqa: SIM118
    shapes = {name: weight.shape for name, weight in weights.items()}
    assert shapes == {
        "first.weight": (128, DIMENSIONS),
        "first.bias": (128,),
        "second.weight": (128, 128),
        "second.bias": (128,),
        "last.weight": (2, 128),
        "last.bias": (2,),
    }
    states = examples(30, seed=9).states
    expected = hidden_by_hand(weights, states.numpy().astype(np.float64))
    assert (expected > 0).any()
    assert planted.projection.hidden(states).shape == (30, WIDTH)
    np.testing.assert_allclose(planted.projection.hidden(states).numpy(), expected, atol=1e-4)
    logits = expected @ weights["last.weight"].T + weights["last.bias"]
    np.testing.assert_allclose(planted.projection(states).numpy(), logits, atol=1e-4)


def test_taking_in_the_scaling_is_standardising():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        projection = Projection(DIMENSIONS)
    states = examples(50, seed=1).states.double()
    before = weights_of(projection)
    mean, scale = states.mean(0), 1 / states.std(0).clamp(min=0.1)
    expected = hidden_by_hand(before, ((states - mean) * scale).numpy())
    projection.take_in_scaling(mean, scale)
    np.testing.assert_allclose(projection.hidden(states).detach().numpy(), expected, atol=2e-5)


def test_a_dimension_that_was_constant_in_training_is_not_read(planted):
    states = examples(10, seed=2).states
    changed = states.clone()
    changed[:, 1] += 100
    assert torch.equal(planted.projection(states), planted.projection(changed))


def test_it_is_frozen_and_lets_gradients_through(planted):
    assert not any(weight.requires_grad for weight in planted.projection.parameters())
    states = examples(5, seed=3).states.requires_grad_()
    planted.projection.hidden(states).sum().backward()
    assert (states.grad != 0).any()


def test_autocast_changes_nothing(planted):
    states = examples(20, seed=4).states
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden, logits = planted.projection.hidden(states), planted.projection(states)
    assert torch.equal(hidden, planted.projection.hidden(states))
    assert torch.equal(logits, planted.projection(states))
    assert planted.projection.hidden(states.bfloat16()).dtype == torch.float32


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    files = []
    for number, seed in enumerate((0, 0, 1)):
        torch.rand(number + 1)  # whatever state the global generator is in
        result = trained(seed=seed)
        save_projection(tmp_path / str(number), result.projection, {"figures": result.figures, "seed": 0})
        files.append((tmp_path / str(number)).read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_the_number_of_threads_changes_nothing(planted):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        again = trained(gap=5.0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    for name, weight in planted.projection.state_dict().items():
        assert torch.equal(again.projection.state_dict()[name], weight)


def test_global_generators_are_left_alone(tmp_path, planted):
    torch.manual_seed(5)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    trained()
    save_projection(tmp_path / "p", planted.projection, {})
    load_projection(tmp_path / "p")
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tolist())


def test_what_is_loaded_is_what_was_saved(planted, tmp_path):
    notes = {"figures": planted.figures, "scorer": "builtin:sentiment", "text": "h̄ “quoted”"}
    save_projection(tmp_path / "p.safetensors", planted.projection, notes)
    saved = load_projection(tmp_path / "p.safetensors")
    assert saved.notes == notes
    for name, weight in planted.projection.state_dict().items():
        assert torch.equal(saved.projection.state_dict()[name], weight)
    states = examples(10, seed=6).states
    assert torch.equal(saved.projection(states), planted.projection(states))
    assert not any(weight.requires_grad for weight in saved.projection.parameters())
    assert [path.name for path in tmp_path.iterdir()] == ["p.safetensors"]  # nothing temporary is left


def test_every_damage_is_caught(planted, tmp_path):
    path = tmp_path / "p.safetensors"
    save_projection(path, planted.projection, {"scorer": "a"})
    whole = path.read_bytes()
    places = np.random.default_rng(0).integers(0, len(whole), 40).tolist() + list(range(0, 400, 7))
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x11]) + whole[place + 1 :])
        with pytest.raises(StoreError, match="damaged or not a sentiment projection; remove it"):
            load_projection(path)
    for wrong in (b"", whole[:100], whole[:-1], b"not a projection at all"):
        path.write_bytes(wrong)
        with pytest.raises(StoreError, match="damaged"):
            load_projection(path)
    with pytest.raises(StoreError, match="cannot read the sentiment projection"):
        load_projection(tmp_path / "absent")


def test_a_failed_write_leaves_the_old_file(planted, tmp_path, monkeypatch):
    path = tmp_path / "p.safetensors"
    save_projection(path, planted.projection, {"scorer": "a"})
    before = path.read_bytes()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match="no space left while writing the sentiment projection"):
        save_projection(path, planted.projection, {"scorer": "b"})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["p.safetensors"]


def test_states_may_come_from_inference_mode():
    with torch.inference_mode():
        states = examples(60, seed=0).states * 1.0
    part = Examples(states=states, labels=examples(60, seed=0).labels)
    assert train_projection(part, part, part, seed=0).figures["n"] == 60


def test_examples_that_cannot_be_learnt_from_are_refused():
    good = examples(20, seed=0)
    one_class = Examples(states=good.states, labels=torch.zeros(20, dtype=torch.int64))
    with pytest.raises(ModelError, match="0 of 20 training examples are positive"):
        train_projection(one_class, good, good, seed=0)
    states = good.states.clone()
    states[3, 2] = float("nan")
    with pytest.raises(ModelError, match="hidden states of 1 of 20 sentences are not finite"):
        train_projection(good, Examples(states=states, labels=good.labels), good, seed=0)
