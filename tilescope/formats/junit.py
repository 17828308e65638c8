"""Verdicts as JUnit XML for test dashboards: a case for each build, a failure for each hazard."""

from collections.abc import Sequence
from xml.etree import ElementTree

from ..check.checker import Verdict
from ..text.findings import launch


def junit(verdicts: Sequence[Verdict], fail_on: str) -> str:
    """Return the document; hazards that do not fail the command go to ``system-out``."""
    suite = ElementTree.Element("testsuite", name="tilescope")
    for verdict in verdicts:
        name = verdict.target.name
        _cases(
            suite, verdict, name if len(verdicts) == 1 else f"{name}, {launch(verdict)}", fail_on
        )
    for counted, found in (
        ("tests", "testcase"),
        ("failures", "*/failure"),
        ("skipped", "*/skipped"),
    ):
        suite.set(counted, str(len(suite.findall(found))))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _cases(suite: ElementTree.Element, verdict: Verdict, name: str, fail_on: str) -> None:
    of = verdict.target.file or "library"
    for run in verdict.runs:
        case = ElementTree.SubElement(
            suite, "testcase", classname=of, name=f"{name} ({run.build})", time=f"{run.seconds:.3f}"
        )
        of_build = [h for h in verdict.hazards if run.build in h.builds or not h.builds]
        bad = [h for h in of_build if h.severity in ("error", fail_on)]
        for hazard in bad:
            failure = ElementTree.SubElement(
                case, "failure", type=hazard.kind, message=hazard.title
            )
            failure.text = _plain(str(hazard))
        for build, agreement in verdict.results:
            if build == run.build and not agreement.within:
                text = f"{agreement.name} is wrong in {agreement.wrong} of {agreement.elements}"
                ElementTree.SubElement(case, "failure", type="result", message=text)
        rest = [_plain(str(h)) for h in of_build if h not in bad]
        for doubt in map(_plain, verdict.doubts):
            if fail_on == "warning":
                ElementTree.SubElement(case, "failure", type="argument", message=doubt)
            else:
                rest.append(f"argument: {doubt}")
        if rest:
            ElementTree.SubElement(case, "system-out").text = "\n".join(rest)
    for build, reason in verdict.refused.items():
        case = ElementTree.SubElement(suite, "testcase", classname=of, name=f"{name} ({build})")
        ElementTree.SubElement(case, "skipped", message=_plain(reason))


def _plain(text: str) -> str:
    """Remove characters that XML 1.0 does not allow."""
    return "".join(c for c in text if c in "\t\n" or c >= " ")
