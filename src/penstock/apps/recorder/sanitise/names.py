"""What a name says about its value, and whether the value is one: `DB_PASSWORD`, `apiKey`, `token`.

The name of a secret ends in a word for it: `client_secret` is one, `secret_name` is not. What may
stand behind a password is nearly anything; behind a key or a token it must look random.
"""

from itertools import pairwise

from penstock.apps.recorder.sanitise.checks import DIGITS, WORD, entropy, placeholder
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Pattern

LENIENT, RANDOM, STRICT, NUMBER = 1, 2, 3, 4
"""How a value must look to be one: a password, a key or token, any other key, a few digits."""

Kind = tuple[str, int]

FIGURES = b"0123456789"
ALPHABET = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
HEXADECIMAL = b"0123456789abcdefABCDEF"
ORDINARY = FIGURES + ALPHABET + b"-_./:"


def amount(value: bytes, letters: bytes) -> int:
    """How many of these letters there are."""
    return len(value) - len(value.translate(None, letters))


_PASSWORDS = {
    "password", "passwd", "passphrase", "passcode", "pwd", "pass", "passwort", "kennwort", "pw",
    "contrasena", "senha", "passw", "psw", "motdepasse", "mdp", "wachtwoord", "haslo", "parola",
    "psk", "passwords", "pswd",
}  # fmt: skip
_SALTS = {"salt", "pepper", "hmac", "passkey", "cipher", "encryption", "macaroon", "signing"}
_SEEDS = {"mfa", "2fa", "totp", "otp", "authenticator"}
_JOINED_SEEDS = {f"{each}seed" for each in _SEEDS}
_PAIRS = {("secret", "id"), ("erlang", "cookie"), *((each, "seed") for each in _SEEDS)}
_NUMBERS = {"pin", "cvv", "cvc", "otp", "puk"}
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "pwd", "passwort", "passcode")
_JOINED_PASS = {
    "dbpass", "userpass", "mypass", "smtppass", "rootpass", "adminpass", "sshpass", "vpnpass",
    "wifipass", "pgpass", "mysqlpass", "mailpass", "ftppass", "redispass", "authpass", "proxypass",
    "keypass", "storepass", "bindpw", "rootpw", "userpw", "adminpw", "dbpw", "ldappass",
    "rabbitmqpass", "mongopass", "emailpass", "loginpass",
}  # fmt: skip
_NOT_PASSWORDS = {"by", "com", "one", "tres", "boarding", "no", "tests", "first", "second", "low"}

