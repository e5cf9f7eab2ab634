"""Machine-learning competitions in MLE-bench's layout: their data, their boards, their grades.

competition   one competition: texts, folders, metric, board
medals        the medal rule
registry      finds competitions: those that ship, MLE-bench's, a folder of one's own
submissions   whether a submission is valid, by the sample submission alone
grading       a grade, and the report as `mlebench grade` writes it
attempts      what came of a program for a competition, as an agent is told
shipped/      competitions made from data inside well-known packages
"""
