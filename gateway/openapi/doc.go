// Package openapi describes the HTTP API. It has a function for each route, with what the
// table of routes does not say: summaries, parameters, bodies and answers. [Document] makes
// the document (OpenAPI 3.1) of the table and these.
package openapi
