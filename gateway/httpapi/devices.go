package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Devices subscribes phones and browsers to keys and accepts their receipts: /notify/{KEY}/devices.
type Devices struct {
	*Base
	sender *Sender
}

// MaxDeviceRequest bounds the body of a request about a device, in bytes.
const MaxDeviceRequest = 8 << 10

// Errors for requests about devices.
var (
	errDevicesInvited = api.Errorf(http.StatusForbidden,
		"a device needs an invitation to this key; ask for one, which caddy notify invite and the console make")
	errDevicesOff = api.Errorf(http.StatusForbidden,
		"the devices of a key are listed for those who may manage, and nobody may here; the operator can add console, or use caddy "+
			"notify devices")
	errDeviceBody = api.Errorf(http.StatusBadRequest,
		"the body must be one JSON object with the fields name, tags, subscription (as PushSubscription.toJSON returns it) and invite")
	errDeviceMedia     = api.Errorf(http.StatusUnsupportedMediaType, "the body is JSON; set Content-Type to application/json")
	errNoSubscription  = api.Errorf(http.StatusBadRequest, "subscription: it is missing; give what PushManager.subscribe returns")
	errTooManyAttempts = func() *api.Error {
		e := api.Errorf(http.StatusTooManyRequests, "too many devices were added from this address; try again in %s", device.AttemptEvery)
		e.RetryAfter = device.AttemptEvery
		return e
	}
)

// deviceRequest is the JSON of a device that subscribes or changes.
type deviceRequest struct {
	device.Change

	Invite string `json:"invite"`
}

// serveDevices answers a request about the devices of a key, or about one of them.
func (h *Devices) serveDevices(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	return h.deviceResponse(r, at, h.doDevices(w, r, at))
}

// serveReceipt accepts a device's receipt for a message.
func (h *Devices) serveReceipt(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	return h.deviceResponse(r, at, h.doReceipt(w, r, at))
}

// serveDeviceTest sends a message to the device whose secret the client has.
func (h *Devices) serveDeviceTest(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	resp, err := h.doDeviceTest(w, r, at)
	if err != nil {
		return h.deviceResponse(r, at, err)
	}
	return resp
}

// deviceResponse returns the response for an error, or nil for nil. These requests come from
// programs, so errors are JSON unless something else is asked for.
func (h *Devices) deviceResponse(r *http.Request, at *Route, err error) *api.Response {
	if err == nil {
		return nil
	}
	err = Answer(err)
	resp := h.ErrorResponse(r, err)
	if IsChange(r) {
		h.Refuse(r, at.Lookup(), resp.Status, resp.Error, err)
	}
	return resp
}

// checkDeviceRequest makes the checks common to all requests about devices.
func checkDeviceRequest(w http.ResponseWriter, r *http.Request, at *Route) error {
	w.Header().Set("Cache-Control", "no-store")
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	return CheckOwnOrigin(r) // it lets GET and HEAD pass
}

// DeviceKey returns a key and the queue for a request about devices. A missing key gets the same
// answer as a key without the device.
func (h *Devices) DeviceKey(ctx context.Context, name string) (k *site.Key, q *gateway.Rooms, err error) {
	if q, err = h.App.Open(nil); err != nil {
		return nil, nil, err
	}
	k, err = h.Resolved.Key(ctx, name)
	return k, q, err
}

// keyOfDevice is [Devices.DeviceKey] for a request about the device with an ID. The device of a
// moved key goes on using the name that the key had when it subscribed. If there is no key, the
// error is [device.ErrNone].
func (h *Devices) keyOfDevice(ctx context.Context, name, id string) (k *site.Key, q *gateway.Rooms, err error) {
	defer func() {
		if errors.Is(err, site.ErrNoKey) {
			err = device.ErrNone
		}
	}()
	k, q, err = h.DeviceKey(ctx, name)
	if q == nil || err != nil && !errors.Is(err, site.ErrNoKey) || !h.Resolved.Saved.On() || !h.Resolved.Saved.MayHaveMoved(name) {
		return k, q, err
	}
	if k != nil {
		if d, err := q.Devices.Find(ctx, h.DevicePlace(k), id); d != nil || err != nil {
			return k, q, err
		}
	}
	moved, movedErr := h.Resolved.Moved(ctx, name)
	if movedErr != nil {
		return nil, nil, movedErr
	}
	for _, m := range moved {
		if d, err := q.Devices.Find(ctx, h.DevicePlace(m), id); d != nil || err != nil {
			return m, q, err
		}
	}
	return k, q, err
}

