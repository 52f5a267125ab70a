"""Requests as token ids: exactly what the family's own tokenizer writes."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import AddedToken
from transformers import AutoTokenizer, BertConfig, GPT2Config, RobertaConfig, XLNetConfig

from clinometer.errors import RequestError
from clinometer.models.local.text import TextEncoder, pad, window_of
from clinometer.questions import Requests
from clinometer.types import Fill, NextWord
from tests.models.tiny import CAUSAL, FAMILIES, MASKED, PERMUTED

TEXTS = (
    "The [MASK] works.",
    "[MASK] works as a nurse.",
    "the nurse is a [MASK]",
    "It was“[MASK]”, really",
    "Why are people so [MASK]?",
    "un[MASK]ing",
    "The  [MASK]  works",
    "café, naïve & 3.5 % (of [MASK])",
)
CONTEXTS = (
    "A review of the film: the story was good, the actors were bad.",
    "Nothing was said",
    "What a day! 100 % fine :-)",
    "(she said)",
    "It's “good”…",
)


@pytest.fixture(params=MASKED + PERMUTED)
def tokenizer(request, tiny_tokenizer):
    return tiny_tokenizer(request.param)


@pytest.fixture(params=FAMILIES)
def any_tokenizer(request, tiny_tokenizer):
    return tiny_tokenizer(request.param)


def fill(tokenizer, window=0, **query):
    return TextEncoder(tokenizer, window=window).fill([Fill(words=("great",), **query)])[0]


@pytest.mark.parametrize("text", TEXTS)
def test_mask_as_the_tokenizer_writes_it(tokenizer, text):
    encoded = fill(tokenizer, text=text)
    expected = tokenizer(text.replace("[MASK]", tokenizer.mask_token))["input_ids"]
    assert encoded.ids.tolist() == expected
    assert encoded.blank == expected.index(tokenizer.mask_token_id)


@pytest.mark.parametrize("context", CONTEXTS)
def test_joined_by_a_space_as_the_tokenizer_writes_it(tokenizer, context):
    for text in TEXTS:
        encoded = fill(tokenizer, text=text, context=context)
        expected = tokenizer(f"{context} {text}".replace("[MASK]", tokenizer.mask_token))["input_ids"]
        assert encoded.ids.tolist() == expected


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("text", ["The woman is", "works as a nurse", "“great”, he said,", "3.5"])
def test_prefixes_as_the_tokenizer_writes_them(family_encoder, text, context):
    tokenizer, encoder = family_encoder
    encoded = encoder.prefixes([NextWord(text=text, context=context), NextWord(text=text)])
    assert encoded[0].ids.tolist() == tokenizer(f"{context} {text}")["input_ids"]
    assert encoded[1].ids.tolist() == tokenizer(text)["input_ids"]


@pytest.fixture(params=CAUSAL)
def family_encoder(request, tiny_tokenizer):
    tokenizer = tiny_tokenizer(request.param)
    return tokenizer, TextEncoder(tokenizer, window=0)


@pytest.mark.parametrize("lstrip", [True, False])
def test_mask_that_does_not_take_the_space_before_it(tiny_folder, lstrip):
    """Whether a mask token absorbs the space is the tokenizer's to say, here for a byte-level one."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder("modernbert"))
    mask = AddedToken("<blank>", lstrip=lstrip, special=True, normalized=False)
    tokenizer.add_special_tokens({"mask_token": mask})
    pieces = tokenizer.convert_ids_to_tokens(fill(tokenizer, text="The [MASK] works").ids.tolist())
    assert pieces[1:-1] == ["The", *([] if lstrip else ["Ġ"]), "<blank>", "Ġworks"]
    joined = fill(tokenizer, text="[MASK] works", context="The nurse").ids.tolist()
    assert joined == tokenizer("The nurse <blank> works")["input_ids"]


@pytest.mark.parametrize(
    "written", ["[SEP]", "</s>", "<s>", "[MASK]", "<mask>", "<|endoftext|>", "<sep>", "<pad>"]
)
def test_special_tokens_spelled_out_in_a_context_stay_text(any_tokenizer, written):
    context = f"so {written} it{written} was {written}{written}"
    ids = TextEncoder(any_tokenizer, window=0).prefixes([NextWord(text="It was", context=context)])[0].ids
    frame = len(any_tokenizer("")["input_ids"])
    special = [token for token in ids.tolist() if token in any_tokenizer.all_special_ids]
    assert len(special) <= frame
    assert (
        any_tokenizer.unk_token_id not in special or any_tokenizer.unk_token_id in any_tokenizer("")["input_ids"]
    )
    # every letter of it is still there
    letters = any_tokenizer.decode(ids.tolist()).replace(" ", "").replace("@@", "").lower()
    assert letters.count(written.lower()[1:-1]) >= 4


