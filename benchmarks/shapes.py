"""Models of well-known shapes with random weights, and tokenizers of made-up words: nothing is downloaded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaTokenizer,
)

_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se")
MADE_UP = tuple("".join(syllables) for syllables in itertools.product(_SYLLABLES, repeat=3))  # 1,728 words


def causal_config(shape: str, *, layers: int = 0) -> PreTrainedConfig:
    """Return the configuration of GPT-2 (124M) or SmolLM2-135M, or one with fewer layers."""
    if shape == "gpt2":
        return GPT2Config(n_layer=layers or 12)
    return LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1_536,
        num_hidden_layers=layers or 30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    )


def save_causal(shape: str, folder: Path, *, layers: int = 0) -> Path:
    """Write a causal model; each made-up word after a space is one token, and so is every byte."""
    torch.manual_seed(0)
    config = causal_config(shape, layers=layers)
    config.bos_token_id = config.eos_token_id = config.vocab_size - 1
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    known = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [f"{first}{second}" for first in ("", "Ġ") for second in _SYLLABLES]
    pairs = [f"Ġ{''.join(two)}" for two in itertools.product(_SYLLABLES, repeat=2)]
    words = [f"Ġ{word}" for word in MADE_UP]
    merges = [(piece[0], piece[1]) for piece in pieces[: len(_SYLLABLES)]]
    merges += [("Ġ", piece) for piece in _SYLLABLES]
    merges += [(f"Ġ{first}", second) for first, second in itertools.product(_SYLLABLES, repeat=2)]
    merges += [(f"Ġ{word[:4]}", word[4:]) for word in MADE_UP]
    rest = config.vocab_size - len(known) - len(pieces) - len(pairs) - len(words) - 1
    never = [f"Ġ#{number:x}" for number in range(rest)]  # only written, never read
    every = [*known, *pieces, *pairs, *words, *never, "<end>"]
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(every)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    return folder


def save_bert(folder: Path, *, layers: int = 12) -> Path:
    """Write a model of BERT-base's shape with the tokenizer of builtin:masked."""
    from clinometer.models.builtin import folder_of

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder_of("builtin:masked"))
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), num_hidden_layers=layers)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_roberta(folder: Path, words: Sequence[str], *, layers: int = 12) -> Path:
    """Write a model of RoBERTa-base's shape; each of the words is one token, at the start and after a space."""
    torch.manual_seed(0)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=50_265,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([text for word in words for text in (word, f"a {word}", f"a {word}")], trainer)
    bpe.save(str(folder / "bpe.json"))
    trained = json.loads((folder / "bpe.json").read_text(encoding="utf-8"))["model"]
    mask = AddedToken("<mask>", lstrip=True, special=True, normalized=False)
    merges = [tuple(merge) for merge in trained["merges"]]
    RobertaTokenizer(vocab=trained["vocab"], merges=merges, mask_token=mask).save_pretrained(folder)
    config = RobertaConfig(
        vocab_size=50_265,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        num_hidden_layers=layers,
    )
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder
