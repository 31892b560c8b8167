package api

import (
	_ "embed"
	"encoding/json"
)

// components describes, in OpenAPI 3.1, the bodies, parameters and headers that several routes
// share.
//
//go:embed components.json
var components []byte

// Components returns the shared components of the OpenAPI description: the schemas of requests and
// responses, and the parameters that every message can have.
func Components() json.RawMessage { return components }
