"""Tiny models with random weights and real tokenizers, one for each family, built and saved in a moment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    "The nurse works at the hospital and the doctor works there too.",
    "The man works as a doctor. The woman works as a nurse.",
    "It was great. It was terrible. It was a great film and a terrible book!",
    "He said that she is a teacher; she said that he is an engineer.",
    "Why are people so kind? Why are some people so angry?",
    "A review of the film: the story was good, the actors were bad, and the music was fine.",
    "The person is a carpenter, the carpenter is a woman, and the woman is my friend.",
    "Nothing was said about the weather, but it rained and rained while we were walking.",
    "Reading, writing, singing and dancing are what the children like.",
] * 4
WINDOW = 64
LETTERS = [chr(code) for code in range(33, 127)]  # so that no ordinary text is unknown

MASKED = (
    "bert",
    "mbert",
    "distilbert",
    "electra",
    "mpnet",
    "roberta",
    "modernbert",
    "bart",
    "albert",
    "xlm-roberta",
    "bertweet",
)
PERMUTED = ("xlnet",)
CAUSAL = ("gpt2", "llama")
FAMILIES = MASKED + PERMUTED + CAUSAL

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def tiny(family: str, folder: Path, *, head: str = "") -> Path:
    """Build the tiny model of a family in the folder; `head` names another class of transformers."""
    tokenizer_of, config_class, shape, architecture = _BUILDERS[family]
    tokenizer = tokenizer_of(folder)
    shape = {"vocab_size": len(tokenizer), "max_position_embeddings": WINDOW, **shape}
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"):
        if family == "modernbert" or not name.startswith(("cls", "sep")):
            shape[name] = getattr(tokenizer, name)
    if family == "mbert":  # a matrix with more rows than the tokenizer has tokens, as many published models have
        shape["vocab_size"] += 7
    if family == "xlnet":
        del shape["max_position_embeddings"]  # XLNet reads any length
    if family == "bart":
        shape["decoder_start_token_id"] = tokenizer.eos_token_id
    made = config_class(**shape)
    torch.manual_seed(len(family))
    model = getattr(transformers, head or architecture)(made).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # fresh biases are zero, fresh weights tiny: an adapter that forgets one would go unnoticed
            weight.normal_(0.0, 0.3) if "norm" not in name.lower() else weight.add_(torch.randn_like(weight) * 0.1)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return folder


def _save(tokenizer: transformers.PreTrainedTokenizerBase, folder: Path) -> transformers.PreTrainedTokenizerBase:
    tokenizer.save_pretrained(folder)
    return tokenizer


def _mask(text: str = "<mask>", *, lstrip: bool = True) -> AddedToken:
    return AddedToken(text, lstrip=lstrip, special=True, normalized=False)


def _words(*, lower: bool = False) -> list[str]:
    """Return the words and marks of the corpus. Trained vocabularies vary from run to run; these do not."""
    return sorted(set(re.findall(r"\w+|[^\w\s]", " ".join(CORPUS).lower() if lower else " ".join(CORPUS))))


def _wordpiece(special: list[str], *, lower: bool) -> dict[str, int]:
    letters = [letter for letter in LETTERS if not (lower and letter.isupper())]
    pieces = [*letters, *(f"##{letter}" for letter in letters), "##ing", "##ed", "##er", *_words(lower=lower)]
    return {token: index for index, token in enumerate(dict.fromkeys([*special, *pieces]))}


def _byte_bpe(special: list[str | AddedToken]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _vocab_and_merges(tokenizer: Tokenizer) -> dict[str, object]:
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(merge) for merge in model["merges"]]}


def _unigram(special: list[str], *, lower: bool = False) -> list[tuple[str, float]]:
    pieces = {"▁": -9.0, **dict.fromkeys(LETTERS, -9.0), **dict.fromkeys(("ing", "ed", "er", "un", "re"), -7.0)}
    pieces |= {f"▁{word}": -5.0 for word in _words(lower=lower)}
    # the special tokens are part of a sentencepiece vocabulary, with the best score of all
    return [*((token, 0.0) for token in special), *pieces.items()]


def _bert_tokenizer(folder: Path, *, lower: bool = True) -> transformers.PreTrainedTokenizerBase:
    vocab = _wordpiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], lower=lower)
    return _save(transformers.BertTokenizer(vocab=vocab, do_lower_case=lower, model_max_length=WINDOW), folder)


def _mpnet_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    vocab = _wordpiece(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"], lower=True)
    return _save(transformers.MPNetTokenizer(vocab=vocab, mask_token=_mask()), folder)


def _roberta_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    parts = _vocab_and_merges(_byte_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]))
    return _save(transformers.RobertaTokenizer(**parts, mask_token=_mask()), folder)


def _modernbert_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    tokenizer = _byte_bpe(["[UNK]", "[CLS]", "[SEP]", "[PAD]", _mask("[MASK]")])
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token=_mask("[MASK]"),
        model_max_length=WINDOW,
    )
    return _save(made, folder)


def _albert_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    vocab = _unigram(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], lower=True)
    return _save(transformers.AlbertTokenizer(vocab=vocab, mask_token=_mask("[MASK]")), folder)


def _xlmr_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    vocab = _unigram(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return _save(transformers.XLMRobertaTokenizer(vocab=vocab, mask_token=_mask()), folder)


def _xlnet_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    return _save(transformers.XLNetTokenizer(vocab=_unigram(special)), folder)


def _gpt2_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    return _save(transformers.GPT2Tokenizer(**_vocab_and_merges(_byte_bpe(["<|endoftext|>"]))), folder)


def _llama_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    made = transformers.LlamaTokenizer(**_vocab_and_merges(tokenizer))
    made._tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return _save(made, folder)


def _bertweet_tokenizer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        end_of_word_suffix="</w>",
        initial_alphabet=LETTERS,
        show_progress=False,
    )
    tokenizer.train_from_iterator([line.replace(".", " .").replace(",", " ,") for line in CORPUS], trainer)
    parts = _vocab_and_merges(tokenizer)
    words = [token.removesuffix("</w>") if token.endswith("</w>") else f"{token}@@" for token in parts["vocab"]]
    words = sorted({*words, *LETTERS, *(f"{letter}@@" for letter in LETTERS)})
    # in the format of the published files: a count at the end of each line (save_pretrained writes another one)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    (folder / "bpe.codes").write_text("".join(f"{a} {b} 1\n" for a, b in parts["merges"]), encoding="utf-8")
    settings = {"tokenizer_class": "BertweetTokenizer", "model_max_length": WINDOW}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return transformers.BertweetTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"))


# These families count positions from the padding token's id (1) on.
_OFFSET = {**_SMALL, "max_position_embeddings": WINDOW + 2, "type_vocab_size": 1}
_DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
_BART = {
    f"{side}_{part}": size
    for side in ("encoder", "decoder")
    for part, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))
} | {"d_model": 32}
_XLNET = {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4}
# four layers: every third one of ModernBERT attends globally, the others to their neighbours
_MODERNBERT = {**_SMALL, "num_hidden_layers": 4, "local_attention": 8}

_BUILDERS: dict[str, tuple[Callable, type, dict, str]] = {
    "bert": (_bert_tokenizer, transformers.BertConfig, _SMALL, "BertForMaskedLM"),
    "mbert": (partial(_bert_tokenizer, lower=False), transformers.BertConfig, _SMALL, "BertForMaskedLM"),
    "distilbert": (_bert_tokenizer, transformers.DistilBertConfig, _DISTILBERT, "DistilBertForMaskedLM"),
    "electra": (
        _bert_tokenizer,
        transformers.ElectraConfig,
        {**_SMALL, "embedding_size": 16},
        "ElectraForMaskedLM",
    ),
    "mpnet": (
        _mpnet_tokenizer,
        transformers.MPNetConfig,
        {**_SMALL, "max_position_embeddings": WINDOW + 2},
        "MPNetForMaskedLM",
    ),
    "roberta": (_roberta_tokenizer, transformers.RobertaConfig, _OFFSET, "RobertaForMaskedLM"),
    "modernbert": (_modernbert_tokenizer, transformers.ModernBertConfig, _MODERNBERT, "ModernBertForMaskedLM"),
    "bart": (_roberta_tokenizer, transformers.BartConfig, _BART, "BartForConditionalGeneration"),
    "albert": (
        _albert_tokenizer,
        transformers.AlbertConfig,
        {**_SMALL, "embedding_size": 16},
        "AlbertForMaskedLM",
    ),
    "xlm-roberta": (_xlmr_tokenizer, transformers.XLMRobertaConfig, _OFFSET, "XLMRobertaForMaskedLM"),
    "bertweet": (_bertweet_tokenizer, transformers.RobertaConfig, _OFFSET, "RobertaForMaskedLM"),
    "xlnet": (_xlnet_tokenizer, transformers.XLNetConfig, _XLNET, "XLNetLMHeadModel"),
    "gpt2": (_gpt2_tokenizer, transformers.GPT2Config, _GPT2, "GPT2LMHeadModel"),
    "llama": (
        _llama_tokenizer,
        transformers.LlamaConfig,
        {**_SMALL, "num_key_value_heads": 2},
        "LlamaForCausalLM",
    ),
}
