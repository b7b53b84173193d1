"""Secrets that prose tells, and those among the arguments of a call."""

from penstock.apps.recorder.sanitise.checks import DIGITS, WORD
from penstock.apps.recorder.sanitise.names import (
    FIGURES,
    LENIENT,
    RANDOM,
    amount,
    is_secret,
    kind_of,
    speaks_for_itself,
)
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

_PROSE_TRIGGER = (
    r"(?i)\b(?:password|passwort|passphrase|passcode|pwd|secret|token|key|credential|cred|login"
    r"|pw|mdp|kennwort|wachtwoord|senha|clave|parola|wi-?fi|wlan|vpn|ssid|admin|root"
    r"|log(?:s|ged)? ?in"
    r"|sign(?:ed)? ?in|unlock|access code|(?:backup|recovery|scratch)[ _-]code"
    r"|mot de passe)s?\b(?:[^\w\n]|$)"
    r"|contrase\xc3\xb1a|has\xc5\x82o|\xd0[\xbf\x9f]\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb"
    r"|\xe5\xaf\x86\xe7\xa0\x81"
    r"|\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89"
    r"|(?i:\b\w*(?:jwt\.encode|jwt\.decode|hmac\w*|hmac\.new|fernet|aes\.new|SecretKeySpec"
    r"|cipher\w*"
    r"|crypt|sign|verify|sign_?with|auth|login|authenticate|unlock|connect(?:ion)?|set_?cookie"
    r"|cookies?\.set"
    r"|\.cookie|credentials?|secret_?str|signing_?key|api_?key)[ =]{0,3}\()"
    r"|(?:^|[\s\"'-])(?-i:[A-Z][A-Z0-9_]{2,40}=[\"']?[A-Za-z0-9+/_=-]{24})"
    r"|[a-z](?-i:Password)[ \t]|[-*] [^\n:]+: [\w.@-]+ / [^\s/\"']{8}"
    r"|\b(?:acct|account|user)s?\b[^\n/|\"'=:;(){}<>]* / [^\s/\"']{6}"
    r"|\b(?:cat|less|head|type|bat|security|pass|op|vault|bw|lpass|gh|gcloud|az|aws|heroku"
    r"|fly) [^\n>]*(?:auth|pass|secret|cred|token|\.key)[^\n>]*\n"
    r"(?:[^\s]+\n)?[^\s]{10}"
    r"|\b(?:openssl rand|pwgen|auth token)\b[^\n]*\n[^\s]{10}"
    r"|\b(?i:pdo|__construct|mysqli|\w*client(?:\.new)?|\w*session|\w*datasource|\w*mailer"
    r"|database|\w*real_connect|url\.create|ldap_bind)\((?:\$?\w+,\s?)?[\"'][^\"'\n]+[\"'],"
)
_SETTING = Pattern(r"[\s\"'-]?([A-Z][A-Z0-9_]{2,40})=[\"']?([A-Za-z0-9+/_=.-]{24,})[\"']?")
_PUBLIC = Pattern(
    r".*(?:PUBLISHABLE_KEY|PUBLIC_KEY|HASH|SHA[0-9]*|CHECKSUM|DIGEST|COMMIT|INTEGRITY|ID|PUBLIC"
    r"|PUB|REV|FINGERPRINT|CURSOR"
    r"|ETAG|KEY_ID|SUM)"
)
_NEAR = 72
_BEFORE = 48


def said(data: bytes, start: int, end: int) -> Found | None:
    """A value that a sentence tells: near the word for it, and like no word of any language."""
    groups = None
    if data.find(b"=", start, end) >= 0:
        groups = _SETTING.groups(data, start, len(data))
    if groups is not None:
        name, value = data[slice(*groups[1])], data[slice(*groups[2])]
        if _PUBLIC.whole(name) or not speaks_for_itself(value):
            return None
        return (*groups[2], "random-setting", "SECRET", 0.75)
    if data[end - 1 : end] == b"(":
        return _pair(data, start, end) or _argument(data, end)
    if data[end - 2 : end] in (b"',", b'",') and data.find(b"(", start, end) > 0:
        if data[start : start + 9].lower() == b"ldap_bind":
            return _argument(data, end)
        return _last_of_texts(data, end)
    shown = data.find(b"\n", start, end)
    if shown > 0 and _SHOWS.at(data, start, end) != NOWHERE:
        return _alone(data, shown + 1)
    line_end = data.find(b"\n", end - 1, end + _NEAR)
    stop = min(len(data), end + _NEAR) if line_end < 0 else line_end
    pointed = _pointed_at(data, start, end, stop)
    if pointed is not None:
        return pointed
    return _telling(data, start, end - 1, stop) or _telling(
        data, start, max(start - _BEFORE, data.rfind(b"\n", 0, start) + 1), start
    )


