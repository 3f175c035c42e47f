"""Studies: mechanisms on streams under privacy settings, measured, repeatable from one file of results.

Everything here runs on data one may look at, with seeded noise: results are figures about mechanisms, NOT private
releases. Imports `windows`, `mechanisms` and what stands left of them.
"""

from eventide.bench.requirements import check_requirements
from eventide.bench.results import Results, read_results
from eventide.bench.runner import repeat_cell, run_study
from eventide.bench.study import Cell, Study
from eventide.bench.study_file import builtin_studies, load_study

__all__ = [
    "Cell",
    "Results",
    "Study",
    "builtin_studies",
    "check_requirements",
    "load_study",
    "read_results",
    "repeat_cell",
    "run_study",
]
