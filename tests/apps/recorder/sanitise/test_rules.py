"""What is taken out, what is left, and that nothing is found twice."""

import random
from base64 import b64encode

import pytest

from penstock.apps.recorder.sanitise import Sanitiser, likely, weights
from penstock.apps.recorder.sanitise.tokens import TOKENS
from proof.corpus.own.values import VALUES, tokens
from proof.sanitiser import has_format, is_secret, measure

CHANCE = random.Random(7)


@pytest.fixture(scope="module")
def sanitiser() -> Sanitiser:
    return Sanitiser(key=b"for a test")


@pytest.mark.parametrize("half", ["blind", "own"])
def test_the_corpus_is_sanitised_as_well_as_it_was(half: str) -> None:
    score = measure(half)
    assert score.recall(has_format) >= 0.999
    assert score.recall(is_secret) >= 0.99
    assert score.recall() >= 0.985
    assert score.precision >= 0.99


@pytest.mark.parametrize(
    ("part", "recall", "precision"),
    [
        ("later", 0.985, 0.985),
        ("wide", 0.98, 0.96),
        ("everyday", 0.99, 0.9),
        ("last", 0.985, 0.95),
        ("backend", 0.96, 0.89),
        ("breadth", 0.93, 0.91),
        ("moments", 0.96, 0.92),
        ("people", 0.965, 0.9),
        ("careless", 0.87, 0.9),
        ("alike", 0.96, 0.84),
        ("company", 0.97, 0.885),
        ("examiner", 0.965, 0.91),
        ("operations", 0.94, 0.885),
        ("spoken", 0.905, 0.945),
        ("scenes", 0.85, 0.75),
    ],
)
def test_lines_by_others_are_sanitised_as_well_as_they_were(
    part: str, recall: float, precision: float
) -> None:
    score = measure(part)
    assert score.recall(is_secret) >= recall
    assert score.precision >= precision


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("MINIO_ROOT_PASSWORD=WillowKettleOrangeHarbour", "WillowKettleOrangeHarbour"),
        ('{"Password":"Maple_Thimble_Wagon_Cloud"}', "Maple_Thimble_Wagon_Cloud"),
        ("curl -fsSu deploy:n9vTq2Lw -T a.jar https://repo.internal/a", "n9vTq2Lw"),
        ("snmpget -v3 -u ops -A kR7pWq2mZ -x AES -X tY5uVb8nQ 10.0.0.1 sysName", "tY5uVb8nQ"),
        ('{"recovery_codes":["k3f9a-77b2c","p0d4e-19a8f"]}', "p0d4e-19a8f"),
        ('{"name":"sid","value":"4be17c9930fd2a6685d1c7e0fa39b264"}', "4be17c9930fd2a66"),
        ("the app password for the relay is wkcd pmzt hqlr vbnx, use that", "wkcd pmzt hqlr vbnx"),
        ("ldap_bind($ds, 'CN=sync,DC=corp', 'Rk7!vTq29zLm')", "Rk7!vTq29zLm"),
        ("304815 ist Ihr Bestätigungscode.", "304815"),
        ("it wants MFA, take 519274 quick", "519274"),
        ("WLAN-Schlüssel: 40918273650192837465", "40918273650192837465"),
        (
            "take nsec1mjt3a7h6vrj6e5gj9hqenf2gmv7k03z0y3xau2l3wyjazdcd8x6ql58wxq",
            "nsec1mjt3",
        ),
        ("MACAROON=0201036c6e6402f14a39e383d5a6322adcd93019", "02f14a39e383"),
    ],
)
def test_what_other_authors_have_taught_is_found(
    text: str, secret: str, sanitiser: Sanitiser
) -> None:
    assert secret in text
    assert secret not in sanitiser.text(text).text


def test_every_token_of_the_table_is_found_wherever_it_stands(sanitiser: Sanitiser) -> None:
    left = [
        (category, token)
        for category, token in tokens(CHANCE)
        for text in (
            token,
            f'x="{token}"',
            f"a\\n{token}\\n",
            f"k%3D{token}",
            f"\x1b[31m{token}\x1b[0m",
        )
        if token in sanitiser.text(text).text
    ]
    assert left == []


def test_rules_have_names_of_their_own() -> None:
    names = [rule for rule, *_ in TOKENS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [n for n in VALUES if VALUES[n][0] not in ("", "generic_secret")])
def test_what_is_redacted_is_left_alone(sanitiser: Sanitiser, name: str) -> None:
    text = f"password: {VALUES[name][1](CHANCE)} and https://x:{VALUES['urlpass'][1](CHANCE)}@h.io/"
    once = sanitiser.text(text)
    twice = sanitiser.text(once.text)
    assert once.findings
    assert twice.text == once.text
    assert twice.findings == ()


