"""The page in a browser, where there is one: sorting, filters, copied commands, charts and records."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from small_records import BOUNDED, HOSTILE, RECORDS, make, typed

from spinbench.reporting import page, page_content

DOUBTED = {"status": "marginals not mixed, log Z unresolved"}
SLOW = {"seconds": {"run": 1.0, "compile": 8.0, "plan": 1.0}}
MANY = [make("exact", rmse=1e-16 * (1 + i), model=f"m{i:04}", kind="exact") for i in range(400)]
PAGES: dict[str, list[dict[str, Any]]] = {
    "example": RECORDS,
    "many": MANY,
    "folded": [make(method, model=f"m{i}") for i in range(8) for method in ("gibbs", "dhmc")],
    "bounded": BOUNDED,
    "slow": [make(), {**make("dhmc", rmse=0.05), "result": {**make("dhmc", rmse=0.05)["result"], **SLOW}}],
    "doubted": [{**one, "result": {**one["result"], **DOUBTED}} for one in RECORDS if one["status"] == "ok"],
    "tied": [make(model=f"m{i}", backend=name) for i in range(9) for name in ("numpy", "numba")],
    "seeds": [make(seed=2**53 + 1), make("bp", seed=2)],
    "hostile": [make(HOSTILE, model=HOSTILE), make("dhmc", model=HOSTILE, status="failed", error=HOSTILE)],
}

SHOWN = "Array.from(document.querySelectorAll('tr[data-number]')).filter(row => row.offsetParent !== null)"
METHODS = f"{SHOWN}.map(row => row.dataset.method).join(' ')"
PAIRS = f"{SHOWN}.map(row => row.dataset.method + '.' + row.dataset.backend).join(' ')"
REACHED = f"{SHOWN}.slice(1, 3).map(row => row.querySelector('td[data-reached]').textContent).join(' ')"
COUNT = f"{SHOWN}.length"
FIRST = "document.querySelector('tr[data-number]').dataset.model"
PANELS = "Array.from(document.querySelectorAll('.panel:not([hidden])'), p => p.dataset.model).join(' ')"
CURVES = (
    "new Set(Array.from(document.querySelectorAll('svg g[data-row]'))"
    ".filter(g => g.style.display !== 'none').map(g => g.dataset.row)).size"
)
CHARTS = "document.querySelectorAll('.charts svg').length"
HIDDEN = (
    "Array.from(new Set(Array.from(document.querySelectorAll('.panel[data-model=m7] g[data-row]'),"
    " g => g.style.display))).sort().join()"
)
BOUNDS = (
    "Array.from(document.querySelectorAll('#bounds ~ .scroll')[0].querySelectorAll('tbody tr'))"
    ".filter(row => row.offsetParent !== null).map(row => row.dataset.model).join(' ')"
)
AXES = (
    "Array.from(document.querySelectorAll('.charts svg[data-axes]')).filter(svg => svg.checkVisibility())"
    ".map(svg => JSON.parse(svg.dataset.axes)[5] > 5).join()"
)
HEADS = "Array.from(document.querySelectorAll('.choice b'), b => b.textContent).join(' ')"
SORTED_BY = "document.querySelector('th[aria-sort]').textContent.startsWith('RMSE')"
RMSE = "thead th:nth-child(7) button"
CLIPBOARD = "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }"
THIRD = "chooser.selectedIndex = 2; chooser.dispatchEvent(new Event('change'))"
COMMAND = (
    "spinbench sweep model=grid method=gibbs backend=numpy budget.samples=100 budget.seconds=null "
    "budget.burn_in=null chains=2 seed="
)
CELLS = "tr[data-method=gibbs] button[data-cells]"
TEXT = "document.querySelector('dialog pre').textContent"

STEPS: dict[str, tuple[str, list[tuple[tuple[str, ...], str, Any]]]] = {
    "a click sorts and a choice filters": (
        "example",
        [
            ((), f"{PAIRS}.startsWith('exact.numpy gibbs.numpy dhmc.numpy')", True),
            (("click", RMSE), METHODS, "exact gibbs gibbs dhmc bad"),
            (("click", RMSE), METHODS, "dhmc gibbs gibbs exact bad"),
            ((), SORTED_BY, True),
            (("choose", "method", "gibbs"), METHODS, "gibbs gibbs"),
            ((), "document.getElementById('count').textContent", "2 of 5 rows"),
            ((), CURVES, 2),
            (("choose", "model", "torus"), PAIRS, "gibbs.jax"),
            ((), PANELS, "torus"),
        ],
    ),
    "time to another error, and the records": (
        "example",
        [
            ((), REACHED, "0.160 –"),  # (0.004 / 0.01)²
            (("write", "#target", "10"), REACHED, "0.0100 0.250"),
            (("click", CELLS), "document.querySelector('dialog').open", True),
            ((), "document.querySelector('dialog select').options.length", 3),
            ((), f"JSON.parse({TEXT}).id", RECORDS[0]["id"]),
        ],
    ),
    "status and words filter": (
        "example",
        [
            (("choose", "status", "failed"), PAIRS, "bad.jax"),
            (("choose", "status", "failed", "ok"), COUNT, 5),
            (("choose", "method", "dhmc", "bad"), METHODS, "dhmc bad"),
            ((), HEADS, "all 2 all 2"),
            (("click", "#all"), COUNT, 5),
            (("write", "#text", "JAX tor"), PAIRS, "gibbs.jax"),
            ((), PANELS, "torus"),
        ],
    ),
    "the command of a row and of a cell is copied": (
        "example",
        [
            (("evaluate", CLIPBOARD), "window.copied", None),
            (("click", "tr[data-method=gibbs] button[data-copy]"), "window.copied", f"{COMMAND}0,1,2"),
            (("click", CELLS), "document.querySelector('dialog').open", True),
            (("evaluate", THIRD), "window.copied", f"{COMMAND}0,1,2"),
            (("click", "#copy"), "window.copied", f"{COMMAND}2"),
        ],
    ),
    "time may include compiling": ("slow", [((), AXES, "false,false"), (("click", "#whole"), AXES, "true,true")]),
    "seeds to the last digit": (
        "seeds",
        [
            (("click", CELLS), f"""{TEXT}.includes('"seed": "{2**53 + 1}"')""", True),
            ((), f"command([0]).endsWith(' seed={2**53 + 1}')", True),
        ],
    ),
    "many rows": (
        "many",
        [
            ((), FIRST, "m0000"),
            (("click", "thead th:nth-child(3) button"), FIRST, "m0000"),
            (("click", "thead th:nth-child(3) button"), FIRST, "m0399"),
            ((), COUNT, 250),
            (("click", ".more button"), COUNT, 400),
            (("choose", "model", "m0017"), COUNT, 1),
        ],
    ),
    "folded charts are drawn when they are unfolded": (
        "folded",
        [
            ((), CHARTS, 12),
            (("choose", "method", "gibbs"), CHARTS, 12),
            (("click", ".panel[data-model=m7] summary"), CHARTS, 14),
            ((), HIDDEN, ",none"),
            (("choose", "model", "m6"), CHARTS, 16),
        ],
    ),
    "bounds are sorted and filtered": (
        "bounded",
        [
            ((), BOUNDS, "known wide"),
            (("click", "#bounds ~ .scroll thead th:nth-child(2) button"), BOUNDS, "known wide"),
            (("click", "#bounds ~ .scroll thead th:nth-child(2) button"), BOUNDS, "wide known"),
            (("choose", "model", "known"), BOUNDS, "known"),
        ],
    ),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Address of one of `PAGES`, which is written when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def write(name: str) -> str:
        path = folder / name / page.PAGE
        return (path if path.exists() else page.write_report(typed(PAGES[name]), folder / name).page).as_uri()

    return write


@pytest.mark.parametrize("name", STEPS)
def test_each_step_changes_what_is_shown(browser: Any, written: Callable[[str], str], name: str) -> None:
    kind, steps = STEPS[name]
    browser.open(written(kind))
    for action, expression, expected in steps:
        if action:
            getattr(browser, action[0])(*action[1:])
        browser.wait(f"({expression}) === {json.dumps(expected) if expected is not None else 'undefined'}")
    assert browser.log == []


@pytest.mark.parametrize(
    ("name", "rows"), [("doubted", "tr[data-number]"), ("tied", "#across ~ .scroll tbody tr")], ids=["board", "across"]
)
def test_rows_are_low_on_a_narrow_screen(browser: Any, written: Callable[[str], str], name: str, rows: str) -> None:
    browser.open(written(name), width=400)
    assert max(browser.evaluate(f"Array.from(document.querySelectorAll('{rows}'), row => row.offsetHeight)")) < 60


def test_a_record_is_shown_whole(browser: Any, written: Callable[[str], str]) -> None:
    browser.open(written("example"))
    browser.click(CELLS)
    measured = {"result": page_content.to_javascript_numbers(RECORDS[0]["result"], page_content.MEASURED_DIGITS)}
    assert json.loads(browser.evaluate(TEXT)) == {**RECORDS[0], **measured}


def test_the_checkpoint_under_the_pointer_is_told(browser: Any, written: Callable[[str], str]) -> None:
    """Where the third of three seeds was after 0.1 s, by the axes' own labels."""
    browser.open(written("example"))
    x, y = browser.evaluate(
        """(() => {
            const svg = document.querySelector('.panel[data-model=grid] svg[data-quantity=marginal_rmse]');
            svg.scrollIntoView({block: 'center'});
            const label = (text, axis) => {
                const found = [...svg.querySelectorAll(`g[id*=${axis}tick]`)].find(g => g.textContent.trim() === text);
                const box = found.querySelector('use').getBoundingClientRect();
                return axis === 'x' ? box.x + box.width / 2 : box.y + box.height / 2;
            };
            const [y1, y2] = [label('0.01', 'y'), label('0.1', 'y')];
            return [label('0.1', 'x'), y1 + (y2 - y1) * Math.log10(0.006 / 0.1 ** 0.5 / 0.01)];
        })()"""
    )
    browser.point(x + 1, y + 1)
    told = browser.evaluate("document.getElementById('tip').innerText").splitlines()
    assert told == ["gibbs on numpy, seed 2", "RMSE 0.019", "0.1 s, 10 samples"]
    browser.point(3, 3)
    assert browser.evaluate("document.getElementById('tip').hidden") is True


