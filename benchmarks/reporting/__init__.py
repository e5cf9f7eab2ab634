"""What reports of studies are made of, whatever is studied: verified logs in, pages out.

tables     tables of documented columns, as CSV; the columns of metrics, spreads, contrasts and gates
words      numbers, intervals, p values and lists in words
findings   what a comparison shows in words, and the gates that any comparison has
drawing    one style for figures; bars, bands, panels, legends, and the forest of a comparison
pages      pages by templates that escape all that comes from outside; the folder of a report
templates  what pages share: the style sheet, the frame of a page, verdicts, figures, provenance

A study brings its own tables, figures, sentences and templates, and computes no number here.
"""