def test_a_key_of_capitals_alone_is_a_key(sanitiser: Sanitiser) -> None:
    key = "AK" + "IA" + "QWERTZUIOPASDFGH"
    assert sanitiser.text(f"use {key} now").text == "use [REDACTED_AWS_ACCESS_KEY] now"


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "export TOKEN=${TOKEN}",
        "password = getpass()",
        "the password is required",
        "session_id: 0b9f3c1e-5d7a-4f60-9c7e-3a1b2c4d5e6f",
        '"sessionId":"0b9f3c1e-5d7a-4f60-9c7e-3a1b2c4d5e6f"',
        "session_id: 11111111-2222-3333-4444-555555555555",
        "49927398-7160-4111-1111-111111111111 12345678-4111-1111-1111-111111111111",
        "max_tokens=4096, input_tokens: 12",
        "sha512-" + "q" * 20 + "Zm9v" * 12,
        "a@b, icon@2x.png, git@github.com:a/b.git, jane@example.com",
        "10.0.0.1 and 127.0.0.1 and v1.2.3.4",
        "1700000000000",
        "-----BEGIN RSA PRIVATE KEY-----",
        "license: Apache-2.0, a public licence",
        "/home/user/x, /Users/Shared, /api/home/list",
        "the password for the admin user is stored in vault",
        "echo 'hello world' | sudo tee /etc/motd",
        "echo $PASSWORD | docker login --password-stdin",
        "openssl enc -aes-256-cbc -pass env:PW -in a",
        "mysql -h db -P 3306 -u root shop",
        "login / logout, sign in / sign up",
        "login('ada', 'password')",
        "backup codes: store them in a safe place",
        "GET /items?code=INVALID_PRODUCT_CODE_FOR_REGION",
        "primary_key user_account_identifier_v2",
        "key: hashFiles('**/package-lock.json')",
        "go.sum: example.org/a v1.0.0 h1:lFhVWTCSE4RbqFBoP48YwMgYWFKYZsVSZ53CGTONtwU=",
        "-----BEGIN PUBLIC KEY-----\nZrrosOEo64WGZc+kSuEgGHPz/e+vxTpRF\n-----END PUBLIC KEY-----",
        '"id": "toolu_01A9xK2mQ7rT4vW8yZ3bC6dE"',
        "src=data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAa2QPMGknkgIHHgELW",
        'ETag: W/"iLMDjh9pQzanMDDzGlXR_2uDQQg"',
        "https://docs.example.org/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
        "arn:aws:secretsmanager:eu-west-1:432759230804:secret:prod/billing/db-PetpL9",
        "--- PASS: TestPasswordHasher/empty_password (0.01s)",
        "kubectl create secret generic a --from-literal=username=reporting",
        "|1|ymdHsYkRi5AcZRPleQ1W1e2K57s=|hXfkzlQ4QfefL5KZxYiat/v3wcg= ssh-ed25519 AAAA",
        "| name | password |\n|---|---|\n| ada | required |",
        "def connect(host, password, timeout):\n    return host, password, timeout",
    ],
)
def test_what_only_looks_like_it_is_left(sanitiser: Sanitiser, text: str) -> None:
    assert sanitiser.text(text).text == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DB_PASSWORD=Tr0ub4dor", "DB_PASSWORD=[REDACTED_PASSWORD]"),
        ('{"password": 12345678}', '{"password": "[REDACTED_PASSWORD]"}'),
        ("postgres://app:s3cr3t@db/x", "postgres://app:[REDACTED_PASSWORD]@db/x"),
        ("curl -u me:hunter22 x.io", "curl -u me:[REDACTED_PASSWORD] x.io"),
        ("cd /home/ada/src", "cd /home/[REDACTED_USER]/src"),
        ("C:\\Users\\ada\\x", "C:\\Users\\[REDACTED_USER]\\x"),
        ("Author: Ada Byron <ada@byron.uk>", "Author: [REDACTED_NAME] <[REDACTED_EMAIL]>"),
        ("the password is hunter2!", "the password is [REDACTED_PASSWORD]!"),
        ("from 81.2.69.142 port 22", "from [REDACTED_IP_ADDRESS] port 22"),
        ("echo 'walrus77' | sudo -S ls", "echo '[REDACTED_PASSWORD]' | sudo -S ls"),
        ("openssl enc -k walrus-77 -in a", "openssl enc -k [REDACTED_PASSWORD] -in a"),
        ("htpasswd -b .htpasswd ada walrus77", "htpasswd -b .htpasswd ada [REDACTED_PASSWORD]"),
        ("http --auth ada:walrus77 x.io", "http --auth ada:[REDACTED_PASSWORD] x.io"),
        ("jdbc:oracle:thin:ada/walrus77@//db", "jdbc:oracle:thin:ada/[REDACTED_PASSWORD]@//db"),
        ("login ada\n  password walrus77", "login ada\n  password [REDACTED_PASSWORD]"),
        ("host=db password=rCtkbqHsJIGB db=x", "host=db password=[REDACTED_PASSWORD] db=x"),
        ("PASSWORD = N'walrus77';", "PASSWORD = N'[REDACTED_PASSWORD]';"),
        ("smtp.login('ada', 'walrus_77')", "smtp.login('ada', '[REDACTED_PASSWORD]')"),
        ("MAIL_PASSWORD=abcd efgh ijkl mnop", "MAIL_PASSWORD=[REDACTED_PASSWORD]"),
        ("backup codes: 4821-9931 7712-0043", "backup codes: [REDACTED_SECRET]"),
        (
            "the password for staging is Blue-Whale-71, rotate it",
            "the password for staging is [REDACTED_PASSWORD], rotate it",
        ),
        (
            "mnemonic: legal winner thank year wave sausage worth useful legal winner thank yellow",
            "mnemonic: [REDACTED_PASSWORD]",
        ),
        ("call +1 415 555 2671", "call [REDACTED_PHONE]"),
        (
            "| user | password |\n|---|---|\n| ada | walrus-77 |",
            "| user | password |\n|---|---|\n| ada | [REDACTED_PASSWORD] |",
        ),
        ("host,password\ndb1,walrus-77\n", "host,password\ndb1,[REDACTED_PASSWORD]\n"),
        (
            "INSERT INTO users (name, password) VALUES ('ada', 'walrus77'), ('b', NULL)",
            "INSERT INTO users (name, password) VALUES ('ada', '[REDACTED_PASSWORD]'), ('b', NULL)",
        ),
        ("chpasswd:\n  ada:walrus-77\n", "chpasswd:\n  ada:[REDACTED_PASSWORD]\n"),
        (
            'key = "NelEGMrKaxYYee30CQ5AVEzV7Hyy" +\n  "QNn2se66tQLe2tytVnRnQO3WhC"',
            'key = "[REDACTED_API_KEY]" +\n  "[REDACTED_SECRET]"',
        ),
        ("New value: LUIS0e8Jm7ZWNCaYFNyn", "New value: [REDACTED_SECRET]"),
        (
            "das Kennwort vom NAS lautet Mango2023.",
            "das Kennwort vom NAS lautet [REDACTED_PASSWORD].",
        ),
        ("snmpwalk -v2c -c walrus77 10.0.0.1", "snmpwalk -v2c -c [REDACTED_PASSWORD] 10.0.0.1"),
        ('sql.Open("ada:walrus77@tcp(db)/x")', 'sql.Open("ada:[REDACTED_SECRET]@tcp(db)/x")'),
        (
            '"pw": {"type": "s", "value": "walrus77"}',
            '"pw": {"type": "s", "value": "[REDACTED_PASSWORD]"}',
        ),
        (
            "DB_PASS=walrus-7711 # -pwalrus-7711",
            "DB_PASS=[REDACTED_PASSWORD] # -p[REDACTED_PASSWORD]",
        ),
        ("{SSHA}BD/a5yH4ze6fy9SQbvEMsZcYnLWSxqdN", "[REDACTED_SECRET]"),
        ("PASS walrus77\n230 ok", "PASS [REDACTED_PASSWORD]\n230 ok"),
        ("secret: 'velvet-quartz-plasma-gravel'", "secret: '[REDACTED_SECRET]'"),
        ("Log in as ada with Walrus2077.", "Log in as ada with [REDACTED_PASSWORD]."),
        (
            "new mysqli('db', 'ada', 'Walrus.heron7')",
            "new mysqli('db', 'ada', '[REDACTED_PASSWORD]')",
        ),
        ("password: !!str 'Walrus.heron7'", "password: !!str '[REDACTED_PASSWORD]'"),
        (
            " id | api_token\n----+-------\n  1 | 7beccc54f48685106c5b3c40e3b2e41c3b7c6f0f",
            " id | api_token\n----+-------\n  1 | [REDACTED_TOKEN]",
        ),
        ("-L/Users/ada/lib", "-L/Users/[REDACTED_USER]/lib"),
        (
            "11111111-2222-3333-4444-555555555555 paid by 4111-1111-1111-1111",
            "11111111-2222-3333-4444-555555555555 paid by [REDACTED_CARD]",
        ),
    ],
)
def test_only_the_value_goes(sanitiser: Sanitiser, text: str, left: str) -> None:
    assert sanitiser.text(text).text == left


