package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// isDevicePage reports whether a GET of a key's address asks for the page of a device.
func (h *sendPages) isDevicePage(r *http.Request, name string) bool {
	query := r.URL.Query()
	return name != "" && h.Has.Push && (query.Has(httpapi.InviteQuery) || query.Has(httpapi.DeviceQuery))
}

var errNoInvitations = api.Errorf(http.StatusNotFound,
	"there are no invitations here, because devices cannot subscribe; the operator can add push to the global option notify")

// serveInvited writes the page on which an invitation is used.
func (h *sendPages) serveInvited(w http.ResponseWriter, r *http.Request, to *httpapi.Lookup) *api.Response {
	if !h.Has.Push {
		return errNoInvitations.Response()
	}
	return h.servePage(w, r, to)
}

// serveDevicePage writes the page on which a device subscribes to a key. Without an invitation, it
// shows the same for every name, so that nobody learns which keys there are. A subscribed device
// opens the page, too, with an invitation that is used up.
func (h *sendPages) serveDevicePage(w http.ResponseWriter, r *http.Request, to *httpapi.Lookup) *api.Response {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer") // the address contains the invitation
	p, err := h.devicePage(r, to)
	if err == nil {
		err = h.WritePage(w, r, http.StatusOK, "", p)
	}
	if err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

func (h *sendPages) devicePage(r *http.Request, to *httpapi.Lookup) (p view.DevicePage, err error) {
	name := to.Name
	if err := site.CheckKeyName(name); err != nil {
		return p, api.Errorf(http.StatusNotFound, "%w", err)
	}
	query, root := r.URL.Query(), api.RootOf(r.URL.Path)
	p = view.DevicePage{
		Root: root, Key: name, Invite: query.Get(httpapi.InviteQuery),
		Manifest: root + httpapi.RouteManifest[1:] + "?" + url.Values{"key": {name}}.Encode() + "&" + deviceQueryOf(query),
	}
	if _, err := h.api.Inboxes.Reader(r, to); err == nil {
		p.Messages = inboxAddress(r, name)
	}
	given := p.Invite != ""
	q, err := h.App.Open(nil)
	if err != nil {
		return p, err
	}
	k, keyErr := to.Key(r.Context())
	if keyErr != nil && !errors.Is(keyErr, site.ErrNoKey) {
		return p, keyErr
	}
	x, err := h.api.Devices.Invitation(r.Context(), q, k, p.Invite)
	switch {
	case err == nil:
		p.Tags = x.Tags
	case !errors.Is(err, device.ErrInvitation):
		return p, httpapi.Answer(err)
	default:
		p.Invite = ""
		if k == nil || h.api.Devices.MaySubscribe(r, k) != nil {
			p.Refused = refusedDevice(given)
			return p, nil
		}
	}
	key, err := q.Devices.PushKey(r.Context())
	if err != nil {
		return p, outbox.ErrQueueUnavailable(err)
	}
	p.ServerKey = key.Public()
	return p, nil
}

// refusedDevice says why a device cannot be added. given reports whether there was an invitation.
func refusedDevice(given bool) string {
	if given {
		return "The invitation is used up, or has expired: it is for one device and 24 hours. Ask those who manage the key for another one."
	}
	return "It needs an invitation. Ask those who manage the key for one: a link or a QR code."
}
