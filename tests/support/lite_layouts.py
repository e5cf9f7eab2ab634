"""MLE-bench's 22 lite competitions as they lie on disk, with made-up content: no byte is Kaggle's.

Names of files and columns, folders, archives and numbers of rows and files are those that MLE-bench's
preparation leaves. What tables hold is counted up, pictures and sounds are a few bytes, and rows of
training tables repeat. Where a number of the original is not told by MLE-bench it is noted as such.
"""

# ruff: noqa: E731 - a table's rows are a lambda each

import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Final

_BLOCK: Final = 10_000
"""Rows of a training table before they repeat."""
_TINY: Final = b"\x89made up\n"
"""What a picture or sound holds."""
_LEAST: Final = 40

Row = Callable[[int], str]


@dataclass(frozen=True)
class Place:
    """Where a competition's data is made, and at which size."""

    folder: Path
    """`<data>/<id>/prepared`."""
    share: float = 1.0
    """Of rows and files; the least is 40 of each."""

    @property
    def public(self) -> Path:
        """What agents see."""
        return self.folder / "public"

    @property
    def private(self) -> Path:
        """What they do not."""
        return self.folder / "private"

    def size(self, full: int) -> int:
        """Return how many rows or files to make of so many."""
        return min(full, max(_LEAST, int(full * self.share)))

    def table(self, path: str, header: str, row: Row, rows: int, *, repeats: bool = False) -> None:
        """Write a table; rows of one that repeats are those of its beginning, again and again."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8") as out:
            out.write(f"{header}\n")
            if not repeats:
                out.writelines(f"{row(number)}\n" for number in range(rows))
                return
            block = [f"{row(number)}\n" for number in range(min(rows, _BLOCK))]
            whole = "".join(block)
            for _ in range(rows // len(block)):
                out.write(whole)
            out.writelines(block[: rows % len(block)])

    def files(self, folder: str, names: Iterable[str]) -> None:
        """Write tiny files."""
        place = self.public / folder
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            (place / name).write_bytes(_TINY)

    def archive(self, path: str, names: Iterable[str]) -> None:
        """Write a zip of tiny files."""
        with zipfile.ZipFile(self.public / path, "w", zipfile.ZIP_DEFLATED) as out:
            for name in names:
                out.writestr(name, b"" if name.endswith("/") else _TINY)

    def packed(self, archive: str, name: str, *, keep: bool = False) -> None:
        """Put a public file into a zip beside it, stored as it is."""
        with zipfile.ZipFile(self.public / archive, "w") as out:
            out.write(self.public / name, arcname=name)
        if not keep:
            (self.public / name).unlink()


def hexadecimal(number: int, digits: int = 32) -> str:
    """Return a name as image sites give them."""
    return md5(str(number).encode(), usedforsecurity=False).hexdigest()[:digits]


def one_hot(chosen: int, count: int) -> str:
    """Return ones and zeros, a single one among them."""
    return ",".join("1" if at == chosen else "0" for at in range(count))


def _numbers(row: int, count: int) -> str:
    return ",".join(f"{(row * (at + 7)) % 1009 / 997:.6f}" for at in range(count))


def _words(row: int, count: int) -> str:
    return " ".join(f"word{(row * 31 + at * 17) % 5003}" for at in range(count))


def _images(  # noqa: PLR0917 - a table of facts
    place: Place, train: int, test: int, ids: Row, ending: str, columns: Sequence[str]
) -> tuple[int, int]:
    """Write a folder of pictures each for training and test, and return how many there are."""
    trains, tests = place.size(train), place.size(test)
    names = tuple(f"{ids(number)}{ending}" for number in range(trains + tests))
    place.files(columns[0], names[:trains])
    place.files(columns[1], names[trains:])
    return trains, tests


def _cactus(place: Place) -> None:
    trains, tests = place.size(14_175), place.size(3_325)
    names = [f"{hexadecimal(number)}.jpg" for number in range(trains + tests)]
    place.table("public/train.csv", "id,has_cactus", lambda n: f"{names[n]},{n % 4 > 0:d}", trains)
    held = names[trains:]
    header = "id,has_cactus"
    place.table("private/test.csv", header, lambda n: f"{held[n]},{n % 4 > 0:d}", tests)
    place.table("public/sample_submission.csv", header, lambda n: f"{held[n]},0.5", tests)
    place.archive("train.zip", names[:trains])
    place.archive("test.zip", held)


def _blindness(place: Place) -> None:
    def ids(n: int) -> str:
        return hexadecimal(n, 12)

    trains, tests = _images(place, 3_295, 367, ids, ".png", ("train_images", "test_images"))
    header = "id_code,diagnosis"
    place.table("public/train.csv", header, lambda n: f"{ids(n)},{n % 5}", trains)
    place.table("private/test.csv", header, lambda n: f"{ids(trains + n)},{n % 5}", tests)
    place.table("public/test.csv", "id_code", lambda n: ids(trains + n), tests)
    place.table("public/sample_submission.csv", header, lambda n: f"{ids(trains + n)},0", tests)


def _documents(place: Place) -> None:
    # 144 scans, 29 of them for the test; 15 of these taken as the larger of the two sizes, about
    # 5.3 million pixels in all, as a published count has it.
    tests = 29 if place.share >= 1 else 2
    sizes = [(420, 540) if number < (tests + 1) // 2 else (258, 540) for number in range(tests)]
    ids = [
        f"{number + 1}_{row}_{column}"
        for number, (rows, columns) in enumerate(sizes)
        for row in range(1, rows + 1)
        for column in range(1, columns + 1)
    ]
    pictures = [f"{number + 1}.png" for number in range(144)]
    place.files("test", pictures[:tests])
    place.files("train", pictures[tests:])
    place.files("train_cleaned", pictures[tests:])
    header = "id,value"
    place.table(
        "private/answers.csv", header, lambda n: f"{ids[n]},{n * 7 % 256 / 255.0}", len(ids)
    )
    place.table("public/sampleSubmission.csv", header, lambda n: f"{ids[n]},1", len(ids))


def _insults(place: Place) -> None:
    trains, tests = place.size(3_947), place.size(2_647)  # known from the competition

    def comment(n: int) -> str:
        return f'20120618192155Z,"""You {n}, {_words(n, 30)}"""'

    place.table(
        "public/train.csv", "Insult,Date,Comment", lambda n: f"{n % 4 < 1:d},{comment(n)}", trains
    )
    place.table("public/test.csv", "Date,Comment", lambda n: comment(trains + n), tests)
    header = "Insult,Date,Comment"
    place.table(
        "public/sample_submission_null.csv", header, lambda n: f"0,{comment(trains + n)}", tests
    )
    gold = "private/gold_submission.csv"
    place.table(gold, header, lambda n: f"{n % 4 < 1:d},{comment(trains + n)}", tests)
    header = f"{header},Usage"
    answer: Row = lambda n: f"{n % 4 < 1:d},{comment(trains + n)},PrivateTest"
    place.table("private/test.csv", header, answer, tests)


def _dogs(place: Place) -> None:
    trains, tests = _images(place, 9_199, 1_023, hexadecimal, ".jpg", ("train", "test"))
    breeds = [f"breed_{number:03d}" for number in range(120)]
    place.table(
        "public/labels.csv", "id,breed", lambda n: f"{hexadecimal(n)},{breeds[n % 120]}", trains
    )
    header = ",".join(["id", *breeds])
    even = ",".join([repr(1 / 120)] * 120)
    ids: Row = lambda n: hexadecimal(trains + n)
    place.table("public/sample_submission.csv", header, lambda n: f"{ids(n)},{even}", tests)
    place.table("private/test.csv", header, lambda n: f"{ids(n)},{one_hot(n % 120, 120)}", tests)


def _dogs_cats(place: Place) -> None:
    trains, tests = place.size(22_500), place.size(2_500)
    kinds = [f"{'dog' if n % 2 else 'cat'}.{n // 2}.jpg" for n in range(trains)]
    held = [f"{n + 1}.jpg" for n in range(tests)]
    for folder, names in (("train", kinds), ("test", held)):
        place.files(folder, names)
        place.archive(f"{folder}.zip", names)
    place.table("public/sample_submission.csv", "id,label", lambda n: f"{n + 1},0.5", tests)
    place.table("private/answers.csv", "id,label", lambda n: f"{n + 1},{n % 2}", tests)


def _cancer(place: Place) -> None:
    def ids(n: int) -> str:
        return hexadecimal(n) + hexadecimal(n, 8)

    trains, tests = _images(place, 174_464, 45_561, ids, ".tif", ("train", "test"))
    place.table("public/train_labels.csv", "id,label", lambda n: f"{ids(n)},{n % 2}", trains)
    place.table("public/sample_submission.csv", "id,label", lambda n: f"{ids(trains + n)},0", tests)
    place.table("private/answers.csv", "id,label", lambda n: f"{ids(trains + n)},{n % 2}", tests)


def _toxic(place: Place) -> None:
    labels = "toxic,severe_toxic,obscene,threat,insult,identity_hate"
    trains, tests = place.size(159_571), place.size(153_164)  # known from the competition
    text: Row = lambda n: f'{hexadecimal(n, 16)},"{_words(n, 60)}"'
    flags: Row = lambda n: one_hot(n % 7, 6)
    place.table(
        "public/train.csv",
        f"id,comment_text,{labels}",
        lambda n: f"{text(n)},{flags(n)}",
        trains,
        repeats=True,
    )
    place.table("public/test.csv", "id,comment_text", lambda n: text(trains + n), tests)
    header, half = f"id,{labels}", ",".join(["0.5"] * 6)
    ids: Row = lambda n: hexadecimal(trains + n, 16)
    place.table("public/sample_submission.csv", header, lambda n: f"{ids(n)},{half}", tests)
    out = ",".join(["-1"] * 6)
    place.table(
        "private/test.csv", header, lambda n: f"{ids(n)},{flags(n) if n % 3 else out}", tests
    )


def _leaves(place: Place) -> None:
    trains, tests = place.size(891), 99
    kinds = [f"Genus_species{number:02d}" for number in range(99)]
    features = [f"{kind}{n}" for kind in ("margin", "shape", "texture") for n in range(1, 65)]
    place.files("images", (f"{n + 1}.jpg" for n in range(trains + tests)))
    header = ",".join(["id", "species", *features])
    place.table(
        "public/train.csv", header, lambda n: f"{n + 1},{kinds[n % 99]},{_numbers(n, 192)}", trains
    )
    header = ",".join(["id", *features])
    place.table("public/test.csv", header, lambda n: f"{trains + n + 1},{_numbers(n, 192)}", tests)
    header, even = ",".join(["id", *kinds]), ",".join([repr(1 / 99)] * 99)
    place.table("public/sample_submission.csv", header, lambda n: f"{trains + n + 1},{even}", tests)
    place.table("private/test.csv", header, lambda n: f"{trains + n + 1},{one_hot(n, 99)}", tests)


def _counted(row: int, count: int) -> str:
    return f"{row},{_numbers(row, count)}"


def _birds(place: Place) -> None:
    records, held = 322, range(258, 322)
    names = [f"PC{n % 18 + 1}_2009{n:04d}_050000_0010" for n in range(records)]
    essential, extra = "public/essential_data", "public/supplemental_data"
    place.table(
        f"{essential}/CVfolds_2.txt", "rec_id,fold", lambda n: f"{n},{n in held:d}", records
    )
    place.table(
        f"{essential}/rec_id2filename.txt", "rec_id,filename", lambda n: f"{n},{names[n]}", records
    )
    known: Row = lambda n: f"{n},?" if n in held else f"{n},{n % 19}"
    place.table(f"{essential}/rec_labels_test_hidden.txt", "rec_id,[labels]", known, records)
    place.table(
        f"{essential}/species_list.txt", "class_id,code,species", lambda n: f"{n},B{n},Bird {n}", 19
    )
    place.files("essential_data/src_wavs", (f"{name}.wav" for name in names))
    for kind in ("filtered_spectrograms", "spectrograms", "supervised_segmentation"):
        place.files(f"supplemental_data/{kind}", (f"{name}.bmp" for name in names))
    place.files("supplemental_data/segmentation_examples", (f"{name}.bmp" for name in names[:20]))
    place.files("supplemental_data", ("segment_clusters.bmp", "segment_mosaic.bmp"))
    for kind, count in (
        ("histogram_of_segments", 100),
        ("segment_features", 38),
        ("segment_rectangles", 4),
    ):
        header = "rec_id,[histogram of segment features]"
        place.table(
            f"{extra}/{kind}.txt",
            header,
            partial(_counted, count=count),
            records,
        )
    ids = [record * 100 + kind for record in held for kind in range(19)]
    header = "Id,Probability"
    place.table("public/sample_submission.csv", header, lambda n: f"{ids[n]},0", len(ids))
    place.table("private/answers.csv", header, lambda n: f"{ids[n]},{n % 9 < 1:d}", len(ids))


def _taxis(place: Place) -> None:
    trains, tests = place.size(55_413_942), place.size(9_914)
    key: Row = lambda n: (
        f"2012-{n % 12 + 1:02d}-{n % 28 + 1:02d} {n % 24:02d}:{n % 60:02d}:00.{n:07d}"
    )
    ride: Row = lambda n: (
        f"2012-04-21 04:30:42 UTC,-73.{n * 7919 % 1000000:06d},40.{n * 104729 % 1000000:06d},"
        f"-73.{n * 1299709 % 1000000:06d},40.{n * 15485863 % 1000000:06d},{n % 6 + 1}"
    )
    where = "pickup_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude,passenger_count"
    header = f"key,fare_amount,{where}"
    place.table(
        "public/labels.csv",
        header,
        lambda n: f"{key(n)},{n % 97 / 2 + 2.5},{ride(n)}",
        trains,
        repeats=True,
    )
    place.table(
        "private/test.csv", header, lambda n: f"{key(n)},{n % 97 / 2 + 2.5},{ride(n)}", tests
    )
    place.table("public/test.csv", f"key,{where}", lambda n: f"{key(n)},{ride(n)}", tests)
    place.table(
        "public/sample_submission.csv", "key,fare_amount", lambda n: f"{key(n)},11.35", tests
    )
    (place.public / "GCP-Coupons-Instructions.rtf").write_text("{\\rtf1 made up}", encoding="ascii")


def _conductors(place: Place) -> None:
    trains, tests = place.size(2_160), place.size(240)
    lattice = (
        "spacegroup,number_of_total_atoms,percent_atom_al,percent_atom_ga,percent_atom_in,"
        "lattice_vector_1_ang,lattice_vector_2_ang,lattice_vector_3_ang,"
        "lattice_angle_alpha_degree,lattice_angle_beta_degree,lattice_angle_gamma_degree"
    )
    energies = "formation_energy_ev_natom,bandgap_energy_ev"
    told: Row = lambda n: f"{n % 9 / 20},{n % 11 / 3 + 0.1:.4f}"
    known: Row = lambda n: f"{n + 1},33,80.0,{_numbers(n, 9)},{told(n)}"
    place.table("public/train.csv", f"id,{lattice},{energies}", known, trains)
    place.table("private/test.csv", f"id,{lattice},{energies}", known, tests)
    place.table(
        "public/test.csv", f"id,{lattice}", lambda n: f"{n + 1},33,80.0,{_numbers(n, 9)}", tests
    )
    sample = "public/sample_submission.csv"
    place.table(sample, f"id,{energies}", lambda n: f"{n + 1},0.1779,1.8892", tests)
    for kind, count in (("train", trains), ("test", tests)):
        for number in range(1, count + 1):
            place.files(f"{kind}/{number}", ("geometry.xyz",))


def _plants(place: Place) -> None:
    trains, tests = place.size(1_638), place.size(183)
    place.files("images", (f"Train_{n}.jpg" for n in range(trains)))
    place.files("images", (f"Test_{n}.jpg" for n in range(tests)))
    header = "image_id,healthy,multiple_diseases,rust,scab"
    place.table("public/train.csv", header, lambda n: f"Train_{n},{one_hot(n % 4, 4)}", trains)
    place.table("private/test.csv", header, lambda n: f"Test_{n},{one_hot(n % 4, 4)}", tests)
    place.table("public/test.csv", "image_id", lambda n: f"Test_{n}", tests)
    sample = "public/sample_submission.csv"
    place.table(sample, header, lambda n: f"Test_{n},0.25,0.25,0.25,0.25", tests)


def _pizza(place: Place) -> None:
    trains, tests = place.size(2_878), place.size(1_162)

    def request(n: int, *, train: bool) -> dict[str, object]:
        common = {
            "giver_username_if_known": "N/A",
            "request_id": f"t3_{hexadecimal(n, 5)}{n}",
            "request_text_edit_aware": _words(n, 70),
            "request_title": f"[Request] {_words(n, 8)}",
            "requester_account_age_in_days_at_request": n / 7,
            "requester_number_of_comments_at_request": n % 90,
            "requester_subreddits_at_request": ["a", "b"],
            "unix_timestamp_of_request": 1_300_000_000.0 + n,
        }
        after: dict[str, object] = {"request_text": _words(n, 70), "requester_user_flair": None}
        after |= {"requester_received_pizza": n % 4 < 1}
        return common | (after if train else {})

    for kind, numbers in (("train", range(trains)), ("test", range(trains, trains + tests))):
        rows = [request(n, train=kind == "train") for n in numbers]
        text = json.dumps(rows, indent=4)
        (place.public / f"{kind}.json").write_text(text, encoding="utf-8")
        place.packed(f"{kind}.zip", f"{kind}.json", keep=True)
    ids = [f"t3_{hexadecimal(n, 5)}{n}" for n in range(trains, trains + tests)]
    header = "request_id,requester_received_pizza"
    place.table("public/sampleSubmission.csv", header, lambda n: f"{ids[n]},0", tests)
    place.table("private/test.csv", header, lambda n: f"{ids[n]},{n % 4 < 1:d}", tests)


_CATHETERS: Final = (
    *("ETT - Abnormal", "ETT - Borderline", "ETT - Normal", "NGT - Abnormal", "NGT - Borderline"),
    *("NGT - Incompletely Imaged", "NGT - Normal", "CVC - Abnormal", "CVC - Borderline"),
    *("CVC - Normal", "Swan Ganz Catheter Present"),
)


def _catheters(place: Place) -> None:
    def ids(n: int) -> str:
        return f"1.2.826.0.1.3680043.8.498.{10**37 + n * 7919}"

    trains, tests = _images(place, 27_074, 3_009, ids, ".jpg", ("train", "test"))
    header = ",".join(["StudyInstanceUID", *_CATHETERS, "PatientID"])
    known: Row = lambda n: f"{ids(n)},{one_hot(n % 12, 11)},{hexadecimal(n % 3255, 9)}"
    place.table("public/train.csv", header, known, trains)
    place.table("private/test.csv", header, lambda n: known(trains + n), tests)
    header = "StudyInstanceUID,label,data"
    shown: Row = lambda n: f'{ids(n)},CVC - Normal,"[[1487, 1279], [1477, 1168]]"'
    place.table(
        "public/train_annotations.csv", header, shown, place.size(16_200)
    )  # not told: 0.9 of 17,999
    header, zeros = ",".join(["StudyInstanceUID", *_CATHETERS]), ",".join("0" * 11)
    place.table(
        "public/sample_submission.csv", header, lambda n: f"{ids(trains + n)},{zeros}", tests
    )


def _melanoma(place: Place) -> None:
    def ids(n: int) -> str:
        return f"ISIC_{15_719 + n:07d}"

    trains, tests = _images(place, 28_984, 4_142, ids, ".dcm", ("train", "test"))
    _images(place, 28_984, 4_142, ids, ".jpg", ("jpeg/train", "jpeg/test"))
    place.files("tfrecords", (f"train{n:02d}-2071.tfrec" for n in range(14)))
    place.files("tfrecords", (f"test{n:02d}-2071.tfrec" for n in range(2)))
    about = "image_name,patient_id,sex,age_approx,anatom_site_general_challenge"
    person: Row = lambda n: f"{ids(n)},IP_{n % 2056:07d},female,{n % 18 * 5}.0,torso"
    header = f"{about},diagnosis,benign_malignant,target"
    place.table(
        "public/train.csv", header, lambda n: f"{person(n)},unknown,benign,{n % 57 < 1:d}", trains
    )
    place.table("public/test.csv", about, lambda n: person(trains + n), tests)
    header = "image_name,target"
    place.table("public/sample_submission.csv", header, lambda n: f"{ids(trains + n)},0", tests)
    place.table("private/test.csv", header, lambda n: f"{ids(trains + n)},{n % 57 < 1:d}", tests)


def _authors(place: Place) -> None:
    trains, tests = place.size(17_621), place.size(1_958)
    text: Row = lambda n: f'id{n:05d},"{_words(n, 25)}"'
    authors = ("EAP", "HPL", "MWS")
    place.table(
        "public/train.csv", "id,text,author", lambda n: f"{text(n)},{authors[n % 3]}", trains
    )
    place.table("public/test.csv", "id,text", lambda n: text(trains + n), tests)
    header = "id,EAP,HPL,MWS"
    sample = "public/sample_submission.csv"
    place.table(sample, header, lambda n: f"id{trains + n:05d},0.4,0.3,0.3", tests)
    place.table(
        "private/test.csv", header, lambda n: f"id{trains + n:05d},{one_hot(n % 3, 3)}", tests
    )


def _covers(place: Place) -> None:
    trains, tests = place.size(3_600_000), place.size(400_000)
    columns = [f"Feature_{n}" for n in range(10)]
    columns += [f"Wilderness_Area{n}" for n in range(1, 5)]
    columns += [f"Soil_Type{n}" for n in range(1, 41)]
    flags = [f"{one_hot(n % 4, 4)},{one_hot(n % 40, 40)}" for n in range(40)]
    row: Row = lambda n: (
        f"{n},{2000 + n % 1500},{n % 360},{n % 60},{n % 1400},{n % 500},{n % 7000},{n % 255},"
        f"{n % 254},{n % 253},{n % 7100},{flags[n % 40]}"
    )
    header = ",".join(["Id", *columns])
    known: Row = lambda n: f"{row(n)},{n % 7 + 1}"
    place.table("public/train.csv", f"{header},Cover_Type", known, trains, repeats=True)
    place.table("public/test.csv", header, lambda n: row(trains + n), tests)
    place.table("private/test.csv", f"{header},Cover_Type", lambda n: known(trains + n), tests)
    place.table("public/sample_submission.csv", "Id,Cover_Type", lambda n: f"{trains + n},2", tests)


def _may(place: Place) -> None:
    trains, tests = place.size(800_000), place.size(100_000)
    header = ",".join(["id", *(f"f_{n:02d}" for n in range(31))])
    row: Row = lambda n: f"{n},{_numbers(n, 27)},ABCDEFGHIJ,{_numbers(n, 3)}"
    place.table(
        "public/train.csv", f"{header},target", lambda n: f"{row(n)},{n % 2}", trains, repeats=True
    )
    place.table("public/test.csv", header, lambda n: row(trains + n), tests)
    held: Row = lambda n: f"{row(trains + n)},{n % 2}"
    place.table("private/test.csv", f"{header},target", held, tests)
    gold = "private/gold_submission.csv"
    place.table(gold, "id,target", lambda n: f"{trains + n},{n % 2}", tests)
    place.table("public/sample_submission.csv", "id,target", lambda n: f"{trains + n},0.5", tests)


def _spoken(place: Place, language: str, train: int, test: int) -> None:
    trains, tests = place.size(train), place.size(test)
    said: Row = lambda n: f'"word{n % 5003}"' if n % 13 else f'"{n % 2100}"'
    spoken: Row = lambda n: said(n) if n % 13 else f'"number {n % 2100}"'
    at: Row = lambda n: f"{n // 13},{n % 13}"
    ids: Row = lambda n: f'"{n // 13}_{n % 13}"'
    table = f"public/{language}_train.csv"
    header = '"sentence_id","token_id","class","before","after"'
    place.table(
        table, header, lambda n: f'{at(n)},"PLAIN",{said(n)},{spoken(n)}', trains, repeats=True
    )
    table = f"public/{language}_test_2.csv"
    header = '"sentence_id","token_id","before"'
    place.table(table, header, lambda n: f"{at(n)},{said(n)}", tests)
    header = '"id","after"'
    for name in (f"public/{language}_sample_submission_2.csv", "private/sample_submission.csv"):
        place.table(name, header, lambda n: f"{ids(n)},{said(n)}", tests)
    place.table("private/answers.csv", header, lambda n: f"{ids(n)},{spoken(n)}", tests)
    for name in ("train", "test_2", "sample_submission_2"):
        place.packed(f"{language}_{name}.csv.zip", f"{language}_{name}.csv")


def _whales(place: Place) -> None:
    trains, tests = place.size(22_692), place.size(25_149)  # not told; two days each of four
    name = "200903{day:02d}_{n:06d}_{n}s{kind}{n}"
    calls = [
        f"{name.format(day=28, n=n, kind='ms_TRAIN')}_{n % 6 < 1:d}.aif" for n in range(trains)
    ]
    clips = [f"{name.format(day=30, n=n, kind='ms_Test')}.aif" for n in range(tests)]
    header = "clip,probability"
    place.table("public/sampleSubmission.csv", header, lambda n: f"{clips[n]},0", tests)
    place.table("private/test.csv", header, lambda n: f"{clips[n]},{n % 6 < 1:d}", tests)
    for folder, names in (("train2", calls), ("test2", clips)):
        place.archive(f"{folder}.zip", (f"{folder}/", *(f"{folder}/{each}" for each in names)))


LAYOUTS: Final[dict[str, Callable[[Place], None]]] = {
    "aerial-cactus-identification": _cactus,
    "aptos2019-blindness-detection": _blindness,
    "denoising-dirty-documents": _documents,
    "detecting-insults-in-social-commentary": _insults,
    "dog-breed-identification": _dogs,
    "dogs-vs-cats-redux-kernels-edition": _dogs_cats,
    "histopathologic-cancer-detection": _cancer,
    "jigsaw-toxic-comment-classification-challenge": _toxic,
    "leaf-classification": _leaves,
    "mlsp-2013-birds": _birds,
    "new-york-city-taxi-fare-prediction": _taxis,
    "nomad2018-predict-transparent-conductors": _conductors,
    "plant-pathology-2020-fgvc7": _plants,
    "random-acts-of-pizza": _pizza,
    "ranzcr-clip-catheter-line-classification": _catheters,
    "siim-isic-melanoma-classification": _melanoma,
    "spooky-author-identification": _authors,
    "tabular-playground-series-dec-2021": _covers,
    "tabular-playground-series-may-2022": _may,
    "text-normalization-challenge-english-language": lambda place: _spoken(
        place, "en", 8_924_976, 993_465
    ),
    "text-normalization-challenge-russian-language": lambda place: _spoken(
        place, "ru", 9_515_325, 1_059_191
    ),
    "the-icml-2013-whale-challenge-right-whale-redux": _whales,
}
"""What makes each competition, by its id."""


def make_layout(name: str, data: Path, *, share: float = 1.0) -> None:
    """Make the prepared data of a lite competition in `<data>/<name>/prepared`.

    Args:
        name: The competition's id.
        data: Where data lies.
        share: Of rows and files, for tests; 1 is full size.
    """
    place = Place(data / name / "prepared", share)
    place.public.mkdir(parents=True)
    place.private.mkdir()
    LAYOUTS[name](place)
    text = f"# {name}\n\nMade up, in the form of MLE-bench's data.\n"
    (place.public / "description.md").write_text(text, encoding="utf-8")
    for path in (place.folder, *place.public.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
