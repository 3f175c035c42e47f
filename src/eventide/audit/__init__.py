"""The auditor: neighbouring streams, distinguishers, and lower bounds on epsilon with confidence.

Everything here is a study: it runs mechanisms on made-up streams, usually with seeded noise.
"""

from eventide.audit.auditor import Finding, Verdict, audit
from eventide.audit.mechanisms import audit_mechanism
from eventide.audit.pairs import Pair, neighbouring_pairs
from eventide.audit.subjects import FaultyClass, MechanismSubject, Subject, Transcript

__all__ = [
    "FaultyClass",
    "Finding",
    "MechanismSubject",
    "Pair",
    "Subject",
    "Transcript",
    "Verdict",
    "audit",
    "audit_mechanism",
    "neighbouring_pairs",
]
