package httpapi

import "strings"

// previewQuery is the query string of a POST that asks for a preview of its message
// instead of sending it.
const previewQuery = "preview"

// isPreview reports whether a query string asks for a preview. It may have a token
// besides, and nothing else.
func isPreview(query string) bool {
	if token, rest, ok := strings.Cut(query, "&"); ok && strings.HasPrefix(token, tokenQuery+"=") {
		query = rest
	}
	return query == previewQuery
}
