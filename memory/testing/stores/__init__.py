"""Conformance of LangGraph stores: one suite, in parts, and the reference it is measured by.

suite         what the parts share: capabilities, departures, sync and async calls
records       what is put is what is found, to the type of a number, and is a copy; which
              namespaces are allowed, and how they are listed
searching     what is found where, and by which filters; stores with an `index`
concurrency   batches, threads and tasks, and what is there when the store is opened again
reference     LangGraph's `InMemoryStore`, corrected, and random operations against it
"""
