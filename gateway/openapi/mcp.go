package openapi

import "net/http"

// MCP describes /notify/{KEY}/mcp.
func MCP() About {
	return About{Operations: []Operation{{
		Method: http.MethodPost, ID: "callMCP", Tag: ofMessages, Secrets: WithToken,
		Summary: "Use a key as an agent (a site with mcp on)",
		Description: "A server of the Model Context Protocol (https://modelcontextprotocol.io), by streamable HTTP and without sessions, with " +
			"the tools `notify`, `ask`, `answer` and `resolve`. It needs a token of the key, and accepts `application/json` and " +
			"`text/event-stream`.",
		Body: &Body{Content: map[string]Media{mediaJSON: {Schema: described(object(nil), "A message of JSON-RPC 2.0.")}}},
		Answers: map[int]Answer{
			http.StatusOK:                 says("The answer, a message of JSON-RPC 2.0.", map[string]Schema{mediaJSON: object(nil)}),
			http.StatusBadRequest:         result("The request has several calls, or none."),
			http.StatusUnauthorized:       unauthorized("The token of the key is missing or wrong."),
			http.StatusForbidden:          result("A page of another site has sent the request, or the key has no token."),
			http.StatusServiceUnavailable: result("Too many messages are under way; try again after `Retry-After`."),
		},
	}}}
}