_SECRET_KEYS = {
    "api", "access", "secret", "private", "signing", "encryption", "encrypt", "decryption",
    "master", "account", "shared", "service", "consumer", "app", "application", "admin", "deploy",
    "routing",
    "client", "subscription", "function", "webhook", "hmac", "jwt", "aes", "root", "crypto",
    "cipher", "license", "licence", "auth", "authentication", "authorization", "bearer", "ssl",
    "rsa", "wallet", "project", "write", "ingest", "integration", "instrumentation", "vault",
    "unseal", "recovery", "bot", "sas", "rapidapi", "sdk", "deployment", "security", "backup",
    "kms", "fernet", "seed", "wrapping", "session", "cookie", "csrf", "validation", "openai",
    "anthropic", "stripe", "twilio", "sendgrid", "mailgun", "algolia", "datadog", "dd", "github",
    "gitlab", "aws", "gcp", "azure", "google", "maps", "firebase", "heroku", "slack", "telegram",
    "discord", "facebook", "twitter", "paypal", "square", "shopify", "cloudflare", "digitalocean",
    "mailchimp", "sentry", "rollbar", "segment", "mixpanel", "amplitude", "weather", "openweather",
    "news", "tmdb", "giphy", "pusher", "intercom", "zendesk", "hubspot", "airtable", "notion",
    "linear", "jira", "confluence", "okta", "auth0", "circleci", "travis", "jenkins", "sonar",
    "snyk", "npm", "pypi", "docker", "hf", "huggingface", "cohere", "mistral", "groq", "gemini",
    "replicate", "pinecone", "supabase", "newrelic", "relic", "grafana", "honeycomb", "pagerduty",
    "opsgenie", "etherscan", "infura", "alchemy", "binance", "coinbase", "kraken", "plaid", "yelp",
    "tavily", "serper", "serpapi", "elastic", "mapbox", "here", "fastly", "bugsnag", "loggly",
    "logz", "papertrail", "contentful", "prismic", "sanity", "storyblok", "imgur", "flickr",
    "spotify", "steam", "riot", "twitch", "strava", "fitbit", "owm", "alphavantage", "finnhub",
    "polygon", "iex", "quandl", "nasa", "ssh",
}  # fmt: skip
_PLAIN_KEYS = {
    "public", "pub", "primary", "foreign", "cache", "sort", "partition", "idempotency",
    "index", "map", "dict", "hash", "unique", "config", "setting", "object", "lookup", "group",
    "shard", "dedupe", "dedup", "row", "col", "column", "translation", "i18n", "locale", "message",
    "json", "react", "event", "query", "tab", "hot", "shortcut", "arrow", "any", "press", "known",
    "host", "natural", "composite", "candidate", "range", "job", "queue", "limit", "order", "item",
    "list", "metric", "label", "feature", "flag", "property", "attribute", "field", "param", "env",
    "registry", "storage", "node", "tree", "entity", "model", "table", "search", "filter", "ui",
    "publishable", "site", "anon", "verify", "verification", "match", "join", "merge", "bucket",
    "keyboard", "mon", "don", "tur", "whis", "jo", "hoc", "space", "enter", "escape", "return",
    "s3", "trace", "span", "data", "image", "file", "folder", "path", "url", "id", "type", "name",
    "value",
}  # fmt: skip
_PUBLIC_KEYS = {
    "public",
    "pub",
    "primary",
    "foreign",
    "publishable",
    "site",
    "anon",
    "cache",
    "sort",
}
_NOT_TOKENS = {
    "csrf", "xsrf", "csrfmiddleware", "page", "next", "continuation", "sync", "cancellation",
    "cancel", "pagination", "stop", "eos", "bos", "pad", "mask", "unk", "special", "start", "end",
    "eof", "nft", "erc20", "design", "syntax", "lexer", "parser", "prev", "previous", "current",
    "first", "last", "max", "min", "num", "total", "input", "output", "prompt", "completion",
    "sep", "cls", "sub", "word", "text", "cache", "reasoning", "resume", "delimiter", "operator",
    "keyword", "per", "by", "of", "request", "watermark", "fencing", "fence", "lease", "lock",
    "count", "a",
}  # fmt: skip
_NOISE = {
    "value", "val", "prod", "production", "dev", "development", "staging", "live", "test", "b64",
    "base64", "plain", "plaintext", "text", "str", "string", "raw", "env", "var", "local", "new",
    "old", "default", "override", "secondary", "1", "2", "3", "header", "param", "base", "data",
    "content",
}  # fmt: skip

_known: dict[bytes, Kind | None] = {}


def kind_of(name: bytes) -> Kind | None:
    """The type of secret that a value of this name is, and how it must look; None for others."""
    try:
        return _known[name]
    except KeyError:
        if len(_known) > 4096:
            _known.clear()
        found = _kind(_words(name.decode("utf-8", "replace")))
        if found is not None and found[1] == STRICT and name.isupper() and b"_" in name:
            found = (found[0], RANDOM)  # a variable of the environment
        _known[name] = found
        return found


def _words(name: str) -> list[str]:
    """`clientSecret`, `CLIENT_SECRET` and `client-secret` are the same two words."""
    words: list[str] = []
    word, before = "", ""
    for n, each in enumerate(name):
        after = name[n + 1 : n + 2]
        if not each.isalnum():
            words.append(word)
            word = ""
        elif each.isupper() and (not before.isupper() or after.islower()) and before.isalnum():
            words.append(word)
            word = each
        else:
            word += each
        before = each
    words.append(word)
    return [each.lower() for each in words if each]


def _kind(words: list[str]) -> Kind | None:
    while len(words) > 1 and words[-1] in _NOISE:
        words = words[:-1]
    if not words:
        return None
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if last in _PASSWORDS or last.endswith(_PASSWORD_ENDS) or last in _JOINED_PASS:
        return None if before in _NOT_PASSWORDS else ("PASSWORD", LENIENT)
    if last == "mnemonic" or (last == "phrase" and before in ("seed", "recovery", "pass")):
        return "PASSWORD", LENIENT
    if last in _SALTS or last in _JOINED_SEEDS or (before, last) in _PAIRS:
        return "SECRET", RANDOM
    if last in _NUMBERS:
        return "PIN", NUMBER
    if last in ("credential", "credentials", "creds", "secrets") or last.endswith("secret"):
        return None if last == "credentials" and before == "with" else ("SECRET", RANDOM)
    if last in ("jwt", "auth", "tokens", "pat") or last.endswith("token"):
        level = STRICT if last == "tokens" else RANDOM
        return None if before in _NOT_TOKENS or "public" in words else ("TOKEN", level)
    if last.endswith("key"):
        return _key(last.removesuffix("key") or before, upright=len(words) > 1)
    return None


