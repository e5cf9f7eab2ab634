"""What reports of studies are made of, whatever is studied: verified logs in, pages out.

tables     tables of documented columns, as CSV
words      numbers, intervals, p values and lists in words
drawing    one style for figures; bars, bands, panels and legends
pages      pages by templates that escape all that comes from outside; the folder of a report
templates  what pages share: the style sheet, the frame of a page, verdicts, figures, provenance

A study brings its own tables, figures, sentences and templates, and computes no number here.
"""
