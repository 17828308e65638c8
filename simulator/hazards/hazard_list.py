"""The hazards of a run, as a list that notebooks show as a table."""

from ..core.html_table import html_table
from .hazard import Hazard


class HazardList(list[Hazard]):
    """Hazards, errors first."""

    def _repr_html_(self) -> str:
        """Return a table for Jupyter."""
        if not self:
            return "<p>no hazards</p>"
        rows = []
        for hazard in self:
            places = dict.fromkeys(
                f"{one.source.file.rsplit('/', 1)[-1]}:{one.source.line}"
                for one in hazard.involved if one.source.line
            )  # fmt: skip
            what = f"fix: {hazard.fix}" if hazard.fix else hazard.row.help
            rows.append((hazard.severity, hazard.kind, hazard.title, ", ".join(places), what))
        return html_table(("severity", "kind", "finding", "where", "what to do"), rows)
