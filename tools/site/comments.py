# SPDX-License-Identifier: Apache-2.0
"""Changes to the XML that doxygen writes.

Members can be declared together: `uint32_t rank, world; /**< default 0 of 1 */`. Doxygen gives the
comment to one of them; the others get it here. And it takes a word such as https:// for a link."""

import copy
import re
import xml.etree.ElementTree as ElementTree

HOST = re.compile(r"https?://[^/]+\.")
DESCRIPTIONS = ("briefdescription", "detaileddescription")


def declaration(member):
    """What members of one declaration have in common: their line."""
    return member.find("location").get("line")


def text(member):
    return "".join(part for name in DESCRIPTIONS for part in member.find(name).itertext()).strip()


def share(tree):
    """Copies comments to members without one. Returns how many there were."""
    n_shared = 0
    for section in tree.iter("sectiondef"):
        members = [member for member in section.findall("memberdef")
                   if member.get("kind") == "variable"]
        commented = {declaration(member): member for member in members if text(member)}
        for member in members:
            source = commented.get(declaration(member))
            if source is None or text(member):
                continue
            for name in DESCRIPTIONS:
                member.find(name)[:] = copy.deepcopy(list(source.find(name)))
            n_shared += 1
    return n_shared


def unlink(tree):
    """Makes links without a host plain text. Returns how many there were."""
    links = [link for link in tree.iter("ulink") if not HOST.match(link.get("url"))]
    for link in links:
        link.tag = "computeroutput"
        link.attrib.clear()
    return len(links)


def write(folder):
    """Changes the files that doxygen wrote to the folder."""
    for path in sorted(folder.glob("*.xml")):
        tree = ElementTree.parse(path)
        if share(tree) + unlink(tree):
            tree.write(path, encoding="utf-8", xml_declaration=True)
