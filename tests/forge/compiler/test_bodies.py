from __future__ import annotations

import re
from typing import Any

from forge.design import design
from forge.openapi import read
from forge.render import render
from forge.xmlbody import hint, root_name
from tests.forge.samples import api

PETS = """
components:
  schemas:
    Pet:
      type: object
      xml: {name: pet, namespace: 'urn:pets', prefix: p}
      properties:
        id: {type: integer, xml: {attribute: true}}
        name: {type: string}
        tags:
          type: array
          xml: {name: tagList, wrapped: true}
          items: {type: string, xml: {name: tag}}
        photos: {type: array, xml: {wrapped: true}, items: {type: string}}
        mother: {$ref: '#/components/schemas/Pet'}
"""
PATHS = """
/pets:
  post: {requestBody: {required: true, content: {application/xml: {schema: SCHEMA}}}}
"""
PET = "{$ref: '#/components/schemas/Pet'}"


def schemas() -> Any:
    return read(api(PATHS.replace("SCHEMA", PET), PETS)).spec.schemas


def test_names_attributes_wrappers_and_namespaces_come_from_the_document() -> None:
    told = hint({"$ref": "#/$defs/Pet"}, schemas())
    assert (told["name"], told["namespace"]) == ("p:pet", "urn:pets")
    assert told["fields"]["id"] == {"attribute": True}
    assert told["fields"]["tags"] == {"name": "tag", "wrapper": "tagList"}
    assert told["fields"]["photos"] == {"wrapper": ""}
    assert "name" not in told["fields"]


def test_the_root_is_called_as_its_schema() -> None:
    found = schemas()
    assert root_name({"$ref": "#/$defs/Pet"}, found) == "pet"
    assert root_name({"type": "object"}, found) == "root"


def test_a_list_has_a_root_around_it() -> None:
    told = hint({"type": "array", "items": {"$ref": "#/$defs/Pet"}}, schemas())
    assert (told["wrapper"], told["name"]) == ("root", "p:pet")


def test_a_schema_that_holds_itself_ends() -> None:
    told: Any = hint({"$ref": "#/$defs/Pet"}, schemas())
    depth = 0
    while "mother" in told.get("fields", {}):
        told, depth = told["fields"]["mother"], depth + 1
    assert 0 < depth < 10


def test_the_code_hands_the_body_over_with_what_the_document_says_of_it() -> None:
    source = render(design(read(api(PATHS.replace("SCHEMA", PET), PETS)).spec))
    assert re.search(r"text=xml_text\(\s*body,\s*\"pet\",\s*\{", source)
    assert 'content_type="application/xml"' in source
    compile(source, "server.py", "exec")