func (h *Devices) doDevices(w http.ResponseWriter, r *http.Request, at *Route) error {
	if err := checkDeviceRequest(w, r, at); err != nil {
		return err
	}
	if at.ID == "" && r.Method == http.MethodPost {
		return h.addDevice(w, r, at.Key)
	}
	if at.ID == "" {
		return h.listDevices(w, r, at.Key)
	}
	k, q, err := h.keyOfDevice(r.Context(), at.Key, at.ID)
	if err != nil {
		return err
	}
	d, err := h.ownDevice(r, q, k, at.ID)
	managed := errors.Is(err, device.ErrNone) && r.Method != http.MethodPut && h.MayManage(r) == nil
	if err != nil && !managed {
		return err
	}
	switch r.Method {
	case http.MethodDelete:
		return h.deleteDevice(w, r, q, k, at.ID)
	case http.MethodPut:
		return h.changeDevice(w, r, q, k, d)
	}
	if managed {
		return api.Errorf(http.StatusNotFound, "GET with the ID is for the device itself; %s lists all", site.PathOf(RouteDevices, at.Key))
	}
	states, err := q.Devices.States(r.Context(), []device.Device{*d})
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, d.JSON(states[0]))
}

// listDevices writes the devices of a key for clients that may manage.
func (h *Devices) listDevices(w http.ResponseWriter, r *http.Request, name string) error {
	if err := h.MayManage(r); err != nil {
		if errors.Is(err, errManageOff) {
			err = errDevicesOff
		}
		return err
	}
	k, q, err := h.DeviceKey(r.Context(), name)
	if err != nil {
		return err
	}
	list, err := q.Devices.List(r.Context(), h.DevicePlace(k))
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, list)
}

// DevicePlace returns the place of the devices of a key of the site.
func (h *Devices) DevicePlace(k *site.Key) site.Place { return k.Place(h.Site()) }

// Invitation returns the invitation to a key with a token. It gives access to the key's page for
// devices, even if the key has a token. If k is nil because there is no such key, the error is the
// same as for a wrong token, and takes as long.
func (h *Devices) Invitation(ctx context.Context, q *gateway.Rooms, k *site.Key, token string) (*device.Invitation, error) {
	var place site.Place // the place of no key
	if k != nil {
		place = h.DevicePlace(k)
	}
	return q.Devices.Invitations.Find(ctx, place, token)
}

// MaySubscribe returns an error if the client of r needs an invitation to subscribe a
// device to a key.
func (h *Devices) MaySubscribe(r *http.Request, k *site.Key) error {
	who := h.Resolved.Push.Who
	signedIn := environment.User(r) != "" || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
	if len(k.Tokens) > 0 || who == device.DevicesInvited || who == device.DevicesUsers && !signedIn {
		return errDevicesInvited
	}
	return nil
}

// readDeviceRequest reads the body of r as JSON.
func readDeviceRequest(w http.ResponseWriter, r *http.Request, to any) error {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return errDeviceMedia
	}
	if err := api.DecodeBody(w, r, MaxDeviceRequest); err != nil {
		return err
	}
	d := json.NewDecoder(r.Body)
	if err := d.Decode(to); err != nil || d.More() {
		if e := api.BodyError(err); err != nil && e.Status != http.StatusBadRequest {
			return e
		}
		return errDeviceBody
	}
	return nil
}

// checkDevice returns an error if a device cannot have these properties.
func (h *Devices) checkDevice(x *device.Change) error {
	err := x.Check(h.Resolved.Push.Hosts, site.CheckTag)
	if err == nil && x.Subscription != nil {
		if err = h.Resolved.Limits.Egress.CheckHost(x.Subscription.Host()); err != nil {
			err = message.Errorf(message.Invalid, "subscription: %w", err)
		}
	}
	return err
}