@pytest.mark.parametrize("length", range(34, 44))
def test_a_private_key_in_base64_is_known_wherever_it_is_cut(
    sanitiser: Sanitiser, length: int
) -> None:
    armour = b64encode(b"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIEHN").decode()[:length]
    assert sanitiser.text(f"client-key-data: {armour}").findings, armour
    shown = b64encode(b"-----BEGIN CERTIFICATE-----\nMIIDITCCAgmgAwIB").decode()[:length]
    assert not sanitiser.text(f"client-certificate-data: {shown}").findings


def test_what_comes_again_and_again_hides_nothing_else(sanitiser: Sanitiser) -> None:
    secret = "q" * 20 + "R7" * 10
    text = "insert into a values (1)\n" * 100 + "AK" + f"IAQWERTZUIOPASDFGH,{secret}"
    assert secret not in sanitiser.text(text).text


def test_of_a_file_of_secrets_none_is_left(sanitiser: Sanitiser) -> None:
    secrets = [f"walrus-{number:06}-heron" for number in range(20_000)]
    text = "name,password\n" + "".join(f"ada,{secret}\n" for secret in secrets)
    left = sanitiser.text(text).text
    assert "walrus" not in left
    assert left.count("ada") == len(secrets)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("alarm PIN is 279330, key box is open", "alarm PIN is [REDACTED_PIN], key box is open"),
        ("the sms came, code is 716932, go on", "the sms came, code is [REDACTED_PIN], go on"),
        ("what's the passcode?\nPriya: 818555\n", "what's the passcode?\nPriya: [REDACTED_PIN]\n"),
        ("Your one-time code: 707 635", "Your one-time code: [REDACTED_PIN]"),
        ("148907 is your verification code", "[REDACTED_PIN] is your verification code"),
        (
            "the password is my birthday 11051994.",
            "the password is my birthday [REDACTED_PASSWORD].",
        ),
        (
            'its passphrase is "river purple castle sunset" (with blanks)',
            'its passphrase is "[REDACTED_PASSWORD]" (with blanks)',
        ),
        (
            "my seed is 'zebra orbit idle saddle dolphin dance cat hockey elbow wagon oak tent'",
            "my seed is '[REDACTED_PASSWORD]'",
        ),
        (
            "Enter this key instead:\n\n  jw3x 2fbw ebqf zky5\n",
            "Enter this key instead:\n\n  [REDACTED_SECRET]\n",
        ),
        (
            "$ openssl rand -hex 16\n822b632da5cfd1a69b47a858061e2184",
            "$ openssl rand -hex 16\n[REDACTED_SECRET]",
        ),
        ("REVALIDATE_TOKEN=marble.lantern.rocket.yellow", "REVALIDATE_TOKEN=[REDACTED_TOKEN]"),
    ],
)
def test_codes_and_phrases_go(sanitiser: Sanitiser, text: str, left: str) -> None:
    assert sanitiser.text(text).text == left


