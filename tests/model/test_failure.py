import json
import re
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

import penstock
from penstock import PenstockError
from penstock.model.failure import Failure, folded, gist, group_id
from penstock.model.retry import ErrorClass


def fingerprint(code: Callable[[], object]) -> str:
    try:
        code()
    except Exception as error:
        return Failure.of(error, ErrorClass.UNKNOWN).fingerprint
    raise AssertionError("nothing was raised")


def compiled(source: str, filename: str) -> Callable[[], object]:
    """The function `handler` of a module at this path."""
    code: CodeType = compile(source, filename, "exec")
    namespace: dict[str, Callable[[], object]] = {}
    exec(code, namespace)
    return namespace["handler"]


RAISES = "def handler():\n    raise ValueError({message!r})\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is late", "order 4711 is late"),
        ("order A-17 is late", "order B-4 is late"),
        ("no user 'ann'", "no user 'bob'"),
        ('no file "a.txt"', 'no file "b/c.txt"'),
        ("job 01JD0000000000000000000000 is gone", "job 01M7EQB9TZB2YBZEMYKVRP6G6X is gone"),
        ("at 2026-11-15T03:28:00Z", "at 2025-01-01T00:00:00.123Z"),
        ("0x7f3a at 10.0.0.1:443", "0xdeadbeef1 at 192.168.7.9:80"),
        ("id 6ba7b810-9dad-11d1-80b4-00c04fd430c8", "id 3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
    ],
)
def test_what_differs_from_job_to_job_splits_no_group(one: str, other: str) -> None:
    assert gist(one) == gist(other)
    dead = [Failure.because(ErrorClass.UNKNOWN, "Dead", told) for told in (one, other)]
    assert dead[0].fingerprint == dead[1].fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [("the form is empty", "the form is too long"), ("it can't pay", "it can't ship")],
)
def test_different_words_make_different_groups(one: str, other: str) -> None:
    assert gist(one) != gist(other)


def test_the_same_place_is_one_group_whatever_the_message_says() -> None:
    one = compiled(RAISES.format(message="bad row 1"), "/srv/shop/tasks.py")
    other = compiled(RAISES.format(message="quite another"), "/srv/shop/tasks.py")
    assert fingerprint(one) == fingerprint(other)


def test_lines_added_above_keep_the_group() -> None:
    before = compiled(RAISES.format(message="bad"), "/srv/shop/tasks.py")
    after = compiled("import os\n\n\n" + RAISES.format(message="bad"), "/srv/shop/tasks.py")
    assert fingerprint(before) == fingerprint(after)


def test_another_function_or_another_error_is_another_group() -> None:
    def by_value() -> None:
        raise ValueError

    def by_key() -> None:
        raise KeyError

    def elsewhere() -> None:
        raise ValueError

    assert len({fingerprint(code) for code in (by_value, by_key, elsewhere)}) == 3


def test_two_callers_of_one_library_are_two_groups() -> None:
    def one() -> None:
        re.compile("(")

    def other() -> None:
        re.compile("(")

    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one).endswith("one")


def test_a_new_version_of_a_library_keeps_the_group() -> None:
    installed = "/venv/lib/python3.11/site-packages/lib/core.py"
    old = compiled("def handler():\n    raise OSError\n", installed)
    new = compiled("def handler():\n    def deep(): raise OSError\n    deep()\n", installed)

    def call(library: Callable[[], object]) -> None:
        library()

    assert fingerprint(lambda: call(old)) == fingerprint(lambda: call(new))


@pytest.mark.parametrize("part", ["app", "django", "worker"])
def test_the_machinery_around_a_handler_is_no_place_of_its_errors(part: str) -> None:
    file = Path(penstock.__file__).parent / part / "some.py"
    refuse = compiled(RAISES.format(message="bad"), str(file))

    def handler() -> None:
        refuse()

    assert fingerprint(handler).endswith("test_failure.py:handler")


def test_the_depth_of_a_recursion_splits_no_group() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        raise ValueError(levels)

    assert len({fingerprint(lambda n=n: deep(n)) for n in range(5)}) == 1


def test_an_exception_that_is_raised_again_keeps_its_group() -> None:
    error = ValueError("kept")

    def again() -> None:
        raise error

    assert fingerprint(again) == fingerprint(again)


