"""Planted bugs of the web page: who sees what, and what is charged when."""

from mutants.bug import Bug

ASKING = ("tests/curator/test_asking.py",)
OWNERS = ("tests/curator/test_owners.py",)
TRAILS = ("tests/curator/test_trails.py",)

BUGS = [
    Bug(
        "charged at a price that was not seen",
        "curator/web/asking.py",
        'if not before.free and given.get("seen") != before.seen:',
        "if False:",
        ASKING,
    ),
    Bug(
        "a form's key is drawn anew",
        "curator/web/prices.py",
        '"\\0".join([form, self.sql,',
        '"\\0".join([form, repr(id(self)), self.sql,',
        ASKING,
    ),
    Bug(
        "receipts of everybody",
        "curator/web/history.py",
        'return None if account.role == "owner" else account.name',
        "return None",
        ASKING,
    ),
    Bug(
        "a download asks anew",
        "curator/web/asking.py",
        "known = the.known(account, name, wanted.asked, wanted.price)",
        "known = the.ask(account, name, wanted.asked, wanted.price).answer",
        ASKING,
    ),
    Bug(
        "fresh answers leave at once",
        "curator/timing.py",
        "    if told.computed:",
        "    if False:",
        ASKING,
    ),
    Bug(
        "texts unquoted in built questions",
        "curator/web/building.py",
        """return "'" + value.replace("'", "''") + "'\"""",
        """return "'" + value + "'\"""",
        ASKING,
    ),
    Bug(
        "formulas in files",
        "curator/web/telling.py",
        "isinstance(said, str) and said.startswith(FORMULA)",
        "False",
        ("src/hubbub/curator/web/telling.py",),
    ),
    Bug(
        "tokens withdrawn unasked",
        "curator/web/owners.py",
        'form.get("sure") != "yes" or ',
        "",
        OWNERS,
    ),
    Bug(
        "failures tell why",
        "curator/guarding.py",
        'await say(out, 503, "unavailable", UNAVAILABLE, as_page=as_page)',
        'await say(out, 503, "unavailable", str(problem), as_page=as_page)',
        ASKING,
    ),
    Bug(
        "a trail counts charges twice",
        "curator/web/trails.py",
        "limit=length - found.length",
        "limit=length",
        TRAILS,
    ),
]
