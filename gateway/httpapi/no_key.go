package httpapi

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/similar"
)

// nextForKey says what to do about the key of a request that does not exist. Only those who may manage
// learn which keys there are.
func (h *API) nextForKey(r *http.Request, at *Route) string {
	const check = "check its name, also upper and lower case"
	name := at.Key
	if h.MayManage(r) != nil {
		return check
	}
	var names []string
	for other := range h.Resolved.Keys {
		names = append(names, other)
	}
	if h.Resolved.Saved.On() {
		saved, _ := h.Resolved.Saved.Names(r.Context()) // without them, the others must do
		names = append(names, saved...)
	}
	if near := similar.Names(name, names); len(near) > 0 {
		return "you may mean " + strings.Join(near, " or ")
	}
	if !strings.HasPrefix(at.Pattern, "/notify") {
		return check // it would be changed, not used
	}
	if h.MayManageSaved(r) == nil && site.CheckKeyName(name) == nil {
		return "add a destination at " + StrippedPrefix(r) + "/notify/console/keys/" + name + ", or write key " + name + " into the Caddyfile"
	}
	return "write key " + name + " with its destinations into the block notify of the Caddyfile"
}
