"""From events to releases that survive anything: clock, bounding, sources, stores, sinks, and the publisher.

A release leaves only after its charges are stored; raw events are kept only until their step closes.
"""
