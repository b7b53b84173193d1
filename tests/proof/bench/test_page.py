from pathlib import Path

import pytest

from proof.bench.page import COMPARISON, EVENTS, find_checkout, write_figures, write_part


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "RESULTS.md"
    page.write_text("# Benchmark results\n\nold figures\n", "utf-8")
    return page


def test_the_comparison_is_added_at_the_end_of_the_page(page: Path) -> None:
    write_part(page, COMPARISON, "others\n")

    assert page.read_text("utf-8") == (
        "# Benchmark results\n\nold figures\n\n# Compared with others\n\nothers\n"
    )


def test_each_command_rewrites_its_own_part_and_keeps_the_other(page: Path) -> None:
    write_part(page, COMPARISON, "others\n")
    write_figures(page, "# Benchmark results\n\nnew figures\n")
    assert page.read_text("utf-8").endswith("new figures\n\n# Compared with others\n\nothers\n")

    write_part(page, COMPARISON, "newer others\n")

    assert page.read_text("utf-8") == (
        "# Benchmark results\n\nnew figures\n\n# Compared with others\n\nnewer others\n"
    )


def test_events_stand_before_the_comparison(page: Path) -> None:
    write_part(page, COMPARISON, "others\n")
    write_part(page, EVENTS, "events\n")
    write_part(page, EVENTS, "newer events\n")

    assert page.read_text("utf-8") == (
        "# Benchmark results\n\nold figures\n\n# Events\n\nnewer events\n\n"
        "# Compared with others\n\nothers\n"
    )


def test_figures_need_no_comparison_on_the_page(page: Path) -> None:
    write_figures(page, "new figures\n")

    assert page.read_text("utf-8") == "new figures\n"


def test_this_is_a_checkout() -> None:
    checkout = find_checkout()

    assert checkout is not None
    assert (checkout / "benchmarks" / "RESULTS.md").is_file()
