#!/usr/bin/env python3
"""Checks the lines of each folder (count_lines.py, column `all`) against tests/layering/budget.txt.

usage: budget.py SOURCE_DIR                       fail where a folder exceeds its budget
       budget.py SOURCE_DIR --raise FOLDER REASON  add a line for the lines that are missing
       budget.py SOURCE_DIR --update              lower budgets to the lines of today

A folder may have the lines of its entry, those of the `+` lines below it, and SLACK more: small changes need no entry.
"""
import os
import sys

import count_lines

SLACK = 100


def read(path):
    """folder -> [(lines, reason)]; the first entry is the folder's own and has no reason."""
    budget, folder = {}, None
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split(None, 2)
            if not words or words[0] == "#":
                continue
            if words[0] == "+":
                budget[folder].append((int(words[1]), words[2].strip()))
            else:
                folder = words[0]
                budget[folder] = [(int(words[1]), "")]
    return budget


def write(path, budget):
    with open(path, encoding="ascii") as file:
        text = "".join(line for line in file if line.startswith("#"))
    for folder, entries in sorted(budget.items()):
        text += f"\n{folder} {entries[0][0]}\n" + "".join(f"  + {lines} {reason}\n" for lines, reason in entries[1:])
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main():
    if len(sys.argv) < 2 or len(sys.argv) == 3 and sys.argv[2] != "--update" or len(sys.argv) == 4:
        print(__doc__)
        return 2
    root = sys.argv[1]
    path = os.path.join(root, "tests", "layering", "budget.txt")
    lines = {folder: counted[1] for folder, counted in count_lines.rows(root).items()}
    budget = read(path)

    def allowed(folder):
        return sum(number for number, _ in budget.get(folder, []))

    if sys.argv[2:] == ["--update"]:
        # A reason is deleted with its lines.
        budget = {folder: entries if allowed(folder) < lines[folder] else [(lines[folder], "")]
                  for folder, entries in budget.items() if folder in lines}
        write(path, budget)
    elif sys.argv[2:3] == ["--raise"]:
        folder, reason = sys.argv[3], " ".join(sys.argv[4:])
        if lines.get(folder, 0) <= allowed(folder):
            print(f"{folder} is within its budget")
            return 1
        budget.setdefault(folder, [(0, "")]).append((lines[folder] - allowed(folder), reason))
        write(path, budget)
    status = 0
    for folder, number in sorted(lines.items()):
        if number > allowed(folder) + SLACK:
            print(f"{folder}: {number} lines, budget {allowed(folder)} and {SLACK}. Remove lines, or give the reason: "
                  f"tests/layering/budget.py . --raise {folder} \"reason\"")
            status = 1
    print(f"{sum(lines.values())} lines in {len(lines)} folders, budget {sum(map(allowed, budget))}")
    return status if lines else 1


if __name__ == "__main__":
    sys.exit(main())
