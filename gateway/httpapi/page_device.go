package httpapi

import "net/http"

// isInvited reports whether a request is for the page on which an invitation is used. It
// is for nothing else, and no beat, because a matcher leaves it to phones without a login.
func isInvited(r *http.Request) bool {
	// Caddy's query matcher decodes names, too.
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.RawQuery != "" && r.URL.Query().Has(InviteQuery)
}
