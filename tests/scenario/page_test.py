"""The page of `hmmjit report` in Chromium: display, filters, sorting, and their times.

Needs Debian's chromium, chromium-driver and python3-selenium (tools/install_packages.sh --browser), else the test is
skipped. HMMJIT_SCREENSHOTS names a folder for screenshots.
"""
import base64
import csv
import importlib.util
import json
import os
import random
import re
import shutil
import socket
import sys
import time
import unittest
import xml.etree.ElementTree

DEBIAN_PYTHON = "/usr/bin/python3"
if importlib.util.find_spec("selenium") is None and os.path.exists(DEBIAN_PYTHON) and \
        os.path.realpath(sys.executable) != os.path.realpath(DEBIAN_PYTHON) and \
        "SELENIUM_TRIED" not in os.environ:
    os.environ["SELENIUM_TRIED"] = "1"  # Debian's package is for Debian's interpreter
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, "-B"] + sys.argv)

import scenario
from scenario import SEED, ScratchFolder, ok, printed


def localhost_is_known():
    """Selenium finds chromedriver by this name; a bare chroot has no /etc/hosts."""
    try:
        return bool(socket.getaddrinfo("localhost", None))
    except OSError:
        return False


MISSING = [name for name, present in (
    ("chromium", shutil.which("chromium")), ("chromedriver", shutil.which("chromedriver")),
    ("selenium", importlib.util.find_spec("selenium")), ("localhost in /etc/hosts", localhost_is_known())) if not present]
