"""Tell a real value from one that only looks like it: checksums, entropy, placeholders.

Everything here works on bytes, as the scanner does, and imports nothing that takes time.
"""

from math import log2

from penstock.apps.recorder.sanitise.pattern import NOWHERE, Pattern

DIGITS = frozenset(b"0123456789")
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
WORD = LETTERS | DIGITS
FILES = frozenset(
    b"png jpg jpeg svg gif webp ico css scss js mjs cjs jsx ts tsx py pyc rb rs go java kt cs cpp "
    b"hpp h c md mdx json yaml yml toml xml html htm txt csv lock log sh bat ps zip gz tar tgz whl "
    b"jar so dll exe map vue svelte php pl sql ipynb".split()
)
"""How files are called that are no hosts: `icon@2x.png`."""


def entropy(value: bytes) -> float:
    """The bits that one character of a value carries; random hex has at most 4."""
    value = value[:4096]
    size = len(value)
    if not size:
        return 0.0
    total = 0.0
    for each in set(value):
        share = value.count(each) / size
        total -= share * log2(share)
    return total


def only_digits(value: bytes) -> bytes:
    """The digits of a value, without what separates them."""
    return bytes(each for each in value if each in DIGITS)


def back(data: bytes, at: int, letters: frozenset[int] | set[int], reach: int) -> int:
    """Where a run of letters that ends at a place begins, at most so far back."""
    lowest = max(0, at - reach)
    while at > lowest and data[at - 1] in letters:
        at -= 1
    return at


REACH = 2_048


def after_repeats(data: bytes, last: int, now: int) -> int:
    """Where a text that only repeats itself ends, less what a look may reach; 0 if it does not.

    What was missed here would be missed in every one of the repeats.
    """
    size = REACH
    if now - last > 256 or data[last : last + size] != data[now : now + size]:
        return 0
    while now + size < len(data) and data[last : last + 2 * size] == data[now : now + 2 * size]:
        size *= 2
    return now + size - REACH if size > REACH else 0


# Checksums


def luhn(digits: bytes) -> bool:
    """Cards, and the national numbers that use the same check digit."""
    total = 0
    for place, each in enumerate(reversed(digits)):
        figure = each - 48
        if place % 2:
            figure = figure * 2 - 9 * (figure > 4)
        total += figure
    return total % 10 == 0


_CARD_LENGTHS = (
    (b"34", b"34", (15,)),
    (b"37", b"37", (15,)),
    (b"300", b"305", (14,)),
    (b"36", b"36", (14,)),
    (b"38", b"39", (14,)),
    (b"3528", b"3589", (16,)),
    (b"4", b"4", (16, 19)),
    (b"51", b"55", (16,)),
    (b"2221", b"2720", (16,)),
    (b"6011", b"6011", (16, 19)),
    (b"644", b"649", (16, 19)),
    (b"65", b"65", (16, 19)),
    (b"62", b"62", (16, 17, 18, 19)),
    (b"50", b"50", (16,)),
    (b"56", b"58", (16,)),
    (b"63", b"63", (16,)),
    (b"67", b"67", (16,)),
)


def card(digits: bytes) -> bool:
    """A card: the brand's first digits, its length and the check digit."""
    size = len(digits)
    return (
        any(
            size in sizes and first <= digits[: len(first)] <= last
            for first, last, sizes in _CARD_LENGTHS
        )
        and len(set(digits)) > 1
        and luhn(digits)
    )


_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
    "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28,
    "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
    "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30,
    "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22,
    "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23,
    "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip


def iban(value: bytes) -> int:
    """How much of a value, from its start, is an account number; 0 if none of it is.

    What stands behind the number, a word or another number, may look like a part of it.
    """
    text = value.decode("ascii", "replace").upper()
    length = _IBAN_LENGTHS.get(text[:2], 0)
    taken, letters = 0, ""
    while len(letters) < length and taken < len(text):
        if text[taken] not in " -":
            letters += text[taken]
        taken += 1
    if not length or len(letters) < length:
        return 0
    turned = letters[4:] + letters[:4]
    if not turned.isalnum():
        return 0
    return taken if int("".join(str(int(each, 36)) for each in turned)) % 97 == 1 else 0


