#!/usr/bin/env python3
"""What count_lines.py counts, in two small trees."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count_lines.py")


def tree(root, files):
    for path, text in files.items():
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)


def table(*roots):
    run = subprocess.run([SCRIPT, *roots], check=False, capture_output=True, text=True)
    names = ("engine/gpu", "cache", "tools/hmmjit", "all but tests", "in all")
    return run.returncode, {name: [int(word) for word in line[len(name):].split()]
                            for line in run.stdout.splitlines() for name in names if line.startswith(name + " ")}


class CountLines(unittest.TestCase):
    def test_code_comments_and_differences(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            tree(one, {"engine/gpu/a.cpp": "// what\nint a;  // one\n\n/* two\nlines */ int b;\n/* one */\n",
                       "engine/gpu/notes.txt": "no code\n", "cache/CMakeLists.txt": "# what\nadd(a)\n"})
            tree(two, {"engine/gpu/a.cpp": "int a;\n", "tools/hmmjit/b/main.py": "import a\n\n# b\n",
                       "tests/a.hpp": "int a;\n", "build/a.cpp": "int a;\n"})
            self.assertEqual(table(one), (0, {"engine/gpu": [2, 6], "cache": [1, 2], "all but tests": [3, 8], "in all": [3, 8]}))
            self.assertEqual(table(one, two), (0, {
                "engine/gpu": [2, 6, 1, 1, -1, -5], "cache": [1, 2, 0, 0, -1, -2], "tools/hmmjit": [0, 0, 1, 3, 1, 3],
                "all but tests": [3, 8, 2, 4, -1, -4], "in all": [3, 8, 3, 5, 0, -3]}))

    def test_a_folder_without_code(self):
        with tempfile.TemporaryDirectory() as one:
            self.assertEqual(table(one)[0], 1)


if __name__ == "__main__":
    unittest.main()
