"""Synthetic values for the corpus: the right alphabet, length and checksum, and nobody's.

Prefixes are joined at run time so that no scanner takes this file for a leak.
"""

# ruff: noqa: D103, E501, SIM905 - a table of makers; their names say what they make

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import random
import string
import uuid as uuids
import zlib
from collections.abc import Callable, Sequence
from urllib.parse import quote

R = random.Random(20261116)
LETTERS, DIGITS = string.ascii_letters, string.digits
ALNUM, HEX = LETTERS + DIGITS, "0123456789abcdef"
B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
B62 = DIGITS + string.ascii_uppercase + string.ascii_lowercase
B32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def j(*parts: str) -> str:
    return "".join(parts)


def one_of(makers: Sequence[Callable[[], str]]) -> str:
    return R.choice(makers)()


def some(alphabet: str, n: int) -> str:
    return "".join(R.choice(alphabet) for _ in range(n))


def entropy(s: str) -> float:
    return -sum(s.count(c) / len(s) * math.log2(s.count(c) / len(s)) for c in set(s))


def rich(make: Callable[[], str], floor: float = 3.55) -> str:
    """A value whose entropy is high enough for the contract's generic rule."""
    while True:
        value = make()
        if entropy(value) >= floor and any(c.isdigit() for c in value):
            return value


def b64(n: int) -> str:
    return base64.b64encode(R.randbytes(n)).decode()


def b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def crc62(body: str) -> str:
    n, out = zlib.crc32(body.encode()), ""
    for _ in range(6):
        n, r = divmod(n, 62)
        out = B62[r] + out
    return body + out


# -- tokens ----------------------------------------------------------------------------------------


def bedrock() -> str:
    inner = (
        f"BedrockAPIKey-{some(ALNUM, 4).lower()}-at-{some(DIGITS, 12)}:".encode() + b64(48).encode()
    )
    return j("AB", "SK", base64.b64encode(inner).decode())


def anthropic() -> str:
    return j(
        "sk-",
        "ant-",
        R.choice(["api03", "api03", "api03", "admin01"]),
        "-",
        some(ALNUM + "_-", 92),
        some(ALNUM, 1),
        "AA",
    )


def openai() -> str:
    mark = j("T3Blb", "kFJ")
    kind = R.choice(["proj", "proj", "svcacct", "admin", ""])
    if not kind:
        return j("sk", "-", some(ALNUM, 20), mark, some(ALNUM, 20))
    n = 58 if kind == "admin" else 74
    return j(
        "sk", "-", kind, "-", some(ALNUM + "_-", n), mark, some(ALNUM + "_-", n - 1), some(ALNUM, 1)
    )


def github() -> str:
    kind = R.choice(["p", "p", "p", "o", "u", "s", "r", "pat"])
    if kind == "pat":
        return j("github", "_pat_", some(ALNUM, 22), "_", some(ALNUM, 59))
    return j("gh", kind, "_", crc62(some(ALNUM, 30)))


def gitlab() -> str:
    kind = R.choice(["pat", "pat", "pat", "rt", "dt", "ptt", "ft", "soat", "routable"])
    if kind == "ptt":
        return j("gl", "ptt-", some(HEX, 40))
    if kind == "routable":
        return j("gl", "pat-", some(ALNUM, 27), ".01.", some(HEX, 9))
    return j("gl", kind, "-", some(ALNUM + "_-", 19), some(ALNUM, 1))


def azure() -> str:
    return j(some(ALNUM, 3), some(DIGITS, 1), "Q", "~", some(ALNUM + "_~.-", 33), some(ALNUM, 1))


def slack() -> str:
    kind = R.choice(["b", "b", "p", "app"])
    if kind == "app":
        return j(
            "xa",
            "pp-1-A",
            some(string.ascii_uppercase + DIGITS, 10),
            "-",
            some("123456789", 13),
            "-",
            some(HEX, 64),
        )
    if kind == "p":
        return j(
            "xo",
            "xp-",
            some("123456789", 12),
            "-",
            some("123456789", 12),
            "-",
            some("123456789", 13),
            "-",
            some(HEX, 32),
        )
    return j("xo", "xb-", some("123456789", 12), "-", some("123456789", 13), "-", some(ALNUM, 24))


