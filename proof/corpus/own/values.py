"""Made-up values with the right alphabet, length and checksum; nobody's."""

# ruff: noqa: E501 - a value and how it is made stand on one line

import base64
import hashlib
import random
import re
import string
from collections.abc import Callable
from typing import Any

from penstock.apps.recorder.sanitise.tokens import TOKENS

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
BASE64 = ALNUM + "+/"


def drawn(pattern: str, chance: random.Random) -> str:
    """A text that a regular expression matches, as random as it allows."""
    parser: Any = re._parser  # type: ignore[attr-defined]
    return _drawn(parser.parse(pattern), chance)


def _drawn(parts: Any, chance: random.Random) -> str:
    text = ""
    for name, value in parts:
        what = str(name)
        if what == "LITERAL":
            text += chr(value)
        elif what == "IN":
            text += chance.choice(_letters(value))
        elif what == "MAX_REPEAT":
            least, most, inner = value
            most = min(int(most), max(least + 12, 24) if least else 1)
            text += "".join(_drawn(inner, chance) for _ in range(chance.randint(least, most)))
        elif what == "SUBPATTERN":
            text += _drawn(value[-1], chance)
        elif what == "BRANCH":
            text += _drawn(chance.choice(value[1]), chance)
    return text


def _letters(parts: Any) -> str:
    letters = ""
    for name, value in parts:
        what = str(name)
        if what == "LITERAL":
            letters += chr(value)
        elif what == "RANGE":
            letters += "".join(map(chr, range(value[0], value[1] + 1)))
        elif str(value) == "CATEGORY_WORD":
            letters += ALNUM + "_"
        elif str(value) == "CATEGORY_DIGIT":
            letters += string.digits
    # A blank or an escape between the letters of a body is allowed, and not drawn.
    return "".join(each for each in letters if each.isprintable() and each not in " \\,")


def tokens(chance: random.Random) -> list[tuple[str, str]]:
    """One token for every prefix of the table, with the category that it has there."""
    made = []
    for _, kind, prefixes, body in TOKENS:
        for prefix in prefixes:
            text = prefix + drawn(body.replace(r"\s", "").replace(r"\b", ""), chance)
            made.append((kind.lower(), text[:-1] + "7" if text[-1] in "-=_" else text))
    made += [
        ("terraform_token", f"{_of(ALNUM, 14, chance)}.atlasv1.{_of(ALNUM, 64, chance)}"),
        ("azure_secret", f"{_of(ALNUM, 3, chance)}8Q~{_of(ALNUM + '~.', 33, chance)}a"),
        ("telegram_token", f"{_of('123456789', 10, chance)}:AA{_of(ALNUM, 33, chance)}"),
        ("mailchimp_key", f"{_of(HEX, 32, chance)}-us14"),
    ]
    return made


def _of(letters: str, n: int, chance: random.Random) -> str:
    return "".join(chance.choice(letters) for _ in range(n))


_WORDS = [
    "tiger",
    "maple",
    "river",
    "stone",
    "cloud",
    "amber",
    "piano",
    "rocket",
    "velvet",
    "copper",
]
_PEOPLE = ["Ada Byron", "Grace Murray", "Jörg Müller", "Marie Dubois", "Ken Tanaka", "Ana Silva"]
_USERS = ["ada", "gmurray", "j.mueller", "marie-d", "ktanaka", "anasilva", "bob42", "li_wei"]


def password(chance: random.Random) -> str:
    """What people and generators choose."""
    word = chance.choice(_WORDS)
    return chance.choice(
        [
            f"{word.title()}{chance.randint(10, 9999)}!",
            f"{word}-{chance.choice(_WORDS)}-{chance.randint(1000, 9999)}",
            _of(ALNUM, 14, chance) + "9",
            _of(ALNUM + "!#%*^_+=", 18, chance) + "7x",
            f"{word[:2]}@{word[2:]}{chance.randint(1, 99)}",
            f"{word}{chance.randint(100, 99999)}",
        ]
    )


def _email(chance: random.Random) -> str:
    user = chance.choice(_USERS) + str(chance.randint(1, 99))
    hosts = ["lovelace.org", "mail.acme-corp.io", "gmail.com", "uni-heim.de", "co-op.co.uk"]
    return f"{user}@{chance.choice(hosts)}"


def _luhn(digits: str) -> str:
    total = 0
    for n, each in enumerate(reversed(digits)):
        figure = int(each) * (2 - n % 2)
        total += figure - 9 * (figure > 9)
    return digits + str(-total % 10)


def _card(chance: random.Random) -> str:
    prefix, size = chance.choice([("4", 16), ("51", 16), ("37", 15), ("6011", 16), ("2221", 16)])
    return _luhn(prefix + _of(string.digits, size - 1 - len(prefix), chance))


def _spaced(number: str, chance: random.Random) -> str:
    if len(number) == 15:
        groups = [number[:4], number[4:10], number[10:]]
    else:
        groups = [number[n : n + 4] for n in range(0, 16, 4)]
    return chance.choice(["", " ", "-"]).join(groups)


