"""Section of the page on publications: their claims, and the sizes that they state."""

from collections.abc import Iterator, Sequence

from understudy.contracts.run import Run
from understudy.judge.page.additions import Addition, Part, Render
from understudy.judge.statistics.conditions import Case
from understudy_papers.judge import claims, published_sizes


class Publications(Addition):
    """It judges no case of the page's own."""

    def tables(self, case: Case, render: Render) -> str:
        against = published_sizes.against_published(case)
        return render("published_sizes.html", against=against) if against else ""

    def parts(self, cases: Sequence[Case], runs: Sequence[Run], render: Render) -> Iterator[Part]:
        if findings := claims.judged(runs):
            yield Part(
                anchor="claims",
                title="Claims of publications",
                lead="What publications say of these systems, beside the same of the runs on this "
                "page: ratios of mean bandwidths or times, times, and shares of cases.",
                html=render("claims.html", rows=findings, claims=claims),
            )


ADDITION = Publications()
