"""Conformance of LangGraph stores: one suite, in parts, and the reference it is measured by.

suite                                        what the parts share: capabilities, departures
calls                                        one store, called synchronously or asynchronously
records, values, isolation, batches          what is put is what is found
namespaces, listing, filters, searching      what is found where
concurrency, persistence, lifetimes          what must hold beside others, and later
semantics                                    stores with an `index`
differential, oracle                         random operations against a corrected `InMemoryStore`
defects                                      where LangGraph's `InMemoryStore` itself departs
conformance                                  all parts in one class
"""
