"""What `clinometer audit --dry-run` prints: requests, tokens, cost and time, before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinometer.cli.progress import duration
from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.workflows import AuditRequest


def print_estimate(request: AuditRequest) -> None:
    """Print a line for every stage of every audit, and the sum."""
    from clinometer.workflows.estimate import estimate_audit

    rows = list(estimate_audit(request))
    show(f"{'audit':<17} {'model':<24} {'stage':<12} {'requests':>9} {'tokens in':>11} {'tokens out':>11}  time")
    for row in rows:
        known = row.tokens_in > 0
        count = f"{row.requests:,}" if row.requests else "later"
        given = f"{row.tokens_in:,}" if known else "–"
        made = f"≤ {row.tokens_out:,}" if known and row.sent else "–"
        time = f"about {duration(row.seconds)}" if row.seconds else "–"
        show(f"{row.audit:<17} {row.model[:24]:<24} {row.stage:<12} {count:>9} {given:>11} {made:>11}  {time}")
    sent = [row for row in rows if row.sent]
    if sent:
        requests = sum(row.requests for row in sent)
        asked, answered = sum(row.tokens_in for row in sent), sum(row.tokens_out for row in sent)
        cost = sum(row.cost for row in sent)
        priced = f", cost at most {cost:,.4g}" if cost else ""
        # what depends on earlier answers has no tokens yet: a sum without it must not pass for the whole bill
        open_ = any(not row.tokens_in for row in sent)
        rest = "; stages marked – come on top: bound them with --max-tokens or --max-cost" if open_ else ""
        show()
        told = f"about {asked:,} tokens in, at most {answered:,} out"
        show(f"to endpoints: {requests:,} requests, {told}{priced}{rest}")
        show(
            "This counts one answer for each request; up to 20 more requests find out what the endpoint offers. "
            "If it gives several answers at once, fewer requests are sent. If it gives no log-probabilities, each "
            "question about a word takes 64."
        )
    if any(row.seconds for row in rows):
        show()
        show("Times are estimated from a few of these questions, timed here; scorers and encoders come on top.")
    if any(not row.requests for row in rows):
        show()
        show("later: depends on the answers of the stage before.")
    show("Nothing was sent, nothing was written.")
