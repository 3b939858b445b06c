"""A workbook as its sheets' cells, out of the files it consists of."""

import re
import xml.etree.ElementTree as ET
import zipfile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def column_of(reference):
    number = 0
    for letter in re.match("[A-Z]+", reference).group():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


class Sheet:
    def __init__(self, name, root, strings, formats):
        self.name = name
        self.rows = []
        self.formats = []  # of the same cells: number formats
        self.formulas = root.findall(f".//{MAIN}f")
        for row in root.iter(f"{MAIN}row"):
            values, kinds = {}, {}
            for cell in row.iter(f"{MAIN}c"):
                column = column_of(cell.get("r"))
                text = "".join(each.text or "" for each in cell.iter(f"{MAIN}t"))
                value = cell.findtext(f"{MAIN}v")
                kind = cell.get("t")
                values[column] = (text if kind == "inlineStr" else strings[int(value)] if kind == "s" else value == "1" if kind == "b"
                                  else float(value) if value is not None else None)
                kinds[column] = formats[int(cell.get("s", 0))]
            width = max(values, default=-1) + 1
            self.rows.append([values.get(i) for i in range(width)])
            self.formats.append([kinds.get(i) for i in range(width)])
        pane = root.find(f".//{MAIN}pane")
        self.frozen = None if pane is None else (pane.get("state"), pane.get("ySplit"))
        found = root.find(f"{MAIN}autoFilter")
        self.filter = None if found is None else found.get("ref")
        self.widths = {int(each.get("min")) - 1: float(each.get("width")) for each in root.iter(f"{MAIN}col")}


class Workbook:
    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                raise AssertionError("a damaged archive")
            parse = lambda name: ET.fromstring(archive.read(name))
            targets = {each.get("Id"): each.get("Target") for each in parse("xl/_rels/workbook.xml.rels")}
            styles = parse("xl/styles.xml")
            codes = {int(each.get("numFmtId")): each.get("formatCode") for each in styles.iter(f"{MAIN}numFmt")}
            formats = [(codes.get(int(each.get("numFmtId")), int(each.get("numFmtId"))), int(each.get("fillId")), int(each.get("fontId")))
                       for each in styles.find(f"{MAIN}cellXfs")]
            self.fills = [[color.get("rgb") for color in each.iter(f"{MAIN}fgColor")] for each in styles.find(f"{MAIN}fills")]
            self.fonts = [(each.find(f"{MAIN}name").get("val"), each.find(f"{MAIN}b") is not None) for each in styles.find(f"{MAIN}fonts")]
            strings = []
            if "xl/sharedStrings.xml" in archive.namelist():
                strings = ["".join(text.text or "" for text in each.iter(f"{MAIN}t")) for each in parse("xl/sharedStrings.xml")]
            self.sheets = [Sheet(each.get("name"), parse("xl/" + targets[each.get(RELATION)]), strings, formats)
                           for each in parse("xl/workbook.xml").iter(f"{MAIN}sheet")]

    def __getitem__(self, name):
        return next(sheet for sheet in self.sheets if sheet.name == name)
