"""Competitions made from data inside well-known packages, in MLE-bench's layout.

A folder is one competition: `config.yaml`, `description.md`, `prepare.py`, which makes the data and grades,
`checksums.yaml`, `leaderboard.csv`, and `board.json`, which says how the leaderboard was made.
`making` and `metrics` are what they share. Boards are made by `make boards` (`tests/boards/`).

Answers could be looked up by whoever holds the package that a competition is made from. Against it:

* The modules in `source_modules` are not importable, or hold no data, where agents' code runs.
  This is the protection; all else only makes looking up worth less.
* Tables are made coarser and noisy, pictures are turned, scaled and noisy, texts are in a secret
  alphabet with misspellings, so that rows of the test are not found in the source as they are.
  With the source at hand, the mean of the nearest rows still reaches gold in `visits` and
  `weather`, and words' lists do in `phrases` once its alphabet is solved; acceptance measures what
  each attack earns. `denoising` and `textures` were looked up in coarse steps only: who searches
  places, angles and scales finely enough can be expected to find the picture.
* The secrets follow from this code, so it must not be where agents' code runs either.
* Rows are numbered after they are shuffled; files of pictures have one size and one time.
* `leaks.find_leaks` tells, for reports, which programs ask for such modules.
"""
