// Package wire is what goes over the wire: the requests, answers and routes generated from the OpenAPI document of
// package httpapi. Nothing in it is written by hand but this comment.
package wire
