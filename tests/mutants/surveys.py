"""Planted bugs of surveys, their script, and the web page's sessions."""

from mutants.bug import Bug

SCRIPT = ("tests/browser/test_response.py",)
PAGE = ("tests/browser/test_survey.py",)
KEPT = ("tests/curator/test_surveys.py",)
SESSIONS = ("tests/curator/test_sessions.py",)
WEB = ("tests/curator/test_web.py",)

BUGS = [
    Bug(
        "answers kept for one category too many",
        "curator/web/static/response.js",
        "const others = BigInt(categories - 1);",
        "const others = BigInt(categories);",
        SCRIPT,
    ),
    Bug(
        "ties are not settled in the browser",
        "curator/web/static/response.js",
        "[prefix, known] = [(prefix << WORD) | nextWord(), known + WORD];",
        "return false;",
        SCRIPT,
    ),
    Bug(
        "a remainder instead of another draw",
        "curator/web/static/response.js",
        "if (value < BigInt(bound)) return Number(value);",
        "return Number(value) % bound;",
        SCRIPT,
    ),
    Bug(
        "an insecure generator in the browser",
        "curator/web/static/response.js",
        "crypto.getRandomValues(pool);",
        "pool.fill(0x9e3779b97f4a7c15n);",
        SCRIPT,
    ),
    Bug(
        "answers are sent as they are",
        "curator/web/static/survey.js",
        "report(answer, coins[i], Number(questions[i].dataset.categories))",
        "answer",
        PAGE,
    ),
    Bug(
        "another look throws again",
        "curator/web/static/survey.js",
        "report(answer, coins[i], Number(questions[i].dataset.categories))",
        "report(answer, throwCoins(decimal(questions[i].dataset.epsilon), 2), 2)",
        PAGE,
    ),
    Bug(
        "the answer travels beside the report",
        "curator/web/static/survey.js",
        "const body = { submission, reports,",
        "const body = { submission, reports, invitation: String(questions.map(chosen)),",
        PAGE,
    ),
    Bug(
        "two answers on one set of coins",
        "curator/web/static/survey.js",
        "  change.hidden = true;\n",
        "",
        PAGE,
    ),
    Bug(
        "shares of epsilon rounded up",
        "curator/questionnaire.py",
        "math.floor(steps)",
        "math.ceil(steps)",
        KEPT,
    ),
    Bug(
        "an invitation stays good",
        "curator/surveys.py",
        ".values(used=True)",
        ".values(used=False)",
        KEPT,
    ),
    Bug(
        "a closed survey takes answers",
        "curator/surveys.py",
        "if not found.open:",
        "if False:",
        KEPT,
    ),
    Bug(
        "reports outside the options",
        "curator/surveys.py",
        "0 <= report < len(question.options)",
        "0 <= report <= len(question.options)",
        KEPT,
    ),
    Bug(
        "rotation leaves sessions open",
        "curator/sessions.py",
        "(SESSIONS.c.account == ACCOUNTS.c.name) & (SESSIONS.c.token == ACCOUNTS.c.token)",
        "SESSIONS.c.account == ACCOUNTS.c.name",
        SESSIONS,
    ),
    Bug(
        "sessions never idle out",
        "curator/sessions.py",
        ' or now >= row["seen"] + self._idle',
        "",
        SESSIONS,
    ),
    Bug(
        "forms without their token",
        "curator/web/cookies.py",
        "not hmac.compare_digest(_token(key).encode(), _bytes(sent))",
        "not sent",
        WEB,
    ),
    Bug(
        "a survey for every owner",
        "curator/web/surveys.py",
        "if found.owner != account.name:",
        "if False:",
        WEB,
    ),
]
