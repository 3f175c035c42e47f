"""Studies: mechanisms on streams under privacy settings, measured, repeatable from one file of results.

Everything here runs on data one may look at, with seeded noise: results are figures about mechanisms, NOT private
releases.
"""

from eventide.bench.choose.cap_choice import CapChoice
from eventide.bench.choose.choice import Choice
from eventide.bench.choose.choose import choose
from eventide.bench.choose.choose_cap import choose_cap
from eventide.bench.choose.choose_span import choose_span
from eventide.bench.choose.history import describe
from eventide.bench.choose.people import describe_people, read_people
from eventide.bench.choose.span_choice import SpanChoice
from eventide.bench.report.page import Report, build_report
from eventide.bench.run.results import Results, read_results
from eventide.bench.run.runner import repeat_cell, run_study
from eventide.bench.study.requirements import check_requirements
from eventide.bench.study.study import Cell, Study
from eventide.bench.study.study_file import builtin_studies, load_study

__all__ = [
    "CapChoice",
    "Cell",
    "Choice",
    "Report",
    "Results",
    "SpanChoice",
    "Study",
    "build_report",
    "builtin_studies",
    "check_requirements",
    "choose",
    "choose_cap",
    "choose_span",
    "describe",
    "describe_people",
    "load_study",
    "read_people",
    "read_results",
    "repeat_cell",
    "run_study",
]
