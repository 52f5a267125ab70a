"""The fast way to sample: rows of any length side by side in fixed places, and a step that a GPU replays.

In the cache every row has its own line and writes each new token at its own next place. So rows of different
length need no padding, and nothing is copied from step to step. On a CUDA GPU a step (the model, the projection,
the draw) is captured once as a graph and replayed without Python.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.cache_utils import Cache, DynamicLayer

from clinometer.errors import reason
from clinometer.models.local.fast.decoder import Decoder
from clinometer.models.local.fast.draw import (
    Prompt,
    Rows,
    distinct,
    draw,
    floors_of,
    levels_of,
    owners_of,
    sort_of,
)
from clinometer.models.local.fast.transfers import fetch, send
from clinometer.models.local.text import Ids, pad

logger = logging.getLogger("clinometer")

_WORTH_IT = 7 / 8  # rows are moved together when no more than this share is left
_WIDTH = 64  # the cache's places are a multiple of it, so that batches of about the same length share a graph
_MOST_ROWS = 8_192  # more do not make a large GPU any faster
_MOST_MEMORY = 0.35  # of a GPU's memory
_ROWS_ON_CPU = 160
_TEXTS, _LONGEST_TEXT = 32, 6  # on so many texts a step in fixed places is compared with the model
_ENOUGH = 3 / 4  # of the texts with the step at one place
_PREFIX_TOKENS = {"cuda": 32_768, "cpu": 2_048}  # what runs at a time before the first step
_PADS_PREFIXES = {"cuda": True, "cpu": False}
# steps between two looks at which samples have ended: on a GPU, to look is to wait for it
LEG = {"cuda": 16, "cpu": 4}
_ATTENTION = "clinometer_places"


@dataclass(frozen=True, slots=True)
class _Layer:
    """Keys and values of one layer (rows × heads × places × size), as transformers asks a cache for them."""

    keys: Tensor
    values: Tensor
    rows: Tensor
    places: Tensor  # where each row writes
    width: int  # how many places are handed out
    is_initialized: bool = True
    is_sliding: bool = False
    is_compileable: bool = False

    def update(self, key: Tensor, value: Tensor, *_args: Any, **_options: Any) -> tuple[Tensor, Tensor]:
        self.keys[self.rows, :, self.places] = key[:, :, 0]
        self.values[self.rows, :, self.places] = value[:, :, 0]
        return self.keys[:, :, : self.width], self.values[:, :, : self.width]

    def get_mask_sizes(self, *_args: Any) -> tuple[int, int]:
        return self.width, 0

    def get_seq_length(self, *_args: Any) -> int:
        return self.width


class Storage:
    """Everything that a step reads and writes, for at most so many rows and places."""

    def __init__(self, layers: Sequence[DynamicLayer], *, rows: int, width: int, levels: int) -> None:
        device = layers[0].keys.device

        def held(like: Tensor) -> Tensor:
            return torch.zeros(rows, like.shape[1], width, like.shape[3], dtype=like.dtype, device=device)

        def long(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.long, device=device)

        self.rows, self.width, self.leg = rows, width, LEG[device.type]
        self.keys = [held(layer.keys) for layer in layers]
        self.values = [held(layer.values) for layer in layers]
        self.index = torch.arange(rows, device=device)
        self.tokens, self.places, self.ends = long(rows), long(rows), long(rows)
        self.top_k, self.top_p = long(rows), torch.zeros(rows, device=device)
        self.temperatures = torch.zeros(rows, device=device)
        self.numbers = torch.zeros(self.leg, rows, levels, device=device)
        self.written = long(self.leg, rows)
        self.step = long(1)
        self.graphs: dict[tuple[int, int], torch.cuda.CUDAGraph | None] = {}
        # One graph runs at a time and leaves nothing in its own memory that another reads: they can share it.
        self.pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def cache(self, rows: int, width: int) -> Cache:
        """Return the first rows as a cache of transformers."""
        index, places = self.index[:rows], self.places[:rows]
        return Cache(
            layers=[
                _Layer(keys[:rows], values[:rows], index, places, width)
                for keys, values in zip(self.keys, self.values, strict=True)
            ]
        )

    def keep(self, index: Tensor) -> None:
        """Move some rows to the front."""
        for held in (*self.keys, *self.values, self.tokens, self.places, self.ends):
            held[: len(index)] = held.index_select(0, index)

    def load(self, rows: Rows) -> None:
        """Take over how each row is drawn."""
        for name in ("temperatures", "top_k", "top_p"):
            getattr(self, name)[: len(rows)] = getattr(rows, name)


@contextlib.contextmanager
def attention_by_place(config: Any) -> Iterator[None]:
    """Let the layers of the model with this configuration attend by `_attend`."""
    usual = config._attn_implementation
    config._attn_implementation = _ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = usual


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, **options: Any
) -> tuple[Tensor, None]:
    """Attend from one new token a row to the places up to its own, which are given in place of a mask."""
    for name in ("softcap", "sliding_window", "s_aux", "position_bias", "head_mask"):
        if options.get(name) is not None:
            raise NotImplementedError(f"attention with {name}")
    if key.shape[3] != value.shape[3]:
        raise NotImplementedError("attention with keys and values of different size")
    places = attention_mask[:, 0, 0, 0]
    scale = options.get("scaling")
    scale = query.shape[3] ** -0.5 if scale is None else scale
    if query.is_cuda:
        from clinometer.models.local.fast import kernels  # needs Triton, which is there where torch has CUDA

        return kernels.attend(query, key, value, places, scale=scale), None
    rows, heads, _, size = query.shape
    seen = torch.arange(key.shape[2], device=key.device) <= places[:, None]
    # the query heads that share a key head are to it like several queries
    shared = query.reshape(rows, key.shape[1], -1, size)
    found = scaled_dot_product_attention(shared, key, value, attn_mask=seen[:, None, None], scale=scale)
    return found.reshape(rows, 1, heads, -1), None


AttentionInterface.register(_ATTENTION, _attend)


class StaticSampler:
    """Continues prompts with one model; `of` finds out whether the model can be run so."""

    def __init__(self, decoder: Decoder, stop: Tensor, layers: Sequence[DynamicLayer]) -> None:
        self._decoder = decoder
        self._stop = stop
        self._layers = layers  # of a short text: they show what a cache holds
        self._levels = levels_of(decoder.size)
        self._storage: Storage | None = None
        self._on_gpu = decoder.device.type == "cuda"
        self._graphs_work = self._on_gpu
        self._draw: Callable[..., Tensor] = draw
        self._floors: Callable[..., Tensor] = floors_of
        self._fast: Any = None  # a `Step`, where the model can be run by one
        if self._on_gpu:
            from clinometer.models.local.fast import kernels  # needs Triton, which is there where torch has CUDA

            self._draw, self._floors = kernels.draw, kernels.floors

    @classmethod
    @torch.inference_mode()
    def of(cls, decoder: Decoder, stop: Tensor) -> StaticSampler | None:
        """Return a sampler for the model; None where a step in fixed places does not give the model's logits."""
        if decoder.device.type not in LEG:
            return None
        try:
            ids, lengths = _random_texts(decoder)
            known = decoder.run(ids, keep_cache=True)
            layers = getattr(known.cache, "layers", [])
            if not layers or any(type(layer) is not DynamicLayer for layer in layers):
                _log_why_slower(decoder, "its cache, a sliding window or a state, does not fit into fixed places")
                return None
            sampler = cls(decoder, stop, layers)
            expected = known.logits(torch.arange(len(ids), device=decoder.device), lengths)
            sampler._fast = _step_of(decoder)
            if sampler._fast is not None and not sampler._steps_like(expected, ids, lengths):
                sampler._fast = None
            if sampler._fast is None and not sampler._steps_like(expected, ids, lengths):
                _log_why_slower(decoder, "a step with its cache in fixed places gives other logits than the model")
                return None
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # what a family does with a cache or a mask that it does not expect
            _log_why_slower(decoder, reason(error))
            return None
        sampler._storage = None
        return sampler

    def _steps_like(self, expected: Tensor, ids: Tensor, lengths: Tensor) -> bool:
        """Tell whether a step from the first tokens of some texts gives the logits that are expected there."""
        rows, width = ids.shape
        storage = self._room(rows=rows, width=width)
        texts = [row[:length].astype(np.int32) for row, length in zip(ids.cpu().numpy(), lengths, strict=True)]
        self._fill(storage, texts, np.arange(rows))
        storage.tokens[:rows] = ids.gather(1, lengths[:, None])[:, 0]
        storage.places[:rows] = lengths
        logits = self._run(storage, rows=rows, width=width)[:, : self._decoder.size].float()
        return _agree(logits, expected, lengths, eps=torch.finfo(self._layers[0].keys.dtype).eps)

    def most_rows(self, prompts: Sequence[Prompt]) -> int:
        """Return how many samples of the prompts may run at a time."""
        if not self._on_gpu:
            return _ROWS_ON_CPU
        each: int = sum(layer.keys[0, :, 0].nbytes + layer.values[0, :, 0].nbytes for layer in self._layers)
        projected = self._decoder.size * 8  # bytes
        memory: int = torch.cuda.get_device_properties(self._decoder.device).total_memory
        fit = int(_MOST_MEMORY * memory) // (each * _width_for(prompts) + projected)
        return max(1, min(_MOST_ROWS, fit))

    @torch.inference_mode()
    def run(self, prompts: Sequence[Prompt]) -> Callable[[], Tensor]:
        """Draw the tokens of every sample; what is returned waits for them, samples × steps.

        What follows a stop token means nothing. A GPU is given its work ahead of time, so that it can go on while
        the samples of the next prompts are prepared: nothing here waits for it but `left`.
        """
        prefixes, device = distinct(prompts), self._decoder.device
        rows = Rows.of(prompts, prefixes, device)
        sort = sort_of(prompts, self._decoder.size)
        steps = max(prompt.max_new_tokens for prompt in prompts)
        longest = max(map(len, prefixes))
        tokens = torch.zeros(steps, len(rows), dtype=torch.long, device=device)
        index = self._rounded(torch.arange(len(rows), device=device))  # which sample each row of the storage is
        storage = self._room(rows=len(index), width=_width_for(prompts))

        some = rows.select(index)
        owners = np.repeat(owners_of(prompts, prefixes), [prompt.n for prompt in prompts])
        owners = np.concatenate([owners, owners[:1].repeat(len(index) - len(owners))])  # as `_rounded` adds them
        first = self._fill(storage, prefixes, owners)
        lengths = send([len(ids) for ids in prefixes], device)[some.owners]
        storage.places[: len(index)] = lengths
        storage.ends[: len(index)] = lengths + some.limits - 1
        storage.load(some)
        legs = [range(begin, min(begin + storage.leg, steps)) for begin in range(0, steps, storage.leg)]
        numbers = some.numbers(legs[0], self._levels)
        for leg, next_leg in zip(legs, [*legs[1:], None], strict=True):
            storage.numbers[: len(leg), : len(some)] = numbers.transpose(0, 1)
            storage.step.zero_()
            for step in leg:
                if step == 0:
                    self._choose(storage, first[some.owners], sort)
                    del first
                else:
                    self._step(storage, rows=len(some), width=longest + step, sort=sort)
            written = storage.written[: len(leg), : len(some)]
            tokens[leg.start : leg.stop, index] = written
            if next_leg is None:
                break
            numbers = some.numbers(next_leg, self._levels)  # drawn before the GPU is waited for
            going = ~torch.isin(written, self._stop).any(dim=0) & (some.limits > leg.stop)
            left = torch.unique(index[going])  # without the copies that `_rounded` adds
            if len(left) < len(index):
                if not len(left):
                    break
                fewer = self._rounded(left)
                if len(fewer) <= _WORTH_IT * len(index):
                    where = torch.zeros(len(rows), dtype=torch.long, device=device)
                    where[index] = torch.arange(len(index), device=device)
                    storage.keep(where[fewer])
                    index, some, numbers = fewer, rows.select(fewer), numbers[where[fewer]]
                    storage.load(some)
        return fetch(tokens.T.contiguous())

    def _room(self, *, rows: int, width: int) -> Storage:
        if self._storage is None or self._storage.rows < rows or self._storage.width < width:
            if self._storage is not None and self._on_gpu:
                torch.cuda.synchronize(self._decoder.device)  # it may still be replaying a graph of the old one
            self._storage = None  # were both held at once, the new one might not fit
            self._storage = Storage(self._layers, rows=rows, width=width, levels=self._levels)
        return self._storage

    def _rounded(self, index: Tensor) -> Tensor:
        """Repeat the first rows of an index so that few graphs serve batches of every size."""
        count = len(index)
        more = -count % max(8, 1 << max(0, count.bit_length() - 5)) if self._on_gpu else 0
        return torch.cat([index, index[:1].expand(more)])

    def _fill(self, storage: Storage, prefixes: Sequence[Ids], owners: np.ndarray[Any, Any]) -> Tensor:
        """Run each prefix once, give its cache to all of its rows, and return the logits after it."""
        device = self._decoder.device
        logits = torch.empty(0)
        for part in _together(prefixes, device.type):
            lengths = [len(prefixes[number]) for number in part]
            given = send(pad([prefixes[number] for number in part], pad_id=0).ids, device)
            states = self._decoder.run(given, keep_cache=True)
            last = send([length - 1 for length in lengths], device)
            after = states.project(torch.arange(len(part), device=device), last, None)
            if not len(logits):
                logits = after.new_empty(len(prefixes), after.shape[1])
            logits[send(part, device)] = after
            # what a shorter prefix has behind its end is not read: its row writes there, place by place
            place = np.full(len(prefixes), -1)
            place[part] = np.arange(len(part))
            mine = np.flatnonzero(place[owners] >= 0)
            rows, source = send(mine, device), send(place[owners[mine]], device)
            width = max(lengths)
            for layer, keys, values in zip(states.cache.layers, storage.keys, storage.values, strict=True):
                keys[rows, :, :width] = layer.keys[source]
                values[rows, :, :width] = layer.values[source]
        return logits

    def _step(self, storage: Storage, *, rows: int, width: int, sort: int) -> None:
        """Run the model on the last tokens and draw the next: plainly, or by replaying a graph."""
        key = (rows, sort)
        if not self._graphs_work:
            self._plain_step(storage, rows=rows, width=width, sort=sort)
        elif key not in storage.graphs:  # the first time prepares kernels, which a graph cannot
            self._plain_step(storage, rows=rows, width=storage.width, sort=sort)
            storage.graphs[key] = None
        else:
            graph = storage.graphs[key]
            if graph is None:
                graph = torch.cuda.CUDAGraph()
                try:
                    # other threads may wait for texts meanwhile
                    with torch.cuda.graph(graph, pool=storage.pool, capture_error_mode="thread_local"):
                        self._plain_step(storage, rows=rows, width=storage.width, sort=sort)
                except torch.OutOfMemoryError:
                    raise
                except Exception as error:  # a model that asks the device for a number on the way
                    logger.warning("a step cannot be captured: sampling is slower for it (%s)", reason(error))
                    self._graphs_work = False
                    self._plain_step(storage, rows=rows, width=storage.width, sort=sort)
                    return
                storage.graphs[key] = graph
            graph.replay()

    def _plain_step(self, storage: Storage, *, rows: int, width: int, sort: int) -> None:
        logits = self._run(storage, rows=rows, width=width)
        places = storage.places[:rows]
        # a row that has ended stays at its last place: the next position may not exist
        torch.minimum(places + 1, storage.ends[:rows], out=places)
        self._choose(storage, logits, sort)

    def _run(self, storage: Storage, *, rows: int, width: int) -> Tensor:
        if self._fast is not None:
            keys, values = ([held[:rows] for held in layers] for layers in (storage.keys, storage.values))
            hidden = self._fast.run(storage.tokens[:rows], storage.places[:rows], keys, values)
            logits: Tensor = self._decoder.project(hidden)
            return logits
        tokens, places = storage.tokens[:rows, None], storage.places[:rows, None]
        with attention_by_place(self._decoder.config):
            states = self._decoder.run(
                tokens,
                attention=places[:, None, None],  # of four dimensions, it reaches the attention as it is
                positions=places,
                cache=storage.cache(rows, width),
                keep_cache=True,
            )
        return states.last(tokens, as_computed=True)

    def _choose(self, storage: Storage, logits: Tensor, sort: int) -> None:
        rows = len(logits)
        ways = {"temperatures": storage.temperatures[:rows]}
        cuts = {"top_k": storage.top_k[:rows], "top_p": storage.top_p[:rows]}
        floors = self._floors(logits, **ways, **cuts, sort=sort) if sort else None
        numbers = storage.numbers[:, :rows].index_select(0, storage.step)[0]
        tokens = self._draw(logits, numbers, **ways, floors=floors)
        storage.written[:, :rows].index_copy_(0, storage.step, tokens[None])
        torch.clamp(tokens, min=0, out=storage.tokens[:rows])
        storage.step.add_(1)


