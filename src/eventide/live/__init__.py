"""From events to releases that survive anything: clock, bounding, sources, stores, sinks, and the publisher.

May import everything to its left (`mechanisms`, `windows`, `streams`, `privacy`), never `bench` or `audit`.
"""
