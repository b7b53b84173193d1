import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.redact import LIMIT, redact

HEX = "0123456789abcdef" * 8
MIXED = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 4

TOKENS = {
    "ANTHROPIC_KEY": "sk-ant-api03-" + MIXED[:93] + "AA",
    "OPENAI_KEY": "sk-proj-" + MIXED[:40] + "T3BlbkFJ" + MIXED[:40],
    "AWS_ACCESS_KEY": "AKIA" + "IOSFODNN7EXAMPLE",
    "AWS_BEDROCK_KEY": "ABSK" + MIXED[:100],
    "GITHUB_TOKEN": "ghp_" + MIXED[:36],
    "GITLAB_TOKEN": "glpat-" + MIXED[:20],
    "SLACK_TOKEN": "xoxb-" + "123456789012-123456789012-" + MIXED[:24],
    "STRIPE_KEY": "sk_live_" + MIXED[:24],
    "GCP_API_KEY": "AIza" + MIXED[:35],
    "TWILIO_KEY": "SK" + HEX[:32],
    "SENDGRID_KEY": "SG." + MIXED[:22] + "." + MIXED[:43],
    "NPM_TOKEN": "npm_" + MIXED[:36],
    "PYPI_TOKEN": "pypi-AgEIcHlwaS5vcmc" + MIXED[:100],
    "HUGGINGFACE_TOKEN": "hf_" + MIXED[:34],
    "DATABRICKS_TOKEN": "dapi" + HEX[:32],
    "DIGITALOCEAN_TOKEN": "dop_v1_" + HEX[:64],
    "VAULT_TOKEN": "hvs." + MIXED[:90],
    "AGE_KEY": "AGE-SECRET-KEY-1" + MIXED[:58].upper(),
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + MIXED[:43],
}


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("around", ["{}", "key {} end", '"{}",', "\\n{}\\n", "(x_{})", "a={};"])
def test_a_providers_token_is_replaced_wherever_it_stands(kind: str, around: str) -> None:
    assert redact(around.format(TOKENS[kind])) == around.format(f"[REDACTED_{kind}]")


@pytest.mark.parametrize("line_break", ["\n", "\\n"])
def test_a_private_key_is_replaced_whole(line_break: str) -> None:
    pem = line_break.join(
        ("-----BEGIN RSA PRIVATE KEY-----", MIXED, MIXED, "-----END RSA PRIVATE KEY-----")
    )
    assert redact(f"before {pem} after") == "before [REDACTED_PRIVATE_KEY] after"


def test_a_private_key_that_was_cut_off_is_replaced_as_far_as_it_goes() -> None:
    assert redact(f"-----BEGIN PRIVATE KEY-----\n{MIXED}\n{MIXED}") == "[REDACTED_PRIVATE_KEY]"


NAMED = [
    ("password=hunter2", "password=[REDACTED_PASSWORD]"),
    ("password: correct-horse, x", "password: [REDACTED_PASSWORD], x"),
    ("DB_PASS=hunter2;", "DB_PASS=[REDACTED_PASSWORD];"),
    ("--client-secret=s3cr3t", "--client-secret=[REDACTED_SECRET]"),
    ("X-Api-Key: 0a1b2c3d", "X-Api-Key: [REDACTED_API_KEY]"),
    ("GET /x?token=abc123&page=2", "GET /x?token=[REDACTED_TOKEN]&page=2"),
    ("Client(token=abc123)", "Client(token=[REDACTED_TOKEN])"),
    ("{'authToken': 'abc 123'}", "{'authToken': '[REDACTED_TOKEN]'}"),
    (r"{\"pwd\":\"a b\"}", r"{\"pwd\":\"[REDACTED_PASSWORD]\"}"),
    ("aws_secret_access_key = wJalrX/K7M", "aws_secret_access_key = [REDACTED_SECRET]"),
    ("password=$ecret123", "password=[REDACTED_PASSWORD]"),
    ("Authorization: Basic dXNlcg== ok", "Authorization: [REDACTED_AUTHORIZATION] ok"),
    ("('authorization', 'Bearer abc')", "('authorization', '[REDACTED_AUTHORIZATION]')"),
    ("sent Bearer abcdefgh12345678 to", "sent Bearer [REDACTED_TOKEN] to"),
    ("Set-Cookie: sid=31d4; Path=/", "Set-Cookie: [REDACTED_COOKIE]"),
    ("postgresql://bob:p@ss@db/app", "postgresql://bob:[REDACTED_PASSWORD]@db/app"),
    ("redis://:hunter2@cache", "redis://:[REDACTED_PASSWORD]@cache"),
    ("postgresql://u:pw@db/app", "postgresql://u:[REDACTED_PASSWORD]@db/app"),
    ("postgresql://u:password@db/app", "postgresql://u:[REDACTED_PASSWORD]@db/app"),
    ("no route to u:pw@db:5432", "no route to u:[REDACTED_PASSWORD]@db:5432"),
    ("proxy u:p!w@cache.corp.io", "proxy u:[REDACTED_PASSWORD]@cache.corp.io"),
    ("bob:p@ss@db", "bob:[REDACTED_PASSWORD]@db"),
    ("mail bob.b+x@corp.co.uk.", "mail [REDACTED_EMAIL]."),
    ("no such user: ada@example.com", "no such user: [REDACTED_EMAIL]"),
    ("to:ada@example.com.", "to:[REDACTED_EMAIL]."),
    ("<zoë@exämple.de>", "<[REDACTED_EMAIL]>"),
    (
        "GET /users?email=ada%2Bx%40example.com&page=2",
        "GET /users?email=[REDACTED_EMAIL]&page=2",
    ),
]


