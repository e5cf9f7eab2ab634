"""`make audit` says what is known, and says plainly where nobody could be asked."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from release import __main__ as release

KNOWN = {"id": "PYSEC-1", "fix_versions": ["2.0"], "aliases": [], "description": ""}
SKIPPED = {"name": "pydantic", "skip_reason": "not found"}


@pytest.fixture
def auditor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what lets a program answer as pip-audit does: first about one package, then about all."""

    def answers(one: object, every: object) -> None:
        program = tmp_path / "pip-audit"
        said = json.dumps([one, every])
        program.write_text(
            f"#!{sys.executable}\nimport json, sys\none, every = json.loads({said!r})\n"
            "told = one if '-r' in sys.argv else every\n"
            "if isinstance(told, str): sys.exit(told)\n"
            "print(json.dumps({'dependencies': told}))\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(release, "tool_path", lambda _: str(program))

    return answers


@pytest.mark.parametrize("one", ["ConnectionError: no route to host", [SKIPPED], []])
def test_audit_when_the_service_cannot_be_reached_says_so_and_passes(
    auditor: Any, one: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A network that is down, or an index that does not answer, fails no build and claims nothing."""
    auditor(one, [{"name": "b", "version": "1.0", "vulns": [KNOWN]}])
    assert release.check_vulnerabilities(()) == 0
    assert capsys.readouterr().out.startswith(
        "NOT AUDITED: the service that knows vulnerabilities cannot be reached"
    )


def test_audit_when_something_is_known_names_it_with_its_cure_and_fails(
    auditor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """What could not be looked up is named as well."""
    fine = {"name": "a", "version": "1.0", "vulns": []}
    weak = {"name": "b", "version": "1.0", "vulns": [KNOWN]}
    auditor([fine], [fine, weak, {"name": "c", "skip_reason": "not found"}])
    assert release.check_vulnerabilities(()) == 1
    assert capsys.readouterr().out.splitlines() == [
        "b 1.0: PYSEC-1, mended in 2.0",
        "2 packages audited, 1 with known vulnerabilities; 1 unknown to the service: c",
    ]


def test_audit_when_nothing_is_known_passes(auditor: Any) -> None:
    """All is well."""
    fine = {"name": "a", "version": "1.0", "vulns": []}
    auditor([fine], [fine])
    assert release.check_vulnerabilities(()) == 0


def test_audit_when_the_service_breaks_off_claims_nothing(
    auditor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first question was answered, the second was not."""
    auditor([{"name": "a", "version": "1.0", "vulns": []}], "ReadTimeout: 20 s")
    assert release.check_vulnerabilities(()) == 0
    assert "NOT AUDITED: the service broke off: ReadTimeout" in capsys.readouterr().out