def _key(of: str, *, upright: bool) -> Kind | None:
    if of in _PLAIN_KEYS:
        return None if of in _PUBLIC_KEYS else ("API_KEY", STRICT)
    if of in _SECRET_KEYS or of.endswith(("api", "secret", "access", "private", "auth")):
        return ("PRIVATE_KEY" if of == "private" else "API_KEY"), RANDOM
    return ("API_KEY", STRICT) if upright or not of else None


# The value

_ORDINARY = frozenset(
    b"""a an and any are as at be bool boolean bytes can cannot char could default demo does empty
    enabled disabled encrypted env error expected expired failed false field file foo bar baz foobar
    for form found from generated given has have hidden hash hashed header here hello in incorrect
    input int integer invalid is it key length local localhost long malformed manual may message
    missing mismatch must name needed new nil no none not null number object of off on once one
    only optional or other our out password passwd passphrase path plain plaintext prompt public
    rejected required reset revoked same secret server set short should some string str super text
    that the their then this to token too true type undefined unknown unset unsupported use used
    user username value var varchar was when which will with without word world wrong yes you your
    test testing tests admin root guest none null n/a na tbd todo xxx pass pwd passw0rd credentials
    credential auth bearer basic digest oauth oauth2 saml ldap apikey api_key api-key jwt session
    cookie query body json yaml http https local remote random rotate rotated stored storage vault
    keychain keyring environment config configuration readonly read-only read write base64 sha1
    sha256 sha512 md5 utf-8 utf8 ed25519 rsa rs256 hs256 es256 aes256 aes-256 aes-256-gcm argon2
    argon2id bcrypt scrypt pbkdf2 x509 ipv4 ipv6 http2 tls1.2 tls1.3 minimum maximum eight ten
    characters passwort contrase\xc3\xb1a senha kennwort required|string nullable confirmed
    changed change changeme changeit letters inherit inherited auto automatic never always
    Parameter Optional SecretStr convertto-securestring""".split()
)

_UUID = Pattern(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BASE32 = Pattern(r"[A-Z2-7]+={0,6}")
_DATED = Pattern(r"\d{4}-\d\d-\d\d(?:[T ].*)?|\d{1,2}:\d\d(?::\d\d)?.*|v?\d+(?:\.\d+)+")
_PATHS = Pattern(
    r"(?:\.{0,2}/|~/|\*{1,2}[/.]|[A-Za-z]:\\|\\\\)\S*|(?:[\w.@-]+/){2,}[\w.@-]*"
    r"|[\w./-]+\.(?:pem|key|crt|json"
    r"|ya?ml|txt|toml|env|py|js|ts|go|rb|java|php|sh|conf|cfg|ini|html?|md|xml|log|lock|enc|gpg"
    r"|asc)"
)
_HASHES = Pattern(
    r"(?i)(?:[a-z0-9_.]+-)+[0-9a-f]{40,64}|(?:sha(?:1|224|256|384|512)|md5|blake2b|h1)[-:].*"
    r"|arn:.*|op://.*|vault:.*"
)
_ENCRYPTED = Pattern(r"ENC\[.*|\{cipher\}.*|Ag[A-Z][A-Za-z0-9+/]{40,}={0,2}|!.*|\$ANSIBLE_VAULT.*")
_WORDS = Pattern(r"[A-Za-z]{2,}(?:[-_. :/][A-Za-z]{2,})*(?:[-_. :/]?v?\d{1,4})?")
_CODE = Pattern(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.|!\.)[A-Za-z_$][\w$]*)+[!?]?")
_CALL = Pattern(
    r"[A-Za-z_$][\w$.]*[(\[].*|[A-Za-z_]\w*<.*|(?:new|await|async|not|function"
    r"|lambda)\b.*"
)
_INTERPOLATED = Pattern(
    r".*?(?:\$\{|\{\{|#\{|%\{|<%|\{[A-Za-z_][\w.!:]*\}|%[sdr]\b|\$[A-Z_]{3,}).*"
)
_ALIAS = Pattern(r"[*&][a-z_][\w-]{1,30}")
_ODD_PERCENT = Pattern(r"[^${}<]*[0-9^~!@&*+?][^${}<]*%[sdr][^${}<]*[0-9^~!@&*+?][^${}<]*")
_SNAKE = Pattern(r"[A-Za-z]+(?:[_-][A-Za-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")


