"""From events or counts to the counts of one step after another.

A step comes out when it is over for good; everything raw stays behind a feed.
"""
