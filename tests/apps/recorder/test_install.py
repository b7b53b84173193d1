"""Installing hooks leaves all that is there as it is, and can be undone."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import CliRunner

from penstock.apps.recorder import install
from penstock.apps.recorder.hooks_commands import state_of
from penstock.apps.recorder.install import TOOLS, installing, tool_named, uninstalling
from penstock.apps.recorder.json_edit import JsonText
from penstock.apps.recorder.platforms import HOOKS
from penstock.cli.program import app as program
from penstock.model.errors import InvalidOption
from tests.apps.recorder.payloads import told

COMMAND = ["/usr/bin/python3", "-I", "-S", "/home/ada/.local/share/penstock/penstock-hook.py"]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_home: Path) -> Path:
    """The home of a user, and a project that is the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PENSTOCK_URL", "PENSTOCK_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def installed(tool: str, before: str | None = None, **how: Any) -> Any:
    """The settings of a tool as they are once the hooks are installed."""
    chosen = TOOLS[tool]
    file = chosen.file(project=bool(how.get("project")))
    if before is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(before)
    installing(chosen, command=COMMAND, **how).make()
    return json.loads(file.read_text())


@pytest.mark.parametrize("tool", TOOLS)
def test_every_event_that_is_to_be_registered_is(tool: str) -> None:
    settings = installed(tool)
    platform = TOOLS[tool].platform
    below = settings["penstock" if tool == "antigravity" else "hooks"]
    assert {*below} == {name for name, hook in HOOKS[platform].items() if hook.register}
    assert all(COMMAND[-1] in json.dumps(entries) for entries in below.values())


def test_claude_code_starts_no_shell() -> None:
    [group] = installed("claude-code")["hooks"]["PreToolUse"]
    assert group["hooks"] == [
        {
            "type": "command",
            "command": COMMAND[0],
            "args": [*COMMAND[1:], "claude_code", "PreToolUse"],
            "timeout": 10,
        }
    ]


def test_each_assistant_gets_entries_in_its_own_shape() -> None:
    words = [*COMMAND, "cursor", "stop"]
    assert installed("cursor")["hooks"]["stop"] == [{"command": shlex.join(words), "timeout": 10}]
    assert installed("cursor")["version"] == 1
    [entry] = installed("copilot")["hooks"]["preToolUse"]
    assert (entry["type"], entry["timeoutSec"]) == ("command", 10)
    assert shlex.split(entry["bash"]) == [*COMMAND, "copilot", "preToolUse"]
    [group] = installed("gemini-cli")["hooks"]["AfterTool"]
    assert group["hooks"][0]["timeout"] == 10_000  # in milliseconds there
    named = installed("antigravity")["penstock"]
    assert "hooks" in named["PostToolUse"][0]
    assert "command" in named["Stop"][0]
    assert installed("codex")["hooks"]["Stop"][0]["hooks"][0]["type"] == "command"


OTHERS = [
    "{}\n",
    '{"model": "opus"}',
    '{\n  "model": "opus",\n  "permissions": {"allow": ["Bash(ls)", "Read"]}\n}\n',
    """{
\t"hooks": {
\t\t"Stop": [
\t\t\t{"hooks": [{"type": "command", "command": "say hi"}]}
\t\t]
\t},
\t"env": {"A": "1"}
}""",
    '{\n    "hooks": {"PreToolUse": [{"matcher": "Bash"}], "Stop": [{"hooks": []}]}\n}',
    '{\n  // mine\n  "model": "opus", /* and\n  this */ "url": "http://x//y"\n}\n',
    '{"a": "\\" { [ // not a comment", "hooks": {"Stop": [{"x": [1, {"y": "]"}]}]}}\n',
]


@pytest.mark.parametrize("before", OTHERS)
def test_uninstalling_leaves_every_byte_as_it_was(before: str, own_home: Path) -> None:
    tool = TOOLS["claude-code"]
    file = own_home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(before)
    installing(tool, command=COMMAND).make()
    assert file.read_text() != before
    uninstalling(tool).make()
    left = file.read_text() if file.exists() else "{}\n"
    assert left == before


