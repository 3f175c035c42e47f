"""Where events come from: one way in per file, all with the same few methods.

A source may import `errors`, pyarrow and its neighbours in `live`; a client library when it connects.
"""
