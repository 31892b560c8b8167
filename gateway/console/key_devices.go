package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/qrcode"
)

// keyDevices invites and revokes the devices of a key.
type keyDevices struct {
	*shared
	page *keyPages
}

// revokeQuery is the query parameter of the form that revokes a device. The form for invitations
// has httpapi.InviteQuery.
const revokeQuery = "revoke"

// setDevices sets the devices of a key on its page, for clients that may invite others.
func (h *keyPages) setDevices(r *http.Request, p *view.KeyPage, k *site.Key) {
	if !h.Has.Push || !h.Has.Console || h.MayManage(r) != nil {
		return
	}
	q, err := h.App.Open(nil)
	if err != nil {
		return // the queue's part of the page says that it cannot be read
	}
	devices, err := q.Devices.Of(r.Context(), h.api.Devices.DevicePlace(k))
	if errors.Is(err, device.ErrDamaged) {
		p.DevicesProblem = "The gateway cannot read the devices of this key, so that they get no messages. Its log says what its operator can do."
	}
	if err != nil {
		return
	}
	p.Invite = true
	if devices == nil {
		return
	}
	states, err := q.Devices.States(r.Context(), devices.All)
	if err != nil {
		return
	}
	for i := range devices.All {
		d, s := &devices.All[i], states[i]
		p.Devices = append(p.Devices, view.Device{
			ID: d.ID, Name: d.Name, Tags: d.Tags(), Service: d.Subscription.Host(), Added: d.Created, Sent: s.Sent, Seen: s.Seen,
			Problem: s.Problem(time.Now()),
		})
	}
}

// postInvite makes an invitation to a key and shows it on the page of the key.
func (h *keyDevices) postInvite(w http.ResponseWriter, r *http.Request, name string) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	k, q, err := h.api.Devices.DeviceKey(r.Context(), name)
	if err != nil {
		return err
	}
	tags := strings.FieldsFunc(r.PostForm.Get("tags"), func(c rune) bool { return c == ' ' || c == ',' })
	token, x, err := q.Devices.Invitations.Make(r.Context(), h.api.Devices.DevicePlace(k), tags)
	if err != nil {
		return err
	}
	link := device.InvitationLink(h.Resolved.PublicURL, k.Name, token)
	code, err := qrcode.New(link)
	if err != nil {
		return err
	}
	p, err := h.page.keyPage(r, name)
	if err != nil {
		return err
	}
	p.Invitation = &view.Invitation{Link: link, Code: view.QRCode{Size: code.Size, Path: code.Path()}, Tags: x.Tags, Until: x.Until}
	show(&p, view.TabDevices)
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// postRevoke revokes a device of a key and redirects to the page of the key.
func (h *keyDevices) postRevoke(w http.ResponseWriter, r *http.Request, name string) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	k, q, err := h.api.Devices.DeviceKey(r.Context(), name)
	if err != nil {
		return err
	}
	if _, err := q.Devices.Remove(r.Context(), h.api.Devices.DevicePlace(k), r.PostForm.Get("device"), environment.User(r)); err != nil {
		return err
	}
	return httpapi.SeeOther(w, httpapi.RelativeAddress(r), tabQuery+"="+string(view.TabDevices)+"#devices")
}
