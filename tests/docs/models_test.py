#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/MODELS.md names every page of docs/models and every section of it, and what sources call `docs/MODELS.md, "X"` is one of
them. Links between pages lead somewhere. Argument: the source folder."""
import pathlib
import re
import sys


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    docs = source / "docs"
    index = (docs / "MODELS.md").read_text()
    failures, sections = [], set()
    pages = sorted((docs / "models").glob("*.md"))
    for page in pages:
        if f"(models/{page.name})" not in index:
            failures.append(f"docs/MODELS.md has no link to {page.name}")
        for title in re.findall(r"(?m)^#{1,3} (.+)$", page.read_text()):
            sections.add(title)
            if title not in index:
                failures.append(f"docs/MODELS.md does not name '{title}' of {page.name}")
    for page in (docs / "MODELS.md", *pages):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", page.read_text()):
            if not (page.parent / target).exists():
                failures.append(f"{page.name}: the link to {target} leads nowhere")
    if len(pages) < 8:
        failures.append(f"only {len(pages)} pages")
    for folder in ("sim", "models", "calibration"):
        for path in (source / folder).rglob("*"):
            if path.suffix not in (".cpp", ".hpp", ".yaml"):
                continue
            for name in re.findall(r'docs/MODELS\.md, "([^"]+)"', path.read_text(errors="replace")):
                if not any(name in title for title in sections):
                    failures.append(f"{path.relative_to(source)}: docs/MODELS.md has no section '{name}'")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
