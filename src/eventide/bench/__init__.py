"""Studies: mechanisms on streams under privacy settings, measured, repeatable from one file of results.

Everything here runs on data one may look at, with seeded noise: results are figures about mechanisms, NOT private
releases. May import `windows`, `mechanisms`, `filters`, `streams`, `privacy`, `display` and `toml_lines`.
"""

from eventide.bench.choose import choose
from eventide.bench.choose_history import describe
from eventide.bench.choose_result import Choice
from eventide.bench.report import Report, build_report
from eventide.bench.requirements import check_requirements
from eventide.bench.results import Results, read_results
from eventide.bench.runner import repeat_cell, run_study
from eventide.bench.study import Cell, Study
from eventide.bench.study_file import builtin_studies, load_study

__all__ = [
    "Cell",
    "Choice",
    "Report",
    "Results",
    "Study",
    "build_report",
    "builtin_studies",
    "check_requirements",
    "choose",
    "describe",
    "load_study",
    "read_results",
    "repeat_cell",
    "run_study",
]