def test_hostile_texts_are_shown_and_nothing_is_fetched(browser: Any, written: Callable[[str], str]) -> None:
    browser.open(written("hostile"), dark=True)
    assert browser.evaluate("document.body.innerText").count(HOSTILE) >= 3
    assert browser.evaluate("document.querySelectorAll('body img').length") == 0
    assert [url for url in browser.requests if not url.startswith("data:")] == [written("hostile")]
    assert browser.log == []


@pytest.mark.parametrize(
    ("dark", "inks"),
    [(False, ["rgb(255, 255, 255)", "rgb(26, 27, 29)"]), (True, ["rgb(20, 23, 27)", "rgb(230, 232, 235)"])],
    ids=["light", "dark"],
)
def test_dark_and_light_are_those_of_the_reader(
    browser: Any, written: Callable[[str], str], dark: bool, inks: list[str]
) -> None:
    browser.open(written("example"), dark=dark)
    ink = "getComputedStyle(document.querySelector('.charts text')).fill"
    assert browser.evaluate(f"[getComputedStyle(document.body).backgroundColor, {ink}]") == inks


def test_labels_do_not_overlap(browser: Any, written: Callable[[str], str]) -> None:
    browser.open(written("example"))
    overlaps = browser.evaluate(
        """Array.from(document.querySelectorAll('.charts svg')).flatMap(svg => {
            const all = Array.from(svg.querySelectorAll('text'), t => [t.textContent, t.getBoundingClientRect()]);
            return all.flatMap(([a, p], i) => all.slice(i + 1).filter(([b, q]) =>
                p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom
            ).map(([b]) => [a, b]));
        })"""
    )
    assert overlaps == []
