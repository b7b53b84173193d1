"""Numbers that are somebody's: addresses of machines, cards, accounts, phones, national ids."""

from penstock.apps.recorder.sanitise.checks import (
    DIGITS,
    WORD,
    base58check,
    bech32,
    card,
    iban,
    luhn,
    only_digits,
    verhoeff,
    weighted,
)
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

_NUMBER_TRIGGER = (
    r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b"
    r"|\+[0-9(][0-9 ().\x2f-]{6,20}[0-9]"
    r"|(?:\([2-9][0-9]{2}\)[ -]?|\b[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}\b"
    r"|\b[2-6][0-9]{3}[ -]?[0-9]{4,6}[ -]?[0-9]{4,5}(?:[ -]?[0-9]{1,4}){0,2}\b"
    r"|\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b|\b[0-9]{3} [0-9]{2} [0-9]{4}\b"
    r"|\b[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b|\b[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}\b"
    r"|\b[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]\b"
    r"|\b[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}\b"
    r"|\b756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}\b"
    r"|\b(?:19|20)?[0-9]{6}[-+][0-9]{4}\b|\b[0-9]{6}-[1-8][0-9]{6}\b"
    r"|\b[0-9]{6}[-A][0-9]{3}[0-9A-Y]\b"
    r"|\b[1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]\b|\b[0-9]{8}-?[A-HJ-NP-TV-Z]\b"
    r"|\b[1-9][0-9]{3} [0-9]{4} [0-9]{4}\b|\b[0-9]{3}[ -][0-9]{3}[ -][0-9]{3}\b"
    r"|\b[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]) ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\b"
    r"|\b0[0-9]{1,4}[ /-][0-9]{2,4}(?:[ -]?[0-9]{2,4}){1,3}\b"
    r"|(?i:\b(?:phone|tel|telephone|mobile|cell|fax|whatsapp|sms|call|handy|contact)\b[\"']?"
    r"[^\n0-9+]{0,16}[0-9(][0-9 ().-]{6,18}[0-9])"
    r"|(?i:\b(?:ssn|social security|sin|nino|bsn|pesel|aadhaar|aadhar|tfn|nhs|passport|cpf|steuer"
    r"|tax[ _-]?id|national[ _-]?id|insee|dni|nie|curp|pan|driver)[^\n0-9A-Z]{0,24}[0-9A-Z])"
)
_UUID = Pattern(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_UUID_SIZE = 36
_IPV4 = Pattern(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b")
_RUN = Pattern(r"[0-9](?:[ -]?[0-9]){12,18}\b")


def number(data: bytes, start: int, __: int) -> Found | None:
    """A number that is somebody's: an address, a card, a phone, or one that a state gave."""
    first = data[start]
    if first in DIGITS:
        if start and data[start - 1] in b".0123456789":
            return None
        found = (
            _ipv4(data, start)
            or _card(data, start)
            or _national(data, start)
            or _phone(data, start)
        )
        return None if found is None or _is_in_uuid(data, start) else found
    if first in b"+(":
        return _phone(data, start)
    return _announced(data, start)


def _is_in_uuid(data: bytes, at: int) -> bool:
    """Tell whether a place is within a UUID: all of its groups may be of digits alone."""
    begin, limit = max(0, at - _UUID_SIZE), min(len(data), at + _UUID_SIZE)
    while begin <= at:
        start, stop = _UUID.search(data, begin, limit)
        if start < 0:
            return False
        if start <= at < stop:
            return True
        begin = start + 1
    return False


_PRIVATE_IP = (
    (0, 8), (10 << 24, 8), (100 << 24 | 64 << 16, 10), (127 << 24, 8), (169 << 24 | 254 << 16, 16),
    (172 << 24 | 16 << 16, 12), (192 << 24, 24), (192 << 24 | 2 << 8, 24),
    (192 << 24 | 168 << 16, 16), (198 << 24 | 18 << 16, 15), (198 << 24 | 51 << 16 | 100 << 8, 24),
    (203 << 24 | 113 << 8, 24), (224 << 24, 3),
)  # fmt: skip
_KNOWN_IP = (b"8.8.8.8", b"8.8.4.4", b"1.1.1.1", b"1.0.0.1", b"9.9.9.9", b"208.67.222.222")
_IP_WORDS = Pattern(
    r"(?i).*(?:\bip|addr|host|client|server|peer|remote|source|src|dst|dest|ping|ssh|gateway"
    r"|forwarded|connect|listen|bind|dns|nameserver|traceroute|curl|://|@|login)"
)
_VERSION_WORDS = Pattern(
    r"(?i).*(?:version|release|\bver\.?|build|\brev|chrome|safari|firefox|edge|\bv|==|>=|<=|~=|\^|~"
    r"|[A-Za-z]-|[A-Za-z]/|update|upgrade|patch|sdk|runtime|driver|firmware|assembly"
    r"|package|dependency|requires?|since|tag|section|§|oid|\bsdk)[\s\"'=:v(]*"
)
_FILE_AFTER = Pattern(r"[-_.][A-Za-z0-9]|\+|-?(?:alpha|beta|rc|dev)")


def _ipv4(data: bytes, start: int) -> Found | None:
    stop = _IPV4.at(data, start, len(data))[1]
    if stop < 0:
        return None
    text = data[start:stop]
    parts = [int(each) for each in text.split(b".")]
    if max(parts) > 255 or any(
        each.startswith(b"0") and len(each) > 1 for each in text.split(b".")
    ):
        return None
    number = parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3]
    if text in _KNOWN_IP or any(number >> (32 - n) == net >> (32 - n) for net, n in _PRIVATE_IP):
        return None
    before = data[max(0, start - 40) : start].rpartition(b"\n")[2]
    after = data[stop : stop + 8]
    port = after[:1] in (b":", b"/") and after[1:2].isdigit()
    if (
        not port
        and _FILE_AFTER.at(after, 0, len(after)) != NOWHERE
        and after[1:2] not in (b"", b" ")
    ):
        return None
    if not port and _ends(_VERSION_WORDS, before):
        return None
    # Small figures are a version, unless something says otherwise.
    if max(parts) < 32 and not port and not _ends(_IP_WORDS, before[-24:]):
        return None
    return start, stop, "ipv4", "IP_ADDRESS", 0.9


def _ends(pattern: Pattern, before: bytes) -> bool:
    """Tell whether what stands before a place ends in a match, with at most a word between."""
    return pattern.at(before, 0, len(before))[1] >= len(before) - 4 if before else False


def _card(data: bytes, start: int) -> Found | None:
    stop = _RUN.at(data, start, len(data))[1]
    if stop < 0 or (data[stop : stop + 2][:1] == b"." and data[stop + 1 : stop + 2].isdigit()):
        return None
    text = data[start:stop]
    if b" " in text and b"-" in text:
        return None
    if not card(only_digits(text)):
        return None
    groups = text.replace(b"-", b" ").split(b" ")
    if len(groups) > 1 and (len(groups) > 5 or any(len(each) < 3 for each in groups)):
        return None
    return start, stop, "card-number", "CARD", 0.95


# National numbers: a shape and its check digit. Those that are plain digits need a word before.

_SSN = Pattern(r"([0-9]{3})[- ]([0-9]{2})[- ]([0-9]{4})\b")
_CPF = Pattern(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b")
_CNPJ = Pattern(r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}\b")
_RUT = Pattern(r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]\b")
_BELGIAN = Pattern(r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}\b")
_SWEDISH = Pattern(r"(?:19|20)?[0-9]{6}[-+][0-9]{4}\b")
_FINNISH = Pattern(r"[0-9]{6}[-A][0-9]{3}[0-9A-Y]\b")
_KOREAN = Pattern(r"[0-9]{6}-[1-8][0-9]{6}\b")
_CHINESE = Pattern(r"[1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]\b")
_SPANISH = Pattern(r"[0-9]{8}-?[A-HJ-NP-TV-Z]\b")
_FRENCH = Pattern(r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\b")
_AADHAAR = Pattern(r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}\b")
_SWISS = Pattern(r"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}\b")
_NINE = Pattern(r"[0-9]{3}[ -][0-9]{3}[ -][0-9]{3}\b")


def _ssn(text: bytes) -> bool:
    digits = only_digits(text)
    given = digits[3:5] != b"00" and digits[5:] != b"0000"
    return given and digits[:1] != b"9" and digits[:3] not in (b"000", b"666")


def _cpf(text: bytes) -> bool:
    digits = only_digits(text)
    first = weighted(digits, (10, 9, 8, 7, 6, 5, 4, 3, 2)) * 10 % 11 % 10
    second = weighted(digits, (11, 10, 9, 8, 7, 6, 5, 4, 3, 2)) * 10 % 11 % 10
    return len(set(digits)) > 1 and digits[9] - 48 == first and digits[10] - 48 == second


def _cnpj(text: bytes) -> bool:
    digits = only_digits(text)
    weights = (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    first, second = weighted(digits, weights) % 11, weighted(digits, (6, *weights)) % 11
    return digits[12] - 48 == (11 - first) % 11 % 10 and digits[13] - 48 == (11 - second) % 11 % 10


def _rut(text: bytes) -> bool:
    body, _, check = text.replace(b".", b"").upper().partition(b"-")
    total = sum((each - 48) * (2 + n % 6) for n, each in enumerate(reversed(body)))
    return b"0K987654321"[total % 11 :][:1] == check


def _belgian(text: bytes) -> bool:
    digits = only_digits(text)
    body, check = int(digits[:9]), int(digits[9:])
    return check in (97 - body % 97, 97 - (2_000_000_000 + body) % 97)


def _swedish(text: bytes) -> bool:
    digits = only_digits(text)[-10:]
    return 1 <= int(digits[2:4]) <= 12 and 1 <= int(digits[4:6]) % 60 <= 31 and luhn(digits)


def _finnish(text: bytes) -> bool:
    number = int(text[:6] + text[7:10])
    return text[10:11] == b"0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31 :][:1]


def _korean(text: bytes) -> bool:
    return 1 <= int(text[2:4]) <= 12 and 1 <= int(text[4:6]) <= 31


def _chinese(text: bytes) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return b"10X98765432"[weighted(text, weights) % 11 :][:1] == text[17:].upper()


def _spanish(text: bytes) -> bool:
    return b"TRWAGMYFPDXBNJZSQVHLCKE"[int(text[:8]) % 23 :][:1] == text[-1:]


def _french(text: bytes) -> bool:
    digits = only_digits(text)
    return 1 <= int(digits[3:5]) <= 12 and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _swiss(text: bytes) -> bool:
    digits = only_digits(text)
    return -weighted(digits[:12], (1, 3) * 6) % 10 == digits[12] - 48


def _sin(text: bytes) -> bool:
    digits = only_digits(text)
    return digits[0] not in b"08" and len(set(digits)) > 2 and luhn(digits)


_NATIONAL = (
    (_SSN, _ssn, "us-ssn", 0.9),
    (_CPF, _cpf, "br-cpf", 0.97),
    (_CNPJ, _cnpj, "br-cnpj", 0.97),
    (_RUT, _rut, "cl-rut", 0.97),
    (_BELGIAN, _belgian, "be-national-number", 0.97),
    (_KOREAN, _korean, "kr-rrn", 0.9),
    (_SWEDISH, _swedish, "se-personnummer", 0.9),
    (_FINNISH, _finnish, "fi-hetu", 0.95),
    (_CHINESE, _chinese, "cn-resident-id", 0.97),
    (_SPANISH, _spanish, "es-dni", 0.95),
    (_FRENCH, _french, "fr-insee", 0.95),
    (_SWISS, _swiss, "ch-ahv", 0.97),
    (_AADHAAR, lambda text: verhoeff(only_digits(text)), "in-aadhaar", 0.9),
    (_NINE, _sin, "ca-sin", 0.8),
)
_WORDED = {
    "in-aadhaar": Pattern(r"(?i)aadhaa?r|uidai|\buid\b"),
    "ca-sin": Pattern(r"(?i)\bsin\b|social|insurance|\bnas\b"),
}
"""Shapes that other numbers have, too: a word before them must say it."""


def _national(data: bytes, start: int) -> Found | None:
    for pattern, check, rule, confidence in _NATIONAL:
        stop = pattern.at(data, start, len(data))[1]
        if stop > 0 and check(data[start:stop]) and data[stop : stop + 1] not in (b"-", b"/"):
            worded = _WORDED.get(rule)
            if worded and worded.search(data, max(0, start - 40), start) == NOWHERE:
                continue
            return start, stop, rule, "NATIONAL_ID", confidence
    return None


_PHONE = Pattern(r"\+?[0-9(][0-9 ().\x2f-]{5,20}[0-9]")
_NANP = Pattern(r"\(?[2-9][0-9]{2}\)?[-. ]{0,2}[2-9][0-9]{2}[-. ][0-9]{4}\b")
_NATIONAL_PHONE = Pattern(r"0[0-9]{1,4}[ /-][0-9]{2,4}(?:[ -]?[0-9]{2,4}){1,3}\b")
_LENGTHS = {
    b"1": (10, 10), b"7": (10, 10), b"31": (9, 9), b"33": (9, 9), b"34": (9, 9), b"39": (6, 11),
    b"41": (9, 9), b"43": (7, 13), b"44": (9, 10), b"46": (7, 10), b"49": (6, 12), b"52": (10, 10),
    b"55": (10, 11), b"61": (9, 9), b"81": (9, 10), b"86": (9, 12), b"91": (10, 10),
}  # fmt: skip


def _phone(data: bytes, start: int) -> Found | None:
    if data[start : start + 1] == b"+":
        stop = _PHONE.at(data, start, min(len(data), start + 24))[1]
        text = data[start:stop]
        digits = only_digits(text)
        if stop < 0 or (start and data[start - 1] in WORD) or b"--" in text:
            return None
        for size in (3, 2, 1):
            if digits[:size] in _LENGTHS:
                least, most = _LENGTHS[digits[:size]]
                right = least <= len(digits) - size <= most
                return (start, stop, "phone", "PHONE", 0.93) if right else None
        if digits[:1] == b"0" or not 9 <= len(digits) <= 15:
            return None
        return start, stop, "phone", "PHONE", 0.85
    before, after = data[start - 1 : start], None
    for pattern in (_NANP, _NATIONAL_PHONE):
        after = pattern.at(data, start, len(data))[1]
        if after > 0:
            break
    else:
        return None
    digits = only_digits(data[start:after])
    goes_on = data[after : after + 1] in (b"-", b".", b"/", b"_") and (
        data[after + 1 : after + 2].isdigit()
    )
    if goes_on or before in (b"-", b".", b"/", b"_", b"#", b"$", b"="):
        return None
    grouped = before == b" " and data[start - 2 : start - 1].isdigit()
    if not 9 <= len(digits) <= 13 or len(set(digits)) < 3 or grouped:
        return None
    return start, after, "phone", "PHONE", 0.85


_ANNOUNCED = Pattern(
    r"(?i)(phone|tel|telephone|mobile|cell|fax|whatsapp|sms|call|handy|contact)\b[^\n0-9+]{0,18}"
    r"([0-9(][0-9 ().-]{6,18}[0-9])\b"
)
_SAID_ID = Pattern(
    r"(?i)(ssn|social security|sin|nino|bsn|pesel|aadhaa?r|tfn|nhs|passport|cpf|steuer|tax[ _-]?id"
    r"|national[ _-]?id|insee|dni|nie|curp|pan|driver)[^\n0-9A-Z]{0,24}?(?:(?:no|nr|number|num|is"
    r"|id"
    r"|licen[cs]e|ident\w*)[^\n0-9A-Z]{0,6}){0,3}([A-Z]{0,3}[0-9][0-9A-Z .-]{4,16}[0-9A-Z])\b"
)


def _announced(data: bytes, start: int) -> Found | None:
    """A number that is one only because a word before it says so."""
    groups = _ANNOUNCED.groups(data, start, len(data))
    if groups is not None:
        begin, stop = groups[2]
        digits = only_digits(data[begin:stop])
        # Milliseconds since 1970 have thirteen digits and begin with 1.
        epoch = len(digits) == 13 and digits[:1] == b"1" and digits == data[begin:stop]
        if 8 <= len(digits) <= 13 and not epoch and len(set(digits)) > 2:
            return begin, stop, "phone", "PHONE", 0.85
        return None
    groups = _SAID_ID.groups(data, start, len(data))
    if groups is None:
        return None
    begin, stop = groups[2]
    text = data[begin:stop]
    digits = only_digits(text)
    if not 6 <= len(digits) <= 15 or len(set(digits)) < 3 or b"  " in text:
        return None
    if data[slice(*groups[1])].lower() == b"sin" and not (len(digits) == 9 and luhn(digits)):
        return None
    return begin, stop, "announced-id", "NATIONAL_ID", 0.8


# Codes of letters and digits

_CODE_TRIGGER = (
    r"\b[A-Z]{2}[0-9]{2}[ -]?[A-Z0-9]{4}[ -]?[A-Z0-9]{3}"
    r"|\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]\b"
    r"|\b[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\b"
    r"|\b[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9]\b|\b[A-Z]{5}[0-9]{4}[A-Z]\b"
    r"|\b[XYZ]-?[0-9]{7}-?[A-Z]\b"
    r"|\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b|\b[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}\b"
    r"|\b[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{2,39}"
    r"|\b0x[0-9a-fA-F]{40}\b|\b(?:bc1|tb1|ltc1|addr1)[a-z0-9]{14}|\bBC1[A-Z0-9]{14}"
    r"|\b[13mn2LMDT][1-9A-HJ-NP-Za-km-z]{25,34}\b"
)
_IBAN = Pattern(r"[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}")
_NINO = Pattern(r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]\b")
_FISCALE = Pattern(r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\b")
_CURP = Pattern(r"[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9]\b")
_PAN = Pattern(r"[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]\b")
_NIE = Pattern(r"[XYZ]-?[0-9]{7}-?[A-Z]\b")
_MAC = Pattern(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}\b")
_CISCO = Pattern(r"[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}\b")
_IPV6 = Pattern(r"[0-9a-fA-F]{1,4}(?::{1,2}[0-9a-fA-F]{1,4}){1,7}(?:::)?")
_ETHEREUM = Pattern(r"0x[0-9a-fA-F]{40}\b")
_SEGWIT = Pattern(r"(?:bc1|tb1|ltc1|addr1|BC1)[A-Za-z0-9]{11,103}\b")
_BASE58 = Pattern(r"[13mn2LMDT][1-9A-HJ-NP-Za-km-z]{25,34}\b")


def code(data: bytes, start: int, __: int) -> Found | int | None:
    """An account, a machine or a wallet."""
    limit = len(data)
    stop = _IBAN.at(data, start, min(limit, start + 48))[1]
    size = iban(data[start:stop]) if stop > 0 else 0
    if size and not data[start + size : start + size + 1].isalnum():
        return start, start + size, "iban", "IBAN", 0.99
    for pattern, check, rule, type_, confidence in _CODES:
        stop = pattern.at(data, start, limit)[1]
        if stop > 0 and check(data, start, stop):
            return start, stop, rule, type_, confidence
    return _PAIRS.at(data, start, limit)[1]


_PAIRS = Pattern(r"(?:[0-9A-Fa-f]{2}[:-])+|[1-9A-HJ-NP-Za-km-z]+")


_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3,
         6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip


def is_codice_fiscale(data: bytes, start: int, stop: int) -> bool:
    """Whether the last letter of an Italian tax code is the one that the others add up to."""
    text = data[start:stop].decode()
    total = sum(
        _ODD[each] if n % 2 == 0 else (int(each) if each.isdigit() else ord(each) - 65)
        for n, each in enumerate(text[:15])
    )
    return chr(65 + total % 26) == text[15]


def _nie(data: bytes, start: int, stop: int) -> bool:
    text = data[start:stop].replace(b"-", b"")
    return _spanish(str("XYZ".index(chr(text[0]))).encode() + text[1:])


def _lone_mac(data: bytes, start: int, stop: int) -> bool:
    """Tell an address from a part of a fingerprint, which is longer."""
    text = data[start:stop].lower()
    separated = (
        data[start - 1 : start] not in (b":", b"-") or not data[start - 2 : start - 1].isalnum()
    )
    return (
        separated
        and (data[stop : stop + 1] not in (b":", b"-") or not data[stop + 1 : stop + 2].isalnum())
        and len(set(text)) > 2
        and not text.startswith((b"00:00:00:00", b"ff:ff:ff", b"01:00:5e", b"33:33"))
    )


def _public_ipv6(data: bytes, start: int, stop: int) -> bool:
    text = data[start:stop].decode().rstrip(":")
    if text.count(":") < 3 or text.lower().startswith(("2001:db8", "2001:0db8", "3fff:")):
        return False
    if start and data[start - 1] in b":.":
        return False
    if len(text) == 23 and text.count(":") == 7 and data[stop : stop + 1] != b"/":
        return False  # pairs of digits: a fingerprint, or a serial number
    from ipaddress import AddressValueError, IPv6Address

    try:
        IPv6Address(text if text.count(":") == 7 or "::" in text else text + "::")
    except AddressValueError:
        return False
    return "::" in text or text.count(":") == 7


def _wallet(data: bytes, start: int, stop: int) -> bool:
    body = base58check(data[start:stop])
    return body is not None and len(body) == 21


def _ethereum(data: bytes, start: int, stop: int) -> bool:
    text = data[start + 2 : stop].lower()
    return len(set(text)) > 4 and not text.startswith((b"000000000", b"dead"))


def _nino(data: bytes, start: int, __: int) -> bool:
    return data[start : start + 2] not in (b"BG", b"GB", b"NK", b"KN", b"TN", b"NT", b"ZZ")


def _curp(data: bytes, start: int, __: int) -> bool:
    return 1 <= int(data[start + 6 : start + 8]) <= 12


_SAID_PAN = Pattern(r"(?i)\bpan\b|income|tax|permanent")


def _pan(data: bytes, start: int, __: int) -> bool:
    return _SAID_PAN.search(data, max(0, start - 32), start) != NOWHERE


def _cisco(data: bytes, start: int, stop: int) -> bool:
    text = data[start:stop]
    return len(set(text)) > 4 and any(each in b"abcdef" for each in text)


def _segwit(data: bytes, start: int, stop: int) -> bool:
    return bech32(data[start:stop])


_CODES = (
    (_MAC, _lone_mac, "mac-address", "MAC_ADDRESS", 0.95),
    (_NINO, _nino, "uk-nino", "NATIONAL_ID", 0.85),
    (_FISCALE, is_codice_fiscale, "it-codice-fiscale", "NATIONAL_ID", 0.97),
    (_CURP, _curp, "mx-curp", "NATIONAL_ID", 0.95),
    (_PAN, _pan, "in-pan", "NATIONAL_ID", 0.8),
    (_NIE, _nie, "es-nie", "NATIONAL_ID", 0.95),
    (_CISCO, _cisco, "mac-address", "MAC_ADDRESS", 0.85),
    (_IPV6, _public_ipv6, "ipv6", "IP_ADDRESS", 0.9),
    (_ETHEREUM, _ethereum, "ethereum-address", "CRYPTO_ADDRESS", 0.9),
    (_SEGWIT, _segwit, "segwit-address", "CRYPTO_ADDRESS", 0.99),
    (_BASE58, _wallet, "wallet-address", "CRYPTO_ADDRESS", 0.99),
)


FAMILIES = ((_NUMBER_TRIGGER, number), (_CODE_TRIGGER, code))
