"""The live publisher as a service: events in, releases out over HTTP, with a dashboard and locks on the doors.

Only private releases leave; what is raw (events, counters of them) is answered to whoever sent it or may operate it.
"""