def _iban(chance: random.Random) -> str:
    country, size = chance.choice([("DE", 18), ("AT", 16), ("FR", 23), ("ES", 20), ("BE", 12)])
    body = _of(string.digits, size, chance)
    number = int("".join(str(int(each, 36)) for each in body + country + "00"))
    text = f"{country}{98 - number % 97:02d}{body}"
    if chance.random() < 0.5:
        return text
    return " ".join(text[n : n + 4] for n in range(0, len(text), 4))


def _ssn(chance: random.Random) -> str:
    return f"{chance.randint(100, 665)}-{chance.randint(10, 99)}-{chance.randint(1000, 9999)}"


def _cpf(chance: random.Random) -> str:
    digits = _of(string.digits, 9, chance)
    for _ in range(2):
        weights = range(len(digits) + 1, 1, -1)
        total = sum(int(each) * weight for each, weight in zip(digits, weights, strict=True))
        digits += str(total * 10 % 11 % 10)
    return f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"


def _fiscale(chance: random.Random) -> str:
    from penstock.apps.recorder.sanitise.numbers import is_codice_fiscale as right

    letters = string.ascii_uppercase
    body = f"{_of(letters, 6, chance)}{chance.randint(40, 99)}{chance.choice('ABCDEHLMPRST')}"
    body += f"{chance.randint(10, 31)}{chance.choice(letters)}{_of(string.digits, 3, chance)}"
    return next(body + each for each in letters if right((body + each).encode(), 0, 16))


def _dni(chance: random.Random) -> str:
    number = chance.randint(10_000_000, 99_999_999)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def _swedish(chance: random.Random) -> str:
    ten = _luhn(
        f"{chance.randint(40, 99)}0{chance.randint(1, 9)}1{chance.randint(0, 9)}{_of(string.digits, 3, chance)}"
    )
    return f"{ten[:6]}-{ten[6:]}"


def _aadhaar(chance: random.Random) -> str:
    from penstock.apps.recorder.sanitise.checks import verhoeff

    body = chance.choice("23456789") + _of(string.digits, 10, chance)
    whole = next(body + each for each in string.digits if verhoeff((body + each).encode()))
    return f"{whole[:4]} {whole[4:8]} {whole[8:]}"


def _chinese(chance: random.Random) -> str:
    body = f"110105{chance.randint(1950, 2009)}0{chance.randint(1, 9)}1{chance.randint(0, 9)}"
    body += _of(string.digits, 3, chance)
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(each) * weight for each, weight in zip(body, weights, strict=True))
    return body + "10X98765432"[total % 11]


def _insee(chance: random.Random) -> str:
    body = f"{chance.choice('12')}{chance.randint(40, 99)}0{chance.randint(1, 9)}75{_of(string.digits, 6, chance)}"
    key = f"{97 - int(body) % 97:02d}"
    return f"{body[0]} {body[1:3]} {body[3:5]} {body[5:7]} {body[7:10]} {body[10:]} {key}"


def _bitcoin(chance: random.Random) -> str:
    raw = b"\0" + chance.randbytes(20)
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    letters, number, text = (
        "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
        int.from_bytes(raw),
        "",
    )
    while number:
        number, figure = divmod(number, 58)
        text = letters[figure] + text
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + text


