"""What a comparison found: rows of medians and spreads in 80 columns, or JSON."""

import dataclasses
import statistics


def short(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.3g}"


def span(samples):
    """Median [smallest-largest]."""
    return f"{short(statistics.median(samples))} [{short(min(samples))}-{short(max(samples))}]"


@dataclasses.dataclass
class Row:
    label: str
    ours: list
    theirs: list
    bar: float = None       # of the ratio of medians, ours / theirs; None: shown only
    at_most: bool = False   # the ratio may be at most the bar, not at least
    notes: list = dataclasses.field(default_factory=list)

    @property
    def ratio(self):
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def met(self):
        if self.bar is None:
            return None
        return self.ratio <= self.bar if self.at_most else self.ratio >= self.bar

    def text(self):
        bar, mark = "", ""
        if self.bar is not None:
            bar = ("<= " if self.at_most else ">= ") + f"{self.bar:g}"
            mark = "met" if self.met else "MISSED"
        line = (f"{self.label:<12}{span(self.ours):>20}{span(self.theirs):>21}"
                f"{self.ratio:>8.2f}{bar:>9} {mark}")
        return "\n".join([line.rstrip()] + [f"    {note}" for note in self.notes])


@dataclasses.dataclass
class Table:
    title: str
    ours: str
    theirs: str
    rows: list = dataclasses.field(default_factory=list)

    def text(self):
        head = f"{'':<12}{self.ours:>20}{self.theirs:>21}{'ratio':>8}{'bar':>9}"
        return "\n".join([self.title, head] + [row.text() for row in self.rows]) + "\n"

    def data(self):
        rows = [dataclasses.asdict(row) | {"ratio": row.ratio, "met": row.met}
                for row in self.rows]
        return dataclasses.asdict(self) | {"rows": rows}
