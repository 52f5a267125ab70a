"""Opens large causal models with vLLM: `vllm:NAME`, a folder or a hub id.

vLLM needs a GPU and is not installed where this project is tested: what is used of it is tested with a fake, and
with vLLM itself where that is installed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Mapping, Sequence
from typing import Any, final

from clinometer.errors import ModelError, RequestError, reason
from clinometer.models.builtin import absent_packages
from clinometer.models.endpoint.asking import prompt_of
from clinometer.models.endpoint.words import next_word
from clinometer.models.providers.local import SEVERAL
from clinometer.types import (
    LogLikelihood,
    LogLikelihoodAnswer,
    ModelInfo,
    ModelSpec,
    NextWord,
    Request,
    Sample,
    TextAnswer,
    WordAnswer,
)

PREFIX = "vllm:"
CAPABILITIES = ("next_word", "sample", "log_likelihood")
TOP = 1_000  # log-probabilities for a token: the whole vocabulary would be a hundred thousand objects a question
_CODE = "1"


@final
class VllmModels:
    """The provider of `vllm:NAME`."""

    name = "vLLM"

    def claims(self, name: str) -> bool:
        """Tell whether a name begins with `vllm:`."""
        return name.startswith(PREFIX)

    def check(self, spec: ModelSpec) -> None:
        """Raise ModelError where vLLM is not installed, or the model is to be asked in a way that it cannot."""
        if absent_packages("vllm"):
            raise ModelError(
                f'{spec.name!r} needs vLLM, and a GPU: pip install "clinometer[vllm]"; a vLLM server is asked as '
                "openai:NAME with --base-url"
            )
        if spec.kind == "chat":
            raise ModelError(f"{spec.name!r} is asked as a causal model; for chats, serve it: openai:NAME")

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what such a model can be asked."""
        return CAPABILITIES

    def load(self, spec: ModelSpec, *, device: str) -> VllmModel:
        """Load the model on vLLM's own choice of devices."""
        self.check(spec)
        import vllm

        name = spec.name.removeprefix(PREFIX)
        # a worker of a cluster sees the GPUs that it was given, and no others
        parallel = {"tensor_parallel_size": _visible_gpus()} if device == SEVERAL else {}
        try:
            engine = vllm.LLM(
                model=name,
                dtype=spec.dtype,
                trust_remote_code=spec.trust_remote_code,
                max_logprobs=TOP,
                seed=0,
                **parallel,
            )
        except Exception as error:  # no GPU, no such model, no memory: vLLM raises anything
            raise ModelError(f"vLLM cannot load {name!r}: {reason(error)}") from error
        return VllmModel(spec, engine, vllm.SamplingParams, version=importlib.metadata.version("vllm"))

    def inspect(self, spec: ModelSpec, *, device: str) -> VllmModel:
        """Return the model without its engine, to describe itself where there is no GPU."""
        self.check(spec)
        return VllmModel(spec, None, None, version=importlib.metadata.version("vllm"))

    def weight_bytes(self, spec: ModelSpec) -> int:
        """Return 0: vLLM does not say before it loads a model."""
        return 0


def _visible_gpus() -> int:
    import torch

    return int(torch.cuda.device_count())


@final
class VllmModel:
    """A causal model on vLLM, which plans its own batches."""

    def __init__(self, spec: ModelSpec, engine: Any, parameters: Any, *, version: str) -> None:
        # vLLM does not say which files it read: name and version stand for the weights
        identity = hashlib.sha256(f"{spec.name}\0{spec.dtype}".encode()).hexdigest()
        self.info = ModelInfo(
            name=spec.name,
            kind="causal",
            family="vllm",
            capabilities=CAPABILITIES,
            weights=identity,
            tokenizer=identity,
            dtype=spec.dtype,
            code=_CODE,
            settings={"vllm": version},
            told={"model": spec.name.removeprefix(PREFIX), "fingerprint": f"vllm {version}"},
        )
        self._engine = engine
        self._parameters = parameters

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return about how many tokens each request has; vLLM itself decides what runs together."""
        return [max(1, len(self._prompt(request)) // 4) * getattr(request, "n", 1) for request in requests]

    def next_word(self, batch: Sequence[NextWord]) -> list[WordAnswer]:
        """Answer which words come after each text, from the 1,000 most probable tokens."""
        outputs = self._generate(batch, [self._parameters(max_tokens=1, temperature=1.0, logprobs=TOP, seed=0)])
        answers = []
        for query, output in zip(batch, outputs, strict=True):
            first: Mapping[int, Any] = output.outputs[0].logprobs[0]
            top = sorted(
                ((_text(each), float(each.logprob)) for each in first.values()), key=lambda pair: -pair[1]
            )
            told = min(1.0, math.fsum(math.exp(logprob) for _, logprob in top))
            answers.append(next_word(query, [{"top": top, "told": told}]))
        return answers

    def sample(self, batch: Sequence[Sample]) -> list[TextAnswer]:
        """Continue each prefix n times; the seed of a draw depends on the request's seed and first sample."""
        parameters = [
            self._parameters(
                n=one.n,
                max_tokens=one.max_new_tokens,
                temperature=one.temperature,
                top_k=one.top_k or -1,
                top_p=one.top_p,
                seed=_seed(one),
            )
            for one in batch
        ]
        outputs = self._generate(batch, parameters)
        return [
            TextAnswer(
                texts=tuple(each.text for each in output.outputs),
                endings=tuple(str(each.finish_reason or "stop") for each in output.outputs),
            )
            for output in outputs
        ]

    def log_likelihood(self, batch: Sequence[LogLikelihood]) -> list[LogLikelihoodAnswer]:
        """Sum the log-probabilities of the tokens of each text; the first is given and not counted."""
        outputs = self._generate(batch, [self._parameters(max_tokens=1, temperature=0.0, prompt_logprobs=0)])
        answers = []
        for output in outputs:
            scored = [
                float(place[token].logprob)
                for token, place in zip(output.prompt_token_ids, output.prompt_logprobs, strict=True)
                if place is not None
            ]
            answers.append(LogLikelihoodAnswer(logprob=math.fsum(scored), tokens=len(scored)))
        return answers

    def _generate(self, batch: Sequence[Request], parameters: list[Any]) -> list[Any]:
        prompts = [self._prompt(request) for request in batch]
        each = parameters * len(prompts) if len(parameters) == 1 else parameters
        outputs: list[Any] = self._engine.generate(prompts, each, use_tqdm=False)
        if len(outputs) != len(prompts):
            raise ModelError(f"vLLM gave {len(outputs)} answers to {len(prompts)} requests")
        return outputs

    def _prompt(self, request: Request) -> str:
        match request:
            case NextWord():
                return prompt_of(request)
            case Sample():
                return request.prefix
            case LogLikelihood():
                return request.text
            case _:
                raise RequestError(f"vLLM answers {', '.join(CAPABILITIES)}, not {type(request).__name__}")


def _text(logprob: Any) -> str:
    return str(logprob.decoded_token or "").replace("▁", " ").replace("Ġ", " ")


def _seed(request: Sample) -> int:
    asked = repr((request.seed, request.prefix, request.first)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(asked, digest_size=4).digest()) & 0x7FFFFFFF
