"""Conformance of LangGraph stores: one suite, in parts, and the reference it is measured by.

suite          what the parts share: capabilities, departures, sync and async calls
records        what is put is what is found, to the type of a number, and is a copy
namespaces     which are allowed, and how they are listed
searching      what is found where, and by which filters
concurrency    batches, threads and tasks, and what is there when the store is opened again
semantics      stores with an `index`
differential   random operations against the reference
reference      LangGraph's `InMemoryStore`, corrected, and where it departs
conformance    all parts in one class
"""
