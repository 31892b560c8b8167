package api

import (
	_ "embed"
	"encoding/json"
)

// components are what the description of the HTTP API (OpenAPI 3.1) says of bodies, parameters
// and headers that several routes have in common.
//
//go:embed components.json
var components []byte

// Components returns the components of the description of the HTTP API: the schemas of the
// requests and responses of this package, and the parameters that every message can have.
func Components() json.RawMessage { return components }
