"""What an audit will cost, before anything is sent: the numbers are those that are then sent."""

from __future__ import annotations

import pytest

from clinometer.cli import main as cli
from clinometer.types import ModelSpec
from clinometer.workflows import AuditRequest
from clinometer.workflows.estimate import estimate_audit
from clinometer.workflows.specs import describe_audit
from tests.digits_probe import Digits
from tests.endpoint_server import serve_endpoint
from tests.models.tiny import tiny

pytest.importorskip("openai", reason="not installed: openai; see `make setup`")


def test_a_dry_run_counts_requests_and_tokens_and_sends_nothing(tmp_path):
    with serve_endpoint() as endpoint:
        spec = ModelSpec(name="openai:m", base_url=endpoint.url, price={"input": 1.0, "output": 2.0})
        planned = describe_audit(
            [spec], probes=["digits"], profile="quick", seed=0, roles={}, where="test",
            options={"digits": {"questions": 10, "answers": 3, "then": 2}},
        )  # fmt: skip
        request = AuditRequest(spec=planned.spec, folder=tmp_path / "run", probes=(Digits(),))
        first, then = estimate_audit(request)
        assert endpoint.number == 0
    # 10 questions × 3 answers of at most 8 tokens; a question has 24 characters and one message: 6 + 8 tokens
    assert (first.requests, first.tokens_in, first.tokens_out, first.sent) == (30, 30 * 14, 30 * 8, True)
    assert first.cost == pytest.approx((30 * 14 * 1 + 30 * 8 * 2) / 1e6)
    assert (then.requests, then.tokens_in) == (2, 0)
    assert not (tmp_path / "run").exists()


def test_a_sum_says_that_later_stages_come_on_top(monkeypatch, capsys):
    chosen = ["--profile", "quick", "--price", "1/2", "--dry-run", "--base-url", "http://127.0.0.1:9/v1"]

    def printed(*more):
        monkeypatch.setattr("sys.argv", ["clinometer", "audit", "openai:m", *chosen, *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("to endpoints"))

    assert "stages marked – come on top" in printed("--probe", "counterexamples")
    assert "on top" not in printed("--probe", "counterfactual", "--as", "causal")  # has one stage


def test_a_dry_run_of_a_model_here_estimates_the_time(tmp_path, monkeypatch, capsys):
    model = tiny("bert", tmp_path / "bert")
    arguments = ["audit", str(model), "--probe", "counterexamples", "--set", "counterexamples.backgrounds=1"]
    monkeypatch.setattr("sys.argv", ["clinometer", *arguments, "--dry-run", "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    printed = capsys.readouterr().out
    line, _ = [line for line in printed.splitlines() if line.startswith("counterexamples")]
    assert " prompts " in line
    assert " 580 " in line
    assert "about " in line
    assert "Nothing was sent, nothing was written." in printed
    assert not (tmp_path / "run").exists()