def test_an_error_without_a_place_is_grouped_by_its_words() -> None:
    one = Failure.of(ValueError("row 1 is bad"), ErrorClass.UNKNOWN)
    other = Failure.of(ValueError("row 2 is bad"), ErrorClass.UNKNOWN)
    unlike = Failure.of(ValueError("no rows"), ErrorClass.UNKNOWN)
    assert one.fingerprint == other.fingerprint != unlike.fingerprint


def test_a_group_has_a_short_id_of_its_type_and_its_fingerprint() -> None:
    known = group_id("send", "unknown|ValueError|tasks.py:send")
    assert re.fullmatch(r"[0-9a-f]{8}", known)
    assert known == group_id("send", "unknown|ValueError|tasks.py:send")
    assert known != group_id("ship", "unknown|ValueError|tasks.py:send")


def test_a_job_keeps_the_rest_of_a_failure_as_one_document() -> None:
    failure = Failure.because(ErrorClass.POISON, "LeaseLost", "It is gone.")
    assert json.loads(failure.details) == {
        "class": "poison",
        "code": "LeaseLost",
        "stack": "",
        "fingerprint": failure.fingerprint,
    }


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("customer"), "KeyError: 'customer'"),
        (ValueError("no such order"), "ValueError: no such order"),
        (ValueError(), "ValueError"),
        (KeyError(), "KeyError"),
        (ValueError("password=hunter2-and-more"), "ValueError: password=[REDACTED_PASSWORD]"),
    ],
)
def test_the_text_of_an_error_names_its_class(error: Exception, text: str) -> None:
    assert Failure.of(error, ErrorClass.UNKNOWN).message == text


def test_the_words_of_a_handler_stand_alone() -> None:
    dead = Failure.because(ErrorClass.UNKNOWN, "Dead", "the form is empty")
    assert dead.message == "the form is empty"


def test_a_refusal_of_ours_that_no_other_code_led_to_is_its_sentence_without_frames() -> None:
    ours = str(Path(penstock.__file__).parent / "app" / "some.py")
    refuse = compiled(
        "from penstock import PenstockError\n"
        "def handler():\n"
        "    try:\n"
        "        raise ValueError('inner')\n"
        "    except ValueError as error:\n"
        "        raise PenstockError('It does not fit.') from error\n",
        ours,
    )
    with pytest.raises(PenstockError) as refused:
        refuse()
    error = refused.value.with_traceback(refused.tb.tb_next)  # without the frame of this test
    alone = Failure.of(error, ErrorClass.UNKNOWN).stack
    assert alone == "penstock.model.errors.PenstockError: It does not fit.\n"

    with pytest.raises(PenstockError) as led:
        refuse()
    whole = Failure.of(led.value, ErrorClass.UNKNOWN).stack
    assert "test_failure.py" in whole
    assert "ValueError: inner" in whole


STACK = """Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/penstock/worker/execution.py", line 71, in _run
    value = await self._call(running, usage)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/penstock/app/arguments.py", line 12, in call
    return function(context)
  File "/srv/penstock/shop/tasks.py", line 7, in ship
    return orders["customer"]
           ~~~~~~^^^^^^^^^^^^
KeyError: 'customer'
"""


def test_frames_of_penstock_are_folded_into_one_line_and_those_of_the_application_kept() -> None:
    assert folded(STACK) == (
        "Traceback (most recent call last):\n"
        "  … 2 frames of penstock\n"
        '  File "/srv/penstock/shop/tasks.py", line 7, in ship\n'
        '    return orders["customer"]\n'
        "           ~~~~~~^^^^^^^^^^^^\n"
        "KeyError: 'customer'\n"
    )


def test_the_innermost_frames_are_kept_whoever_they_belong_to() -> None:
    ours = STACK.replace("/srv/penstock/shop/", "/venv/lib/site-packages/penstock/store/")
    assert "… 2 frames of penstock" in folded(ours)
    assert 'penstock/store/tasks.py", line 7' in folded(ours)


@pytest.mark.parametrize(
    ("folder", "ours"),
    [
        ("/srv/penstock/app/", False),
        ("/home/ada/penstock/worker/", False),
        ("/home/ada/src/penstock/worker/", True),
        (r"C:\venv\Lib\site-packages\penstock\worker" + "\\", True),
        (f"{Path(penstock.__file__).parent}/worker/", True),
    ],
)
def test_a_frame_is_ours_by_where_we_are_installed_and_not_by_the_name_of_a_folder(
    folder: str, ours: bool
) -> None:
    before = f'  File "{folder}tasks.py", line 1, in run\n    ship()\n'
    stack = STACK.replace("  File", f"{before}  File", 1)
    assert (before not in folded(stack)) is ours
