"""Conformance of memory providers: one suite, in parts.

suite       what the parts share: episodes to try a provider with, and how it is tried
filing      an episode is filed once, whoever files, and the log of deltas is the memory
recalling   recall changes nothing and keeps to its budget; what models answer, and credit
content     what is forgotten, edited or cleared by hand is so everywhere; export and import;
            reopening, describing
"""
