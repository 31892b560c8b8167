package httpapi

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/similar"
)

// Advise returns err for the client of r. If there is no such key, it says what to do. Only those who may
// manage learn which keys there are.
func (h *Base) Advise(r *http.Request, err error) error {
	e, ok := errors.AsType[*site.UnknownKeyError](err)
	if !ok {
		return err
	}
	next, path := site.CheckKey, r.URL.Path
	if h.MayManage(r) == nil {
		names := slices.Collect(maps.Keys(h.Resolved.Keys))
		if h.Resolved.Saved.On() {
			saved, _ := h.Resolved.Saved.Names(r.Context()) // without them, the others must do
			names = append(names, saved...)
		}
		switch {
		case site.CheckKeyName(e.Name) != nil, !strings.HasPrefix(path, RouteNotify), strings.HasPrefix(path, RouteConsoleSilences):
			// No key can have the name, or the client changes or silences a key that it knows.
		case h.MayManageSaved(r) == nil:
			next = "add a destination at " + StrippedPrefix(r) + site.PathOf(RouteConsoleKey, e.Name) + ", or write key " + e.Name +
				" into the Caddyfile"
		default:
			next = "write key " + e.Name + " with its destinations into the block notify of the Caddyfile"
		}
		next = similar.Hint(e.Name, names, next)
	}
	return message.Errorf(message.NotFound, "%w; %s", err, next)
}
