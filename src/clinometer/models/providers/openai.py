"""Opens models behind an address that speak as OpenAI's interface does: `openai:NAME`."""

from __future__ import annotations

import functools
import logging
from typing import final

from clinometer.errors import ModelError
from clinometer.models.builtin import absent_packages
from clinometer.models.endpoint.address import OPENAI_KEY, Address
from clinometer.models.endpoint.model import EndpointModel, capabilities_of, endpoint_info, run_in_loop
from clinometer.models.endpoint.offer import ASSUMED, METER, Offer, discover
from clinometer.models.endpoint.transport import HttpTransport
from clinometer.types import ModelSpec

PREFIX = "openai:"

logger = logging.getLogger("clinometer")


@final
class OpenAIEndpoints:
    """The provider of `openai:NAME`, at the `base_url` of its spec, or at OpenAI's own address."""

    name = "endpoints"

    def claims(self, name: str) -> bool:
        """Tell whether a name begins with `openai:`."""
        return name.startswith(PREFIX)

    def check(self, spec: ModelSpec) -> None:
        """Raise ModelError for a wrong address, and where a package or OpenAI's key is missing; sends nothing."""
        address = Address.of(spec.base_url)
        if not _served(spec):
            raise ModelError(f"{spec.name!r} names no model; expected openai:NAME, as the endpoint calls it")
        if absent_packages("openai"):
            raise ModelError(f'{spec.name!r} needs the package openai: pip install "clinometer[api]"')
        if address.is_openai and not address.key().value:
            raise ModelError(
                f"{spec.name!r} needs a key in the environment variable {OPENAI_KEY}; for a server of "
                "your own, give its address with --base-url"
            )

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what is asked of such a model; sends nothing: what it really offers shows when it is opened."""
        self.check(spec)
        return capabilities_of(ASSUMED.asked_as(spec.kind))

    def planned(self, spec: ModelSpec) -> EndpointModel:
        """Return a model that is not connected, to see what would be asked of most endpoints."""
        self.check(spec)
        return _model(spec, ASSUMED.asked_as(spec.kind))

    def load(self, spec: ModelSpec, *, device: str) -> EndpointModel:
        """Find out what the endpoint offers and return it as a model; `device` is the endpoint's own matter."""
        self.check(spec)
        return _model(spec, _asked(spec))


def _model(spec: ModelSpec, offer: Offer) -> EndpointModel:
    address, served = Address.of(spec.base_url), _served(spec)
    info = endpoint_info(spec.name, served=served, where=address.url, offer=offer)
    transport = HttpTransport(address, address.key())
    return EndpointModel(info=info, transport=transport, offer=offer, served=served, where=address.url)


def _asked(spec: ModelSpec) -> Offer:
    """Return what the endpoint offers in the way in which the spec wants it asked."""
    address = Address.of(spec.base_url)
    offer = _offer(_served(spec), address).asked_as(spec.kind)
    if offer.chat is None and offer.plain is None:
        what = "chat completions" if spec.kind == "chat" else "plain completions"
        raise ModelError(f"{address.url} offers no {what} for {_served(spec)!r}; leave out --as {spec.kind}")
    return offer


def _served(spec: ModelSpec) -> str:
    return spec.name.removeprefix(PREFIX)


@functools.cache
def _offer(served: str, address: Address) -> Offer:
    """Find out once in a process what an endpoint offers."""
    key = address.key()
    meter = METER.get()()  # here, since another thread may run the loop
    if key.value and address.url.startswith("http:") and not address.is_here:
        logger.warning("the key is sent to %s without encryption; use https if you can", address.host)

    async def find_out() -> Offer:
        transport = HttpTransport(address, key)
        try:
            return await discover(transport, served, where=address.url, meter=meter)
        finally:
            await transport.close()

    offer = run_in_loop(find_out())
    logger.info("%s, %s", address.url, "; ".join(f"{name}: {value}" for name, value in offer.settings.items()))
    return offer
