"""What the paper on dynamic coding memory prints (mle-agent-memory), as it is printed.

Figures only, by table. Tasks stand in the order of its Table 8, by alphabet.
"""

from typing import Final, TypeAlias

Cell: TypeAlias = tuple[float, float]
"""A mean and its standard error."""

Pair: TypeAlias = tuple[Cell, Cell]
"""The same measure without and with memory."""

LITE: Final = 22
"""Tasks of MLE-bench lite (§4.1)."""

SEEDS: Final = {"AIDE": 16, "OpenHands": 3, "MLAB": 3}
"""Runs of a task (Table 1); none is given for MLAB, which is taken to have as many as its peer."""

OUTCOMES: Final[dict[str, dict[str, Pair]]] = {
    "AIDE": {
        "made": ((100.00, 0.00), (100.00, 0.00)),
        "valid": ((91.27, 0.83), (94.80, 0.95)),
        "above median": ((55.47, 1.94), (44.77, 1.61)),
        "bronze": ((14.76, 1.45), (7.72, 1.35)),
        "silver": ((9.03, 1.81), (10.36, 0.92)),
        "gold": ((10.61, 1.61), (4.87, 0.77)),
        "any medal": ((34.40, 1.83), (22.95, 1.77)),
    },
    "OpenHands": {
        "made": ((31.82, 6.94), (34.85, 1.52)),
        "valid": ((28.79, 6.06), (34.85, 1.52)),
        "above median": ((15.15, 4.01), (19.70, 1.52)),
        "bronze": ((13.64, 2.62), (16.67, 1.52)),
        "silver": ((0.00, 0.00), (0.00, 0.00)),
        "gold": ((1.52, 1.52), (1.52, 1.52)),
        "any medal": ((15.15, 4.01), (18.18, 0.00)),
    },
    "MLAB": {
        "made": ((36.36, 4.50), (40.90, 4.20)),
        "valid": ((22.72, 3.80), (31.81, 3.50)),
        "above median": ((4.54, 2.00), (4.54, 2.00)),
        "bronze": ((4.54, 2.00), (4.54, 2.00)),
        "silver": ((0.00, 0.00), (0.00, 0.00)),
        "gold": ((0.00, 0.00), (0.00, 0.00)),
        "any medal": ((4.54, 2.00), (4.54, 2.00)),
    },
}
"""Table 1, in percent. The row of MLAB is marked as estimated."""

GAINS: Final = (
    ("OpenHands", "made", "3.0"),
    ("OpenHands", "valid", "6.1"),
    ("OpenHands", "any medal", "3.0"),
    ("AIDE", "valid", "3.53"),
    ("AIDE", "above median", "-10.7"),
    ("AIDE", "any medal", "-11.5"),
)
"""§4.2: what memory changed, in points of percent."""

TREES: Final[dict[str, tuple[Cell, Cell, str]]] = {
    "bug rate": ((46.72, 1.58), (24.02, 1.06), "-22.7"),
    "N_eff": ((8.45, 0.16), (8.10, 0.14), "-0.34"),
    "first valid node": ((3.12, 0.30), (0.80, 0.14), "-2.32"),
    "valid code distance": ((29.17, 0.54), (27.18, 0.41), "-0.02"),
}
"""Table 2, AIDE: without, with memory, and the difference. §4.4 has the last as percentages."""

CHAINS: Final[dict[str, tuple[Cell, Cell, str]]] = {
    "bug rate": ((16.27, 1.48), (14.11, 1.66), "-2.16"),
    "N_eff (tool)": ((2.13, 0.08), (1.93, 0.09), "-0.20"),
    "N_eff (command)": ((115.24, 23.60), (181.19, 28.19), "65.95"),
    "N_eff (ops)": ((0.66, 0.17), (0.53, 0.16), "-0.13"),
}
"""Table 3, OpenHands: the same."""

