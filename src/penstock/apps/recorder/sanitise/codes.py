"""Codes and phrases that somebody tells: PINs and one-time codes, the words that open a wallet."""

from penstock.apps.recorder.sanitise.names import FIGURES, amount, is_phrase
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

_SURE = (
    r"\b(?:pin|puk|passcode|pincode|tan|lockbox|combination|digicode|geheimzahl|t\xc3\xbcrcode)s?\b"
    r"|(?:verification|security|access|door|gate|entry|alarm|pairing|one-?time|installer|log-?in"
    r"|sign-?in|2fa|mfa|auth\w*|sms|confirmation|unlock|safe|best\xc3\xa4tigungs|sicherheits|einmal"
    r"|activation|service"
    r"|zugangs|freischalt)[ -]?codes?\b"
    r"|\xd0\xbf\xd0\xb8\xd0\xbd.?\xd0\xba\xd0\xbe\xd0\xb4"
    r"|\xd0\xba\xd0\xbe\xd0\xb4 \xd0\xbf(?:\xd0\xbe|\xd1\x96)\xd0\xb4\xd1\x82\xd0\xb2"
    r"|code (?:de l'alarme|d'activation|de s\xc3\xa9curit\xc3\xa9|de v\xc3\xa9rification)|keypad"
    r"|\xe9\xaa\x8c\xe8\xaf\x81\xe7\xa0\x81"
)
_WORDS = (
    r"\b(?:password|passwort|kennwort|passphrase|wi-?fi key|wpa key|contrase\xc3\xb1a|senha"
    r"|clave|key content)\b|(?:wlan|netzwerk|wpa)-?schl\xc3\xbcssel"
)
_PERHAPS = (
    r"\b(?:otp|2fa|mfa|totp|authenticator)\b|\bcode (?:it|they|he|she|is|was|now|says)\b"
    r"|\bcode\b|c\xc3\xb3digo"
    r"|codice"
)
_CODE_TRIGGER = rf"(?i)(?:{_SURE}|{_PERHAPS}|{_WORDS}|\b[0-9]{{4,8}} (?:is your|ist ihr) )"
_IS_WORD = Pattern(rf"(?i)(?:{_WORDS})")
_IS_SURE = Pattern(rf"(?i)(?:{_SURE})")
_NUMERIC = Pattern(
    r"[^\n0-9]{0,24}?(?: is| was|:|=|ist|lautet|es)?[ \t]([0-9]{6,24})"
    r"(?:[^\w.,%:/-]|[.,](?:[^0-9]|$)|$)"
)
_CODE = Pattern(
    r"([^\n0-9]{0,48}(?:\n[^\n0-9]{0,24})?)([0-9]{3}[ -][0-9]{3}|[0-9]{2}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4,8})"
    r"(?:[^\w.,%:/-]|[.,](?:[^0-9]|$)|$)"
)
_OTHER = Pattern(
    r"(?i)(?:.|\n)*\b(?:error|exit|status|expires?|valid|port|line|version|after|within|every"
    r"|length"
    r"|than|since|until|up to|at least|at most|timeout|limit|max|min|year|ticket|issue|rfc|build)\b"
    r"(?:.|\n)*"
)
_UNIT = Pattern(
    r" ?(?i:s|sec\w*|ms|min\w*|hours?|h|days?|px|bytes|kb|char\w*|digits?|times|users?)\b"
)
_OF_ANOTHER = Pattern(
    r"(?i)(?:.|\n)*(?:error|status|exit|zip|country|postal|area|http|product|order)[ _-]"
)
_TELLS = Pattern(
    r"(?i)(?:.|\n)*(?:\b(?:is|es|est|ist|lautet|was|now|says|le|take|use|enter|type)"
    r"|[:=#>,\"'\x60(])\s{0,4}"
)


