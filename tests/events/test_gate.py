"""The gate: nothing that a rule would find passes unseen, and what is clean stays as it is."""

import re
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import Penstock
from penstock.events import gate
from penstock.events.codec import unpacked
from penstock.events.event import InvalidEvent, NewEvent
from penstock.events.gate import may_match, redacting
from penstock.model.redact import redact_whole
from tests.model.test_redact import MIXED, NAMED, TOKENS

PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{MIXED}\n-----END RSA PRIVATE KEY-----"
SECRETS = [*TOKENS.values(), *(text for text, _ in NAMED), PEM]

odd = st.text("ſKİßé\u2028\u00a0 \n\r\t\0\\\"'@:=%/._-[]aB3", max_size=20)
around = st.one_of(odd, st.text(max_size=20))
hidden = st.builds(
    lambda before, it, after: before + it + after, around, st.sampled_from(SECRETS), around
)
texts = st.one_of(hidden, around, st.sampled_from(SECRETS))
names = st.one_of(st.sampled_from(["password", "to", "authToken", "n"]), texts)
payloads: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    names,
    st.recursive(
        st.one_of(texts, st.integers(), st.none()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)
        ),
        max_leaves=5,
    ),
    max_size=3,
)


def without_re2() -> Any:
    return patch.object(gate, "_any_rule", lambda: None)


def event(payload: dict[str, Any]) -> NewEvent:
    return NewEvent(event_type="trace", payload=payload)


@pytest.mark.parametrize("secret", SECRETS)
def test_every_kind_of_secret_is_seen(secret: str) -> None:
    assert redact_whole(secret) != secret
    assert may_match(secret)
    with without_re2():
        assert may_match(secret)


@settings(max_examples=100, deadline=None)
@given(text=hidden)
def test_the_look_ahead_is_never_wrong_when_it_says_no(text: str) -> None:
    if redact_whole(text) != text:
        assert may_match(text)
        with without_re2():
            assert may_match(text)


@settings(max_examples=100, deadline=None)
@given(payload=payloads)
@example(payload={"ada@example.com password": "hunter2"})
@pytest.mark.thorough
def test_what_is_clean_stays_as_it_is_and_the_look_ahead_changes_nothing(
    payload: dict[str, Any],
) -> None:
    clean = redacting(event(payload))
    assert redacting(clean) == clean
    with patch.object(gate, "may_match", lambda _: True):
        assert redacting(event(payload)) == clean
        assert redacting(clean) == clean


@dataclass
class Account:
    """What JSON can hold, though it is none of its own kinds."""

    password: str


@pytest.mark.parametrize(
    "value", [{"bob@corp.io"}, frozenset({"bob@corp.io"}), Account("hunter2"), [Account("hunter2")]]
)
def test_a_secret_in_anything_that_json_can_hold_is_replaced(value: Any) -> None:
    clean = redacting(event({"value": value}))
    assert "[REDACTED_" in str(clean.payload)
    assert "corp.io" not in str(clean.payload)
    assert "hunter2" not in str(clean.payload)


@settings(max_examples=50, deadline=None)
@given(given=st.lists(payloads, min_size=2, max_size=45))
@example(given=[{"text": f"clean {n}"} for n in range(45)])
@example(given=[*({"text": "clean"} for _ in range(30)), {"to": "ada@example.com"}])
@example(given=[{"text": "clean"}, {"text": "half a pair \ud800"}, {"to": "ada@example.com"}])
@pytest.mark.thorough
def test_events_that_are_looked_at_together_are_kept_as_one_by_one(
    given: list[dict[str, Any]],
) -> None:
    preparer = Penstock("sqlite:///:memory:", extensions=["events"]).events.preparer
    events = [
        NewEvent(event_type="trace", event_id=str(n), timestamp=n, payload=payload)
        for n, payload in enumerate(given)
    ]
    for one, together in zip(events, preparer.each(events, 5), strict=True):
        if isinstance(together, Exception):
            with pytest.raises(InvalidEvent, match=re.escape(str(together))):
                preparer.row(one, 5)
        else:
            alone = preparer.row(one, 5)
            assert (together.body, together.bindings[:-1]) == (alone.body, alone.bindings[:-1])
            *_, codec, data = together.bindings
            assert unpacked(data, codec) == alone.body
