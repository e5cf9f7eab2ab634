"""A program that names a competition's source is told; one that does not, is not."""

import pytest

from langgraft.environments.competitions.attempts import Leak, find_leaks

MODULES = ("sklearn.datasets", "statsmodels")


@pytest.mark.parametrize(
    "code",
    [
        "import sklearn.datasets",
        "import sklearn.datasets as d",
        "from sklearn import datasets",
        "from sklearn.datasets import load_digits",
        "from sklearn.datasets._base import load_csv_data",
        "import sklearn\nsklearn.datasets.load_digits()",
        "from sklearn.datasets import make_blobs, load_digits",
        "import sklearn.datasets as d\nd.make_blobs()",
        "import statsmodels.api as sm",
        "from statsmodels.datasets import randhie",
        "import importlib\nimportlib.import_module('sklearn.datasets')",
        "__import__('statsmodels.api')",
        "__import__('statsmodels').datasets.randhie.load()",
        "from importlib import resources\nresources.files('sklearn.datasets.data')",
        "open('/usr/lib/python3/site-packages/sklearn/datasets/data/digits.csv.gz')",
    ],
)
def test_program_when_it_names_the_source_is_found(code: str) -> None:
    """Imports in any form, attributes, importing functions and paths are seen."""
    (leak, *_) = find_leaks(code, MODULES)
    assert leak.module in MODULES
    assert 1 <= leak.line <= code.count("\n") + 1


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.svm import SVC",
        "import sklearn.datasets_of_mine",
        "datasets = load('train.csv')",
        "# import sklearn.datasets",
        "print('about sklearn.datasets')",
        "from . import statsmodels",
        "my.statsmodels()",
        "from sklearn.datasets import make_classification, make_blobs",
        "import sklearn\nsklearn.datasets.make_blobs()",
        "from sklearn.datasets._samples_generator import make_moons",
    ],
)
def test_program_when_it_does_not_is_not(code: str) -> None:
    """Other modules, comments, prose, and data drawn at random are no findings."""
    assert find_leaks(code, MODULES) == ()


def test_program_when_it_does_not_parse_is_searched_by_lines() -> None:
    """Half a program, as models write them, is still looked at."""
    found = find_leaks("x = (\nfrom sklearn.datasets import load_digits", MODULES)
    assert found == (Leak(2, "sklearn.datasets", "from sklearn.datasets import load_digits"),)
