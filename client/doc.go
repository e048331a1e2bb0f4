// Package client calls Allocator over HTTP: the calls and types are generated from the OpenAPI document, and New adds
// the API key and turns every error answer into a Problem that callers can tell apart by its code.
//
// It imports nothing of this module, so that it can be used outside of it.
package client
