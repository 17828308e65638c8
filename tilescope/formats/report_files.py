"""Report files that a check writes for other tools."""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..check import baseline as baselines
from ..check.checker import Verdict
from ..cli.errors import UserError
from ..cli.output import write_json, write_text
from .junit import junit
from .sarif import sarif


@dataclass(frozen=True)
class Files:
    """Paths of report files; ``-`` is standard output.

    Attributes:
        known: Fingerprints of the given baseline, which a new one includes.
    """

    json: str | None = None
    sarif: str | None = None
    junit: str | None = None
    baseline: str | None = None
    known: frozenset[str] = frozenset()

    @property
    def quiet(self) -> bool:
        """Whether a report goes to standard output."""
        return "-" in (self.json, self.sarif, self.junit, self.baseline)

    @property
    def any(self) -> bool:
        """Whether any report is requested."""
        return any(file is not None for file in (self.json, self.sarif, self.junit, self.baseline))

    def check(self, diff: bool) -> None:
        """Reject two reports on standard output, and missing folders.

        ``diff``: a diff also goes to standard output.

        Raises:
            UserError: There are two.
            FileNotFoundError: There is no such folder.
        """
        asked = {"--json": self.json, "--sarif": self.sarif, "--junit": self.junit,
                 "--write-baseline": self.baseline}  # fmt: skip
        there = [f"{name} -" for name, file in asked.items() if file == "-"]
        there += ["--diff"] if diff else []
        if len(there) > 1:
            raise UserError(f"{' and '.join(there)} cannot both have standard output")
        for file in asked.values():  # before any launch and report
            if file is not None and not Path(file).parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)

    def write(self, verdicts: Sequence[Verdict], fail_on: str, target: str = "") -> None:
        """Write all reports but ``json``; ``target``: the file that several verdicts are of."""
        if self.sarif is not None:
            write_json(self.sarif, sarif(verdicts, target))
        if self.junit is not None:
            write_text(self.junit, junit(verdicts, fail_on))
        if self.baseline is not None:
            runs = [run for verdict in verdicts for run in verdict.runs]
            found = [(run.kernel, hazard) for run in runs for hazard in run.hazards]
            found += [(v.runs[0].kernel, hazard) for v in verdicts for hazard in v.of_results]
            write_json(self.baseline, baselines.content(found, self.known))
