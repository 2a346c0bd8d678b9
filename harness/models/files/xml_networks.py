"""Bayesian networks in XML: the interchange format (`.xmlbif`, `.xml`), version 0.3, and GeNIe's (`.xdsl`).

Files are untrusted: no entity is declared, nothing outside the file is read, and elements are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from spinbench.errors import ModelError
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.networks import NamedTable, add_variable, build_network

# Largest number of elements: a file of 64 MiB with the shortest elements would take gigabytes.
MAX_ELEMENTS = 2**21


class XMLBIF(Format):
    """Each table a factor over the variables that are given, in this order, and the one that it is for."""

    suffixes = (".xmlbif", ".xml", ".bifxml")
    summary = "Bayesian networks in XML"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        return _begins_as_xml(head) and b"<BIF" in head

    def read(self, file: ModelFile) -> FactorGraph:
        root = parse_xml(file, "BIF")
        states: dict[str, tuple[str, ...]] = {}
        for variable in root.iter("VARIABLE"):
            if variable.get("TYPE", "nature") != "nature":
                raise ModelError(f"{file.name}: a variable is of type {variable.get('TYPE')!r:.40}; nature is read")
            add_variable(file, states, " ".join(_texts(variable, "NAME")), _texts(variable, "OUTCOME"))
        tables = (
            NamedTable(" ".join(_texts(each, "FOR")), _texts(each, "GIVEN"), " ".join(_texts(each, "TABLE")))
            for each in root.iter("DEFINITION")
        )
        return build_network(file, states, tables)


class XDSL(Format):
    """GeNIe's networks of chance nodes and deterministic ones; nodes are labelled by their identifiers."""

    suffixes = (".xdsl",)
    summary = "GeNIe's Bayesian networks"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        return _begins_as_xml(head) and b"<smile" in head

    def read(self, file: ModelFile) -> FactorGraph:
        root = parse_xml(file, "smile")
        nodes = [node for part in root.findall("nodes") for node in part]
        parts = [each.tag for each in (*nodes, *root.findall("dynamic"))]
        if others := [tag for tag in parts if tag not in ("cpt", "deterministic")]:
            raise ModelError(f"{file.name}: an element is {others[0]!r:.40}; cpt and deterministic nodes are read")
        states: dict[str, tuple[str, ...]] = {}
        for node in nodes:
            add_variable(file, states, node.get("id", ""), (each.get("id", "") for each in node.findall("state")))
        return build_network(file, states, self._tables(nodes, states))

    @staticmethod
    def _tables(nodes: list[Element], states: dict[str, tuple[str, ...]]) -> Iterator[NamedTable]:
        for node in nodes:
            name = node.get("id", "")
            numbers = node.findtext("probabilities") or ""
            if node.tag == "deterministic":
                results = (node.findtext("resultingstates") or "").split()
                numbers = " ".join(str(int(state == result)) for result in results for state in states[name])
            yield NamedTable(name, (node.findtext("parents") or "").split(), numbers)


def parse_xml(file: ModelFile, tag: str) -> Element:
    """The root of a file, which has this tag.

    Raises:
        ModelError: it is no such XML, declares an entity, or has more than `MAX_ELEMENTS` elements.
    """
    builder, count = TreeBuilder(), 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS:
            raise ModelError(f"{file.name}: there are more than {MAX_ELEMENTS} elements")
        builder.start(name, attributes)

    def refuse(name: str, *_: object) -> None:
        raise ModelError(f"{file.name}: the entity {name!r:.40} is not of XML itself; no other is read")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(file.data.strip(), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ModelError(f"{file.name}, line {error.lineno}: this is not XML ({reason})") from None
    except ModelError:
        raise
    except (LookupError, ValueError) as error:
        # The encoding that the file names is unknown or does not match.
        raise ModelError(f"{file.name}: this XML cannot be read ({error!s:.80})") from None
    root = builder.close()
    if root.tag != tag:
        raise ModelError(f"{file.name}: the XML is of {root.tag!r:.40}; {tag!r} is needed")
    return root


def _begins_as_xml(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"


def _texts(element: Element, tag: str) -> tuple[str, ...]:
    """The texts of an element's parts, blanks as one."""
    return tuple(" ".join("".join(each.itertext()).split()) for each in element.findall(tag))