@pytest.mark.parametrize(("text", "clean"), NAMED)
def test_a_named_secret_is_replaced_and_the_rest_stays_readable(text: str, clean: str) -> None:
    assert redact(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "id 550e8400-e29b-41d4-a716-446655440000",
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP==",
        "DB_PASSWORD=${DB_PASSWORD} token=$TOKEN secret=<secret> api_key=%(key)s",
        'password="{{ password }}"',
        "public: lic, publicKey=abc123, primary_key=17",
        "Invalid token: expired",
        "password: must be at least 8 characters",
        "max_tokens=4096 token=12",
        "PWD=/srv/shop",
        "client = Client(token=self.token, password=get_password(), api_key=settings.api_key)",
        'token = os.environ["TOKEN"]',
        "def login(user: str, password: str) -> None:",
        "clone git@github.com:x/y.git",
        "lodash@4.17.21 at http://localhost:8080/a@b",
        "npm:lodash@4.17.21 and shop:latest@sha256:0123abcd at 12:30",
        "postgresql://app:$PASSWORD@db/app and redis://:***@cache",
        "task-0123456789abcdefghij0123456789",
        "1763177280123 is a time",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("value", ["hunter2", 'a"b\\c', 12345, 1.5e9, True, None, ["x"], {"a": 1}])
def test_json_stays_valid(value: object) -> None:
    document = json.dumps({"password": value, "to": "bob@corp.io", "n": 1})
    clean = json.loads(redact(document))
    assert clean["n"] == 1
    assert clean["to"] == "[REDACTED_EMAIL]"
    assert value in (True, None, ["x"], {"a": 1}) or clean["password"] == "[REDACTED_PASSWORD]"


def test_what_no_store_can_hold_is_replaced() -> None:
    assert redact("a\0b") == "a\ufffdb"
    assert redact("half a \ud83d pair") == "half a ? pair"


def test_a_long_text_is_cut_and_says_how_much_is_gone() -> None:
    text = "word " * 20_000
    clean = redact(text)
    kept, note = clean.rsplit("\n", 1)
    assert len(clean) <= LIMIT
    assert text.startswith(kept)
    assert note == f"[{len(text) - len(kept)} characters dropped]"


@pytest.mark.parametrize("offset", range(1, 60, 7))
def test_a_secret_on_the_cut_does_not_survive_in_part(offset: int) -> None:
    lead = "word " * (LIMIT // 5)
    text = lead[: LIMIT - 64 - offset] + " " + TOKENS["GITHUB_TOKEN"] + " tail" * 100
    assert "ghp_" not in redact(text)


HOSTILE = (
    "a",
    "a.",
    "a@b.co ",
    "a@a.",
    'password="',
    "token=a.",
    "token ",
    "eyJaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "cookie:a",
    "authorization: ",
    "://a:",
    "\\",
    "a:",
    "a:b@",
    "u:p@ss@",
    "%40",
    "a%40",
    "@",
    ":",
)


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.timeout(10)
def test_hostile_repetition_is_done_in_linear_time_and_stays_redacted(piece: str) -> None:
    clean = redact(piece * (2 * LIMIT // len(piece)))
    assert len(clean) <= LIMIT
    assert redact(clean) == clean


@pytest.mark.parametrize("character", 'a@:%=. "\\\n')
@pytest.mark.timeout(10)
def test_a_megabyte_of_one_character_is_done_in_linear_time(character: str) -> None:
    assert len(redact(character * 1_000_000)) <= LIMIT


PIECES = st.sampled_from(
    (
        *TOKENS.values(), *HOSTILE, "password", "token", "secret", "=", ":", " ", "\n", '"', "'",
        "\\", "[", "]", "{", "}", "(", ",", "Bearer ", "Authorization: ", "Cookie: a=", "https://",
        "[REDACTED_TOKEN]", "[REDACTED_", "hunter2", "a@corp.io", "\n[5 characters dropped]",
    )
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES | st.text(max_size=8), max_size=20).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    clean = redact(text)
    assert redact(clean) == clean


@given(st.text(max_size=40), st.sampled_from(sorted(TOKENS.values())), st.text(max_size=40))
def test_no_surrounding_text_brings_a_token_through(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} {token} {after}")


@pytest.mark.parametrize(
    "text",
    ["PWD=hunter2-hunter2", "ada@example.com", "Token: 0a1b2c3d4e5f", "redis://:s3cret@cache"],
)
def test_a_short_text_is_looked_at_by_the_same_rules_as_a_long_one(text: str) -> None:
    aside = " and nothing that anybody would have to keep to themselves"
    assert len(text) <= 40 < len(text + aside)
    assert redact(text) != text
    assert redact(text + aside) == redact(text) + aside
