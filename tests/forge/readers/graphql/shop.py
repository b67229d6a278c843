"""A GraphQL API with what real ones have: connections, unions, interfaces, input objects, enums."""

from __future__ import annotations

import json
from typing import Any

from graphql import GraphQLSchema, build_schema, graphql_sync, introspection_from_schema

from forge.compiler.compile import Compilation, compile_document
from forge.readers.document import parse_document

SDL = '''
"""A moment, as RFC 3339 writes it."""
scalar DateTime
enum Status { OPEN SHIPPED CANCELLED }
interface Node { id: ID! }
type User implements Node {
  id: ID! name: String! age: Int orders(first: Int): OrderConnection! best: User
}
type Item { sku: String! price: Float! picture(size: Int!): String tags: [String!]! }
type Order implements Node { id: ID! status: Status! at: DateTime items: [Item!]! buyer: User! }
type OrderConnection { edges: [OrderEdge!]! nodes: [Order!]! pageInfo: PageInfo! totalCount: Int! }
type OrderEdge { cursor: String! node: Order! }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type Note { id: Int! text: String }
union Found = User | Order | Note
input ItemInput { sku: String! count: Int! = 1 note: String more: ItemInput }
type OrderPayload { order: Order problems: [String!]! }
type Query {
  "One user by id."
  user(id: ID!): User
  orders(first: Int = 10, after: String, status: [Status!]): OrderConnection!
  node(id: ID!): Node
  search(text: String!): [Found!]!
  version: String!
  refreshCache: Boolean
  old: Int @deprecated
}
type Mutation {
  createOrder(items: [ItemInput!]!, note: String): OrderPayload!
  user(id: ID!, name: String): User
}
'''


def schema() -> GraphQLSchema:
    return build_schema(SDL)


def introspection() -> dict[str, Any]:
    """As tools save it."""
    return {"data": dict(introspection_from_schema(schema()))}


def compiled(told: Any = None, base_url: str = "https://shop.example/graphql") -> Compilation:
    text = json.dumps(introspection() if told is None else told)
    return compile_document(parse_document(text.encode(), "schema.json"), base_url=base_url)


def answered(document: str, variables: dict[str, Any], root: Any) -> dict[str, Any]:
    """What a real GraphQL engine makes of a request, over these values."""
    said = graphql_sync(schema(), document, root_value=root, variable_values=variables)
    return dict(said.formatted)