def is_secret(level: int, value: bytes, *, quoted: bool, prose: bool = False) -> bool:
    """Tell whether a value whose name says that it is a secret is one."""
    if level == NUMBER:
        return value.isdigit() and (4 if quoted else 3) <= len(value) <= 8
    if not 4 <= len(value) <= 16_384 or _stands_for_one(value):
        return False
    digits, letters = amount(value, FIGURES), amount(value, ALPHABET)
    if not quoted and (
        _CALL.whole(value)
        or (_CODE.whole(value) and not _random(value, digits, letters) and not _is_dotted(value))
    ):
        return False
    if level == LENIENT:
        return _is_password(value, digits, letters, quoted=quoted, prose=prose)
    if b" " in value or b"\t" in value:
        return False
    if level == RANDOM:
        return len(value) >= (12 if prose else 8) and _random(value, digits, letters)
    mixed = digits > 1 and letters > 5 and bool(value.translate(None, HEXADECIMAL))
    if len(value) < 16 or not mixed or _UUID.whole(value):
        return False
    return speaks_for_itself(value) or (len(value) >= 20 and entropy(value) >= 3.7)


_standing: dict[bytes, bool] = {}


def _stands_for_one(value: bytes) -> bool:
    """Tell whether a value is an ordinary word, a path, a date or a template; it may come again."""
    known = _standing.get(value)
    if known is None:
        known = _is_no_value(value)
        if len(value) < 64 and len(_standing) < 4_096:
            _standing[value] = known
    return known


def _is_no_value(value: bytes) -> bool:
    return (
        value.lower().rstrip(b".:!?,;") in _ORDINARY
        or placeholder(value)
        or b"://" in value
        or b"[REDACTED_" in value
        or (value[:1] in b"/.~*\\ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz@_-"
            and _PATHS.whole(value) and not _base64(value))
        or _HASHES.whole(value)
        or _ALIAS.whole(value)
        or _DATED.whole(value)
        or _ENCRYPTED.whole(value)
        or (_INTERPOLATED.whole(value) and not _ODD_PERCENT.whole(value) and not _is_odd(value))
    )  # fmt: skip


def _is_odd(value: bytes) -> bool:
    """Tell what a manager of passwords made from all signs, among them those of a template."""
    signs = value.translate(None, ORDINARY)
    return len({*signs} - _OF_TEMPLATES) > 3 and amount(value, FIGURES) > 0


_OF_TEMPLATES = frozenset(b"${}<>%# \"'")


def _base64(value: bytes) -> bool:
    """Base64 holds slashes, as a path does; its parts are no words."""
    return (
        len(value) >= 20
        and entropy(value) >= 4
        and amount(value, FIGURES) > 0
        and value.lower() != value
        and (_ragged(value) or not value.startswith((b"/", b"./", b"../", b"~")))
    )


_SAYINGS = frozenset(
    b"""account again authentication between button choose click confirm confirmation contains
    credentials current database does email empty enter error fails field fields forgot form hide
    icon incorrect input invalid label least length link login logout manager match matches mode
    mysql old page please policy postgres prod production prompt protected provided provider reset
    rotation rules screen service settings show sign staging strength strong submit toggle
    update updated url usage users validation vault view weak wrong""".split()
)


def is_phrase(words: list[bytes]) -> bool:
    """Tell words that somebody drew by lot from a sentence, or the name of something."""
    return all(
        3 <= len(word) <= 10
        and word.isalpha()
        and word.islower()
        and word not in _ORDINARY
        and word not in _SAYINGS
        for word in words
    )


def _is_password(value: bytes, digits: int, letters: int, *, quoted: bool, prose: bool) -> bool:
    size = len(value)
    if b" " in value:
        words = value.split(b" ")
        if prose or not quoted or not value.islower() or not all(map(bytes.isalnum, words)):
            return False
        return len(words) in (3, 4, 12, 24) or is_phrase(words)
    plain = letters + digits
    if digits == size:
        return size >= (8 if prose else 4) and (quoted or not prose)
    if prose:
        return size >= 6 and ((digits > 0 and letters > 0) or plain < size - 1)
    if not value.isascii() and not digits:
        return False
    if not digits:
        if _SNAKE.whole(value) and not _ragged_words(value):
            words = [each.encode() for each in _words(value.decode())]
            return (
                len(words) > 2 and is_phrase(words) and (len(words) > 3 or min(map(len, words)) > 3)
            )
        if letters == size:
            # A word alone may be a label, `Password: Required`, or a variable.
            return size >= 5 and (value.islower() or value.isupper() or not value.istitle())
        return plain < size
    return size >= 4


