// Package strictjson reads the JSON of requests and holds it against a schema, forgiving nothing and listing every
// fault at once.
//
// Decoders that are made to be convenient take repeated and differently spelled keys, turn broken UTF-8 into other
// text, round large numbers and stop at the first fault. A reservation must not be made from what somebody did not
// mean. The sentences of a Fault are for the caller: they never show a schema, a pattern or a Go type.
//
// The package knows no route and no resource. Schemas are compiled once from the OpenAPI document; a keyword that this
// package does not check is refused then, so that the document cannot promise what nobody holds.
package strictjson
