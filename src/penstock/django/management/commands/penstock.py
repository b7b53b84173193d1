"""`manage.py penstock …`: the command line, on the store and the tasks of this project."""

from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from penstock.django.backend import worker_app

BEFORE = {"worker", "up", "server", "autoscale", "doctor", "check-payloads"}
"""Commands that take an application as their first argument."""


class Command(BaseCommand):
    """Pass the words on; help, options and exit codes are those of `penstock`."""

    help = "Run `penstock` on this project: worker, up, jobs ls, …; --backend NAME comes first."
    requires_system_checks: list[str] = []  # noqa: RUF012  # as Django has it

    def run_from_argv(self, argv: list[str]) -> None:
        """Take the words as they are: `--help` and the rest are not Django's."""
        words, backend = argv[2:], "default"
        if words[:1] == ["--backend"]:
            backend, words = "".join(words[1:2]), words[2:]
        self.handle(words=words, backend=backend)

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whatever comes, for `call_command`."""
        parser.add_argument("--backend", default="default")
        parser.add_argument("words", nargs=REMAINDER)

    def handle(self, *args: Any, words: list[str], backend: str, **options: Any) -> None:
        """Run a command of the command line."""
        from penstock.cli.program import app as program

        found = worker_app(backend)
        if found is None:
            raise CommandError(f"There is no backend {backend!r} in TASKS.")
        settings = found.settings
        place = ["--url", settings.url]
        if settings.dispatch:
            place += ["--dispatch", settings.dispatch]
        try:
            called = with_target(words, f"penstock.django:{backend}")
            program([*place, *called], prog_name="manage.py penstock")
        except SystemExit as end:
            if end.code:  # else whoever called the command goes on
                raise


def with_target(words: list[str], target: str) -> list[str]:
    """Name the application where a command takes one and none is named."""
    command, rest = "".join(words[:1]), words[1:]
    if command in BEFORE and ":" not in "".join(rest[:1]):
        return [command, target, *rest]
    if command == "enqueue" and "--app" not in rest:
        return [command, "--app", target, *rest]
    return words