// addDevice makes the client of r a device of a key.
func (h *Devices) addDevice(w http.ResponseWriter, r *http.Request, name string) error {
	k, q, err := h.DeviceKey(r.Context(), name)
	if err != nil && !errors.Is(err, site.ErrNoKey) {
		return err
	}
	if !q.Devices.Registrations.Allow(ClientAddress(r), time.Now()) {
		return errTooManyAttempts()
	}
	var x deviceRequest
	if err := readDeviceRequest(w, r, &x); err != nil {
		return err
	}
	ctx := context.WithoutCancel(r.Context())
	switch { // a client that may not know which keys exist learns nothing
	case x.Invite != "":
		if _, err := h.Invitation(ctx, q, k, x.Invite); err != nil {
			return err
		}
	case k == nil:
		return errDevicesInvited
	default:
		if err := h.MaySubscribe(r, k); err != nil {
			return err
		}
	}
	switch {
	case x.Subscription == nil:
		return errNoSubscription
	case x.Name == nil:
		return device.CheckName("")
	}
	if err := h.checkDevice(&x.Change); err != nil {
		return err
	}
	d, secret, err := q.Devices.Subscribe(ctx, &device.Subscription{
		Key: k, Site: device.SiteSettings{Settings: h.Resolved, Site: h.Site()},
		Change: x.Change, Invite: x.Invite, By: environment.User(r),
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", messageRoot(r)+site.PathOf(RouteDevices, k.Name)+"/"+d.ID)
	added := d.Short()
	added.Secret = secret
	return WriteJSON(w, http.StatusCreated, added)
}

// ownDevice returns the device with an ID if the client of r has its secret. Otherwise it does not
// reveal whether the device exists.
func (h *Devices) ownDevice(r *http.Request, q *gateway.Rooms, k *site.Key, id string) (*device.Device, error) {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		secret = "" // matches no device
	}
	return q.Devices.Authenticate(r.Context(), h.DevicePlace(k), id, secret)
}

// changeDevice changes the name, the tags or the subscription of a device.
func (h *Devices) changeDevice(w http.ResponseWriter, r *http.Request, q *gateway.Rooms, k *site.Key, own *device.Device) error {
	var x deviceRequest
	if err := readDeviceRequest(w, r, &x); err != nil {
		return err
	}
	if err := h.checkDevice(&x.Change); err != nil {
		return err
	}
	d, err := q.Devices.Change(context.WithoutCancel(r.Context()), k, h.Site(), own.ID, &x.Change)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, d.Short())
}

// deleteDevice removes a device of a key.
func (h *Devices) deleteDevice(w http.ResponseWriter, r *http.Request, q *gateway.Rooms, k *site.Key, id string) error {
	d, err := q.Devices.Remove(r.Context(), h.DevicePlace(k), id, environment.User(r))
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, d.JSON(nil))
}

// receiptField is the field of a request with a receipt.
const receiptField = "receipt"

// doReceipt accepts a receipt. The token of the push gives the right to send it.
func (h *Devices) doReceipt(w http.ResponseWriter, r *http.Request, at *Route) error {
	if err := checkDeviceRequest(w, r, at); err != nil {
		return err
	}
	body := api.ReadSignal(w, r, message.Limits{MaxBody: MaxDeviceRequest}, receiptField)
	receipt, warnings := cmp.Or(body.SignalField(receiptField), body.SignalText()), body.Warnings()
	body.Close()
	k, q, err := h.keyOfDevice(r.Context(), at.Key, at.ID)
	if err != nil {
		return err
	}
	d, err := q.Devices.Confirm(r.Context(), h.DevicePlace(k), at.ID, receipt)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, struct {
		device.JSON

		Warnings []string `json:"warnings,omitempty"`
	}{d.Short(), warnings})
}

// doDeviceTest sends a test to a device.
func (h *Devices) doDeviceTest(w http.ResponseWriter, r *http.Request, at *Route) (*api.Response, error) {
	if err := checkDeviceRequest(w, r, at); err != nil {
		return nil, err
	}
	k, q, err := h.keyOfDevice(r.Context(), at.Key, at.ID)
	if err != nil {
		return nil, err
	}
	d, err := h.ownDevice(r, q, k, at.ID)
	if err != nil {
		return nil, err
	}
	if !q.Devices.Registrations.Allow(ClientAddress(r), time.Now()) {
		return nil, errTooManyAttempts()
	}
	i := slices.IndexFunc(k.Targets, func(t notifier.Target) bool { return t.Hash() == device.Hash(d.ID) })
	if i < 0 {
		return nil, device.ErrNone
	}
	return h.sender.SendTest(w, r, k, &message.Selection{Targets: []notifier.Target{{Destination: k.Targets[i].Destination}}})
}

// The query parameters at the address of a key that open the page of a device.
const (
	InviteQuery = "invite" // with an invitation
	DeviceQuery = "device" // without one
)

// isInvited reports whether a request is for the page on which an invitation is used. It has no
// other parameters and is no beat, because a matcher leaves this page to phones without a login.
func isInvited(r *http.Request) bool {
	// Caddy's query matcher decodes names, too.
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.RawQuery != "" && r.URL.Query().Has(InviteQuery)
}
