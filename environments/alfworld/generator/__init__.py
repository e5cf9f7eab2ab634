"""Household games of our own making, from the installed ALFWorld's own rules and words.

They are played by the real engine under the real rules, and they are not the benchmark: what is
scored on them must not be called an ALFWorld score.
"""