SIZES = {"desktop": (1280, 900), "tablet": (768, 1024), "phone": (390, 844)}
# Promised for a page of 100,000 domains on two cores. Compared with the CPU time of the page's process, which does not
# depend on the machine's load.
LOAD_SECONDS, SORT_SECONDS = 2.0, 0.5
# Wall time in seconds for other actions; a page that draws every row takes minutes.
LONGEST_SECONDS = 30.0
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def made_result(path, domains, alignments, seed):
    """Writes a result file like --json, with `domains` distinct domains; returns its models, and its targets in the
    order of the page, best E-value first."""
    rng = random.Random(seed)
    models = [{"name": f"Model_{m + 100}", "accession": f"PF{m + 1:05d}.{m % 30}" if m % 5 else None,
               "description": rng.choice(["Kinase", "Globin", "Zinc finger"]) + f" family {m}",
               "length": rng.randrange(40, 500)} for m in range(max(2, min(400, domains // 20)))]
    found = [[] for _ in models]
    targets, made = [], 0
    while made < domains:
        index = len(targets)
        accession = "".join(rng.choice("OPQ") + str(rng.randrange(10)) +
                            "".join(rng.choice("ACDEFGHIJKLMNPQRSTUVWXYZ0123456789") for _ in range(3)) +
                            str(rng.randrange(10)))
        # The first one is shown on top, and its boxes are too small for their names.
        length = rng.randrange(200, 3000) if index else 3000
        target = {"name": f"tr|{accession}|{accession}_TEST{index}", "index": index, "length": length,
                  "description": f"\"{rng.choice(['Putative', 'Probable', 'Uncharacterised'])}\" protein "
                                 f"{rng.randrange(10**6)} OS=Testus {rng.choice(['ex', 'al', 'nov'])} "
                                 f"OX={rng.randrange(10**6)} GN=gene{rng.randrange(10**5)} PE=4 SV=1"}
        targets.append(target)
        target["hits"] = []
        for m in sorted(rng.sample(range(len(models)), rng.choice([1, 1, 1, 2]))):
            log = -rng.random() * 120 + (1 if index else -120)
            hit = {"evalue": 10**log, "score": round(25 - 3 * log + rng.random(), 5),
                   "bias": round(rng.random(), 5), "included": log < -2, "model": m, "domains": []}
            for number in range(1, rng.choice([2, 2, 2, 3, 5])):
                if made == domains:
                    break
                made += 1
                hmm_from = rng.randrange(1, models[m]["length"] // 2)
                hmm_to = rng.randrange(models[m]["length"] // 2, models[m]["length"] + 1)
                start = rng.randrange(1, length - 120)
                domain = {"number": number, "included": log < -3, "c_evalue": 10**(log - 1.5) * rng.random(),
                          "i_evalue": 10**log * (1 + rng.random()), "score": round(20 - 3 * log, 5),
                          "bias": 0.1, "hmm_from": hmm_from, "hmm_to": hmm_to, "ali_from": start,
                          "ali_to": start + 99, "env_from": start, "env_to": start + 110, "accuracy": 0.9}
                if alignments:
                    columns = hmm_to - hmm_from + 1
                    text = "".join(rng.choice(LETTERS) for _ in range(columns))
                    domain["ali_to"] = start + columns - 1
                    domain["alignment"] = {"model": text.lower(), "match": text, "target": text,
                                           "pp": "".join(rng.choice("*98765") for _ in text)}
                hit["domains"].append(domain)
            if hit["domains"]:
                target["hits"].append(hit)
                found[m].append((target, hit))
    with open(path, "w") as file:
        def line(**members):
            file.write(json.dumps(members) + "\n")
        for m, model in enumerate(models):
            line(record="model", index=m, Z=1e5, domZ=100, targets=len(targets), residues=10**6,
                 passed={"msv": 9, "bias": 8, "viterbi": 7, "forward": 6}, targets_reported=len(found[m]),
                 targets_included=sum(hit["included"] for _, hit in found[m]), **model)
            for target, hit in found[m]:
                members = {key: value for key, value in hit.items() if key != "model"}
                line(record="target", model=model["name"], model_index=m, name=target["name"],
                     accession=None, description=target["description"], index=target["index"],
                     length=target["length"], **members)
        line(record="run", program="hmmjit search", version="0", model_file="m", target_file="t",
             options="hmmjit search m t", folder="/", date="today", models=len(models),
             targets=len(targets), residues=10**6, targets_reported=len(targets), targets_included=1,
             domains_reported=made, domains_included=1)
    targets = [target for target in targets if target["hits"]]
    return models, sorted(targets, key=lambda target: min(hit["evalue"] for hit in target["hits"]))


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)} (tools/install_packages.sh --browser)")
class PageInChromium(ScratchFolder):
    @staticmethod
    def started():
        from selenium import webdriver
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        return webdriver.Chrome(options=options)

    @classmethod
    def setUpClass(cls):
        cls.driver = cls.started()
        cls.addClassCleanup(cls.driver.quit)

    def browser(self, size="desktop", dark=False):
        """The browser of all tests with an empty page, a window of this size and downloads to the test's folder."""
        width, height = SIZES[size]
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        for command, parameters in (
                ("Emulation.setDeviceMetricsOverride",
                 {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}),
                ("Emulation.setEmulatedMedia",
                 {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}),
                ("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": self.folder})):
            self.driver.execute_cdp_cmd(command, parameters)
        return self.driver

    def page(self, domains, alignments=True):
        result, page = self.path(f"{domains}.json"), self.path(f"{domains}.html")
        self.models, self.targets = made_result(result, domains, alignments, SEED)
        ok(scenario.run([scenario.program, "report", result, "-o", page, "--title", f"{domains} domains"]))
        return page

    def wait(self, condition, what):
        until = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)

    def ready(self, driver):
        self.wait(lambda: driver.execute_script("return document.documentElement.dataset.ready"), "the page did not get ready")

    def open(self, driver, page):
        begun = time.monotonic()
        driver.get("file://" + page)
        self.ready(driver)
        return time.monotonic() - begun

    def processor_seconds(self, driver):
        """CPU time of the page's process."""
        return next(metric["value"] for metric in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
                    if metric["name"] == "ProcessTime")

    def text(self, driver, name):
        return driver.execute_script(f"return document.getElementById('{name}').textContent")

    def show(self, driver, view):
        driver.execute_script(f"document.getElementById('tab-{view}').click()")

    def set(self, driver, **inputs):
        for name, value in inputs.items():
            driver.execute_script("const input = document.getElementById(arguments[0]);"
                                  "if (input.type === 'checkbox') input.checked = arguments[1];"
                                  "else input.value = arguments[1]; input.dispatchEvent(new Event('input'))",
                                  name, value)
        # The filter works in the next frame.
        driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def cells(self, driver, view="domains"):
        """The text of all cells in the document, by rows of the table."""
        rows = driver.execute_script(
            "return [...document.querySelectorAll(`#${arguments[0]} .rows .row`)].map(row =>"
            " [Number(row.getAttribute('aria-rowindex')), [...row.children].map(cell => cell.textContent)])", view)
        return [cells for _, cells in sorted(rows)]

    def no_messages(self, driver):
        self.assertEqual(driver.get_log("browser"), [])

    def flat(self):
        return [(target, hit, domain) for target in self.targets for hit in target["hits"]
                for domain in hit["domains"]]

    def test_it_looks_right_at_three_widths_light_and_dark(self):
        folder = os.environ.get("HMMJIT_SCREENSHOTS")
        page = self.page(1000)
        for size, dark in (("desktop", False), ("tablet", True), ("phone", False), ("phone", True)):
            driver = self.browser(size, dark)
            self.open(driver, page)
            for view in ("overview", "models", "proteins", "domains", "stack"):
                self.show(driver, view)
                wide = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertEqual(wide[0], SIZES[size][0], f"{view} is wider than the window at {size}")
                if view == "domains":
                    cut = driver.execute_script(
                        "return [...document.querySelectorAll('#domains .rows .row')].map(row => row.children[1])"
                        ".filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)")
                    self.assertEqual(cut, [], f"names of models are cut at {size}")
                if view in ("models", "domains"):
                    inner = driver.execute_script("const list = document.querySelector(`#${arguments[0]} .scroller`);"
                                                  "return [list.scrollWidth, list.clientWidth]", view)
                    self.assertLessEqual(inner[0], inner[1], f"the table of {view} scrolls sideways at {size}")
                    tall = driver.execute_script(
                        "return [...document.querySelectorAll(`#${arguments[0]} .head button`)].filter(button =>"
                        " button.offsetParent && button.scrollHeight > 46 || button.scrollWidth > button.clientWidth)"
                        ".map(button => button.textContent)", view)
                    self.assertEqual(tall, [], f"heads of columns of {view} have no room at {size}")
                picture = base64.b64decode(driver.get_screenshot_as_base64())
                self.assertGreater(len(picture), 5000)
                if folder:
                    with open(os.path.join(folder, f"{size}{'-dark' if dark else ''}-{view}.png"), "wb") as file:
                        file.write(picture)
            # The names of domains are readable, and boxes have labels for screen readers.
            self.show(driver, "proteins")
            boxes = driver.execute_script(
                "return [...document.querySelectorAll('.box')].map(box => [box.getAttribute('aria-label'),"
                " box.clientHeight, parseFloat(getComputedStyle(box).fontSize)])")
            self.assertGreater(len(boxes), 3)
            for label, height, font in boxes:
                self.assertRegex(label, r"^Model_\d+ \d+-\d+ \(model \d+-\d+ of \d+\), i-Evalue \S+, \S+ bits")
                self.assertGreaterEqual(height, 14)
                self.assertGreaterEqual(font, 10)
            # A box that is too small for its name has it below.
            bare = driver.execute_script(
                "return [...document.querySelectorAll('.protein')].map(row => [[...row.querySelectorAll('.box')]"
                ".filter(box => !box.textContent).map(box => box.getAttribute('aria-label').split(' ')[0]),"
                " [...row.querySelectorAll('.names > span')].map(name => name.textContent.split(' ')[0])])")
            self.assertGreater(sum(len(names) for names, _ in bare), 0)
            for names, below in bare:
                self.assertEqual(sorted(set(names)), sorted(below))
            background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            brightness = sum(int(part) for part in background[4:-1].split(",")[:3])
            self.assertEqual(brightness < 200, dark, background)
            self.no_messages(driver)

    def test_numbers_are_those_of_the_tables_and_sorting_is_by_value(self):
        driver = self.browser()
        self.open(driver, self.page(1000))
        self.show(driver, "domains")
        target, hit, domain = self.flat()[0]
        self.assertEqual(self.cells(driver)[0], [
            "\u2197 " + target["name"], self.models[hit["model"]]["name"], "%.2g" % hit["evalue"],
            printed(hit["score"], 1), printed(hit["bias"], 1), str(domain["number"]), "%.2g" % domain["c_evalue"],
            "%.2g" % domain["i_evalue"], printed(domain["score"], 1),
            f"{domain['hmm_from']}\u2013{domain['hmm_to']}", f"{domain['ali_from']}\u2013{domain['ali_to']}",
            f"{domain['env_from']}\u2013{domain['env_to']}", "0.90"])
        for column, key in ((7, "i_evalue"), (10, "ali_from")):
            for down in (False, True):
                driver.execute_script(f"document.querySelectorAll('#domains .head button')[{column}].click()")
                want = sorted((domain[key] for _, _, domain in self.flat()), reverse=down)
                got = self.cells(driver)
                shown = [("%.2g" % value if column == 7 else str(value)) for value in want[:len(got)]]
                self.assertEqual([row[column].split("\u2013")[0] for row in got], shown)
                state = driver.execute_script(f"return document.querySelectorAll('#domains .head > *')[{column}]"
                                              ".getAttribute('aria-sort')")
                self.assertEqual(state, "descending" if down else "ascending")
        # Numbers are formatted as in C: halves round to even.
        for value, text in ((23.25, "23.2"), (23.75, "23.8"), (-23.25, "-23.2"), (0.45, "0.4"), (0.35, "0.3"),
                            (-0.05, "-0.1"), (1e6, "1000000.0")):
            self.assertEqual(driver.execute_script("return bits(arguments[0])", value), text)
        for value in (0.125, 0.375, 0.995, 0.98499999, 1):
            self.assertEqual(driver.execute_script("return fixed(arguments[0], 2)", value), "%.2f" % value)
        for value in (1e-5, 1.25e-5, 0.00012, 0.0001, 0.099, 0.0999, 9.96, 99.6, 3, 1e-300, 5e-324, 120):
            self.assertEqual(driver.execute_script("return general(arguments[0])", value), "%.2g" % value)
        self.no_messages(driver)

    def test_filter_and_counts_agree(self):
        driver = self.browser()
        self.open(driver, self.page(1000))
        everything = self.flat()

        def check(chosen, models):
            counts = self.text(driver, "counts")
            targets = len({target["index"] for target, _, _ in chosen})
            self.assertIn(f"{len(chosen)} of 1,000 domains, {targets} of {len(self.targets)} sequences", counts)
            for view, number in (("domains", len(chosen)), ("models", models)):
                self.show(driver, view)
                rows = driver.execute_script(
                    f"return document.querySelector('#{view} .scroller').getAttribute('aria-rowcount')")
                self.assertEqual(int(rows), number + 1)
            self.show(driver, "proteins")
            self.assertEqual(driver.execute_script("return shownProteins.length"), targets)

        def matches(words, target, model):
            text = f"{target['name']} {target['description']}".lower()
            name = f"{model['name']} {model['accession'] or ''} {model['description']}".lower()
            return all(word in text or word in name for word in words)

        for words in (["kinase"], ["gene1"], ["kinase", "probable"], ["model_12"]):
            self.set(driver, filter=" ".join(words))
            chosen = [entry for entry in everything
                      if matches(words, entry[0], self.models[entry[1]["model"]])]
            with_hits = {hit["model"] for _, hit, _ in chosen}
            named = {m for m, model in enumerate(self.models)
                     if matches(words, {"name": "", "description": ""}, model)}
            check(chosen, len(with_hits | named))
        self.set(driver, filter="", evalue="1e-20", included=True)
        chosen = [entry for entry in everything if entry[2]["i_evalue"] <= 1e-20 and entry[2]["included"]]
        self.assertGreater(len(chosen), 100)
        check(chosen, len({hit["model"] for _, hit, _ in chosen}))
        # Residues of alignments are no names.
        self.set(driver, evalue="", included=False, filter="acdef")
        self.assertIn("Shown: 0 of 1,000 domains", self.text(driver, "counts"))
        self.assertIn("Nothing matches the filter", self.text(driver, "counts"))
        driver.execute_script("document.getElementById('clear').click()")
        self.assertEqual(self.text(driver, "counts"),
                         f"1,000 domains, {len(self.targets)} sequences, {len(self.models)} models.")
        # The filtered domains can be saved.
        self.set(driver, filter="kinase", included=True)
        with open(self.saved(driver, "domains.tsv", "#save"), newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        self.assertEqual(len(rows), int(self.text(driver, "counts").split()[1].replace(",", "")))
        self.assertEqual({row["domain_included"] for row in rows}, {"1"})
        self.assertLessEqual({row["description"] for row in rows}, {target["description"] for target in self.targets})
        self.no_messages(driver)

    def saved(self, driver, name, button):
        """The file that a click on the first of these buttons downloads."""
        driver.execute_script("arguments[0].click()", driver.find_element("css selector", button))
        path = self.path(name)
        # Chromium makes an empty file first.
        self.wait(lambda: os.path.exists(path) and os.path.getsize(path) > 0, f"{name} was not saved")
        return path

    def test_switches_and_pictures_of_two_results(self):
        results = [self.path("first.json"), self.path("second.json")]
        made = [made_result(result, domains, False, SEED)
                for result, domains in zip(results, (300, 200))]
        # The first search has chosen domains, the page those of the second.
        with open(results[0]) as file:
            chosen = re.sub(r'"number": (\d+)', lambda found: f'"kept": {str(found[1] == "1").lower()}, {found[0]}', file.read())
        with open(results[0], "w") as file:
            file.write(chosen)
        page = self.path("two.html")
        ok(scenario.run([scenario.program, "report", "-o", page, *results]))
        driver = self.browser()
        self.open(driver, page)

        def best(targets):
            """The number of included domains that do not share half with a better one."""
            kept = 0
            for target in targets:
                chosen = []
                for hit, domain in sorted(((hit, domain) for hit in target["hits"] for domain in hit["domains"]
                                           if hit["included"] and domain["included"]),
                                          key=lambda pair: pair[1]["i_evalue"]):
                    size = domain["env_to"] - domain["env_from"] + 1
                    if all(hit["model"] == other or 2 * (min(domain["env_to"], end) - max(domain["env_from"], start) + 1)
                           < min(size, end - start + 1) for other, start, end in chosen):
                        chosen.append((hit["model"], domain["env_from"], domain["env_to"]))
                kept += len(chosen)
            return kept

        self.assertTrue(self.text(driver, "counts").startswith("500 domains, "))
        self.set(driver, best=True)
        expected = [chosen.count('"kept": true'), best(made[1][1])]
        included = sum(domain["included"] and hit["included"] for _, targets in made for target in targets
                       for hit in target["hits"] for domain in hit["domains"])
        self.assertLess(sum(expected), included)
        self.assertIn(f"Shown: {sum(expected)} of 500 domains", self.text(driver, "counts"))
        for result, number in enumerate(expected):
            self.set(driver, result=str(result))
            self.assertIn(f"Shown: {number} of 500 domains", self.text(driver, "counts"))
        # Models without hits are shown on demand.
        self.set(driver, best=False, result="1")
        self.show(driver, "models")
        rows = "return Number(document.querySelector('#models .scroller').getAttribute('aria-rowcount')) - 1"
        models, targets = made[1]
        with_hits = {models[hit["model"]]["name"] for target in targets for hit in target["hits"]}
        self.assertEqual(driver.execute_script(rows), len(with_hits))
        self.set(driver, empty=True)
        self.assertEqual(driver.execute_script(rows),
                         len({model["name"] for some, _ in made for model in some}))
        # The heat map has a cell for each result and model; pictures are complete files.
        self.set(driver, empty=False, result="-1")
        self.show(driver, "overview")
        titles = driver.execute_script("return [...document.querySelectorAll('#figures .save')].map(b => b.title)")
        self.assertGreater(len(titles), 3)
        # A threshold is a line without a number: the result does not tell it.
        after = driver.execute_script("return [...document.querySelectorAll('.threshold')].map(line => line.nextSibling)")
        self.assertEqual(set(after), {None})
        for number, title in enumerate(titles):
            name = re.sub(r"[^A-Za-z0-9._-]+", "_", title[len("Save "):-len(" as SVG")]) + ".svg"
            picture = xml.etree.ElementTree.parse(
                self.saved(driver, name, f"#figures figure:nth-of-type({number + 1}) .save")).getroot()
            self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertGreater(float(picture.get("width")), 100)
            self.assertTrue(all(node.get("fill") for node in picture.iter("{http://www.w3.org/2000/svg}rect")))
        self.show(driver, "proteins")
        title = driver.find_element("css selector", "#protein-list .save").get_attribute("title")
        name = title[len("Save "):-len(" as SVG")]
        picture = xml.etree.ElementTree.parse(
            self.saved(driver, re.sub(r"[^A-Za-z0-9._-]+", "_", name) + ".svg", "#protein-list .save")).getroot()
        texts = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(texts[0], name)
        self.no_messages(driver)

    def test_keyboard_alignment_and_links(self):
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys
        driver = self.browser()
        self.open(driver, self.page(1000))
        tab = driver.find_element(By.ID, "tab-overview")
        tab.send_keys(Keys.ARROW_RIGHT)
        driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(driver.switch_to.active_element.get_attribute("id"), "tab-domains")
        grid = driver.find_element(By.CSS_SELECTOR, "#domains .scroller")
        grid.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.END)
        active = grid.get_attribute("aria-activedescendant")
        self.assertEqual(active, "domains-row-999")
        self.assertTrue(driver.find_element(By.ID, active).is_displayed())
        grid.send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ENTER)
        dialog = driver.find_element(By.ID, "detail")
        self.assertTrue(dialog.is_displayed())
        target, hit, domain = self.flat()[1]
        self.assertIn(target["name"], self.text(driver, "detail-title"))
        self.wait(lambda: driver.find_elements(By.CSS_SELECTOR, "#detail pre"), "no alignment")
        block = driver.find_element(By.CSS_SELECTOR, "#detail pre").get_attribute("textContent")
        rows = [line.split() for line in block.split("\n") if "_TEST" in line]
        self.assertEqual("".join(row[2] for row in rows), domain["alignment"]["target"])
        self.assertEqual((int(rows[0][1]), int(rows[-1][3])), (domain["ali_from"], domain["ali_to"]))
        links = [link.get_attribute("href") for link in dialog.find_elements(By.CSS_SELECTOR, "a")]
        self.assertIn("https://www.uniprot.org/uniprotkb/" + target["name"].split("|")[1], links)
        accession = self.models[hit["model"]]["accession"]
        if accession:
            self.assertIn(f"https://www.ebi.ac.uk/interpro/entry/pfam/{accession.split('.')[0]}/", links)
        dialog.send_keys(Keys.ARROW_RIGHT)
        self.assertIn(self.flat()[2][0]["name"], self.text(driver, "detail-title"))
        dialog.send_keys(Keys.ESCAPE)
        self.assertFalse(dialog.is_displayed())
        # All domains of a model, aligned at the positions of the model.
        self.show(driver, "stack")
        chosen = int(driver.execute_script("return document.getElementById('stack-model').value"))
        of_model = [(target, domain) for target, hit, domain in self.flat() if hit["model"] == chosen]
        want = " " * (of_model[0][1]["hmm_from"] - 1) + of_model[0][1]["alignment"]["target"]
        row = ("return [...document.querySelector('#stack .rows').firstChild.childNodes].slice(1)"
               ".map(node => node.textContent).join('')")
        self.wait(lambda: driver.execute_script(row) == want, want)
        self.assertIn(f"{len(of_model)} domain", self.text(driver, "stack-note"))
        driver.find_element(By.CSS_SELECTOR, "#stack .rows [role=button]").send_keys(Keys.ENTER)
        self.assertTrue(dialog.is_displayed())
        self.assertIn(of_model[0][0]["name"], self.text(driver, "detail-title"))
        self.no_messages(driver)

    def test_a_frame_without_an_address(self):
        driver = self.browser()
        with open(self.page(20)) as file:
            driver.execute_script("const frame = document.createElement('iframe'); frame.srcdoc = arguments[0];"
                                  "document.body.append(frame)", file.read())
        driver.switch_to.frame(0)
        self.ready(driver)
        self.no_messages(driver)

    def test_print_has_all_rows(self):
        driver = self.browser()
        self.open(driver, self.page(200))
        self.show(driver, "domains")
        driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(len(self.cells(driver)), 200)
        driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
        self.assertLess(len(self.cells(driver)), 100)
        pages = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"]).count(b"/Type /Page\n")
        self.assertGreater(pages, 2)

    def overlapping(self, name, length, envelopes):
        """A page of one protein with these envelopes of one model, the best first."""
        result, page = self.path(name + ".json"), self.path(name + ".html")
        domains = [{"number": n + 1, "included": True, "c_evalue": 1e-9, "i_evalue": 1e-60 * (n + 1), "score": 30.5,
                    "bias": 0.1, "hmm_from": 1, "hmm_to": 9, "ali_from": start, "ali_to": end, "env_from": start,
                    "env_to": end, "accuracy": 0.9} for n, (start, end) in enumerate(envelopes)]
        with open(result, "w") as file:
            for line in (
                    {"record": "model", "index": 0, "name": "Many", "accession": None, "description": "", "length": 9,
                     "Z": 1, "domZ": 1, "targets": 1, "residues": length, "targets_reported": 1,
                     "targets_included": 1, "passed": {"msv": 1, "bias": 1, "viterbi": 1, "forward": 1}},
                    {"record": "target", "model": "Many", "model_index": 0, "name": "protein", "accession": None,
                     "description": "", "index": 0, "length": length, "evalue": 1e-60, "score": 99.5, "bias": 0.5,
                     "included": True, "domains": domains},
                    {"record": "run", "program": "hmmjit search", "version": "0", "model_file": "m",
                     "target_file": "t", "options": "hmmjit search m t", "folder": "/", "date": "today", "models": 1,
                     "targets": 1, "residues": length, "targets_reported": 1, "targets_included": 1,
                     "domains_reported": len(domains), "domains_included": len(domains)}):
                file.write(json.dumps(line) + "\n")
        ok(scenario.run([scenario.program, "report", result, "-o", page]))
        return page

    def test_boxes_that_overlap_are_below_one_another(self):
        driver = self.browser()
        rng = random.Random(SEED)
        envelopes = [(start, start + rng.randrange(0, 90)) for start in (rng.randrange(1, 900) for _ in range(300))]
        self.open(driver, self.overlapping("some", 1000, envelopes))
        self.show(driver, "proteins")
        lanes = driver.execute_script("return [...laneOf]")
        # From left to right, each on the first free lane.
        ends, wanted = [], [0] * len(envelopes)
        for d in sorted(range(len(envelopes)), key=lambda d: (envelopes[d][0], d)):
            start, end = envelopes[d]
            free = [lane for lane, taken in enumerate(ends) if taken < start]
            lane = free[0] if free else len(ends)
            ends[lane:lane + 1] = [end]
            wanted[d] = lane
        self.assertLessEqual(len(ends), 40)
        self.assertGreater(len(ends), 10)
        self.assertEqual(lanes, wanted)
        self.assertEqual(len(driver.execute_script("return [...document.querySelectorAll('.box')]")), 300)
        # Too many to draw: the page draws the best and offers a list of all.
        number = 200000
        envelopes = [(1 + n % 7, 900 - n % 5) for n in range(number)]
        self.open(driver, self.overlapping("many", 1000, envelopes))
        begun = time.monotonic()
        self.show(driver, "proteins")
        self.assertEqual(driver.execute_script("return lanesOf[0]"), 40)
        seconds = time.monotonic() - begun
        print(f"{number} overlapping domains laid out in {seconds:.2f} s")
        self.assertLess(seconds, LONGEST_SECONDS)
        drawn = driver.execute_script("return [...laneOf].flatMap((lane, d) => lane < 0 ? [] : [[lane, d]])")
        self.assertEqual(sorted(lane for lane, _ in drawn), list(range(40)))
        self.assertEqual(sorted(d for _, d in drawn), list(range(40)))  # the best ones
        more = driver.execute_script("return document.querySelector('.more').textContent")
        self.assertIn("199,960 domains of higher E-value not drawn", more)
        driver.execute_script("document.querySelector('.more button').click()")
        self.assertIn("200,000 domains", self.text(driver, "counts"))
        self.assertEqual(driver.execute_script("return document.querySelector('#domains').hidden"), False)
        self.assertGreater(len(self.cells(driver)), 10)
        self.no_messages(driver)

    def test_hundred_thousand_domains(self):
        page = self.page(100000, alignments=False)
        size = os.path.getsize(page)
        print(f"page of 100,000 domains: {size / 1e5:.0f} bytes a domain")
        self.assertLess(size, 150 * 100000)
        self.driver = self.started()  # whose process has used no time before
        self.addCleanup(self.driver.quit)
        driver = self.browser()
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        clock = self.open(driver, page)
        load = self.processor_seconds(driver)
        self.assertIn("100,000 domains", self.text(driver, "counts"))
        self.show(driver, "domains")
        sorts, sort_clocks = [], []
        for column in (0, 1, 7, 8, 7):
            begun = self.processor_seconds(driver)
            sort_clocks.append(driver.execute_script("""
                const begun = performance.now();
                document.querySelectorAll("#domains .head button")[arguments[0]].click();
                document.body.offsetHeight;
                return (performance.now() - begun) / 1000;""", column))
            sorts.append(self.processor_seconds(driver) - begun)
        self.show(driver, "proteins")
        nodes = driver.execute_script("return document.querySelectorAll('*').length")

        def listed(values):
            return ", ".join(f"{value:.2f}" for value in values)
        print(f"read in {load:.2f} s of processor time ({clock:.2f} s of the clock), sorted in {listed(sorts)} s "
              f"({listed(sort_clocks)} s), {nodes} elements")
        self.assertGreater(load, 0.05, "the browser does not say what time it took")
        self.assertLess(load, LOAD_SECONDS)
        self.assertLess(max(sorts), SORT_SECONDS)
        self.assertLess(clock, LONGEST_SECONDS)
        self.assertLess(nodes, 6000)
        # Scroll to the last row.
        driver.execute_script("const list = document.querySelector('#domains .scroller');"
                              "document.getElementById('tab-domains').click(); list.scrollTop = list.scrollHeight")
        driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        last = max((domain["i_evalue"], target["name"]) for target, _, domain in self.flat())
        least = min((domain["i_evalue"], target["name"]) for target, _, domain in self.flat())
        self.assertIn(self.cells(driver)[-1][0], ("\u2197 " + last[1], "\u2197 " + least[1]))
        self.no_messages(driver)


if __name__ == "__main__":
    scenario.main()
