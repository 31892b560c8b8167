package api

import (
	"bytes"
	_ "embed"
	"net/http"
	"strconv"
)

// openAPI describes the HTTP API (OpenAPI 3.1). Its server is relative to its own
// address, so that it is right below every prefix.
//
//go:embed openapi.json
var openAPI []byte

// openAPIVersion is the placeholder in openapi.json for the version of the module.
const openAPIVersion = "VERSION"

// ServeOpenAPI writes the description of the HTTP API, with the version of the
// module. For methods other than GET and HEAD it returns a 405 instead.
func ServeOpenAPI(w http.ResponseWriter, r *http.Request, version string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET", r.Method)
	}
	text := bytes.Replace(openAPI, []byte(openAPIVersion), []byte(version), 1)
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // it fails only if the client is gone
	}
	return nil
}
