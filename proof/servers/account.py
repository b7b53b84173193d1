"""Who runs a server: PostgreSQL refuses root, so root runs it as the user nobody."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

STAND_IN = "nobody"


class Account(msgspec.Struct, frozen=True):
    """The user a program runs as; without a name, the user of this process."""

    name: str | None = None
    user: int | None = None
    group: int | None = None

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its return code is the caller's to judge."""
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=self.user,
            group=self.group,
            extra_groups=self._groups,
        )

    def popen(self, command: Sequence[str | Path], log: Path) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, so that Ctrl-C is not meant for it."""
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
                user=self.user,
                group=self.group,
                extra_groups=self._groups,
            )

    def own(self, directory: Path) -> None:
        """Make an empty directory this user's."""
        if self.user is not None and self.group is not None:
            os.chown(directory, self.user, self.group)

    def may_enter(self, directory: Path) -> bool:
        """Whether this user reaches the directory through all those above it."""
        return self.name is None or self.run(["test", "-x", directory]).returncode == 0

    def may_run(self, program: Path) -> bool:
        """Whether this user can start the program, its libraries included."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except PermissionError:
            return False

    @property
    def _groups(self) -> list[int] | None:
        return None if self.name is None else []


def unprivileged() -> Account:
    """The user of this process, or a stand-in when that is root."""
    if os.geteuid() != 0:
        return Account()
    entry = pwd.getpwnam(STAND_IN)
    return Account(STAND_IN, entry.pw_uid, entry.pw_gid)
