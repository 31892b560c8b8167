package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"unicode"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// hideLink keeps a request out of the server's access log if its address has a usable secret: an
// invitation to any key, or the link of an incident or a question. Readers of the log must not be
// able to subscribe a device, acknowledge, or answer. A secret that is used up or never existed is
// not hidden.
func (h *API) hideLink(r *http.Request, at *Route) {
	what, formed, usable := h.secretIn(r, at)
	if what == "" {
		return
	}
	q, err := h.App.Open(nil)
	if err == nil && q == nil {
		return
	}
	ok := formed // it counts as one if that cannot be read
	if err == nil {
		if found, err := usable(q); err == nil {
			ok = found
		}
	}
	if !ok {
		return
	}
	environment.Hide(r)
	h.Log.Info("a request with "+what+" is left out of the access log, because the secret in its address can still be used",
		zap.String("method", r.Method), zap.String("route", at.Pattern), zap.String("client_ip", environment.ClientIP(r)))
}

// secretIn returns what the address of r may link to, or "". formed reports whether its secret has
// the right form, and usable whether it leads to something.
func (h *API) secretIn(r *http.Request, at *Route) (what string, formed bool, usable func(*gateway.Rooms) (bool, error)) {
	ctx := r.Context()
	id := secretOf(at.ID, "")
	switch at.Pattern {
	case RouteIncident, RouteClientIncident, RouteConsoleIncident:
		return "the link of an incident", rules.IsIncidentID(id), func(q *gateway.Rooms) (bool, error) {
			_, err := q.Alerts.Incidents.ByID(ctx, id)
			return foundOr(err, alerting.ErrNoIncident)
		}
	case RouteAsk, RouteClientAsk, RouteConsoleAsk:
		return "the link of a question", ask.IsLink(id), func(q *gateway.Rooms) (bool, error) {
			_, err := q.Questions.ByLink(ctx, id)
			return foundOr(err, ask.ErrNone)
		}
	}
	if !h.Has.Push || r.URL.RawQuery == "" {
		return "", false, nil
	}
	token := secretOf(r.URL.Query().Get(InviteQuery), "-_")
	if token == "" {
		return "", false, nil
	}
	return "an invitation", len(token) == len(device.NewSecret()), func(q *gateway.Rooms) (bool, error) {
		return q.Devices.Invitations.Usable(ctx, token)
	}
}

// secretOf returns the beginning of text that consists of letters, digits and characters of more. A
// program that turns addresses into links may include the following character of the text, such as
// a full stop.
func secretOf(text, more string) string {
	other := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(more, r)
	}
	text = strings.TrimLeftFunc(text, other)
	if i := strings.IndexFunc(text, other); i >= 0 {
		text = text[:i]
	}
	return text
}

// foundOr reports whether a look-up has found something. none is its error if there is nothing.
func foundOr(err, none error) (bool, error) {
	if errors.Is(err, none) {
		return false, nil
	}
	return err == nil, err
}
