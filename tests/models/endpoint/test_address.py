"""Addresses and keys: where they may come from, and that they go nowhere else."""

from __future__ import annotations

import pytest

from clinometer.errors import ModelError
from clinometer.models.endpoint.address import OPENAI, Address, Key

SECRET = "sk-planted-0123456789"


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET}@127.0.0.1:8080/v1",
        f"http://{SECRET}@host/v1",
        f"https://host/v1?api-key={SECRET}",
        f"https://host/v1#{SECRET}",
    ],
)
def test_an_address_with_a_key_in_it_is_refused_without_repeating_it(url):
    with pytest.raises(ModelError) as caught:
        Address.of(url)
    assert SECRET not in str(caught.value)
    assert "CLINOMETER_API_KEY" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["ftp://x", "host:80", "http://", "http://[::1", "http://h:99999999/", "http://a\nb"]
)
def test_what_is_not_an_address_is_refused(url):
    with pytest.raises(ModelError, match="expected something like"):
        Address.of(url)


def test_openais_key_goes_to_openai_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("CLINOMETER_API_KEY", raising=False)
    assert Address.of("").key().value == SECRET
    assert Address.of(OPENAI).is_openai
    for other in ("https://api.openai.com.evil.example/v1", "http://api.openai.com/v1", "http://127.0.0.1/v1"):
        assert Address.of(other).key().value == ""


def test_the_other_key_goes_to_this_machine_and_to_the_address_that_the_user_named(monkeypatch):
    monkeypatch.setenv("CLINOMETER_API_KEY", SECRET)
    monkeypatch.delenv("CLINOMETER_API_URL", raising=False)
    assert Address.of("http://127.0.0.1:8080/v1").key().value == SECRET
    elsewhere = Address.of("https://models.example/v1")
    assert elsewhere.key().value == ""  # the address may be from somebody else's spec
    monkeypatch.setenv("CLINOMETER_API_URL", "https://models.example/")
    assert elsewhere.key().value == SECRET
    for other in ("http://models.example/v1", "https://models.example:444/v1", "https://models.example.evil/v1"):
        assert Address.of(other).key().value == ""


def test_a_key_does_not_print():
    assert SECRET not in repr(Key(SECRET))
    assert SECRET not in f"{Key(SECRET)}"
