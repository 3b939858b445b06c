"""Pages of profctl report in one browser for all tests of a class."""

import os
import unittest

import web_driver
from profd_harness import eventually, profctl, temp_folder


class PageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        web_driver.require()
        cls.folder = temp_folder(cls)
        cls.make_pages()
        cls.browser = cls.enterClassContext(web_driver.Browser(1400, 900))

    @classmethod
    def make_pages(cls):
        """Calls report() for each run that it makes in `folder`."""
        raise NotImplementedError

    @classmethod
    def report(cls, name, *options):
        profctl("report", os.path.join(cls.folder, name), "-o", os.path.join(cls.folder, name + ".html"), *options)

    def open(self, name, page="overview"):
        self.browser.open("about:blank")  # else only the address changes
        self.browser.open(f"file://{self.folder}/{name}.html#/{page}")
        self.shown()

    def shown(self):
        eventually(lambda: self.browser.run("return document.querySelector('main h2') !== null"), what="the page is there")