@pytest.mark.parametrize("written", ["[SEP]", "</s>", "<mask>", "<sep>"])
def test_special_tokens_spelled_out_in_a_text_stay_text(tokenizer, written):
    encoded = fill(tokenizer, text=f"It {written} was [MASK]{written} and {written}.")
    frame = [token for token in tokenizer("")["input_ids"] if token != tokenizer.mask_token_id]
    special = [token for token in encoded.ids.tolist() if token in tokenizer.all_special_ids]
    assert sorted(special) == sorted([*frame, tokenizer.mask_token_id])
    assert encoded.ids[encoded.blank] == tokenizer.mask_token_id


def test_hidden_blanks_are_masks_but_not_the_one_asked_for(tokenizer):
    text = "The [HIDDEN] said: [MASK] is [HIDDEN]."
    encoded = fill(tokenizer, text=text, context="A [MASK] and a [HIDDEN].")
    masks = np.flatnonzero(encoded.ids == tokenizer.mask_token_id)
    assert len(masks) == 3
    assert encoded.blank == masks[1]


def test_a_hidden_text_is_as_many_masks_as_it_has_tokens(tokenizer):
    for hidden in ("people", "carpenter woman rained", "the Dutch"):
        length = len(tokenizer(f"the {hidden}", add_special_tokens=False)["input_ids"])
        length -= len(tokenizer("the", add_special_tokens=False)["input_ids"])
        encoded = fill(tokenizer, text=f"Why are [HIDDEN:{hidden}] so [MASK] and [HIDDEN]?")
        masks = np.flatnonzero(encoded.ids == tokenizer.mask_token_id)
        assert len(masks) == length + 2
        assert masks[:length].tolist() == list(range(masks[0], masks[0] + length))  # one behind the other
        assert encoded.blank == masks[length]
    one = fill(tokenizer, text="Why are [HIDDEN:people] so [MASK]?")
    if one.ids.tolist().count(tokenizer.mask_token_id) == 2:  # one token: the same as a plain blank
        assert one.ids.tolist() == fill(tokenizer, text="Why are [HIDDEN] so [MASK]?").ids.tolist()


def test_separator_stands_between_two_beginnings(tokenizer):
    encoded = fill(tokenizer, text="It was [MASK].", context="The nurse works", join="separator")
    context, text = (
        tokenizer(part, add_special_tokens=False)["input_ids"]
        for part in ("The nurse works", f"It was {tokenizer.mask_token}.")
    )
    inner = [*context, tokenizer.sep_token_id, *text]
    start = encoded.ids.tolist().index(context[0])
    assert encoded.ids.tolist()[start : start + len(inner)] == inner


def test_no_separator_token(tiny_tokenizer):
    encoder = TextEncoder(tiny_tokenizer("gpt2"), window=0)
    with pytest.raises(RequestError, match="no separator token"):
        encoder.prefixes([NextWord(text="It was", context="So", join="separator")])


@pytest.mark.parametrize("join", ["space", "separator"])
def test_only_the_context_is_cut_and_from_its_start(tiny_tokenizer, join):
    tokenizer = tiny_tokenizer("bert")
    query = {"text": "It was [MASK].", "context": "the man said that she is a nurse", "join": join}
    whole = fill(tokenizer, **query).ids.tolist()
    # [CLS] the man said that she is a nurse ([SEP]) it was [MASK] . [SEP]
    middle = 1 if join == "separator" else 0
    assert len(whole) == 1 + 8 + middle + 4 + 1
    for cut in range(1, 8):
        encoded = fill(tokenizer, window=len(whole) - cut, **query)
        assert encoded.ids.tolist() == [whole[0], *whole[1 + cut :]]
        assert encoded.ids[encoded.blank] == tokenizer.mask_token_id
    # a separator without a context before it would separate nothing
    assert fill(tokenizer, window=6, **query).ids.tolist() == [whole[0], *whole[9 + middle :]]
    with pytest.raises(RequestError, match=r"a text of 6 tokens is longer than the model's window of 5: 'It was"):
        fill(tokenizer, window=5, **query)


def test_long_texts_are_quoted_shortened(tiny_tokenizer):
    tokenizer = tiny_tokenizer("bert")
    with pytest.raises(RequestError) as error:
        fill(tokenizer, text="It was great. " * 500)
    assert len(str(error.value)) < 300
    assert "'It was great. It was" in str(error.value)


def test_each_part_is_encoded_once(tiny_tokenizer):
    tokenizer = tiny_tokenizer("bert")
    encoder = TextEncoder(tokenizer, window=0)
    asked = []
    encode = encoder.tokens._encode
    encoder.tokens._encode = lambda parts: asked.extend(parts) or encode(parts)
    queries = [Fill(text=text, context=context, top_k=1) for text in TEXTS[:3] for context in CONTEXTS]
    first = encoder.fill(queries)
    assert len(asked) == 3 + len(CONTEXTS)
    again = encoder.fill(queries)
    assert len(asked) == 3 + len(CONTEXTS)
    assert all((a.ids == b.ids).all() for a, b in zip(first, again, strict=True))


