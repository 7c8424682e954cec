# SPDX-License-Identifier: Apache-2.0
"""The pages of the site, and checks of the finished ones. `./dev site` runs this.

    python3 tools/site pages FOLDER PROGRAM    make the sources of all pages
    python3 tools/site comments FOLDER         complete the XML that doxygen wrote
    python3 tools/site check FOLDER            check the HTML
    python3 tools/site self-test
"""

import pathlib
import sys

import check_html
import comments
import contrast
import links
import pages
import self_test


def make(folder, program):
    try:
        print(f"{pages.write(pathlib.Path(folder), program)} pages")
    except links.LinkError as error:
        print(error)
        return 1
    return 0


def check(folder):
    root = pathlib.Path(folder)
    found = [*check_html.findings(root), *contrast.findings(root)]
    print(*found, sep="\n", end="\n" if found else "")
    n_links = sum(len(page.links) for page in check_html.read(root).values())
    print(f"{n_links} links, {len(found)} findings")
    return 1 if found else 0


def main():
    match sys.argv[1:]:
        case ["pages", folder, program]:
            return make(folder, program)
        case ["comments", folder]:
            return comments.write(pathlib.Path(folder))
        case ["check", folder]:
            return check(folder)
        case ["self-test"]:
            return self_test.run()
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