def test_what_others_have_installed_stays_first_and_untouched(own_home: Path) -> None:
    before = OTHERS[3]
    settings = installed("claude-code", before)
    assert settings["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say hi"}]}
    assert len(settings["hooks"]["Stop"]) == 2
    text = (own_home / ".claude" / "settings.json").read_text()
    assert '\t\t\t{"hooks": [{"type": "command", "command": "say hi"}]}' in text
    assert text.endswith('"env": {"A": "1"}\n}')


@pytest.mark.parametrize("tool", TOOLS)
def test_installing_twice_changes_nothing(tool: str) -> None:
    installed(tool)
    again = installing(TOOLS[tool], command=COMMAND)
    assert again.before == again.after
    assert again.diff == ""


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_that_installing_made_is_gone_afterwards(tool: str) -> None:
    installed(tool)
    uninstalling(TOOLS[tool]).make()
    assert not TOOLS[tool].file(project=False).exists()


def test_an_outdated_entry_is_replaced_in_its_place() -> None:
    later = {"hooks": [{"type": "command", "command": "say bye"}]}
    old = {"hooks": [{"type": "command", "command": "/old/python /x/penstock-hook.py codex Stop"}]}
    gone = {"hooks": [{"type": "command", "command": "/old/python /x/penstock-hook.py codex Past"}]}
    before = json.dumps({"hooks": {"Stop": [old, later, old], "Past": [gone]}}, indent=2)
    settings = installed("codex", before)
    assert [len(group["hooks"]) for group in settings["hooks"]["Stop"]] == [1, 1]
    assert COMMAND[0] in settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert settings["hooks"]["Stop"][1] == later
    assert "Past" not in settings["hooks"]


@pytest.mark.parametrize(
    "broken", ["{", '{"a": }', "[1]", '{"hooks": {"Stop": [}}', '{"a": 1} x', '{"hooks": [1]}']
)
def test_settings_that_are_not_json_are_refused_and_not_touched(
    broken: str, own_home: Path
) -> None:
    file = own_home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(broken)
    with pytest.raises(InvalidOption, match=r"settings\.json"):
        installing(TOOLS["claude-code"], command=COMMAND)
    assert file.read_text() == broken


def test_a_file_keeps_its_rights_and_a_link_stays_a_link(own_home: Path) -> None:
    real = own_home / "dotfiles.json"
    real.write_text('{"model": "opus"}\n')
    real.chmod(0o640)
    link = own_home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    installing(TOOLS["claude-code"], command=COMMAND).make()
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "penstock-hook.py" in real.read_text()
    assert [file.name for file in link.parent.iterdir()] == ["settings.json"]


def test_only_the_project_is_recorded_if_that_is_asked_for(own_home: Path) -> None:
    installed("claude-code", project=True)
    assert (own_home / "project" / ".claude" / "settings.local.json").exists()
    assert not (own_home / ".claude").exists()


def test_an_assistant_that_keeps_its_settings_elsewhere_is_found(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(own_home / "elsewhere"))
    installed("claude-code")
    assert (own_home / "elsewhere" / "settings.json").exists()


def test_unknown_tools_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidOption, match="claude-code, cursor, gemini-cli"):
        tool_named("emacs")
    assert tool_named("Claude_Code") is TOOLS["claude-code"]


def test_the_state_tells_installed_outdated_and_not_installed() -> None:
    tool = TOOLS["cursor"]
    assert state_of(tool).state == "not installed"
    installing(tool).make()
    assert (state_of(tool).state, state_of(tool).events) == ("installed", len(tool.events))
    installed("cursor")  # by another interpreter
    assert state_of(tool).state == "outdated"