_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58check(value: bytes) -> bytes | None:
    """What a Bitcoin address or private key holds; None if its checksum is wrong."""
    from hashlib import sha256

    number = 0
    for each in value:
        figure = _BASE58.find(each)
        if figure < 0:
            return None
        number = number * 58 + figure
    zeros = len(value) - len(value.lstrip(b"1"))
    whole = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    body, check = whole[:-4], whole[-4:]
    right = sha256(sha256(body).digest()).digest()[:4] == check
    return body if right and body else None


_BECH32 = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def bech32(value: bytes) -> bool:
    """An address such as `bc1…`: its own checksum, in the first or the second form."""
    value = value.lower()
    name, _, data = value.rpartition(b"1")
    check = 1
    figures = [each >> 5 for each in name] + [0] + [each & 31 for each in name]
    figures += [_BECH32.find(each) for each in data]
    for figure in figures:
        if figure < 0:
            return False
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ figure
        for bit, generator in enumerate(
            (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
        ):
            if top >> bit & 1:
                check ^= generator
    return check in (1, 0x2BC830A3)


def weighted(digits: bytes, weights: tuple[int, ...]) -> int:
    """The sum of digits, each times its weight; what most check digits are made from."""
    return sum((each - 48) * weight for each, weight in zip(digits, weights, strict=False))


_VERHOEFF_MULTIPLY = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PERMUTE = (
    "0123456789", "1576283094", "5803796142", "8916043527",
    "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def verhoeff(digits: bytes) -> bool:
    """The check digit of Aadhaar numbers."""
    check = 0
    for place, each in enumerate(reversed(digits)):
        permuted = int(_VERHOEFF_PERMUTE[place % 8][each - 48])
        check = int(_VERHOEFF_MULTIPLY[check][permuted])
    return check == 0


# What only stands for a value

_TEMPLATES = (
    (b"${", b"}"), (b"$(", b")"), (b"{{", b"}}"), (b"<", b">"), (b"%", b"%"), (b"#{", b"}"),
    (b"@", b"@"), (b"{", b"}"), (b"[", b"]"), (b"__", b"__"), (b"%(", b")s"), (b"*", b"*"),
)  # fmt: skip

_VARIABLE = Pattern(r"\$(?:[A-Za-z_][\w.:\[\]>-]*|[{(].*)")
_STANDING_FOR = Pattern(
    r"(?i)your|example|placeholder|change[-_]?me|changeit|redacted|replace|insert|dummy|sample|xxxxxx"
    r"|\.\.\.\.\.\.|fill[-_]in|goes[-_]here|todo|not[-_]?a[-_]?real|enter[-_]|(?:secret|key)-here"
    r"|(?:key|token)_here|token-here|fake|\xe2\x80\xa6"
)


def placeholder(value: bytes) -> bool:
    """Tell whether a value only stands for one: `${TOKEN}`, `<password>`, `xxxx`, `your-key`."""
    if value[:1] == b"$" and (value[1:2].isalpha() or value[1:2] in (b"_", b"{", b"(")):
        return _VARIABLE.whole(value)
    for first, last in _TEMPLATES:
        if value.startswith(first) and value.endswith(last) and len(value) > len(first):
            return True
    if value.startswith((b"{{", b"${", b"%(", b"<%", b"[REDACTED", b"<REDACTED")):
        return True
    if len(set(value)) < 3 and not value.isdigit():
        return True
    return _STANDING_FOR.search(value, 0, len(value)) != NOWHERE


def made_up(body: bytes) -> bool:
    """Tell whether the random part of a token was never random: `xxxx…`, `…EXAMPLE`, `your_key`."""
    lowered = body.lower()
    return (
        (len(body) >= 12 and entropy(body) < 2.2)
        or b"example" in lowered
        or b"xxxxxx" in lowered
        or b"..." in body
        or b"your" in lowered
        or b"placeholder" in lowered
    )
