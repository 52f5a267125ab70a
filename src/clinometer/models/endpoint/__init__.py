"""Models behind an address: what an endpoint offers, what is sent to it, and what its answers say. No torch."""
