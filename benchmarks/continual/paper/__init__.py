"""The report over all pairs of a study: the tables and figures of continual-memory, with ours.

counterparts  which condition of a plan is the paper's Raw, Insight (Cond-Agg), Cond-Ind, Cond-Step,
              and which pair of the paper a pair of the study repeats
tables        Tables 2 to 8 and Figure 11, as CSV
figures       Figures 2 to 13
report        the page, and which published signs are found again
"""
