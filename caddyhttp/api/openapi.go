package api

import (
	_ "embed"
	"net/http"
	"strconv"
)

// openAPI describes the HTTP API (OpenAPI 3.1). Its server is relative to its
// own address, so that it is right below every prefix.
//
//go:embed openapi.json
var openAPI []byte

// ServeOpenAPI writes the description of the HTTP API. For methods other than
// GET and HEAD it returns a 405 instead.
func ServeOpenAPI(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET", r.Method)
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(openAPI)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(openAPI) // it fails only if the client is gone
	}
	return nil
}
