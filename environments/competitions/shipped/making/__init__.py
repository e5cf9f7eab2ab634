"""How the competitions that ship are made: from packages' data files to files in folders.

sources   the data files inside packages, known by their content
draws     chance that is the same on every machine
splits    which rows are for training and which for the test, and in which order
warps     pictures turned, moved and blurred with noise, in integers
png       gray PNG files whose bytes depend on the pixels alone
folders   tables and pictures on disk
shipping  the split that ships, as MLE-bench asks for it
"""
