# SPDX-License-Identifier: Apache-2.0
"""Pages of the lab: blocks of text, tables and plots, written as HTML and as Markdown."""

from .blocks import Block, Command, Heading, Notice, Picture, Table, Text

__all__ = ["Block", "Command", "Heading", "Notice", "Picture", "Table", "Text"]
