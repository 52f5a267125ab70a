"""One contract for every family: whatever an adapter does to be fast, it changes no number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    XLNetLMHeadModel,
)

from clinometer.errors import RequestError
from clinometer.models.load import CAPABILITIES, load_model
from clinometer.models.protocols import (
    METHODS,
    CanClassify,
    CanContinue,
    CanEmbed,
    CanFill,
    CanLaunch,
    CanRescore,
    CanSample,
    CanScore,
)
from clinometer.types import MASK, Classify, Embed, Fill, LogLikelihood, ModelSpec, NextWord, Sample
from tests.models.tiny import CAUSAL, MASKED, PERMUTED

FILLERS = MASKED + PERMUTED
CLASSIFIERS = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "gpt2": "GPT2"}
ENCODERS = {"bert": "BertModel", "mpnet": "MPNetModel", "modernbert": "ModernBertModel", "gpt2": "GPT2Model"}

# of different lengths, with the mask at the start, in the middle and before a full stop
TEXTS = (
    "The nurse [MASK] there.",
    "It was [MASK].",
    "[MASK] said that she is a teacher; she said that he is an engineer.",
    "Why are people so [MASK]?",
    "The person is a carpenter, and the [MASK] is my friend while it rained and rained.",
    "a [MASK] book!",
    "The [MASK] works as a nurse",
    "Nothing was [MASK]",
)
# not all are one token everywhere; "incomprehensibilities" is nowhere
WORDS = ("great", "terrible", "nurse", "doctor", "woman", "man", "film", "was", "the", "incomprehensibilities")


@pytest.fixture(params=FILLERS)
def family(request):
    return request.param


@pytest.fixture
def model(family, tiny_model):
    return tiny_model(family)


@pytest.fixture
def plain(family, tiny_folder, tiny_tokenizer):
    """Return a function: text, words -> log-probabilities, by nothing but transformers."""
    folder = tiny_folder(family)
    tokenizer = tiny_tokenizer(family)
    network = (XLNetLMHeadModel if family == "xlnet" else AutoModelForMaskedLM).from_pretrained(folder).eval()

    @torch.no_grad()
    def logprobs(text: str) -> torch.Tensor:
        # XLNet was trained with a segment of its own for the token at the end
        inputs = tokenizer(
            text.replace(MASK, tokenizer.mask_token), return_tensors="pt", return_token_type_ids=family == "xlnet"
        )
        at = int((inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[-1])
        if family == "xlnet":
            length = inputs["input_ids"].shape[1]
            inputs["perm_mask"] = torch.zeros(1, length, length)
            inputs["perm_mask"][0, :, at] = 1  # no position sees the word
            inputs["target_mapping"] = torch.zeros(1, 1, length)
            inputs["target_mapping"][0, 0, at] = 1
            return network(**inputs).logits[0, 0].log_softmax(dim=0)
        return network(**inputs).logits[0, at].log_softmax(dim=0)

    return logprobs


@pytest.fixture
def token_of(family, tiny_tokenizer):
    """Return a function: word -> its token after a space inside a sentence; None if it is not one."""
    tokenizer = tiny_tokenizer(family)

    def token(word: str) -> int | None:
        begun = tokenizer("the nurse", add_special_tokens=False)["input_ids"]
        ids = tokenizer(f"the nurse {word}", add_special_tokens=False)["input_ids"][len(begun) :]
        return ids[0] if len(ids) == 1 else None

    return token


def assert_same(answers, others, tolerance=1e-5):
    assert len(answers) == len(others)
    for answer, other in zip(answers, others, strict=True):
        assert answer.words == other.words
        assert answer.logprobs == pytest.approx(other.logprobs, abs=tolerance, nan_ok=True)


def test_offers_what_it_says(model, family):
    assert isinstance(model, CanFill)
    assert model.info.capabilities == CAPABILITIES[model.info.kind] == ("fill",)
    assert model.info.kind == ("permuted" if family == "xlnet" else "masked")
    assert model.info.parameters > 0
    assert all(len(checksum) == 64 for checksum in (model.info.weights, model.info.tokenizer, model.info.code))


def test_given_words_equal_a_plain_forward_pass(model, plain, token_of):
    answers = model.fill([Fill(text=text, words=WORDS) for text in TEXTS])
    known = [token_of(word) for word in WORDS]
    assert sum(token is not None for token in known) >= 4
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = plain(text)
        wanted = [math.nan if token is None else float(expected[token]) for token in known]
        assert answer.words == WORDS
        assert answer.logprobs == pytest.approx(wanted, abs=1e-5, nan_ok=True)


def test_softmax_over_given_words(model, plain, token_of):
    answers = model.fill([Fill(text=text, words=WORDS, normalise="words") for text in TEXTS])
    known = [token_of(word) for word in WORDS]
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = iter(plain(text)[[token for token in known if token is not None]].log_softmax(dim=0).tolist())
        wanted = [math.nan if token is None else next(expected) for token in known]
        assert answer.logprobs == pytest.approx(wanted, abs=1e-5, nan_ok=True)
        assert sum(math.exp(p) for p in answer.logprobs if not math.isnan(p)) == pytest.approx(1)


def test_two_spellings_of_one_token_count_once(model):
    once = model.fill([Fill(text=TEXTS[0], words=("great", "nurse"), normalise="words")])[0]
    twice = model.fill([Fill(text=TEXTS[0], words=("great", "nurse", "great"), normalise="words")])[0]
    assert twice.logprobs == pytest.approx((*once.logprobs, once.logprobs[0]), abs=1e-6)


def test_top_words_equal_a_plain_forward_pass(model, plain, family, tiny_tokenizer):
    tokenizer = tiny_tokenizer(family)
    answers = model.fill([Fill(text=text, top_k=20) for text in TEXTS])
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = plain(text)
        expected[tokenizer.all_special_ids] = -math.inf
        expected[len(tokenizer) :] = -math.inf
        values, tokens = expected.sort(descending=True)
        assert answer.logprobs == pytest.approx(values[:20].tolist(), abs=1e-5)
        assert len(set(answer.words)) == 20
        # the raw token contains its name, or the name is "##" and the raw token
        for word, raw in zip(answer.words, tokenizer.convert_ids_to_tokens(tokens[:20].tolist()), strict=True):
            assert word in (raw, f"##{raw}", raw.lstrip("Ġ▁"))


def test_top_words_can_be_asked_for_by_name(model):
    """What the top says of a whole word is what asking for that word says; pieces cannot be asked for."""
    top = model.fill([Fill(text=TEXTS[1], top_k=200)])[0]
    assert list(top.logprobs) == sorted(top.logprobs, reverse=True)
    asked = model.fill([Fill(text=TEXTS[1], words=top.words)])[0]
    for word, said, answered in zip(top.words, top.logprobs, asked.logprobs, strict=True):
        assert math.isnan(answered) if word.startswith("##") else answered == pytest.approx(said, abs=1e-6)
    assert any(word.startswith("##") for word in top.words)
    assert any(not word.startswith("##") for word in top.words)


def test_more_than_the_vocabulary_gives_all_of_it_without_special_tokens(model, family, tiny_tokenizer):
    tokenizer = tiny_tokenizer(family)
    answer = model.fill([Fill(text=TEXTS[1], top_k=100_000)])[0]
    assert len(answer.words) == len(tokenizer) - len(set(tokenizer.all_special_ids))
    assert len(set(answer.words)) == len(answer.words)


@pytest.mark.parametrize("ask", [{"words": WORDS}, {"words": WORDS, "normalise": "words"}, {"top_k": 7}])
def test_batch_and_order_do_not_matter(model, ask):
    """One by one, all eight together (padding harmless), in another order: the same answers."""
    batch = [Fill(text=text, **ask) for text in TEXTS]
    together = model.fill(batch)
    assert_same(together, [model.fill([query])[0] for query in batch])
    order = [5, 0, 7, 2, 4, 1, 6, 3]
    assert_same([together[index] for index in order], model.fill([batch[index] for index in order]))


def test_different_questions_in_one_batch(model):
    asks = itertools.cycle(
        [{"words": WORDS}, {"top_k": 3}, {"words": ("great", "was"), "normalise": "words"}, {"top_k": 5}]
    )
    batch = [Fill(text=text, **next(asks)) for text in TEXTS]
    assert_same(model.fill(batch), [model.fill([query])[0] for query in batch])


def test_context_before_the_text(model, plain, token_of):
    context = "The man works as a doctor."
    answer = model.fill([Fill(text=TEXTS[0], context=context, words=("great", "nurse"))])[0]
    expected = plain(f"{context} {TEXTS[0]}")
    assert answer.logprobs == pytest.approx(
        [float(expected[token_of(word)]) for word in ("great", "nurse")], abs=1e-5
    )


def test_a_mask_in_the_context_is_text(model):
    """Only the text is searched for blanks."""
    answer, other = model.fill(
        [Fill(text=TEXTS[1], context=context, words=("great",)) for context in ("It was [MASK].", "It was great.")]
    )
    assert math.isfinite(answer.logprobs[0])
    assert answer.logprobs != other.logprobs


def test_long_context_is_cut_at_its_start(model):
    if not model.info.window:
        pytest.skip("reads any length")
    context = "The nurse said that she is a teacher. " * 40
    query = Fill(text=TEXTS[0], context=context, words=("great", "nurse"))
    assert model.cost([query]) == [model.info.window]
    more = Fill(text=TEXTS[0], context="What was said before? " + context, words=("great", "nurse"))
    assert_same(model.fill([query]), model.fill([more]))
    other_end = Fill(text=TEXTS[0], context=context + "The man works.", words=("great", "nurse"))
    assert model.fill([query])[0].logprobs != pytest.approx(model.fill([other_end])[0].logprobs, abs=1e-4)


def test_long_text_is_an_error(model):
    if not model.info.window:
        pytest.skip("reads any length")
    query = Fill(text="The [MASK] said: " + "the nurse works and " * 60, words=("great",))
    with pytest.raises(RequestError, match=r"longer than the model's window of 64: 'The \[MASK\] said: .* … .*'"):
        model.cost([query])


def test_separator(model, family):
    space, separator = (
        Fill(text=TEXTS[0], context="It was great.", join=join, words=("great",))
        for join in ("space", "separator")
    )
    assert model.fill([space])[0].logprobs != pytest.approx(model.fill([separator])[0].logprobs, abs=1e-4)
    if family != "bertweet":  # it writes the beginning of a text like its middle, as WordPiece does
        return
    assert model.cost([separator])[0] == model.cost([space])[0] + 1


def test_cost_is_the_length_in_tokens(model, family, tiny_tokenizer):
    tokenizer = tiny_tokenizer(family)
    lengths = [len(tokenizer(text.replace(MASK, tokenizer.mask_token))["input_ids"]) for text in TEXTS]
    assert model.cost([Fill(text=text, words=("great",)) for text in TEXTS]) == lengths


@pytest.mark.parametrize("text", ["The nurse works.", "The [MASK] is a [MASK].", "The <mask> works.", ""])
@pytest.mark.parametrize("ask", ["cost", "fill"])
def test_not_exactly_one_mask(model, text, ask):
    with pytest.raises(RequestError) as error:
        getattr(model, ask)([Fill(text=text, words=("great",))])
    assert repr(text) in str(error.value)
    assert "write [MASK]" in str(error.value)


def test_hidden_blank_is_not_read(model):
    """A hidden blank is not the one that is asked for, wherever it stands."""
    first, second = (
        model.fill([Fill(text=text, words=("great", "nurse"))])[0]
        for text in ("The [HIDDEN] was [MASK].", "The [MASK] was [HIDDEN].")
    )
    assert first.logprobs != pytest.approx(second.logprobs, abs=1e-4)


@pytest.mark.parametrize("ask", [{}, {"words": ("great",), "top_k": 3}, {"top_k": 3, "normalise": "words"}])
def test_nothing_or_too_much_asked(model, ask):
    with pytest.raises(RequestError):
        model.cost([Fill(text=TEXTS[0], **ask)])


# ---------------------------------------------------------------------------------------------------------
# Causal models: the word after a text, and how probable a text is

PREFIXES = tuple(text.split(MASK)[0].strip() for text in TEXTS if not text.startswith(MASK))


@pytest.fixture(params=CAUSAL)
def causal(request, tiny_model, tiny_folder, tiny_tokenizer):
    """Give the adapter, and a function: text -> its ids and the log-probabilities after each of them."""
    tokenizer = tiny_tokenizer(request.param)
    network = AutoModelForCausalLM.from_pretrained(tiny_folder(request.param)).eval()

    @torch.no_grad()
    def plain(text: str) -> tuple[list[int], torch.Tensor]:
        inputs = tokenizer(text, return_tensors="pt")
        return inputs["input_ids"][0].tolist(), network(**inputs).logits[0].log_softmax(dim=1)

    return tiny_model(request.param), plain


def test_causal_offers_what_it_says(causal):
    model, _ = causal
    assert model.info.kind == "causal"
    expected = ("next_word", "rescore", "sample", "log_likelihood")
    assert model.info.capabilities == CAPABILITIES["causal"] == expected
    assert all(isinstance(model, protocol) for protocol in (CanContinue, CanRescore, CanSample, CanScore))


def test_next_words_equal_a_plain_forward_pass(causal):
    model, plain = causal
    for prefix, answer in zip(
        PREFIXES, model.next_word([NextWord(text=text, words=WORDS) for text in PREFIXES]), strict=True
    ):
        ids, logprobs = plain(prefix)
        found = 0
        for word, logprob in zip(answer.words, answer.logprobs, strict=True):
            continued = plain(f"{prefix} {word}")[0]
            assert continued[: len(ids)] == ids
            if len(continued) == len(ids) + 1:
                found += 1
                assert logprob == pytest.approx(float(logprobs[-1, continued[-1]]), abs=1e-5)
            else:
                assert math.isnan(logprob)
        assert found >= 4


def test_log_likelihood_equals_a_plain_forward_pass(causal):
    model, plain = causal
    texts = [text.replace(MASK, "nurse") for text in TEXTS]
    for text, answer in zip(
        texts, model.log_likelihood([LogLikelihood(text=text) for text in texts]), strict=True
    ):
        ids, logprobs = plain(text)
        wanted = [float(logprobs[at, token]) for at, token in enumerate(ids[1:])]
        assert answer.tokens == len(wanted)
        assert answer.logprob == pytest.approx(sum(wanted), abs=1e-4)  # up to 40 tokens: 1e-5 for each is 4e-4


def test_causal_batch_and_order_do_not_matter(causal):
    model, _ = causal
    order = [5, 0, 6, 2, 4, 1, 3]
    for ask in ({"words": WORDS}, {"words": WORDS, "normalise": "words"}, {"top_k": 7}):
        batch = [NextWord(text=text, **ask) for text in PREFIXES]
        together = model.next_word(batch)
        assert_same(together, [model.next_word([query])[0] for query in batch])
        assert_same([together[at] for at in order], model.next_word([batch[at] for at in order]))
    drawn = [Sample(prefix=text, n=2, max_new_tokens=5, seed=1) for text in PREFIXES]
    together = model.sample(drawn)
    assert together == [model.sample([query])[0] for query in drawn]
    assert [together[at] for at in order] == model.sample([drawn[at] for at in order])
    scored = [LogLikelihood(text=text) for text in TEXTS]
    for answer, query in zip(model.log_likelihood(scored), scored, strict=True):
        assert answer.logprob == pytest.approx(model.log_likelihood([query])[0].logprob, abs=1e-4)


def test_causal_context(causal):
    model, _ = causal
    query = NextWord(text="The woman is", context="The man works as a doctor.", words=("great", "nurse"))
    apart, joined = model.next_word([query, NextWord(text=f"{query.context} {query.text}", words=query.words)])
    assert apart.logprobs == pytest.approx(joined.logprobs, abs=1e-5)
    long = NextWord(text="The woman is", context="The nurse works. " * 60, words=("great",))
    assert model.cost([long]) == [model.info.window]
    more = NextWord(text="The woman is", context="It was good. " + long.context, words=("great",))
    assert_same(model.next_word([long]), model.next_word([more]))


# ---------------------------------------------------------------------------------------------------------
# Classifiers and encoders: one answer for a whole text


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_classifiers(family, tiny_folder, tiny_tokenizer):
    folder = tiny_folder(family, f"{CLASSIFIERS[family]}ForSequenceClassification")
    meaning = {"LABEL_0": "negative", "LABEL_1": "positive"}
    model = load_model(ModelSpec(name=str(folder), label_map=meaning), device="cpu")
    assert isinstance(model, CanClassify)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    texts = [text.replace(MASK, "nurse") for text in TEXTS]
    together = model.classify([Classify(text=text) for text in texts])
    for text, answer in zip(texts, together, strict=True):
        with torch.no_grad():
            wanted = network(**tiny_tokenizer(family)(text, return_tensors="pt")).logits[0].softmax(dim=0).tolist()
        assert (answer.negative, answer.positive) == pytest.approx(wanted, abs=1e-5)
        assert math.isnan(answer.neutral)
        alone = model.classify([Classify(text=text)])[0]
        assert (answer.negative, answer.positive) == pytest.approx((alone.negative, alone.positive), abs=1e-5)
    assert model.classify([Classify(text=text) for text in texts[::-1]])[0].negative == pytest.approx(
        together[-1].negative, abs=1e-5
    )


@pytest.mark.parametrize("family", ENCODERS)
def test_encoders(family, tiny_folder, tiny_tokenizer, tiny_model):
    model = tiny_model(family, ENCODERS[family])
    assert isinstance(model, CanEmbed)
    network = AutoModel.from_pretrained(tiny_folder(family, ENCODERS[family])).eval()
    texts = [text.replace(MASK, "nurse") for text in TEXTS]
    together = model.embed([Embed(text=text) for text in texts])
    for text, answer in zip(texts, together, strict=True):
        with torch.no_grad():
            mean = network(**tiny_tokenizer(family)(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0)
        assert answer.vector == pytest.approx((mean / mean.norm()).tolist(), abs=1e-5)
        assert answer.vector == pytest.approx(model.embed([Embed(text=text)])[0].vector, abs=1e-5)
    assert model.embed([Embed(text=text) for text in texts[::-1]])[0].vector == pytest.approx(
        together[-1].vector, abs=1e-5
    )


class Columns(Sequence):
    """Requests as columns: each is made when it is read, so that no two readings give the same object."""

    def __init__(self, make, texts):
        self._make, self._texts = make, texts

    def __getitem__(self, at):
        return Columns(self._make, self._texts[at]) if isinstance(at, slice) else self._make(self._texts[at])

    def __len__(self):
        return len(self._texts)


@pytest.mark.parametrize(
    ("family", "head", "make"),
    [
        ("bert", "", lambda text: Fill(text=text, words=WORDS)),
        ("xlnet", "", lambda text: Fill(text=text, top_k=3)),
        ("gpt2", "", lambda text: NextWord(text=text, words=WORDS, normalise="words")),
        ("gpt2", "", lambda text: Sample(prefix=text, n=2, max_new_tokens=3)),
        ("gpt2", "", lambda text: LogLikelihood(text=text)),
        ("bert", "BertModel", lambda text: Embed(text=text)),
        ("bert", "BertForSequenceClassification", lambda text: Classify(text=text)),
    ],
)
def test_a_batch_may_be_any_sequence(family, head, make, tiny_folder):
    meaning = {"LABEL_0": "negative", "LABEL_1": "positive"} if "Classification" in head else {}
    model = load_model(ModelSpec(name=str(tiny_folder(family, head)), label_map=meaning), device="cpu")
    columns = Columns(make, TEXTS)
    batch = list(columns)
    ask = getattr(model, METHODS[type(batch[0])])
    assert repr(ask(columns)) == repr(ask(batch))  # NaN is not equal to itself, but prints the same
    assert model.cost(columns) == model.cost(batch)
    assert list(ask([])) == []
    if isinstance(model, CanLaunch):
        assert repr(list(model.launch(columns)())) == repr(ask(batch))


@pytest.mark.parametrize(("family", "head"), [("gpt2", ""), ("bert", "BertModel"), ("xlnet", ""), ("bert", "")])
def test_requests_that_a_model_does_not_answer(family, head, tiny_model):
    model = tiny_model(family, head)
    others = [Fill(text=TEXTS[0], top_k=1), NextWord(text="It", top_k=1), Classify(text="It"), Embed(text="It")]
    others = [request for request in others if METHODS[type(request)] not in model.info.capabilities]
    assert len(others) == 3
    for request in others:
        with pytest.raises(RequestError, match=f"not {type(request).__name__}"):
            model.cost([request])