def _together(prefixes: Sequence[Ids], device: str) -> list[list[int]]:
    """Return which prefixes run together, by number: about as long as each other, and not too many tokens.

    A GPU is given all lengths at once, because it computes padding faster than Python starts another pass.
    """
    parts: list[list[int]] = []
    for number in sorted(range(len(prefixes)), key=lambda number: -len(prefixes[number])):
        longest = len(prefixes[parts[-1][0]]) if parts else 0
        fits = parts and longest * (len(parts[-1]) + 1) <= _PREFIX_TOKENS[device]
        if fits and (len(prefixes[number]) == longest or _PADS_PREFIXES[device]):
            parts[-1].append(number)
        else:
            parts.append([number])
    return parts


def _step_of(decoder: Decoder) -> Any:
    """Return a `Step` for the model; None where there is none for it."""
    if decoder.device.type != "cuda" or not decoder.projects:
        return None
    from clinometer.models.local.fast import step

    try:
        return step.Step(decoder.model)
    except (step.UnknownLayersError, AttributeError) as error:
        logger.debug("steps as transformers runs them: %s", error)
        return None


def _width_for(prompts: Sequence[Prompt]) -> int:
    longest = max(len(prompt.ids) + prompt.max_new_tokens for prompt in prompts)
    return -(-longest // _WIDTH) * _WIDTH


def _random_texts(decoder: Decoder) -> tuple[Tensor, Tensor]:
    """Return some rows of tokens, and for each the place of the one to step on, from the third to the last."""
    window = getattr(decoder.config.get_text_config(), "max_position_embeddings", None)
    width = min(_LONGEST_TEXT, window or _LONGEST_TEXT)
    ids = np.random.default_rng(0).integers(0, decoder.vocabulary, (_TEXTS, width))
    places = 2 + np.arange(_TEXTS) % (width - 2)
    return torch.from_numpy(ids).to(decoder.device), torch.from_numpy(places).to(decoder.device)


def _agree(logits: Tensor, expected: Tensor, places: Tensor, *, eps: float) -> bool:
    """Tell whether logits (texts × tokens) are the expected ones up to rounding.

    At each place not every text need agree: with some first tokens a model is so unsteady that bfloat16's
    rounding alone changes what it says.
    """
    error = (logits - expected).abs().amax(dim=1)
    spread = (expected - expected.mean(dim=1, keepdim=True)).abs().amax(dim=1)
    right = (error <= eps**0.5 * spread).float()
    return all(bool(right[places == place].mean() >= _ENOUGH) for place in set(places.tolist()))


def _log_why_slower(decoder: Decoder, why: str) -> None:
    level = logging.WARNING if decoder.device.type == "cuda" else logging.DEBUG
    logger.log(level, "samples are drawn the plain way, which is slower (%s)", why)