UNITS: Final = {
    "bug rate": "points",
    "N_eff": "categories",
    "first valid node": "steps",
    "valid code distance": "points",
    "N_eff (tool)": "categories",
    "N_eff (command)": "categories",
    "N_eff (ops)": "categories",
}
"""What differences of Tables 2 and 3 are counted in."""

TASKS: Final = {"audio": 2, "image": 10, "tabular": 4, "text": 6}
"""Tasks of a modality (Table 8)."""

MODALITIES: Final[dict[str, dict[str, tuple[Pair, str]]]] = {
    "AIDE": {
        "audio": (((25.00, 17.68), (20.00, 14.14)), "-5.00"),
        "image": (((37.50, 12.09), (14.37, 7.24)), "-23.13"),
        "tabular": (((18.75, 16.24), (35.00, 20.46)), "16.25"),
        "text": (((35.42, 15.21), (30.21, 11.06)), "-5.21"),
    },
    "OpenHands": {
        "audio": (((0.00, 0.00), (0.00, 0.00)), "0.0"),
        "image": (((13.33, 9.66), (10.00, 6.75)), "-3.33"),
        "tabular": (((25.00, 13.82), (33.33, 16.67)), "8.33"),
        "text": (((16.67, 6.80), (27.78, 12.21)), "11.11"),
    },
}
"""Table 5: any medal in percent; without, with memory, and the difference."""

STEPS: Final = 30
"""Steps of AIDE (Table 6)."""

EXECUTION_SECONDS: Final = 7200
"""Most time of one execution (Table 6)."""

BUDGET_HOURS: Final = 24
"""Wall clock of a task (§4.1)."""

DRAFTS: Final = 5
"""First nodes that AIDE drafts: its own default, as Table 6 names none."""

RECURRENCE: Final = {
    "dog-breed-identification": (0.00, 0.33),
    "histopathologic-cancer-detection": (0.33, 0.00),
    "new-york-city-taxi-fare-prediction": (0.33, 0.33),
    "text-normalization-english": (0.33, 0.00),
    "text-normalization-russian": (0.00, 0.33),
    "the-icml-2013-whale-challenge": (0.00, 0.67),
}
"""Table 7: share of the runs of a task in which an error type is met early and late."""

LATE: Final = {
    "aerial-cactus-identification": (3.3, 1.7, 1.7),
    "aptos2019-blindness-detection": (3.3, 0.0, 3.3),
    "denoising-dirty-documents": (3.3, 1.7, 1.7),
    "detecting-insults-in-social-commentary": (0.3, 0.7, -0.3),
    "dog-breed-identification": (0.7, 1.7, -1.0),
    "dogs-vs-cats-redux-kernels-edition": (0.7, 0.0, 0.7),
    "histopathologic-cancer-detection": (1.7, 0.3, 1.3),
    "jigsaw-toxic-comment-classif.": (0.0, 0.0, 0.0),
    "leaf-classification": (2.0, 0.3, 1.7),
    "mlsp-2013-birds": (7.3, 31.0, -23.7),
    "new-york-city-taxi-fare-prediction": (1.7, 2.0, -0.3),
    "nomad2018-predict-transparent-cond.": (0.3, 0.7, -0.3),
    "plant-pathology-2020-fgvc7": (0.3, 2.7, -2.3),
    "random-acts-of-pizza": (20.7, 1.0, 19.7),
    "ranzcr-clip-catheter-line-classif.": (0.3, 1.3, -1.0),
    "siim-isic-melanoma-classification": (30.3, 0.3, 30.0),
    "spooky-author-identification": (0.3, 0.3, 0.0),
    "tabular-playground-series-dec-2021": (0.7, 0.7, 0.0),
    "tabular-playground-series-may-2022": (6.3, 0.0, 6.3),
    "text-normalization-english": (4.0, 1.3, 2.7),
    "text-normalization-russian": (0.7, 0.3, 0.3),
    "the-icml-2013-whale-challenge": (0.7, 12.3, -11.7),
}
"""Table 9: late errors of a task, mean of three runs; without, with memory, and the difference
(without minus with)."""
