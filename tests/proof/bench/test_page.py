from pathlib import Path

import pytest

from proof.bench.page import find_checkout, write_comparison, write_figures


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "RESULTS.md"
    page.write_text("# Benchmark results\n\nold figures\n", "utf-8")
    return page


def test_the_comparison_is_added_at_the_end_of_the_page(page: Path) -> None:
    write_comparison(page, "others\n")

    assert page.read_text("utf-8") == (
        "# Benchmark results\n\nold figures\n\n# Compared with others\n\nothers\n"
    )


def test_each_command_rewrites_its_own_part_and_keeps_the_other(page: Path) -> None:
    write_comparison(page, "others\n")
    write_figures(page, "# Benchmark results\n\nnew figures\n")
    assert page.read_text("utf-8").endswith("new figures\n\n# Compared with others\n\nothers\n")

    write_comparison(page, "newer others\n")

    assert page.read_text("utf-8") == (
        "# Benchmark results\n\nnew figures\n\n# Compared with others\n\nnewer others\n"
    )


def test_figures_need_no_comparison_on_the_page(page: Path) -> None:
    write_figures(page, "new figures\n")

    assert page.read_text("utf-8") == "new figures\n"


def test_this_is_a_checkout() -> None:
    checkout = find_checkout()

    assert checkout is not None
    assert (checkout / "benchmarks" / "RESULTS.md").is_file()