def slack_hook() -> str:
    up = string.ascii_uppercase + DIGITS
    return j("T", some(up, 10), "/", "B", some(up, 10), "/", some(ALNUM, 24))


def pem_body(sep: str, n: int = 0) -> str:
    head = (
        b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00"
    )
    body = base64.b64encode(head + R.randbytes(n or R.choice([180, 320, 610]))).decode()
    return sep.join(body[i : i + 64] for i in range(0, len(body), 64))


def jwt() -> str:
    head = {"alg": "HS256", "typ": "JWT"}
    now = 1_700_000_000 + R.randrange(90_000_000)
    claim = R.choice(
        [
            {"sub": some(DIGITS, 10), "iat": now, "exp": now + 3600},
            {"iss": "https://auth.example.com/", "aud": "api", "sub": str(uuid()), "iat": now},
            {"uid": R.randrange(9999), "role": "authenticated", "exp": now},
            {"scope": "read:all write:all", "jti": some(HEX, 16)},
        ]
    )
    first = ".".join(b64url(json.dumps(p, separators=(",", ":")).encode()) for p in (head, claim))
    return first + "." + b64url(hmac.new(R.randbytes(32), first.encode(), hashlib.sha256).digest())


# -- checksums -------------------------------------------------------------------------------------


def luhn(body: str) -> str:
    total = 0
    for i, c in enumerate(reversed(body)):
        d = int(c) * (2 if i % 2 == 0 else 1)
        total += d - 9 if d > 9 else d
    return body + str(-total % 10)


