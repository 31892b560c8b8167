package caddyhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// description is the description of the API in OpenAPI 3.1.
type description struct{ root map[string]any }

func readDescription(t *testing.T) *description {
	t.Helper()
	document := do(t, newGateway(t, "", ""), httptest.NewRequest(http.MethodGet, "/notify/openapi.json", nil))
	d := &description{}
	if err := json.Unmarshal([]byte(document.body), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at returns the part of the document at a path, following references, or nil.
func (d *description) at(place ...string) map[string]any {
	here := d.root
	for _, name := range place {
		here, _ = here[name].(map[string]any)
		if ref, ok := here["$ref"].(string); ok && here["type"] == nil {
			here = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return here
}