def test_padding():
    rows = [np.asarray([5, 6, 7], np.int32), np.asarray([8], np.int32)]
    assert pad(rows, pad_id=1).ids.tolist() == [[5, 6, 7], [8, 1, 1]]
    assert pad(rows, pad_id=1).attention.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert pad(rows, pad_id=1, left=True).ids.tolist() == [[5, 6, 7], [1, 1, 8]]
    assert pad(rows, pad_id=1, left=True).attention.tolist() == [[1, 1, 1], [0, 0, 1]]


class Length:
    def __init__(self, model_max_length):
        self.model_max_length = model_max_length


@pytest.mark.parametrize(
    ("limit", "config", "window"),
    [
        (int(1e30), BertConfig(max_position_embeddings=512), 512),
        (int(1e30), RobertaConfig(max_position_embeddings=514, pad_token_id=1), 512),
        (128, RobertaConfig(max_position_embeddings=130, pad_token_id=1), 128),
        (256, BertConfig(max_position_embeddings=512), 256),
        (int(1e30), GPT2Config(n_positions=1024), 1024),
        (int(1e30), XLNetConfig(), 0),
    ],
)
def test_window(limit, config, window):
    assert window_of(Length(limit), config) == window


@pytest.mark.parametrize("join", ["space", "separator"])
@pytest.mark.parametrize("context", ["", "The nurse works", "The nurse works and it rained and rained. " * 9])
def test_lengths_are_known_without_joining(tokenizer, context, join):
    queries = [
        Fill(text=text, context=context, join=join) for text in ("It was [MASK].", "a [MASK] [HIDDEN] film")
    ]
    encoder = TextEncoder(tokenizer, window=40)
    assert encoder.fill_lengths(queries) == [len(encoded.ids) for encoded in encoder.fill(queries)]


def test_each_text_and_context_is_encoded_once(tokenizer, monkeypatch):
    encoder = TextEncoder(tokenizer, window=64)
    given = []
    plain = encoder.tokens._encode
    monkeypatch.setattr(encoder.tokens, "_encode", lambda parts: given.extend(parts) or plain(parts))
    queries = [
        Fill(text=f"{word} It was [MASK]", context=context)
        for context in ("The film was good", "The book was bad")
        for word in ("nurse", "doctor")
    ]
    encoder.fill_lengths(queries)
    encoder.fill(queries)
    assert len(given) == 4  # two contexts, two texts


@pytest.mark.parametrize("window", [0, 24])
def test_columns_are_joined_as_single_requests_are(tokenizer, window):
    """Contexts that are cut, empty, of spaces; both joins; texts of several lengths: against a plain loop."""
    encoder = TextEncoder(tokenizer, window=window)
    contexts = ("", "  ", "The nurse works ", "The nurse works and it rained and rained. " * 3)
    texts = ("It was [MASK].", "nurse nurse It was [MASK]", "a [MASK] [HIDDEN:old people] film")
    joins = ("space", "separator") if tokenizer.sep_token_id is not None else ("space",)
    queries = [Fill(text=t, context=c, join=j) for c in contexts for t in texts for j in joins]
    asked = Requests.of(queries).take(np.arange(len(queries))[::-1])
    matrix = encoder.fill_matrix(asked, pad_id=7)
    singly = [encoder.fill([query])[0] for query in queries[::-1]]
    assert matrix.lengths.tolist() == [len(each.ids) for each in singly] == encoder.fill_lengths(asked)
    assert matrix.blanks.tolist() == [each.blank for each in singly]
    padded = pad([each.ids for each in singly], pad_id=7)
    assert (matrix.ids == padded.ids).all()
    assert (matrix.attention == padded.attention).all()
    even = encoder.fill_matrix(Requests.of([queries[0]] * 3), pad_id=7)
    assert even.attention is None
    start, end = encoder.tokens.start, encoder.tokens.end
    for query, each in zip(queries[::-1], singly, strict=True):
        assert each.ids[each.blank] == tokenizer.mask_token_id
        assert tuple(each.ids[: len(start)]) == start
        assert tuple(each.ids[len(each.ids) - len(end) :]) == end
        if query.context.strip():
            # the end of the context, then what joins, then the text
            text = encoder.fill([Fill(text=query.text)])[0].ids[len(start) :]
            middle = each.ids[len(start) : len(each.ids) - len(text)]
            if query.join == "separator":
                assert middle[-1] == tokenizer.sep_token_id
                middle = middle[:-1]
                assert (each.ids[len(each.ids) - len(text) :] == text).all()
            assert len(middle) > 0
            whole = encoder.context(query.context)
            if query.join == "separator":
                assert (whole[len(whole) - len(middle) :] == middle).all()


def test_texts_made_anew_are_not_taken_for_others(tokenizer):
    """Columns are known by the object that holds their texts: one that is gone must not answer for the next."""
    encoder = TextEncoder(tokenizer, window=0)
    for number in range(200):
        asked = Requests.of([Fill(text=f"{number} It was [MASK].", context=f"{number}")])
        plain = TextEncoder(tokenizer, window=0).fill(asked)[0] if number % 50 == 0 else None
        found = encoder.fill(asked)[0]
        assert plain is None or (plain.ids == found.ids).all()
