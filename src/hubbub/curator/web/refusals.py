"""Refusals as pages: one constant sentence for each status."""

from __future__ import annotations

SENTENCES = {
    400: "This form cannot be read as it is.",
    402: "The budget does not allow it. Nothing was charged.",
    403: "This form has expired or came from another page. Go back, load the page again and send it once more.",
    404: "There is nothing here, or it is not yours to see.",
    405: "This address does not take that.",
    409: "This form was used for another question. Load the page again and ask once more.",
    422: "This cannot be done as it was asked. Nothing was charged.",
    429: "Too many attempts. Wait a few minutes, then try again.",
    503: "The curator cannot answer now. Ask again: the same form is never charged twice.",
}


class Refused(Exception):
    """A page that is not shown; the sentence depends on the status alone."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(SENTENCES[status])


class SignInNeeded(Exception):
    """Nobody is signed in; the browser is sent to the sign-in page and comes back to ``path``."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__("sign in first")
