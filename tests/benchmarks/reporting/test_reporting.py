"""What reports of all studies stand on: tables of documented columns, escaping, folders of pages."""

import math
from pathlib import Path

import jinja2
import pytest

from langgraft.benchmarks.reporting.pages import environment, trusted, write_folder, write_pages
from langgraft.benchmarks.reporting.tables import Meanings, Number, Table
from langgraft.benchmarks.reporting.words import DASH, MINUS, listing, number, shortened

ENDS = Number("gain", ("low", "high"), lambda ends: (100 * ends[0], 100 * ends[1]))
HOSTILE = "<script>alert('x')</script>&\"\u202e\x00\ud800{{ 7 * 7 }}"


def test_table_when_a_number_takes_several_columns_fills_or_leaves_all_of_them() -> None:
    """A number that is not there, or is not finite, leaves its fields empty; float noise goes."""
    rows = [("a", (0.1, 0.30000000001)), ("b", None), ("c", (math.inf, -0.0))]
    table = Table.of("gains", ("name", ENDS), rows)
    assert table.to_csv() == "name,gain_low,gain_high\na,10.0,30.0\nb,,\nc,,0.0\n"


def test_table_when_a_row_has_another_length_is_refused() -> None:
    """A value without a column would shift all that follow."""
    with pytest.raises(ValueError, match="zip"):
        Table.of("gains", ("name", ENDS), [("a", (0.1, 0.2), 3)])


def test_table_when_it_has_no_rows_has_its_columns() -> None:
    """Who reads it need not ask whether there was anything."""
    assert Table.of("gains", ("name", ENDS), []).to_csv() == "name,gain_low,gain_high\n"


def test_columns_when_explained_are_found_by_name_part_and_prefix() -> None:
    """Names first; of a number its name and its part; one that is not known has no meaning."""
    meanings = Meanings(
        {"gain": "gain, pp", "p": "p value"}, {"low": "lower end"}, {"same_": "same"}
    )
    found = [meanings.of(name) for name in ("gain", "gain_low", "low", "same_p", "same_x", "x_low")]
    assert found == ["gain, pp", "gain, pp: lower end", "lower end", "same: p value", None, None]
    table = Table.of("gains", ("p", ENDS), [])
    assert meanings.table([table]).rows[1] == ("gains", "gain_low", "gain, pp: lower end")


def test_numbers_when_written_have_one_sign_of_minus_and_none_at_zero() -> None:
    """Whatever has no number is a dash; what rounds to 0 has no sign."""
    written = [number(each, 1, sign=True) for each in (1234.56, -0.5, 0.04, -0.04, None, math.nan)]
    assert written == ["+1,234.6", f"{MINUS}0.5", "0.0", "0.0", DASH, DASH]
    assert number(-math.inf) == f"{MINUS}∞"
    assert [listing(list(words)) for words in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert shortened("x" * 12, 10) == f"{'x' * 10} […2 more characters]"


@pytest.mark.parametrize("place", ["<p>{{ it }}</p>", '<p title="{{ it }}">a</p>'])
def test_pages_when_text_comes_from_outside_show_it_as_text(place: str) -> None:
    """In elements and attributes; what would be unseen is shown, and no template is run in it."""
    page = environment().from_string(place).render(it=HOSTILE)
    page.encode("utf-8")
    assert "<script" not in page
    assert page.count('"') == place.count('"')
    for told in ("&lt;script&gt;", "&amp;", r"\u202e\u0000\ud800", "{{ 7 * 7 }}"):
        assert told in page


def test_macros_of_all_reports_when_text_is_hostile_escape_it() -> None:
    """Sentences, verdicts, notices, gates and provenance; figures of ours alone are markup."""
    source = """{% from "shared.jinja" import chip, figure, gate_table, manifest, notice, sentences with context %}
{{ sentences([it]) }}{{ chip(it) }}{% call notice(it) %}{{ it }}{% endcall %}{{ figure("drawn", it) }}
{{ gate_table([{"name": it, "state": it, "detail": it}]) }}{{ manifest([(it, it)], [(it, it)]) }}"""
    page = (
        environment().from_string(source).render(it=HOSTILE, figures={"drawn": trusted("<svg/>")})
    )
    assert "<script" not in page
    assert page.count("<svg/>") == 1
    assert page.count("alert(&#39;x&#39;)") == 14


def test_template_when_a_name_is_not_there_is_refused() -> None:
    """A page never leaves out silently what it should have said."""
    with pytest.raises(jinja2.UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_folder_when_written_has_page_tables_and_figures(tmp_path: Path) -> None:
    """In places that all reports share."""
    table = Table.of("gains", ("name",), [("a",)])
    page = write_folder(tmp_path / "out", tables=[table], figures={"f": "<svg/>"}, page="<html>")
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in page.parent.rglob("*.*")}
    assert found == {
        "out/index.html": "<html>\n",
        "out/tables/gains.csv": "name\na\n",
        "out/figures/f.svg": "<svg/>\n",
    }


def test_pages_when_written_again_replace_those_of_before(tmp_path: Path) -> None:
    """A page that is none any more goes; what is no page stays."""
    write_pages(tmp_path / "cases", [("1.html", "one"), ("2.html", "two")])
    (tmp_path / "cases" / "note.txt").write_text("mine")
    write_pages(tmp_path / "cases", iter([("2.html", "new")]))
    found = {path.name: path.read_text() for path in (tmp_path / "cases").iterdir()}
    assert found == {"2.html": "new\n", "note.txt": "mine"}
