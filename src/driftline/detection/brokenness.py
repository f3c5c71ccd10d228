"""Answers that are not the page, though the server calls them good: walls, errors, logins, empty shells, halves.

A page that turns into one of these has not changed: it could not be read. So the check fails, and the version in force
stays. Only short texts are looked at, for a page may well be about such things, and a wall never says much. What the
page said before counts too: one that always said so says it on purpose.
"""

from __future__ import annotations

import re

_SHORT = 1_500  # letters: walls and error pages say no more
_SHORT_AT_FIRST = 600  # letters: of a page that nothing is known of
_MOST = 0.5  # of the lines before: a page that still says so much is there
_FEW = 80  # letters
_MUCH = 500  # letters: a page that said so much before does not fall silent on purpose
_HALF = 0.7  # of the letters before
_END = 4_096  # bytes
_LOGIN = re.compile(rb"<input\b[^>]{0,500}\btype\s*=\s*[\"']?password\b", re.IGNORECASE)
_SAME_END = 200  # letters before the place where it broke off that may differ

_WALL = re.compile(
    r"checking (?:if the site connection is secure|your browser)|verify(?:ing)? (?:that )?you are (?:a )?human"
    r"|(?:are you|i'?m|you are|you're) not a robot|enable javascript and cookies to continue"
    r"|attention required! \| cloudflare"
    r"|performing security verification|ddos protection by|unusual traffic from your|pardon our interruption"
    r"|request unsuccessful\. incapsula|complete the (?:security check|captcha)|solve (?:this|the) captcha"
    r"|access (?:to this page )?(?:has been )?denied|you have been blocked|blocked by (?:the )?(?:network )?security"
    r"|you don'?t have permission to access|bot (?:detection|verification)|press (?:&|and) hold",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:error|http)[ :-]*(?:40\d|410|429|50[0-4])\b"
    r"|\b(?:40\d|410|429|50[0-4])[ :|.-]*(?:error|not found|forbidden|bad|gateway|service|page|internal|gone|too)"
    r"|(?:page|seite|document|url|resource) (?:was |could )?not (?:be )?found"
    r"|^\W*not found|page introuvable|we'?ll be back (?:soon|shortly)"
    r"|page doesn'?t exist"
    r"|internal server error|bad gateway|gateway time-?out|service (?:is )?(?:temporarily )?unavailable"
    r"|(?:under|down for|scheduled) maintenance|error establishing a database connection"
    r"|an error occurred while processing",
    re.IGNORECASE,
)
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|activate|turn on|requires?|needs?) java-?script|java-?script (?:is )?(?:required|disabled|not enabled)",
    re.IGNORECASE,
)


def why_broken(title: str, text: str, body: bytes, old_text: str | None = None, old_body: bytes = b"") -> str | None:
    """Why this is not the page, in a sentence; None if it may well be. `old_text` is what a known page said before."""
    before = old_text or ""
    if len(text) < (_SHORT if before else _SHORT_AT_FIRST):
        left = _left_of(before, text)
        heading = f"{title}\n{text[:_SHORT]}"
        if left < _MOST and _WALL.search(heading) and not _WALL.search(before[:_SHORT]):
            return "The site put up a wall instead of the page: it wants proof that a person is there."
        replaced = len(before) >= _FEW and not left and len(text) < _MUCH
        if replaced or (len(before) >= _MUCH and len(text) < len(before) / 2 and left < _MOST):
            if not _ERROR.search(before[:_SHORT]) and (_ERROR.search(title) or _ERROR.search(text[:_MUCH])):
                return "The answer is an error page, though the server calls it good."
            if (len(text) < _FEW and len(before) >= _MUCH) or _NEEDS_SCRIPT.search(text):
                return "The answer is an empty shell: what the page said is gone, perhaps for want of JavaScript."
            if _LOGIN.search(body) and not _LOGIN.search(old_body):
                return "The site asks to log in instead of showing the page."
        if not text and (before or old_text is None):
            return "The page shows no text: perhaps it is drawn by JavaScript, which is not run."
    return "The page broke off in the middle." if _broke_off(text, body, before, old_body) else None


def _left_of(before: str, text: str) -> float:
    """The share of what the page said before that it still says, by line."""
    lines = set(before.split("\n")) - {""}
    return len(lines.intersection(text.split("\n"))) / len(lines) if lines else 0.0


def _broke_off(text: str, body: bytes, old_text: str, old_body: bytes) -> bool:
    """Whether the document ends in the middle of what it said before, without the end that it had."""
    if len(text) >= _HALF * len(old_text) or b"</html" not in old_body[-_END:].lower():
        return False
    start = max(len(text) // 2, len(text) - _SAME_END)
    return b"</html" not in body[-_END:].lower() and old_text.startswith(text[:start])