def _telling(data: bytes, start: int, at: int, stop: int) -> Found | None:
    """The first word between two places that can only be a secret."""
    if not amount(data[at:stop], FIGURES):
        return None
    while start > at > 0 and data[at - 1] > 32 and data[at] > 32:
        at += 1  # not from the middle of a word
    while (word := _BARE_WORD.search(data, at, stop)) != NOWHERE:
        begin, at = word
        if at == stop > start:
            at = _BARE_WORD.at(data, begin, min(len(data), begin + 200))[1]
        begin = at - len(data[begin:at].lstrip(b"([{<"))
        value = data[begin:at].rstrip(b".,:;?)]}>")
        if speaks_for_itself(value):
            if _PUBLISHED.search(data, max(0, start - 16), start) != NOWHERE:
                return None
            return begin, begin + len(value), "told-secret", "SECRET", 0.75
    return None


_FOR = Pattern(
    r"[\w \x80-\xff]{2,24}? (?:for|of|to|on|at|in|f\xc3\xbcr|fuer|vom|zum|des|im|am|bei|beim"
    r"|von|auf|del|de|du|da|do|van|voor|per) [^\n:;.!?]{1,60}?"
    r"(?: (?:is|was|lautet|ist|es|est|c'est|\xc3\xa8|\xc3\xa9)"
    r"(?: now| still| set to| jetzt| ahora)?:?|:)"
    r"(?:[ \t]{1,4}|\s{0,4}\n\s{0,8})"
    r"(?:\"([^\"\n]{6,200})\"|'([^'\n]{6,200})'|([^\s\"'\x60]{6,200}))"
)
_CHANGED = Pattern(
    r"(?i)(?:password|passwort|pwd|pw)\b[^\n.:;\"']{0,40} (?:to|auf) ([^\s\"'\x60,;]{6,64})"
)
_PREPOSITIONS = frozenset(
    b"for of to on at in f\xc3\xbcr fuer vom zum des im am bei beim von auf del de du da do van "
    b"voor per".split()
)
_PASSWORDS = (
    b"password", b"passwort", b"kennwort", b"pwd", b"pw", b"passcode", b"mot de passe", b"senha",
    b"clave", b"contrase\xc3\xb1a",
)  # fmt: skip
_SHOWS = Pattern(
    r"(?:cat|less|head|type|bat|security|pass|op|vault|bw|lpass|gh|gcloud|az|aws|heroku|fly) "
    r"|openssl rand|pwgen|auth token"
)
_HEX = Pattern(r"[0-9a-f]{32,128}")
_PASSWORD_AND = Pattern(
    r"(?i)(?:password|passwort|kennwort|pwd|pw|passcode|mot de passe|senha|clave"
    r"|contrase\xc3\xb1a)[ \t]([^\s\"'\x60=:(){}<>\[\]]{8,64})"
)
_CODES = Pattern(
    r"(?i)(?:backup|recovery|scratch)[ _-]codes?(?:[^\n:]{0,80}[:\n]|[^\w\n]{1,6})[\s\"'\[]*"
    r"((?:(?:[0-9]{1,2}[.)] )?[A-Za-z0-9]{4,20}(?:[ -][A-Za-z0-9]{4,10}){0,3}"
    r"(?:[\s,;\"'\]]{1,5}|$)){1,16})"
)
_USER_AND = Pattern(
    r"(?i)(?:credential|cred|login|log ?in|sign ?in|admin|root|acct|account|user)s?\b"
    r"[^\n/|]{0,40} / ([^\s\"'\x60/]{6,64})"
)
_ENTERED = Pattern(
    r"(?i)(?:logs?|logged|sign)s? ?in\b[^\n]{0,60} (?:with|and|using|as) ([^\s\"'\x60]{8,64})"
)
_LISTED = Pattern(r"[-*] [^\n:]{1,40}: [\w.@-]+ / ([^\s\"'\x60/]{8,64})")
_CALLED = Pattern(r"(?i)\w*?(?:auth|login|authenticate|credentials?|sign_?in)[ =]{0,3}\(")
_CONNECTS = Pattern(r"(?i)\w*?connect(?:ion)?[ =]{0,3}\(\s*[\"'][^\"'\n]{1,120}[\"']\s*,")
_PAIR_OF_TEXTS = Pattern(
    r"\s*[\"'][^\"'\n]{1,80}[\"']\s*,\s*[bfru@]?[\"']([^\"'\n]{6,100})[\"']\s*[,)]"
)