def _random(value: bytes, digits: int, letters: int) -> bool:
    """Tell whether a value looks as if nobody had thought of it."""
    size = len(value)
    if _UUID.whole(value) or _is_drawn(value):
        return True
    if not value.translate(None, HEXADECIMAL):
        return size >= 16 and digits < size and entropy(value) >= 2.5
    if digits == size or not letters:
        return size >= 24 and entropy(value) >= 2.8
    odd = len(value.translate(None, ORDINARY))
    if not digits:
        if odd and size >= 10:
            return entropy(value) >= 3 and b" " not in value
        return size >= 16 and _ragged(value) and entropy(value) >= 3.5
    if size >= 16 and _BASE32.whole(value):
        return entropy(value) >= 3
    if not odd and not _ragged(value) and digits * 6 < size and value.isalnum():
        return size < 16 and entropy(value) >= 2.75
    if _WORDS.whole(value) and not odd and not _ragged(value):
        return (
            (size >= 10 or digits > 2)
            and digits > 1
            and value[-1] in DIGITS
            and value[:-4].isalnum()
        )
    return entropy(value) >= 2.75


def _is_dotted(value: bytes) -> bool:
    """Tell `marble.lantern.rocket.yellow` from a name of code."""
    words = value.split(b".")
    return len(words) > 3 and is_phrase(words) and min(map(len, words)) > 3


def _is_drawn(value: bytes) -> bool:
    """Tell `velvet-quartz-plasma-96`: words that somebody drew by lot."""
    if _is_dotted(value):
        return True
    words = [word for word in value.split(b"-") if not word.isdigit()]
    return value.count(b"-") > 2 and len(words) > 2 and is_phrase(words)


def _ragged(value: bytes) -> bool:
    """Tell letters whose case changes at random from `camelCase` and `TitleCase`."""
    value = value[:128]
    changes = sum(_sort(one) != _sort(two) for one, two in pairwise(value))
    return changes * 3 >= len(value)


_CAMEL = Pattern(r"[A-Z]?[a-z]*(?:[A-Z][a-z]{2,})+")


def _ragged_words(value: bytes) -> bool:
    letters = value.translate(None, b"-_")[:128]
    changes = sum(
        one.isupper() != two.isupper() for one, two in pairwise(letters.decode("latin-1"))
    )
    return len(letters) >= 8 and changes * 4 >= len(letters) and not _CAMEL.whole(letters)


def _sort(letter: int) -> int:
    return 0 if letter in DIGITS else 1 if letter > 96 else 2


_LIKE_CODE = Pattern(
    r"[\w.]*\w[(\[{<]|.*(?:==|&&|\|\||=>|\+=|\+\+|\?\.|::|->|/\*|\*/|\)[;,{.]|\(\))"
    r"|AAAA[BCE][2-3]|ssh-"
    r"|[A-Za-z_.][A-Za-z0-9_.]*=[0-9]+$|\d{1,2}/[A-Z][a-z]{2}/\d{4}:"
    r"|[-0-9.]*(?:[-0-9]*\.[0-9]+[a-zA-Z-]){3}"
    r"|[a-z_.][a-z0-9_.]*[=:][^=]|@[\w-]+/|/|[\w-]+(?:,[\w-]*)+$|[\w.]+[;,][\w.]+[=;(]"
)


def speaks_for_itself(value: bytes) -> bool:
    """Tell whether a word of prose can only be a password or a key: nobody writes such words."""
    if not 10 <= len(value) <= 128 or value.islower() or value.isupper() or value.isalpha():
        return False
    if value[0] in b"@*?&:.,-":
        return False  # the rest of an address, or of something else
    if not value.isascii() or _stands_for_one(value):
        return False
    sorts = {_sort(each) for each in value if each in WORD}
    if (
        len(sorts) < 3
        or _UUID.whole(value)
        or _CODE.whole(value)
        or _LIKE_CODE.at(value, 0, len(value)) != NOWHERE
    ):
        return False
    if any(each in b"!@#$%^&*~?+" for each in value.strip(b"!?")):
        return entropy(value) >= 3
    return len(value) >= 12 and _ragged(value) and entropy(value) >= 3.3
