"""Policy on disputed hazards: races with equal values, and warp-synchronous code."""

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simulator import Hazard, Source


@dataclass(frozen=True)
class Policy:
    """Severities of disputed hazards; each is one of ``CHOICES``.

    Attributes:
        equal_writes: Writes of one value by different threads to one location.
        warp_synchronous: Races between lanes of one warp by different instructions, which GPUs
            before Volta executed in lockstep.
        baseline: Fingerprints of known hazards, which are not reported again.
    """

    equal_writes: str = "warning"
    warp_synchronous: str = "warning"
    baseline: frozenset[str] = frozenset()

    def severity(self, hazard: Hazard) -> str:
        """Return the hazard's severity under this policy, or ``ignore``."""
        disputed = hazard.row.case(hazard.case).policy
        return getattr(self, disputed) if disputed else hazard.severity


_COMMENT = re.compile(r"(?://|/\*|#)\s*tilescope:\s*ignore\b(?:\[([\w\s,-]*)\])?")


def ignored(hazard: Hazard) -> bool:
    """Whether comments ``tilescope: ignore`` or ``ignore[kind]`` cover a hazard completely."""
    said = {source for source in hazard.sources if _says(source, hazard.kind)}
    return bool(said) and all(not said.isdisjoint(lines) for lines in _reported_together(hazard))


def _says(source: Source, kind: str) -> bool:
    """Whether a comment on a line ignores a kind."""
    comments = _COMMENT.finditer(source.code)
    kinds = [None if m[1] is None else re.split(r"[\s,]+", m[1].strip()) for m in comments]
    return any(some is None or kind in some for some in kinds)


def _reported_together(hazard: Hazard) -> Sequence[tuple[Source, ...]]:
    """Return the lines of each finding that is joined in a hazard."""
    if hazard.row.once:
        return [(source,) for source in hazard.sources]
    uses = [item.source for item in hazard.involved if item.role == "used"]
    return hazard.pairs or [(hazard.sources[0], use) for use in uses] or [hazard.sources]


def fingerprint(kernel: str, hazard: Hazard) -> str:
    """Return an identity of a hazard that survives moved lines: kind, variables, code of lines.

    It uses the severity without a policy.
    """
    severity = hazard.row.case(hazard.case).severity
    parts = [hazard.kind, severity, hazard.reach, kernel, hazard.variable]
    parts += [item.source.code for item in hazard.involved]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def set_aside(policy: Policy, hazards: Iterable[Hazard], kernel: str) -> tuple[list[Hazard], int]:
    """Remove hazards that comments or the baseline exclude; return the others and the number."""
    every = list(hazards)
    reported = [
        hazard
        for hazard in every
        if not ignored(hazard)
        and not (policy.baseline and fingerprint(kernel, hazard) in policy.baseline)
    ]
    return reported, len(every) - len(reported)


def apply(policy: Policy, hazards: Iterable[Hazard]) -> tuple[list[Hazard], int]:
    """Apply the policy to hazards, errors first; return also the number of ignored ones."""
    judged = [(hazard, policy.severity(hazard)) for hazard in hazards]
    reported = [
        dataclasses.replace(hazard, severity=severity)
        for hazard, severity in judged
        if severity != "ignore"
    ]
    return sorted(reported, key=lambda h: h.severity != "error"), len(judged) - len(reported)


def judge(policy: Policy, hazards: Iterable[Hazard], kernel: str) -> list[Hazard]:
    """Apply comments, baseline and policy to hazards."""
    return apply(policy, set_aside(policy, hazards, kernel)[0])[0]