def _pointed_at(data: bytes, start: int, end: int, stop: int) -> Found | None:
    """What a sentence points at: `the password for staging is …`, `login: admin / …`, a list."""
    if not amount(data[start : stop + _NEAR], _TELLING):
        return None
    after = end if data[end - 1] in _OF_WORDS else end - 1
    following = data[after : after + 6].split(b" ", 2)
    if len(following) > 2 and not following[0] and following[1] in _PREPOSITIONS:
        return _told_of(data, start, end, stop) or _changed(data, start, stop)
    word = data[start:end].lower()
    if not word.isascii():
        return _told_abroad(data, end)
    if b"code" in word:
        codes = _CODES.groups(data, start, min(len(data), start + 400))
        return None if codes is None else _codes(data, *codes[1])
    return (
        (_beside(data, start, stop) if word.startswith(_PASSWORDS) else None)
        or (_entered(data, start, stop) if word.startswith((b"log", b"sign")) else None)
        or (_second(data, start, stop) if data.find(b" / ", start, stop) >= 0 else None)
    )


def _beside(data: bytes, start: int, stop: int) -> Found | None:
    """`SSID guests, password …`."""
    groups = _PASSWORD_AND.groups(data, start, stop)
    value = data[slice(*groups[1])].rstrip(b".,;!?") if groups else b""
    if groups is None or amount(value, FIGURES) < 2:
        return None
    if not is_secret(LENIENT, value, quoted=False, prose=True):
        return None
    return groups[1][0], groups[1][0] + len(value), "told-secret", "PASSWORD", 0.8


def _second(data: bytes, start: int, stop: int) -> Found | None:
    """`login: admin / …`."""
    pair = _USER_AND.groups(data, start, stop) or _LISTED.groups(data, start, stop)
    told = data[slice(*pair[1])].rstrip(b".,;)") if pair else b""
    if pair is None or not _paired(told):
        return None
    return pair[1][0], pair[1][0] + len(told), "told-pair", "PASSWORD", 0.75


def _entered(data: bytes, start: int, stop: int) -> Found | None:
    """`log in as ada with …`."""
    groups = _ENTERED.groups(data, start, min(len(data), stop + _NEAR))
    value = data[slice(*groups[1])].rstrip(b".,;!?)") if groups else b""
    if groups is None or not amount(value, FIGURES) or not _mixed(value):
        return None
    return groups[1][0], groups[1][0] + len(value), "told-pair", "PASSWORD", 0.75


def _told_of(data: bytes, start: int, end: int, stop: int) -> Found | None:
    """`the password for staging is …`, in some languages."""
    groups = _FOR.groups(data, start, min(len(data), stop + _NEAR))
    if groups is None:
        return None
    of = data.rfind(b" ", max(0, start - 16), max(0, start - 1)) + 1 or start
    kind = (
        kind_of(data[of : end - 1].replace(b" ", b"_"))
        or kind_of(data[start : end - 1].replace(b" ", b""))
        or _foreign(data[start:end])
    )
    span = next(each for each in groups[1:] if each != NOWHERE)
    quoted = span != groups[3]
    begin, value_end = span
    if not quoted:
        value_end = _BARE_WORD_END.at(data, begin, min(len(data), begin + 200))[1]
    text = data[begin:value_end]
    text = text if quoted else text.rstrip(b".,:;!?)]}")
    if kind is None or not is_secret(kind[1], text, quoted=quoted, prose=not quoted):
        return None
    return begin, begin + len(text), "told-secret", kind[0], 0.8


def _changed(data: bytes, start: int, stop: int) -> Found | None:
    """`changed the password of the lab to …`."""
    groups = _CHANGED.groups(data, start, stop)
    if groups is None:
        return None
    value = data[slice(*groups[1])].rstrip(b".,:;?)]}")
    if not _mixed(value):
        return None
    return groups[1][0], groups[1][0] + len(value), "told-secret", "PASSWORD", 0.8


_TELLING = FIGURES + b"\"'"
"""Without a digit or a quote, nothing near a word is pointed at."""
_OF_WORDS = frozenset(WORD | set(range(128, 256)))
_FOREIGN = (b"passe", b"clave", b"senha", b"parola", b"wachtwoord", b"haslo", b"mdp")


_TELLS = Pattern(
    r"[^\n:]{0,60}?(?::|\xef\xbc\x9a|\xe3\x80\x8c|\xe6\x98\xaf)[ \t]{0,4}"
    r"([\x21\x23-\x26\x28-\x2b\x2d-\x3a\x3c-\x7e]{6,64})"
)


def _told_abroad(data: bytes, end: int) -> Found | None:
    """What stands behind the colon, where the word before it is of another script."""
    groups = _TELLS.groups(data, end, min(len(data), end + 200))
    if groups is None:
        return None
    value = data[slice(*groups[1])].rstrip(b".!?)]}")
    if not value.isascii() or not is_secret(LENIENT, value, quoted=False, prose=True):
        return None
    return groups[1][0], groups[1][0] + len(value), "told-secret", "PASSWORD", 0.8


def _foreign(word: bytes) -> "tuple[str, int] | None":
    """A word for a password in another language than ours."""
    known = not word.isascii() or any(each in word.lower() for each in _FOREIGN)
    return ("PASSWORD", LENIENT) if known else None