def _segwit(chance: random.Random) -> str:
    from penstock.apps.recorder.sanitise.checks import bech32

    letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    body = "bc1q" + _of(letters, 32, chance)
    # The checksum is linear: find it by letting the check itself say when it is right.
    check = 1
    figures = [3, 3, 0, 2, 3] + [letters.index(each) for each in body[3:]] + [0] * 6
    for figure in figures:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ figure
        for bit, generator in enumerate(
            (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
        ):
            check ^= generator * (top >> bit & 1)
    text = body + "".join(letters[((check ^ 1) >> 5 * (5 - n)) & 31] for n in range(6))
    assert bech32(text.encode())
    return text


def _phone(chance: random.Random) -> str:
    digits = _of("23456789", 7, chance)
    return chance.choice(
        [
            f"+1 415 {digits[:3]} {digits[3:]}",
            f"+1-212-{digits[:3]}-{digits[3:]}",
            f"(415) {digits[:3]}-{digits[3:]}",
            f"415-{digits[:3]}-{digits[3:]}",
            f"+49 30 {digits}",
            f"+44 20 7{digits[:3]} {digits[3:]}",
            f"+1415{digits}",
            f"+33 6 {digits[:2]} {digits[2:4]} {digits[4:6]} {digits[:2]}",
        ]
    )


def _ip(chance: random.Random) -> str:
    first = chance.choice([23, 34, 52, 81, 91, 104, 151, 185, 195, 212])
    return f"{first}.{chance.randint(20, 250)}.{chance.randint(1, 250)}.{chance.randint(2, 250)}"


def _crypt(chance: random.Random) -> str:
    return f"$6${_of(ALNUM + './', 16, chance)}${_of(ALNUM + './', 86, chance)}"


def _basic(chance: random.Random) -> str:
    pair = f"{chance.choice(_USERS)}:{_of(ALNUM, 12, chance)}"
    return base64.b64encode(pair.encode()).decode()


def _mac(chance: random.Random) -> str:
    pairs = [_of(HEX, 2, chance) for _ in range(6)]
    return chance.choice([":".join(pairs), "-".join(pairs).upper()])


Maker = Callable[[random.Random], str]

# name: (category, how it is made)
VALUES: dict[str, tuple[str, Maker]] = {
    "password": ("generic_secret", password),
    "urlpass": ("", lambda c: _of(ALNUM + "!~*_-", 14, c)),
    "random24": ("generic_secret", lambda c: _of(ALNUM, 23, c) + "4"),
    "random32": ("generic_secret", lambda c: _of(ALNUM + "_-", 30, c) + "a7"),
    "random43": ("generic_secret", lambda c: _of(ALNUM + "_-", 41, c) + "Z9"),
    "lower26": (
        "generic_secret",
        lambda c: _of(string.ascii_lowercase + string.digits, 25, c) + "5",
    ),
    "hex32": ("generic_secret", lambda c: _of(HEX, 32, c)),
    "hexup32": ("generic_secret", lambda c: _of(HEX.upper(), 32, c)),
    "hex64": ("generic_secret", lambda c: _of(HEX, 64, c)),
    "uuid": ("generic_secret", lambda c: "-".join(_of(HEX, n, c) for n in (8, 4, 4, 4, 12))),
    "base40": ("generic_secret", lambda c: _of(BASE64, 39, c) + "r"),
    "base88": ("generic_secret", lambda c: _of(BASE64, 86, c) + "=="),
    "crypt": ("generic_secret", _crypt),
    "basic": ("auth_header", _basic),
    "pemkind": ("", lambda _: ""),
    "pem": ("private_key", lambda c: "\n".join(_of(BASE64, 64, c) for _ in range(4))),
    "pemline": ("private_key", lambda c: _of(BASE64, 64, c)),
    "b64": ("kubernetes_secret", lambda c: base64.b64encode(password(c).encode()).decode()),
    "sas": ("azure_sas", lambda c: _of(ALNUM, 40, c) + "%2Fa3%3D"),
    "email": ("email", _email),
    "emailquoted": ("email", lambda c: _email(c).replace("@", "%40")),
    "phone": ("phone", _phone),
    "card": ("card", lambda c: _spaced(_card(c), c)),
    "cardplain": ("card", _card),
    "iban": ("iban", _iban),
    "ssn": ("national_id", _ssn),
    "cpf": ("national_id", _cpf),
    "nino": ("national_id", lambda c: f"AB{_of(string.digits, 6, c)}C"),
    "fiscale": ("national_id", _fiscale),
    "dni": ("national_id", _dni),
    "swedish": ("national_id", _swedish),
    "aadhaar": ("national_id", _aadhaar),
    "chinese": ("national_id", _chinese),
    "insee": ("national_id", _insee),
    "ip": ("ip", _ip),
    "ip6": (
        "ip",
        lambda c: f"2a02:{_of(HEX[1:], 4, c)}:{_of(HEX[1:], 3, c)}::{_of(HEX[1:], 2, c)}",
    ),
    "mac": ("mac", _mac),
    "bitcoin": ("crypto_address", _bitcoin),
    "segwit": ("crypto_address", _segwit),
    "ethereum": ("crypto_address", lambda c: "0x" + _of(HEX, 40, c)),
    "user": ("home_path", lambda c: c.choice(_USERS)),
    "machine": ("hostname", lambda c: f"{c.choice(_WORDS)}-{c.randint(1, 99):02d}"),
    "local": (
        "hostname",
        lambda c: (
            f"{c.choice(_WORDS)}-{c.randint(1, 99)}.{c.choice(['local', 'lan', 'internal', 'corp'])}"
        ),
    ),
    "desktop": (
        "hostname",
        lambda c: f"DESKTOP-{_of(string.ascii_uppercase + string.digits, 7, c)}",
    ),
    "person": ("git_author", lambda c: c.choice(_PEOPLE)),
}

PLAIN: dict[str, Maker] = {
    "host": lambda c: c.choice(["api.github.com", "registry.npmjs.org", "pypi.org", "docs.rs"]),
    "word": lambda c: c.choice(_WORDS),
    "hex7": lambda c: _of(HEX, 7, c),
    "hex40": lambda c: _of(HEX, 40, c),
    "base43": lambda c: _of(BASE64, 43, c),
    "base44": lambda c: _of(BASE64, 43, c) + "=",
    "epochms": lambda c: str(c.randint(1_600_000_000_000, 1_790_000_000_000)),
    "snowflake": lambda c: str(c.randint(10**17, 10**18)),
    "name": lambda c: c.choice(["SERVICE_TOKEN", "API_KEY", "AUTH_VALUE", "KEY_ID", "CREDENTIAL"]),
}
