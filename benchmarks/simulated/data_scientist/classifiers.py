"""Models of classes."""

from collections.abc import Iterator

from langgraft.benchmarks.simulated.data_scientist.estimators import classifier
from langgraft.benchmarks.simulated.data_scientist.parts import Part


def classifiers(rounds: tuple[str, ...]) -> Iterator[Part]:
    """Yield models of classes that say how likely each is."""
    yield classifier(
        "logistic regression on scaled features",
        "make_pipeline(StandardScaler(), LogisticRegression(C=$c, max_iter=400))",
        2,
        c=("0.01", "0.05", "0.3", "1.0"),
    )
    yield classifier(
        "logistic regression",
        "LogisticRegression(C=$c, tol=0.01, max_iter=400)",
        2,
        takes=("sparse",),
        c=("1.0", "4.0", "10.0", "20.0"),
    )
    yield classifier(
        "naive Bayes of counts",
        "MultinomialNB(alpha=$alpha)",
        2,
        takes=("sparse",),
        alpha=("0.1", "0.3", "1.0"),
    )
    yield classifier(
        "stochastic gradient descent",
        'SGDClassifier(loss="log_loss", alpha=$alpha, random_state=0)',
        1,
        takes=("sparse",),
        alpha=("1e-4", "3e-5"),
    )
    yield classifier(
        "linear support vectors, calibrated",
        "CalibratedClassifierCV(estimator=LinearSVC(C=$c), cv=3)",
        1,
        takes=("sparse",),
        c=("0.1", "0.3", "1.0"),
    )
    yield classifier(
        "a random forest",
        'RandomForestClassifier(n_estimators=$trees, min_samples_leaf=$leaf, max_features="sqrt", '
        "random_state=0)",
        2,
        trees=("60", "100"),
        leaf=("3", "8", "20"),
    )
    yield classifier(
        "extra trees",
        "ExtraTreesClassifier(n_estimators=$trees, min_samples_leaf=$leaf, random_state=0)",
        1,
        trees=("80", "120"),
        leaf=("2", "4", "8"),
    )
    yield classifier(
        "gradient boosting",
        'GradientBoostingClassifier(loss="log_loss", n_estimators=$trees, max_depth=2, '
        "learning_rate=0.1, subsample=0.7, random_state=0)",
        1,
        heavy=True,
        trees=rounds,
    )
    yield classifier(
        "histogram gradient boosting",
        "HistGradientBoostingClassifier(max_iter=$rounds, learning_rate=$rate, "
        "max_leaf_nodes=$leaves, l2_regularization=0.1, random_state=0)",
        1.5,
        heavy=True,
        rounds=rounds,
        rate=("0.06", "0.1"),
        leaves=("6", "12"),
    )
    yield classifier(
        "nearest neighbors",
        'make_pipeline(StandardScaler(), KNeighborsClassifier($count, weights="distance"))',
        0.8,
        count=("15", "40", "80"),
    )
    yield classifier(
        "a network",
        "make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=($size,), alpha=$alpha, "
        "max_iter=$rounds, random_state=0))",
        1.2,
        size=("30", "60"),
        alpha=("1.0", "5.0"),
        rounds=("30", "50"),
    )
    yield classifier(
        "linear discriminants",
        'LinearDiscriminantAnalysis(solver="lsqr", shrinkage=$shrinkage)',
        0.8,
        shrinkage=("0.05", "0.2"),
    )
    yield classifier(
        "naive Bayes with normal densities",
        "make_pipeline(StandardScaler(), GaussianNB(var_smoothing=$smoothing))",
        0.5,
        smoothing=("0.01", "0.1"),
    )
    yield classifier(
        "bagged trees",
        "BaggingClassifier(estimator=DecisionTreeClassifier(min_samples_leaf=$leaf), "
        "n_estimators=20, max_features=0.4, random_state=0)",
        0.6,
        leaf=("5", "10"),
    )


def vectors() -> Iterator[Part]:
    """Yield support vector machines."""
    yield classifier(
        "support vectors, calibrated",
        "make_pipeline(StandardScaler(), "
        "CalibratedClassifierCV(estimator=SVC(C=$c), ensemble=False, cv=3))",
        1.5,
        heavy=True,
        c=("0.5", "1.0", "3.0"),
    )
    yield classifier(
        "support vectors on features as they are",
        "CalibratedClassifierCV(estimator=SVC(C=$c), ensemble=False, cv=3)",
        1.2,
        heavy=True,
        c=("1.0", "3.0", "5.0"),
    )