def _alone(data: bytes, at: int) -> Found | None:
    """A secret that a file holds, as a terminal shows it: alone on one of the first two lines."""
    for _ in range(2):
        stop = data.find(b"\n", at, at + 200)
        stop = min(len(data), at + 200) if stop < 0 else stop
        line = data[at:stop].strip()
        if speaks_for_itself(line) or _HEX.whole(line) or _is_random(line):
            begin = data.index(line, at)
            return begin, begin + len(line), "shown-secret", "SECRET", 0.75
        at = stop + 1
    return None


def _is_random(line: bytes) -> bool:
    return len(line) >= 16 and is_secret(RANDOM, line, quoted=False) and b"/" not in line


def _last_of_texts(data: bytes, at: int) -> Found | None:
    """The last of the texts with which something is made that logs in: host, user, password."""
    groups = _HOST_USER.groups(data, at, min(len(data), at + 240))
    if groups is not None and is_secret(LENIENT, data[slice(*groups[1])], quoted=True, prose=True):
        return (*groups[1], "login-argument", "PASSWORD", 0.8)
    second = _ONE_MORE.groups(data, at, min(len(data), at + 240))
    if second is not None and is_secret(RANDOM, data[slice(*second[1])], quoted=True):
        return (*second[1], "login-argument", "SECRET", 0.8)
    return None


_ONE_MORE = Pattern(r"\s*[\"']([^\"'\s]{24,100})[\"']\s*\)")
_HOST_USER = Pattern(
    r"\s*(?:[0-9]{2,5}\s*,\s*)?[\"'][^\"'\n]{1,80}[\"']\s*,\s*[\"']([^\"'\n]{6,100})[\"']\s*[,)]"
)
_BARE_WORD_END = Pattern(r"[^\s\"'\x60]+")


def _codes(data: bytes, start: int, end: int) -> Found | None:
    """The codes of a list, as far as they have digits."""
    stop = start
    for code in data[start:end].translate(_APART).split():
        at = data.index(code, stop)
        if code.endswith((b".", b")")):
            continue  # the number of a code
        if not amount(code, FIGURES):
            break
        stop = at + len(code)
    return (start, stop, "recovery-codes", "SECRET", 0.85) if stop > start else None


_APART = bytes(32 if each in b",;\"'[]" else each for each in range(256))


def _paired(value: bytes) -> bool:
    """Tell a password from the second of two words: it has several digits, or is mixed."""
    return _mixed(value) or (
        amount(value, FIGURES) > 2 and is_secret(LENIENT, value, quoted=False, prose=True)
    )


def _mixed(value: bytes) -> bool:
    """Tell a password from a word beside a slash: digits, and capitals or signs."""
    return is_secret(LENIENT, value, quoted=False, prose=True) and (
        len(set(map(_sort_of, value))) > 2
    )


def _sort_of(letter: int) -> int:
    return 0 if letter in DIGITS else 3 if letter not in WORD else 1 if letter > 96 else 2


_OF_APP = Pattern(r"[a-z]{4}(?: ?[a-z]{4}){3}")


def _pair(data: bytes, start: int, at: int) -> Found | None:
    """The second of the two texts of a call that logs somebody in."""
    if _CALLED.at(data, start, at)[1] != at:
        at = _CONNECTS.at(data, start, min(len(data), at + 140))[1]
        if at < 0:
            return None
    groups = _PAIR_OF_TEXTS.groups(data, at, min(len(data), at + 240))
    if groups is None:
        return None
    value = data[slice(*groups[1])]
    of_app = _OF_APP.whole(value)
    if not of_app and not is_secret(LENIENT, value, quoted=True, prose=True):
        return None
    return (*groups[1], "login-argument", "PASSWORD", 0.8)


def _argument(data: bytes, at: int) -> Found | None:
    """A key or password among the arguments of a call that takes one."""
    stop = data.find(b"\n", at, at + 200)
    stop = min(len(data), at + 200) if stop < 0 else stop
    while (span := _ARGUMENT.search(data, at, stop)) != NOWHERE:
        begin, at = span[0] + 1, span[1] - 1
        if speaks_for_itself(data[begin:at]) or (
            at - begin >= 16 and is_secret(RANDOM, data[begin:at], quoted=True)
        ):
            return begin, at, "secret-argument", "SECRET", 0.75
        at += 1
    return None


_BARE_WORD = Pattern(r"[^\s\"'\x60\\]{8,}")
_ARGUMENT = Pattern(r"[\"']([^\"'\n]{8,200})[\"']")
_PUBLISHED = Pattern(r"(?i)public|fingerprint|checksum|digest|sha[0-9-]*")


FAMILIES = ((_PROSE_TRIGGER, said),)