def code(data: bytes, start: int, end: int) -> Found | None:
    """`the alarm PIN is …`, `Your one-time code: …`, `… is your code`."""
    limit = min(len(data), end + 96)
    if data[start : start + 4].isdigit():
        told = data.find(b"code", end, end + 60) > 0
        return (start, data.index(b" ", start), "told-code", "PIN", 0.75) if told else None
    if _IS_WORD.at(data, start, end)[1] == end:
        groups = _NUMERIC.groups(data, end, limit)
        if groups is None or _OTHER.whole(data[end : groups[1][0]]):
            return None
        return (*groups[1], "told-number", "PASSWORD", 0.75)
    groups = _CODE.groups(data, end, limit)
    if groups is None:
        return None
    gap, (begin, stop) = data[slice(*groups[1])], groups[2]
    digits = stop - begin
    sure = _IS_SURE.at(data, start, end)[1] == end
    if digits < (4 if sure else 6) or _OTHER.whole(gap) or _UNIT.at(data, stop, limit) != NOWHERE:
        return None
    if not sure and gap.strip() and not _TELLS.whole(data[start:begin]) and b"show" not in gap:
        return None
    if not sure and _OF_ANOTHER.whole(data[max(0, start - 12) : start]):
        return None
    if digits == 4 and data[begin : begin + 2] in (b"19", b"20") and not _TELLS.whole(gap):
        return None
    return begin, stop, "told-code", "PIN", 0.75


# Phrases

_PHRASE_TRIGGER = (
    r"(?i:mnemonic|bip-?39|(?:seed|recovery|secret|wallet) (?:phrase|words)|seed|wallet|words"
    r"|pass ?phrase"
    r"|password|passwort|kennwort)"
)
_PHRASE = Pattern(
    r"(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}(?:[ ,\n]{1,3}(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}){11,23}"
    r"(?:[^\w ]|\s|$)"
)
_OPENS = Pattern(r"[\n:\"'\x60]")
_QUOTED = Pattern(r"[^\n\"'\x60]{0,40}[\"'\x60]([a-z]{3,10}(?: [a-z]{3,10}){2,7})[\"'\x60]")
_OF_SENTENCES = frozenset(
    b"""the and for you are this that with not from will your have has can was but all any its our
    they their then than when which who what into must may should could would been were each other
    these those also only such here there where how why use using used""".split()
)


def phrase(data: bytes, start: int, end: int) -> Found | int | None:
    """The twelve or more words of a wallet, or a passphrase of some words in quotes."""
    quoted = _QUOTED.groups(data, end, min(len(data), end + 160))
    if quoted is not None:
        words = data[slice(*quoted[1])].split(b" ")
        return (*quoted[1], "told-phrase", "PASSWORD", 0.8) if is_phrase(words) else None
    if data[start : start + 4].lower() == b"pass" and data[start + 4 : start + 8] != b"phra":
        return None
    if _OPENS.search(data, end, min(len(data), end + 60)) == NOWHERE:
        return None
    at, stop = end, min(len(data), end + 600)
    while (span := _PHRASE.search(data, at, stop)) != NOWHERE:
        text = data[slice(*span)]
        words = [each for each in text.replace(b",", b" ").split() if each.isalpha()]
        if not _OF_SENTENCES.intersection(words):
            size = len(text.rstrip(b" \t\r\n\"'`#.,;)-"))
            return span[0], span[0] + size, "told-phrase", "PASSWORD", 0.85
        at = data.find(b" ", span[0], span[1]) + 1 or span[1]
    return None


# Keys in groups

_GROUPED_TRIGGER = r"(?i)\b[a-z0-9]{4}[ -][a-z0-9]{4}[ -][a-z0-9]{4}[ -][a-z0-9]{4}\b"
_GROUPED = Pattern(r"(?i)(?:[a-z0-9]{4}[ -]){3,15}[a-z0-9]{4}\b")
_OF_APP = Pattern(r"[a-z]{4}(?:[ -][a-z]{4}){3}")
_FOR_APP = Pattern(r"(?i)\bapp(?:lication)?.?(?:specific )?passw")
_OF_KEY = Pattern(r"(?i)\bkey\b[^\n:]{0,60}:?\s{1,8}")


def grouped(data: bytes, start: int, __: int) -> Found | int:
    """`setup key: abcd efgh …`, of an app that makes codes."""
    stop = _GROUPED.at(data, start, min(len(data), start + 100))[1]
    lowest = max(0, start - 80)
    if _OF_APP.whole(data[start:stop]) and _FOR_APP.search(data, lowest, start) != NOWHERE:
        return start, stop, "app-password", "PASSWORD", 0.85
    if amount(data[start:stop], FIGURES) < 2:
        return stop
    told = data[lowest:start].lower().rfind(b"key")
    if told < 0 or _OF_KEY.at(data, lowest + told, start)[1] != start:
        return stop
    return start, stop, "setup-key", "SECRET", 0.85


FAMILIES = ((_CODE_TRIGGER, code), (_PHRASE_TRIGGER, phrase), (_GROUPED_TRIGGER, grouped))