@pytest.mark.parametrize(
    "text",
    [
        "the error code is 500123 and the exit code is 137",
        "the PIN expires after 300000 ms, the OTP is valid for 3600 seconds",
        "zip code 10115, country code 0049",
        "my password is the name of that film about the city of angels and all the people there",
        "pin the build to version 20240611",
        "2fa is on, mfa is off",
    ],
)
def test_other_numbers_and_sentences_stay(sanitiser: Sanitiser, text: str) -> None:
    assert sanitiser.text(text).text == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("log in to the router with admin and Tiger.dragon8, then reboot it", "Tiger.dragon8"),
        ("for prod it's the same user but Jf2?9d0l~=E-Z+DY", "Jf2?9d0l~=E-Z+DY"),
        ("i set the vpn thing to Daisy68! last week", "Daisy68!"),
        (
            "L\u00f6senordet till databasen \u00e4r Hemlig2019! och anv\u00e4ndaren heter iyer",
            "Hemlig2019!",
        ),
    ],
)
def test_a_word_that_is_likely_a_secret_goes(sanitiser: Sanitiser, text: str, secret: str) -> None:
    cleaned = sanitiser.text(text).text
    assert secret not in cleaned
    assert cleaned.count("[REDACTED_") == 1


@pytest.mark.parametrize(
    "text",
    [
        "class OAuth2PasswordBearer: uses sha256 and utf8, see RFC6749",
        "def test_login_with_password_123(user1): assert token.type2 == 'IDENT'",
        "the access log of web01 shows user agents of Mozilla5.0 and HTTP2",
        "add a foreign key fk_a3cb to table2 and connect it to index_v2",
    ],
)
def test_words_of_code_that_only_look_like_one_stay(sanitiser: Sanitiser, text: str) -> None:
    assert sanitiser.text(text).text == text


def test_there_is_a_weight_for_every_trait() -> None:
    assert len(weights.WEIGHTS) == likely.SIZE
