package httpapi

import (
	"fmt"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// tokens makes and removes the tokens of saved keys: /cfg/{KEY}/token.
type tokens struct{ *Base }

// oldQuery is the query parameter of a POST that removes the older tokens of a key like DELETE,
// which the form of the page cannot send.
const oldQuery = "old"

// NewToken is the JSON of a new token.
type NewToken struct {
	Token string `json:"token"`
	Count int    `json:"count"` // number of tokens of the key
}

// changeTokens makes a token of a saved key or removes the older ones.
func (h *tokens) changeTokens(w http.ResponseWriter, r *http.Request, name string) error {
	if r.Method == http.MethodDelete || r.URL.Query().Has(oldQuery) {
		return h.removeOldTokens(w, r, name)
	}
	token, count, err := h.Changes(r).NewToken(r.Context(), name)
	if err != nil {
		return err
	}
	switch {
	case api.PrefersJSON(r):
		return WriteJSON(w, http.StatusOK, NewToken{token, count})
	case h.Has.Console && api.PrefersHTML(r):
		return h.pages.NewToken(w, r, name, token, count)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(token + "\n")) // it fails only if the client is gone
	return nil
}

// removeOldTokens removes all tokens of a saved key but the newest.
func (h *tokens) removeOldTokens(w http.ResponseWriter, r *http.Request, name string) error {
	removed, err := h.Changes(r).RemoveOldTokens(r.Context(), name)
	if err != nil {
		return err
	}
	writeChanged(w, r, name, "Tokens removed", "Removed "+countTokens(removed), nil)
	return nil
}

// countTokens returns "1 token" or "2 tokens".
func countTokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}
