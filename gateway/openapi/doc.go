// Package openapi describes the HTTP API. It has a function for each route with what the table of
// routes lacks: summary, parameters, bodies and answers. [Document] combines the table and these
// into a document (OpenAPI 3.1).
package openapi
