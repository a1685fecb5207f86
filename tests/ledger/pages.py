"""Tables of docs/ that are made from the ledger. They stand between two marks:

    <!-- figures: workloads of shard -->
    ...
    <!-- end of figures -->

The first mark says which table it is: `kinds of TABLE`, `workloads of TABLE`, `alphas`, or `everything`.
"""

import re
from pathlib import Path
from typing import Iterable

BLOCK = re.compile(r"(<!-- figures: (.*?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
VERBS = ["READ", "WRITE", "CAS", "MCAS", "FAA", "CALL", "FENCE"]
ONE_CLIENT = "one client"
ALPHAS = "shard-figure18, alpha "
WORKLOADS = ["load", "a", "a, uniform", "b", "c", "d", "e", "f"]
# In the order in which a reader meets them.
KINDS = ["insert", "search", "search, repeated", "search, absent", "update", "delete", "scan of 100", "scan"]

Figures = dict[str, float]


def names(figures: Figures, table: str, run: str = "") -> Iterable[list[str]]:
    """What stands behind the table and the run in the names of their figures."""
    for name in figures:
        parts = name.split(" | ")
        if parts[0] == table and (not run or parts[1] == run):
            yield parts[2:] if run else parts[1:]


def ordered(found: Iterable[str], order: list[str]) -> list[str]:
    return sorted(set(found), key=lambda name: (order.index(name) if name in order else len(order), name))


def rate(per_second: float) -> str:
    if per_second >= 1e6:
        return f"{per_second / 1e6:.2f} M"
    return f"{per_second / 1e3:.1f} k"


def count(value: float) -> str:
    return f"{value:.3f}" if value else "-"


def table_of(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def costs(figures: Figures, prefixes: list[str]) -> tuple[list[str], list[list[str]]]:
    """Verbs and bytes of an operation: the columns, and a row for each prefix."""
    verbs = [verb for verb in VERBS if any(f"{prefix} | {verb}" in figures for prefix in prefixes)]
    rows = [[*(count(figures.get(f"{prefix} | {verb}", 0)) for verb in verbs),
             *(f"{figures.get(f'{prefix} | bytes {way}', 0):.0f}" for way in ("read", "written"))]
            for prefix in prefixes]
    return [*verbs, "bytes read", "written"], rows


def kinds(figures: Figures, table: str) -> str:
    found = ordered((parts[0] for parts in names(figures, table, ONE_CLIENT)), KINDS)
    prefixes = [f"{table} | {ONE_CLIENT} | {kind}" for kind in found]
    head, rows = costs(figures, prefixes)
    trips = [[kind, *(count(figures.get(f"{prefix} | {which}", 0)) for which in ("index trips", "trips"))]
             for kind, prefix in zip(found, prefixes)]
    return table_of(["operation", "index trips", "trips", *head], [t + r for t, r in zip(trips, rows)])


def workloads(figures: Figures, table: str) -> str:
    runs = [run for run in WORKLOADS if any(True for _ in names(figures, table, run))]
    prefixes = [f"{table} | {run} | operation" for run in runs]
    head, rows = costs(figures, prefixes)
    lines = []
    for run, prefix, row in zip(runs, prefixes, rows):
        with_trips = ordered((parts[0] for parts in names(figures, table, run) if parts[1] == "trips"), KINDS)
        trips = "; ".join(f"{kind} {count(figures.get(f'{table} | {run} | {kind} | index trips', 0))}, "
                          f"{count(figures[f'{table} | {run} | {kind} | trips'])}" for kind in with_trips)
        share = figures.get(f"{prefix} | of raw")
        lines.append([f"`{run}`", rate(figures[f"{prefix} | operations/s"]),
                      f"{100 * share:.1f} %" if share else "-", trips, *row])
    return table_of(["workload", "operations/s", "of raw", "index trips, trips", *head], lines)


def alphas(figures: Figures) -> str:
    found = sorted((float(parts[0].removeprefix(ALPHAS)), parts[0]) for parts in names(figures, "shard")
                   if parts[0].startswith(ALPHAS))
    return table_of(["alpha", "inserts/s"],
                    [[f"{alpha:g}", rate(figures[f"shard | {run} | operation | operations/s"])]
                     for alpha, run in found])


def everything(figures: Figures) -> str:
    tables = sorted({name.split(" | ")[0] for name in figures})
    parts = []
    for table in tables:
        parts.append(f"\n## {table}\n\nOne client:\n\n{kinds(figures, table)}\n"
                     f"64 clients:\n\n{workloads(figures, table)}")
    return "".join(parts) + f"\n## shard, by alpha\n\n{alphas(figures)}\n"


def render(what: str, figures: Figures) -> str:
    if what == "everything":
        return everything(figures)
    if what == "alphas":
        return alphas(figures)
    makers = {"kinds": kinds, "workloads": workloads}
    maker, _, table = what.partition(" of ")
    if maker not in makers or not any(True for _ in names(figures, table)):
        raise ValueError(f"there are no figures '{what}'")
    return makers[maker](figures, table)


def made_anew(text: str, figures: Figures) -> str:
    return BLOCK.sub(lambda match: match[1] + render(match[2], figures) + match[3], text)


def files(docs: Path) -> list[Path]:
    return sorted(docs.rglob("*.md"))


def stale(docs: Path, figures: Figures) -> list[str]:
    """Pages whose tables are not those of the ledger, one line each."""
    found = []
    for path in files(docs):
        text = path.read_text(encoding="utf-8")
        try:
            if made_anew(text, figures) != text:
                found.append(f"{path}: its figures are not those of the ledger")
        except ValueError as error:
            found.append(f"{path}: {error}")
    return found


def write(docs: Path, figures: Figures) -> None:
    for path in files(docs):
        text = path.read_text(encoding="utf-8")
        anew = made_anew(text, figures)
        if anew != text:
            path.write_text(anew, encoding="utf-8")
