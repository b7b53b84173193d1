"""What the check of the Redis store's Lua files finds."""

from collections.abc import Callable

import pytest

from tools import check_scripts
from tools.check_scripts import File, main, problems, read_scripts

CLAIM = ("scripts", "claim")
OTHER_KEYS = "-- reads: nothing\n"


@pytest.fixture(scope="module")
def texts() -> dict[File, str]:
    return read_scripts()


def without_keys(text: str) -> str:
    return check_scripts.KEYS_NAMED.sub("", text)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: f"local x = 1\n{text}", "does not begin with a comment"),
        (lambda text: f"-- Claim\n{text}", "begins with a comment that is no sentence"),
        (without_keys, "names its keys as ''; its commands touch '-- reads: "),
        (lambda text: without_keys(text) + OTHER_KEYS, f"names its keys as {OTHER_KEYS!r}"),
        (lambda text: f"{text}\nlocal function lonely()\nend\n", "defines lonely, which is never"),
    ],
)
def test_a_script_with_a_bad_header_or_an_unused_function_is_one_sentence_with_its_path(
    texts: dict[File, str], change: Callable[[str], str], problem: str
) -> None:
    [sentence] = problems({**texts, CLAIM: change(texts[CLAIM])})
    assert sentence.startswith(f"lua/scripts/claim.lua {problem}")
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (("parts", "spare"), "-- Explain nothing.\n", "lua/parts/spare.lua is needed by no other"),
        (("parts", "spare"), "-- Be needed.\n-- needs: spare ghost\n", "Files need parts that do"),
    ],
)
def test_parts_that_nobody_needs_or_nobody_wrote_are_reported(
    texts: dict[File, str], file: File, text: str, problem: str
) -> None:
    [sentence] = problems({**texts, file: text})
    assert sentence.startswith(problem)


def test_problems_are_printed_and_fail_the_check(
    texts: dict[File, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main() == 0
    monkeypatch.setattr(
        check_scripts, "read_scripts", lambda: {**texts, CLAIM: without_keys(texts[CLAIM])}
    )
    assert main() == 1
    assert "lua/scripts/claim.lua names its keys as ''" in capsys.readouterr().err
