"""Whole files, read and written at once."""

import csv
import json
import os


def read_text(*place):
    with open(os.path.join(*place), encoding="utf-8") as file:
        return file.read()


def read_bytes(*place):
    with open(os.path.join(*place), "rb") as file:
        return file.read()


def files_below(*place):
    return [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(*place)) for name in names]


def read_json(*place):
    return json.loads(read_text(*place))


def read_rows(*place):
    """Of a CSV file: a list for each line."""
    with open(os.path.join(*place), encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def read_dicts(*place):
    """Of a CSV file: a dictionary for each line but the heading."""
    with open(os.path.join(*place), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def put(folder, name, text):
    """A file in a folder that is made where it is missing."""
    os.makedirs(folder, exist_ok=True)
    write_text(os.path.join(folder, name), text)


def write_bytes(path, data):
    with open(path, "wb") as file:
        file.write(data)
