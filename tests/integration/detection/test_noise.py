from __future__ import annotations

from pathlib import Path

import driftline
from driftline.model.change import Importance
from driftline.model.outcome import Proof, Verdict
from support.servers import Answer, Request, Server, html

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"


def test_noise_raises_no_alarm_but_is_kept_and_explained(tmp_path: Path) -> None:
    page = {"footer": "© 2025 Example", "terms": "Fees are due."}

    def answer(_request: Request) -> Answer:
        return html(f"<main>{FILLER}<p>{page['terms']}</p></main><footer>{page['footer']}</footer>")

    with Server(answer) as server, driftline.open(str(tmp_path / "pages.db")) as pages:
        pages.add(server.url("/"))
        assert pages.check().new == 1
        page["terms"] = "Fees are waived."
        assert pages.check().changed == 1
        changed_at = pages.pages()[0].changed_at
        page["footer"] = "© 2026 Example"
        report = pages.check()
        assert (report.changed, report.unchanged, report.noisy, report.changes) == (0, 1, 1, [])
        watched = pages.pages()[0]
        assert (watched.versions, watched.changed_at) == (3, changed_at)
        newest = pages.history.checks(watched.url)[0]
        assert (newest.verdict, newest.proof, newest.version) == (Verdict.UNCHANGED, Proof.NOISE, 3)
        assert newest.change is not None
        assert (newest.change.importance, newest.change.reason) == (
            Importance.NOISE,
            "Only the copyright year changed.",
        )
        assert "waived" in pages.diff(watched.url), "the newest change that matters, not the newest version"
        assert "2026" in pages.diff(watched.url, 2, 3)
        assert pages.check().noisy == 0, "what was noise once is not reported again"
        assert pages.maintenance.doctor() == []
