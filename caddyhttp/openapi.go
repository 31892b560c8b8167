package caddyhttp

import (
	_ "embed"
	"net/http"
	"strconv"
)

// openAPI describes the HTTP API (OpenAPI 3.1). Its server is relative to its
// own address, so that it holds below every prefix.
//
//go:embed openapi.json
var openAPI []byte

// openAPIName stands in the path where a key may stand. No key has that name,
// since none has a dot.
const openAPIName = "openapi.json"

// describe answers with the description of the API.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request) *answer {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return refuse(http.StatusMethodNotAllowed, "only GET is possible here").answer()
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(openAPI)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(openAPI) // an error means that the client has gone
	}
	return nil
}