def card(bad: bool = False) -> str:
    head, n = R.choice(
        [("4", 16), ("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("37", 15), ("6011", 16)]
    )
    value = luhn(head + some(DIGITS, n - len(head) - 1))
    if bad:
        value = value[:-1] + str((int(value[-1]) + R.randrange(1, 10)) % 10)
    sep = R.choice(["", "", " ", "-"])
    if n == 15:
        return sep.join([value[:4], value[4:10], value[10:]])
    return sep.join(value[i : i + 4] for i in range(0, 16, 4))


def iban(spaced: bool = False) -> str:
    up = string.ascii_uppercase
    lands: list[tuple[str, Callable[[], str]]] = [
        ("DE", lambda: some(DIGITS, 18)),
        ("GB", lambda: R.choice(["NWBK", "BARC", "LOYD"]) + some(DIGITS, 14)),
        ("NL", lambda: R.choice(["ABNA", "INGB", "RABO"]) + some(DIGITS, 10)),
        ("FR", lambda: some(DIGITS, 10) + some(DIGITS + up, 11) + some(DIGITS, 2)),
        ("CH", lambda: some(DIGITS, 17)),
        ("ES", lambda: some(DIGITS, 20)),
        ("IT", lambda: some(up, 1) + some(DIGITS, 22)),
        ("BE", lambda: some(DIGITS, 12)),
        ("AT", lambda: some(DIGITS, 16)),
        ("PL", lambda: some(DIGITS, 24)),
        ("SE", lambda: some(DIGITS, 20)),
    ]
    land, body = R.choice(lands)
    text = body()
    number = int("".join(str(int(c, 36)) for c in text + land + "00"))
    value = f"{land}{98 - number % 97:02d}{text}"
    return " ".join(value[i : i + 4] for i in range(0, len(value), 4)) if spaced else value


def ssn() -> str:
    area = R.choice([n for n in range(100, 740) if n != 666])
    return f"{area}-{R.randrange(11, 99)}-{R.randrange(1000, 9999)}"


def nino() -> str:
    return (
        some("ABCEGHJKLMPRSTWXYZ", 1)
        + some("ABCEHJKLMPRSTWXYZ", 1).replace("K", "L")
        + some(DIGITS, 6)
        + some("ABCD", 1)
    )


def nir() -> str:
    body = f"{R.choice('12')}{R.randrange(45, 99)}{R.randrange(1, 13):02d}{R.randrange(10, 95)}{R.randrange(1, 990):03d}{R.randrange(1, 999):03d}"
    return f"{body}{97 - int(body) % 97:02d}"


def steuer() -> str:
    digits = R.sample(DIGITS, 9)
    digits.insert(R.randrange(2, 9), digits[0])
    if digits[0] == "0":
        return steuer()
    product = 10
    for d in digits:
        s = (int(d) + product) % 10 or 10
        product = s * 2 % 11
    return "".join(digits) + str((11 - product) % 10)


def dni() -> str:
    n = R.randrange(10_000_000, 99_999_999)
    return f"{n}{'TRWAGMYFPDXBNJZSQVHLCKE'[n % 23]}"


def cpf() -> str:
    d = [R.randrange(10) for _ in range(9)]
    for k in (10, 11):
        s = sum(a * b for a, b in zip(d, range(k, 1, -1), strict=True)) * 10 % 11
        d.append(s % 10)
    t = "".join(map(str, d))
    return f"{t[:3]}.{t[3:6]}.{t[6:9]}-{t[9:]}"


def bsn() -> str:
    while True:
        d = some("123456789", 1) + some(DIGITS, 8)
        if sum(int(c) * w for c, w in zip(d, (9, 8, 7, 6, 5, 4, 3, 2, -1), strict=True)) % 11 == 0:
            return d


def pesel() -> str:
    body = f"{R.randrange(50, 99)}{R.randrange(1, 13):02d}{R.randrange(1, 29):02d}{some(DIGITS, 4)}"
    s = sum(int(c) * w for c, w in zip(body, (1, 3, 7, 9) * 2 + (1, 3), strict=True))
    return body + str(-s % 10)


def ahv() -> str:
    body = "756" + some(DIGITS, 9)
    s = sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(body))
    t = body + str(-s % 10)
    return f"{t[:3]}.{t[3:7]}.{t[7:11]}.{t[11:]}"


def sin() -> str:
    t = luhn(some("1234567", 1) + some(DIGITS, 7))
    return f"{t[:3]} {t[3:6]} {t[6:]}"


def personnummer() -> str:
    t = luhn(
        f"{R.randrange(50, 99)}{R.randrange(1, 13):02d}{R.randrange(1, 29):02d}{some(DIGITS, 3)}"
    )
    return f"{t[:6]}-{t[6:]}"


# -- crypto addresses ------------------------------------------------------------------------------


def b58check(raw: bytes) -> str:
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    n, out = int.from_bytes(raw, "big"), ""
    while n:
        n, r = divmod(n, 58)
        out = B58[r] + out
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + out


def bech32(hrp: str, data: list[int], const: int) -> str:
    def mod(values: list[int]) -> int:
        chk = 1
        for v in values:
            top = chk >> 25
            chk = (chk & 0x1FFFFFF) << 5 ^ v
            for i, g in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
                chk ^= g if (top >> i) & 1 else 0
        return chk

    spread = [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp]
    chk = mod(spread + data + [0] * 6) ^ const
    return hrp + "1" + "".join(B32[d] for d in data + [(chk >> 5 * (5 - i)) & 31 for i in range(6)])


def fives(raw: bytes) -> list[int]:
    bits = "".join(f"{b:08b}" for b in raw)
    bits += "0" * (-len(bits) % 5)
    return [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]


def keccak(data: bytes) -> bytes:
    mask = (1 << 64) - 1

    def rot(x: int, n: int) -> int:
        n %= 64
        return ((x << n) | (x >> (64 - n))) & mask if n else x

    data += b"\x01" + b"\0" * (135 - len(data) % 136)
    data = data[:-1] + bytes([data[-1] | 0x80])
    a = [[0] * 5 for _ in range(5)]
    for at in range(0, len(data), 136):
        for i in range(17):
            a[i % 5][i // 5] ^= int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little")
        lfsr = 1
        for _ in range(24):
            c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
            d = [c[(x - 1) % 5] ^ rot(c[(x + 1) % 5], 1) for x in range(5)]
            a = [[a[x][y] ^ d[x] for y in range(5)] for x in range(5)]
            x, y, cur = 1, 0, a[1][0]
            for t in range(24):
                x, y = y, (2 * x + 3 * y) % 5
                cur, a[x][y] = a[x][y], rot(cur, (t + 1) * (t + 2) // 2)
            a = [
                [a[x][y] ^ (~a[(x + 1) % 5][y] & mask & a[(x + 2) % 5][y]) for y in range(5)]
                for x in range(5)
            ]
            for k in range(7):
                lfsr = ((lfsr << 1) ^ ((lfsr >> 7) * 0x71)) % 256
                if lfsr & 2:
                    a[0][0] ^= 1 << ((1 << k) - 1)
    return b"".join(a[i][0].to_bytes(8, "little") for i in range(4))


assert keccak(b"").hex().startswith("c5d2460186f7233c"), "keccak"


def eth() -> str:
    h = R.randbytes(20).hex()
    d = keccak(h.encode()).hex()
    return "0x" + "".join(c.upper() if int(k, 16) > 7 else c for c, k in zip(h, d, strict=False))


def btc() -> str:
    kind = R.randrange(4)
    if kind < 2:
        return b58check(bytes([0 if kind == 0 else 5]) + R.randbytes(20))
    if kind == 2:
        return bech32("bc", [0, *fives(R.randbytes(20))], 1)
    return bech32("bc", [1, *fives(R.randbytes(32))], 0x2BC830A3)


# -- people and machines ---------------------------------------------------------------------------

FIRST = "ada tomasz priya mireille jonas kenji olu ingrid carlos fatima yusuf lena dmitri noor beatriz wei hanna rafael siobhan emre".split()
LAST = "lindqvist kowalczyk raghavan dubois brandt watanabe adeyemi solberg mendoza haddad yilmaz hoffmann petrov rahimi carvalho zhang virtanen oconnell moreau szabo".split()
DOMAIN = "gmail.com outlook.com brightloom.io norrsken-data.se kestrelworks.dev proton.me vantagefreight.co.uk lumenfold.ai gmx.de tidewater-labs.com hexapine.org yahoo.fr quillandco.net".split()


def name() -> str:
    return f"{R.choice(FIRST).title()} {R.choice(LAST).title()}"


def email() -> str:
    f, last = R.choice(FIRST), R.choice(LAST)
    local = R.choice(
        [
            f"{f}.{last}",
            f"{f[0]}{last}",
            f"{f}{R.randrange(70, 99)}",
            f"{f}_{last}",
            f"{f}.{last}+ci",
            f"{f}-{last[0]}",
        ]
    )
    return f"{local}@{R.choice(DOMAIN)}"


def digits(n: int) -> str:
    return some(DIGITS, n)


def us() -> str:
    return R.choice(["212", "415", "617", "312", "206", "737", "503", "646"])


def ex() -> str:
    return some("2346789", 1) + some("0123467", 2)


def group() -> str:
    return f"{R.randrange(0x1000, 0xFFFF):x}"


def phone() -> str:
    d = digits
    return one_of(
        [
            lambda: f"+1 {us()}-{ex()}-{d(4)}",
            lambda: f"({us()}) {ex()}-{d(4)}",
            lambda: f"+1{us()}{ex()}{d(4)}",
            lambda: f"{us()}-{ex()}-{d(4)}",
            lambda: f"+49 15{some('1279', 1)} {d(8)}",
            lambda: f"+49 30 {some('23456', 1)}{d(6)}",
            lambda: f"+44 74{d(2)} {d(6)}",
            lambda: f"+33 6 {d(2)} {d(2)} {d(2)} {d(2)}",
            lambda: f"+41 79 {d(3)} {d(2)} {d(2)}",
            lambda: f"+91 98{d(3)} {d(5)}",
            lambda: f"+55 (11) 9{d(4)}-{d(4)}",
            lambda: f"+81 90-{d(4)}-{d(4)}",
            lambda: f"+61 4{d(2)} {d(3)} {d(3)}",
            lambda: f"+48 {some('5678', 1)}{d(2)} {d(3)} {d(3)}",
        ]
    )


def ip4() -> str:
    first = R.choice(
        [5, 18, 23, 34, 45, 52, 77, 81, 88, 93, 109, 138, 145, 159, 176, 185, 195, 212]
    )
    return f"{first}.{R.randrange(1, 255)}.{R.randrange(1, 255)}.{R.randrange(1, 255)}"


def ip6() -> str:
    g = group
    return one_of(
        [
            lambda: f"2a01:4f8:{g()}:{g()}::{R.randrange(2, 9)}",
            lambda: f"2600:1f18:{g()}:{g()}:{g()}:{g()}:{g()}:{g()}",
            lambda: f"2a02:{g()}:{g()}::{g()}",
        ]
    )


def mac(sep: str = ":") -> str:
    first = R.choice(["3c", "a4", "f0", "8c", "dc", "00", "b8", "e4"])
    out = sep.join([first] + [f"{R.randrange(16, 256):02x}" for _ in range(5)])
    return out.upper() if R.random() < 0.3 else out


def host() -> str:
    a = R.choice("db web cache build jenkins gpu kafka vault nas bastion ci mail".split())
    b = R.choice("prod stg dev eu fra ams".split())
    return f"{a}-{b}-{R.randrange(1, 40)}.{R.choice(['corp.brightloom.internal', 'int.kestrelworks.lan', 'hexapine.corp', 'dc2.tidewater.intra', 'prod.lumenfold.internal', 'lab.local'])}"


def shorthost() -> str:
    return R.choice(
        [
            f"{R.choice('web db build gpu kafka'.split())}-prod-{R.randrange(1, 40):02d}",
            f"{R.choice(FIRST)}s-MacBook-Pro",
            f"DESKTOP-{some(string.ascii_uppercase + DIGITS, 7)}",
            f"{R.choice(FIRST)}-thinkpad",
        ]
    )


def password() -> str:
    words = "kettle Orchid velvet Raven tundra Maple copper Falcon saffron Ember glacier Willow pickle Comet".split()
    sym = "!%*+?^_-"
    return one_of(
        [
            lambda: some(ALNUM + sym, 16 + R.randrange(8)).strip("-_") + some(ALNUM, 1),
            lambda: (
                R.choice(words)
                + some(sym, 1)
                + R.choice(words).title()
                + some(DIGITS, 3)
                + some("!%*?", 1)
            ),
            lambda: some(ALNUM, 20),
            lambda: (
                R.choice(words).title()
                + some(DIGITS, 2)
                + some("%*!", 1)
                + R.choice(words)
                + some(ALNUM, 5)
            ),
        ]
    )


def urlpass() -> str:
    return one_of(
        [
            lambda: some(ALNUM, 18),
            lambda: some(ALNUM + "_-", 22),
            lambda: quote(some(ALNUM, 8) + "#" + some(ALNUM, 6) + "/" + some(ALNUM, 2), safe=""),
        ]
    )


def uuid() -> str:
    return str(uuids.UUID(bytes=R.randbytes(16), version=4))


def aws() -> str:
    heads = [
        ("AK", "IA"),
        ("AK", "IA"),
        ("AK", "IA"),
        ("AS", "IA"),
        ("AB", "IA"),
        ("AC", "CA"),
        ("A3", "TX"),
    ]
    return j(*R.choice(heads), some(string.ascii_uppercase + "234567", 16))


def ulid() -> str:
    return "01" + some("HJ", 1) + some("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 23)


# name in a context -> (category or None, maker); a maker without category only fills clean text
LABELLED: dict[str, tuple[str, Callable[[], str]]] = {
    "aws": ("aws_access_key", aws),
    "bedrock": ("bedrock_key", bedrock),
    "anthropic": ("anthropic_key", anthropic),
    "openai": ("openai_key", openai),
    "github": ("github_token", github),
    "gitlab": ("gitlab_token", gitlab),
    "gcp": ("gcp_api_key", lambda: j("AI", "za", some(ALNUM + "_-", 34), some(ALNUM, 1))),
    "gsa": ("gcp_service_account", lambda: pem_body("\\n", 610)),
    "gsa2": ("gcp_service_account", lambda: pem_body("\\\\n", 610)),
    "azure": ("azure_secret", azure),
    "azstore": ("azure_secret", lambda: b64(64)),
    "sas": ("azure_sas", lambda: quote(b64(32), safe="")),
    "slack": ("slack_token", slack),
    "hook": ("slack_webhook", slack_hook),
    "stripe": (
        "stripe_key",
        lambda: j(
            R.choice(["sk", "sk", "rk"]),
            "_",
            R.choice(["live", "test", "live", "prod"]),
            "_",
            R.choice([some(ALNUM, 24), j("51", some(ALNUM, 97))]),
        ),
    ),
    "twilio": ("twilio_key", lambda: j("S", "K", some(HEX, 32))),
    "sendgrid": (
        "sendgrid_key",
        lambda: j("S", "G.", some(ALNUM + "_-", 22), ".", some(ALNUM + "_-", 42), some(ALNUM, 1)),
    ),
    "npm": ("npm_token", lambda: j("np", "m_", crc62(some(ALNUM, 30)))),
    "pypi": (
        "pypi_token",
        lambda: j("py", "pi-", "AgEIcHlw", "aS5vcmc", some(ALNUM + "_-", 140), some(ALNUM, 1)),
    ),
    "hf": ("huggingface_token", lambda: j("h", "f_", some(LETTERS, 34))),
    "databricks": (
        "databricks_token",
        lambda: j("da", "pi", some(HEX, 32), R.choice(["", "", "-2"])),
    ),
    "do": (
        "digitalocean_token",
        lambda: j(R.choice(["dop", "dop", "doo", "dor"]), "_v1_", some(HEX, 64)),
    ),
    "vault": (
        "vault_token",
        lambda: j(
            "hv",
            R.choice("ssb"),
            ".",
            R.choice([some(ALNUM, 24), "CAESI" + some(ALNUM + "_-", 89) + some(ALNUM, 1)]),
        ),
    ),
    "tf": ("terraform_token", lambda: j(some(ALNUM, 14), ".atlas", "v1.", some(ALNUM, 67))),
    "doppler": ("doppler_token", lambda: j("dp", ".pt.", some(ALNUM, 43))),
    "fly": (
        "fly_token",
        lambda: one_of(
            [
                lambda: j("fo", "1_", some(ALNUM + "_-", 42), some(ALNUM, 1)),
                lambda: j("fm", "2_", b64(120)),
                lambda: j("fm", R.choice(["1r_", "1a_"]), b64(120)),
            ]
        ),
    ),
    "grafana": ("grafana_token", lambda: j("gl", "sa_", some(ALNUM, 32), "_", some(HEX, 8))),
    "postman": ("postman_key", lambda: j("PM", "AK-", some(HEX, 24), "-", some(HEX, 34))),
    "pulumi": ("pulumi_token", lambda: j("pu", "l-", some(HEX, 40))),
    "sentry": ("sentry_token", lambda: j("sn", "tryu_", some(HEX, 64))),
    "shopify": (
        "shopify_token",
        lambda: j("sh", R.choice(["pat", "pat", "pca", "ppa", "pss"]), "_", some(HEX, 32)),
    ),
    "linear": ("linear_key", lambda: j("li", "n_api_", some(ALNUM, 40))),
    "notion": ("notion_token", lambda: j("nt", "n_", some(DIGITS, 11), some(ALNUM, 35))),
    "pplx": ("perplexity_key", lambda: j("pp", "lx-", some(ALNUM, 48))),
    "heroku": ("heroku_key", lambda: j("HR", "KU-AA", some(ALNUM + "_-", 57), some(ALNUM, 1))),
    "herokuold": ("heroku_key", uuid),
    "age": (
        "age_key",
        lambda: bech32(j("age-", "secret-", "key-"), fives(R.randbytes(32)), 1).upper(),
    ),
    "jwt": ("jwt", jwt),
    "pem": ("private_key", lambda: pem_body("\n")),
    "pemn": ("private_key", lambda: pem_body("\\n")),
    "pemnn": ("private_key", lambda: pem_body("\\\\n")),
    "pemsp": ("private_key", lambda: pem_body("\n    ")),
    "pemd": ("private_key", lambda: pem_body("\n+")),
    "bearer": (
        "auth_header",
        lambda: rich(lambda: some(ALNUM + "-_", 40).strip("-_") + some(ALNUM, 2)),
    ),
    "basic": (
        "auth_header",
        lambda: base64.b64encode(f"{R.choice(FIRST)}:{password()}".encode()).decode(),
    ),
    "hkey": ("auth_header", lambda: rich(lambda: some(HEX, 40))),
    "cookie": (
        "cookie",
        lambda: one_of(
            [
                lambda: some(ALNUM, 32),
                lambda: rich(lambda: some(HEX, 40)),
                lambda: "s%3A" + some(ALNUM + "_-", 31) + some(ALNUM, 1) + "." + some(ALNUM, 43),
            ]
        ),
    ),
    "k8s": ("kubernetes_secret", lambda: base64.b64encode(password().encode()).decode()),
    "k8sp": ("kubernetes_secret", lambda: rich(password)),
    "dbpw": ("database_url", urlpass),
    "urlpw": ("basic_auth_url", urlpass),
    "pw": ("generic_secret", lambda: rich(password)),
    "hex32": ("generic_secret", lambda: rich(lambda: some(HEX, 32))),
    "hex64": ("generic_secret", lambda: rich(lambda: some(HEX, 64))),
    "rnd": ("generic_secret", lambda: rich(lambda: some(ALNUM, R.choice([24, 32, 40])))),
    "b64": ("generic_secret", lambda: rich(lambda: b64(R.choice([24, 32, 33])))),
    "awssecret": ("generic_secret", lambda: rich(lambda: b64(30))),
    "whsec": ("generic_secret", lambda: j("wh", "sec_", some(ALNUM, 32))),
    "email": ("email", email),
    "phone": ("phone", phone),
    "card": ("card", card),
    "iban": ("iban", iban),
    "ibans": ("iban", lambda: iban(True)),
    "ssn": ("national_id", ssn),
    "nino": ("national_id", nino),
    "nir": ("national_id", nir),
    "steuer": ("national_id", steuer),
    "dni": ("national_id", dni),
    "cpf": ("national_id", cpf),
    "bsn": ("national_id", bsn),
    "pesel": ("national_id", pesel),
    "ahv": ("national_id", ahv),
    "sin": ("national_id", sin),
    "pnr": ("national_id", personnummer),
    "ip": ("ip", ip4),
    "ip6": ("ip", ip6),
    "mac": ("mac", mac),
    "macd": ("mac", lambda: mac("-")),
    "eth": ("crypto_address", eth),
    "btc": ("crypto_address", btc),
    "ltc": ("crypto_address", lambda: bech32("ltc", [0, *fives(R.randbytes(20))], 1)),
    "tron": ("crypto_address", lambda: b58check(b"\x41" + R.randbytes(20))),
    "home": (
        "home_path",
        lambda: R.choice(FIRST) + R.choice(["", "", "." + R.choice(LAST), str(R.randrange(9))]),
    ),
    "host": ("hostname", host),
    "shost": ("hostname", shorthost),
    "author": ("git_author", name),
}


def frame(edge: str, kind: str) -> Callable[[], str]:
    """The line before or after the body of a PEM key, never whole in this file."""
    block = " BLOCK" if kind == "PGP" else ""
    return lambda: j(
        "-----", edge, " ", kind, " " if kind else "", "PRIVATE", " KEY", block, "-----"
    )


PEMS = ("", "RSA", "EC", "OPENSSH", "ENCRYPTED", "PGP")
CLEAN: dict[str, Callable[[], str]] = {
    "uuid": uuid,
    "UUID": lambda: uuid().upper(),
    "sha": lambda: some(HEX, 40),
    "sha7": lambda: some("abcdef", 1) + some(HEX, 6),
    "sha256": lambda: some(HEX, 64),
    "sha512": lambda: some(HEX, 128),
    "md5": lambda: some(HEX, 32),
    "sri512": lambda: "sha512-" + b64(64),
    "cert": lambda: "MIID" + some(ALNUM + "+/", 60),
    "fp": lambda: b64(32).rstrip("="),
    "sri256": lambda: "sha256-" + b64(32),
    "sri384": lambda: "sha384-" + b64(48),
    "h1": lambda: "h1:" + b64(32),
    "ms": lambda: str(1_600_000_000_000 + R.randrange(190_000_000_000)),
    "sec": lambda: str(1_600_000_000 + R.randrange(190_000_000)),
    "ulid": ulid,
    "esc": lambda: "\x1b",
    "ver4": lambda: f"{R.randrange(1, 30)}.{R.randrange(30)}.{R.randrange(99)}.{R.randrange(200)}",
    "ver3": lambda: f"{R.randrange(0, 30)}.{R.randrange(30)}.{R.randrange(40)}",
    "badcard": lambda: card(True),
    "lan": lambda: R.choice(
        [
            f"10.{R.randrange(255)}.{R.randrange(255)}.{R.randrange(1, 255)}",
            f"192.168.{R.randrange(9)}.{R.randrange(2, 250)}",
            f"172.{R.randrange(16, 32)}.{R.randrange(255)}.{R.randrange(2, 250)}",
        ]
    ),
    "docip": lambda: R.choice(["192.0.2.", "198.51.100.", "203.0.113."]) + str(R.randrange(1, 254)),
    "img": lambda: (
        "iVBORw0KGgoAAAANSUhEUgAAA" + some(ALNUM + "+/", R.choice([60, 140, 300])) + "AAElFTkSuQmCC"
    ),
    "jpg": lambda: "/9j/4AAQSkZJRgABAQAAAQABAAD/" + some(ALNUM + "+/", 120) + "==",
    "woff": lambda: "d09GMgABAAAAA" + some(ALNUM + "+/", 120),
    "col": lambda: some(HEX, 6),
    "col8": lambda: some(HEX, 8),
    "day": lambda: f"20{R.randrange(19, 27)}-{R.randrange(1, 13):02d}-{R.randrange(1, 29):02d}",
    "time": lambda: f"{R.randrange(24):02d}:{R.randrange(60):02d}:{R.randrange(60):02d}",
    "n": lambda: str(R.randrange(2, 400)),
    "n2": lambda: str(R.randrange(10, 99)),
    "n5": lambda: str(R.randrange(10_000, 99_999)),
    "exname": lambda: R.choice(
        "alice bob jane.doe john support admin user1 info sales test".split()
    ),
    "exdom": lambda: R.choice(
        [
            "example.com",
            "example.org",
            "example.net",
            "mail.example.com",
            "foo.test",
            "corp.invalid",
            "acme.example",
        ]
    ),
    "pkg": lambda: R.choice(
        "lodash react vite eslint zod chalk axios typescript prettier vitest undici esbuild".split()
    ),
    "svc": lambda: R.choice("billing search ingest gateway worker mailer".split()),
    "x64": lambda: "0x" + some(HEX, 64),
    **{"beg" + kind: frame("BEGIN", kind) for kind in PEMS},
    **{"end" + kind: frame("END", kind) for kind in PEMS},
}