def run(*words: str) -> str:
    """What a command prints."""
    answer = CliRunner().invoke(program, [*words], prog_name="penstock")
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_the_commands_install_show_a_diff_and_undo(own_home: Path, empty_home: Path) -> None:
    file = own_home / ".claude" / "settings.json"
    whole = run("hooks", "install", "claude-code", "--dry-run")
    assert '+    "UserPromptSubmit": [' in whole
    assert "was not changed" in whole
    assert not file.exists()
    assert not (empty_home / "penstock-hook.py").exists()
    shown = run("hooks", "install", "claude-code")
    assert '+    "SessionStart": [' in shown
    assert "more lines like these; --dry-run shows all." in shown
    assert "are installed in" in shown
    assert "Nothing to change" in run("hooks", "install", "claude-code")
    status = json.loads(run("hooks", "status", "all", "--json"))
    states = {row["tool"]: row["state"] for row in status["tools"]}
    assert states["claude-code"] == "installed"
    assert states["codex"] == "not installed"
    assert "are uninstalled in" in run("hooks", "uninstall", "claude-code")
    assert not file.exists()


def test_what_was_installed_records_at_once(own_home: Path, empty_home: Path) -> None:
    run("hooks", "install", "claude-code")
    assert (empty_home / "recorder.db").stat().st_mode & 0o777 == 0o600
    settings = json.loads((own_home / ".claude" / "settings.json").read_text())
    [group] = settings["hooks"]["UserPromptSubmit"]
    hook = group["hooks"][0]
    ended = subprocess.run(
        [hook["command"], *hook["args"]],
        input=json.dumps(told("claude_code", "UserPromptSubmit")).encode(),
        env={"PATH": os.defpath},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    connection = apsw.Connection(str(empty_home / "recorder.db"))
    assert connection.execute("SELECT content FROM recorder_messages").fetchall() == [
        ("Make the tests pass",)
    ]
    connection.close()


def test_an_installation_elsewhere_has_no_file_of_its_own(empty_home: Path) -> None:
    run("--url", f"sqlite:///{empty_home.parent}/elsewhere.db", "hooks", "install", "cursor")
    assert not (empty_home / "recorder.db").exists()
    assert (empty_home / "penstock-hook.py").exists()
    (empty_home / "recorder.db").touch()
    elsewhere = f"sqlite:///{empty_home.parent}/elsewhere.db"
    assert "as long as it is there" in run("--url", elsewhere, "hooks", "install", "cursor")


def test_a_plugin_for_claude_code_has_a_manifest_and_its_hooks(tmp_path: Path) -> None:
    assert "claude --plugin-dir" in run("hooks", "plugin", "--folder", str(tmp_path / "plugin"))
    about = json.loads((tmp_path / "plugin" / ".claude-plugin" / "plugin.json").read_text())
    assert about["name"] == "penstock-recorder"
    hooks = json.loads((tmp_path / "plugin" / "hooks" / "hooks.json").read_text())["hooks"]
    assert {*hooks} == {*TOOLS["claude-code"].events}


def test_the_launcher_is_silent_where_penstock_is_gone(empty_home: Path) -> None:
    launcher = Path(install.write_launcher())
    text = launcher.read_text()
    launcher.write_text(text[: text.index("sys.path +=")] + text[text.index("try:") :])
    for platform, answer in (("claude_code", b""), ("gemini_cli", b"{}\n")):
        ended = subprocess.run(
            [*install.command_line(), platform], input=b"{}", capture_output=True, check=False
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, answer, b"")


def test_a_trailing_comma_is_no_trouble() -> None:
    text = JsonText('{\n  "a": [1, 2,],\n}\n', "x.json")
    text.add(("a",), 3)
    text.add((), True, "b")
    assert text.value(text.root) == {"a": [1, 2, 3], "b": True}


def test_uninstalling_what_is_not_there_changes_nothing() -> None:
    change = uninstalling(TOOLS["codex"])
    assert (change.before, change.after) == (None, None)
    change.make()


def test_the_launcher_has_the_settings_that_a_hook_has_no_time_to_look_for(
    own_home: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_RECORDER__RULES", "~/rules.toml")
    monkeypatch.setenv("PENSTOCK_RECORDER__PSEUDONYMS", "true")
    run("hooks", "install", "cursor")
    text = (empty_home / "penstock-hook.py").read_text()
    assert f'"PENSTOCK_RECORDER__RULES": "{own_home}/rules.toml"' in text
    assert '"PENSTOCK_RECORDER__PSEUDONYMS": "1"' in text
    assert f'"PENSTOCK_HOME": "{empty_home}"' in text
