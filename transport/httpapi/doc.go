// Package httpapi is the HTTP door: the routes under /v1 and the few about the service itself.
//
// openapi.yaml is the contract. The routes, their types and the Go client are generated from it; what it says of
// parameters and bodies is checked here, before a handler sees the request, and its x-scopes decide who may call what.
// Every error leaves through one table (problems.go) as application/problem+json.
//
// The package knows the domain packages and no database. What it needs of them are the small interfaces beside the
// handlers that call them; cmd/allocator wires them. Handlers know neither echo nor HTTP: they turn a decoded request
// into a call of a service and its answer into a response.
package httpapi

//go:generate ../../bin/oapi-codegen -config oapi-server.yaml openapi.yaml
//go:generate ../../bin/oapi-codegen -config oapi-client.yaml openapi.yaml
