package caddyhttp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// maxDeviceRequest bounds the body of a request about a device, in bytes.
const maxDeviceRequest = 8 << 10

// Errors for requests about devices.
var (
	errDevicesInvited  = api.Errorf(http.StatusForbidden, "a device needs an invitation to this key; ask for one, which caddy notify invite and the console make")
	errDevicesOff      = api.Errorf(http.StatusForbidden, "the devices of a key are listed for those who may manage, and nobody may here; the operator can add console, or use caddy notify devices")
	errDeviceSecret    = &api.Error{Status: http.StatusUnauthorized, Err: errNoDevice}
	errDeviceBody      = api.Errorf(http.StatusBadRequest, "the body must be one JSON object with the fields name, tags, subscription (as PushSubscription.toJSON returns it) and invite")
	errReceiptBody     = api.Errorf(http.StatusBadRequest, "the body must be one JSON object with the field receipt, the token of the push")
	errDeviceMedia     = api.Errorf(http.StatusUnsupportedMediaType, "the body is JSON; set Content-Type to application/json")
	errEndpoint        = api.Errorf(http.StatusBadRequest, "subscription: the endpoint is not that of a push service that is known; the operator can allow its host with push { services <host> }")
	errNoSubscription  = api.Errorf(http.StatusBadRequest, "subscription: it is missing; give what PushManager.subscribe returns")
	errTooManyAttempts = func() *api.Error {
		e := api.Errorf(http.StatusTooManyRequests, "too many devices were added from this address; try again in %s", registrationEvery)
		e.RetryAfter = registrationEvery
		return e
	}
)

// deviceRequest is the JSON of a device that subscribes, or changes.
type deviceRequest struct {
	Name         *string               `json:"name"`
	Tags         *[]string             `json:"tags"`
	Subscription *webpush.Subscription `json:"subscription"`
	Invite       string                `json:"invite"`
}

// deviceJSON is the JSON of a device.
type deviceJSON struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Tags    []string   `json:"tags"`
	Secret  string     `json:"secret,omitempty"` // of a new device
	Created *time.Time `json:"created,omitempty"`
	By      string     `json:"by,omitempty"`      // the user who has subscribed
	Service string     `json:"service,omitempty"` // the host of the push service
	Sent    *time.Time `json:"sent,omitempty"`    // the last message that its push service has taken
	Seen    *time.Time `json:"seen,omitempty"`    // the last receipt
	Missing int        `json:"missing,omitempty"` // receipts in a row
}

// newDeviceJSON returns the JSON of a device. s is what is known of it, or nil.
func newDeviceJSON(d *device, s *deviceState) deviceJSON {
	created := d.Created.UTC()
	out := deviceJSON{ID: d.ID, Name: d.Name, Tags: append([]string{}, d.tags()...), Created: &created, By: d.By, Service: d.subscription.Host()}
	if s == nil {
		return out
	}
	out.Missing = s.Missing
	if !s.Sent.IsZero() {
		sent := s.Sent.UTC()
		out.Sent = &sent
	}
	if !s.Seen.IsZero() {
		seen := s.Seen.UTC()
		out.Seen = &seen
	}
	return out
}

// serveDevices answers a request about the devices of a key, or about one of them.
func (h *Handler) serveDevices(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	return h.deviceResponse(r, at, h.doDevices(w, r, at))
}

// serveReceipt takes the receipt of a device for a message.
func (h *Handler) serveReceipt(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	return h.deviceResponse(r, at, h.doReceipt(w, r, at))
}

// serveDeviceTest sends a message to the device whose secret the client has.
func (h *Handler) serveDeviceTest(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	resp, err := h.doDeviceTest(w, r, at)
	if err != nil {
		return h.deviceResponse(r, at, err)
	}
	return resp
}

// deviceResponse returns the response for an error, or nil for nil. Programs send all
// these requests, so that errors are JSON unless something else is asked for.
func (h *Handler) deviceResponse(r *http.Request, at *route, err error) *api.Response {
	if err == nil {
		return nil
	}
	resp := h.errorResponse(err)
	if isChange(r) {
		h.refuse(r, at.key, resp.Status, resp.Error, err)
	}
	return resp
}

// checkDeviceRequest makes the checks of all requests about devices.
func checkDeviceRequest(w http.ResponseWriter, r *http.Request, at *route) error {
	w.Header().Set("Cache-Control", "no-store")
	if !slices.Contains(at.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(at.methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, at.methods[0])
	}
	return checkOwnOrigin(r) // which lets GET and HEAD pass
}

// deviceKey returns a key and the queue for a request about devices. A key that does not
// exist is like one without the device.
func (h *Handler) deviceKey(ctx context.Context, name string) (k *key, q *openQueue, err error) {
	if q, err = h.app.durable(nil); err != nil {
		return nil, nil, err
	}
	k, err = h.resolved.key(ctx, name)
	return k, q, err
}

func (h *Handler) doDevices(w http.ResponseWriter, r *http.Request, at *route) error {
	if err := checkDeviceRequest(w, r, at); err != nil {
		return err
	}
	if at.id == "" && r.Method == http.MethodPost {
		return h.addDevice(w, r, at.key)
	}
	if at.id == "" {
		return h.listDevices(w, r, at.key)
	}
	k, q, err := h.deviceKey(r.Context(), at.key)
	if errors.Is(err, errNoKey) {
		return errDeviceSecret
	}
	if err != nil {
		return err
	}
	d, err := h.ownDevice(r, q, k, at.id)
	managed := errors.Is(err, errNoDevice) && r.Method != http.MethodPut && h.mayManage(r) == nil
	if err != nil && !managed {
		return err
	}
	switch r.Method {
	case http.MethodDelete:
		return h.deleteDevice(w, r, q, k, at.id)
	case http.MethodPut:
		return h.changeDevice(w, r, q, k, d)
	}
	if managed {
		return api.Errorf(http.StatusNotFound, "GET with the ID is for the device itself; %s lists all", pathOf(routeDevices, at.key))
	}
	states, err := q.deviceStates(r.Context(), []*device{d})
	if err != nil {
		return errQueueUnavailable(err)
	}
	return writeJSON(w, http.StatusOK, newDeviceJSON(d, states[0]))
}

// listDevices writes the devices of a key for who may manage.
func (h *Handler) listDevices(w http.ResponseWriter, r *http.Request, name string) error {
	if err := h.mayManage(r); err != nil {
		if errors.Is(err, errManageOff) {
			err = errDevicesOff
		}
		return err
	}
	k, q, err := h.deviceKey(r.Context(), name)
	if err != nil {
		return err
	}
	list, err := q.listDevices(r.Context(), h.home(k), k.name)
	if err != nil {
		return errQueueUnavailable(err)
	}
	return writeJSON(w, http.StatusOK, list)
}

// listDevices returns the JSON of the devices of a key, which is never nil.
func (q *openQueue) listDevices(ctx context.Context, home, key string) ([]deviceJSON, error) {
	devices, err := q.devicesOf(ctx, home+"\x00"+key)
	if err != nil || devices == nil {
		return []deviceJSON{}, err
	}
	states, err := q.deviceStates(ctx, devices.All)
	if err != nil {
		return nil, err
	}
	out := make([]deviceJSON, len(devices.All))
	for i, d := range devices.All {
		out[i] = newDeviceJSON(d, states[i])
	}
	return out, nil
}

// home returns where a key of the site is defined.
func (h *Handler) home(k *key) string { return k.home(h.site()) }

// invitation returns the invitation to a key that a token stands for. It opens the page of
// the key for that alone, also if the key has a token.
func (h *Handler) invitation(ctx context.Context, name, token string) (*invitation, error) {
	k, q, err := h.deviceKey(ctx, name)
	if errors.Is(err, errNoKey) {
		return nil, errDeviceStatus(errNoInvitation)
	}
	if err != nil {
		return nil, err
	}
	x, err := q.invitation(ctx, h.home(k), k.name, token)
	if err != nil {
		return nil, errDeviceStatus(err)
	}
	return x, nil
}

// maySubscribe returns an error if the client of r needs an invitation to subscribe a
// device to a key.
func (h *Handler) maySubscribe(r *http.Request, k *key) error {
	who := h.resolved.push.who
	signedIn := requestUser(r) != "" || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
	if len(k.tokens) > 0 || who == devicesInvited || who == devicesUsers && !signedIn {
		return errDevicesInvited
	}
	return nil
}

// readDeviceRequest reads the body of r as JSON.
func readDeviceRequest(w http.ResponseWriter, r *http.Request, to any, malformed *api.Error) error {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return errDeviceMedia
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDeviceRequest))
	if err := d.Decode(to); err != nil || d.More() {
		if e := api.BodyError(err); err != nil && e.Status != http.StatusBadRequest {
			return e
		}
		return malformed
	}
	return nil
}

// check returns an error if the fields that are set are not those of a device.
func (h *Handler) checkDevice(x *deviceRequest) error {
	bad := func(err error) error { return &api.Error{Status: http.StatusBadRequest, Err: err} }
	if x.Name != nil {
		if err := checkDeviceName(*x.Name); err != nil {
			return bad(err)
		}
		*x.Name = strings.TrimSpace(*x.Name)
	}
	if x.Tags != nil {
		if err := checkDeviceTags(*x.Tags, false); err != nil {
			return bad(err)
		}
	}
	if s := x.Subscription; s != nil {
		if err := s.Parse(); err != nil {
			return bad(prefixError("subscription", err))
		}
		if err := h.resolved.push.checkEndpoint(s); err != nil {
			return err
		}
		if err := h.resolved.limits.Egress.CheckHost(s.Host()); err != nil {
			return bad(prefixError("subscription", err))
		}
	}
	return nil
}

// addDevice makes the client of r a device of a key.
func (h *Handler) addDevice(w http.ResponseWriter, r *http.Request, name string) error {
	k, q, err := h.deviceKey(r.Context(), name)
	if err != nil && !errors.Is(err, errNoKey) {
		return err
	}
	if !q.registrations.allow(clientAddress(r)) {
		return errTooManyAttempts()
	}
	var x deviceRequest
	if err := readDeviceRequest(w, r, &x, errDeviceBody); err != nil {
		return err
	}
	if k == nil { // whoever may not know which keys exist learns nothing
		return errDevicesInvited
	}
	ctx := context.WithoutCancel(r.Context())
	home := h.home(k)
	if x.Invite != "" {
		if _, err := h.invitation(ctx, k.name, x.Invite); err != nil {
			return err
		}
	} else if err := h.maySubscribe(r, k); err != nil {
		return err
	}
	switch {
	case x.Subscription == nil:
		return errNoSubscription
	case x.Name == nil:
		return &api.Error{Status: http.StatusBadRequest, Err: checkDeviceName("")}
	}
	if err := h.checkDevice(&x); err != nil {
		return err
	}
	if _, err := q.pushKey(ctx); err != nil { // without which no device can get a message
		return errDeviceStatus(err)
	}
	secret := newSecret()
	var d *device
	var others []queue.Hash
	if x.Invite != "" {
		others = append(others, q.invitationName(x.Invite))
	}
	err = q.changeDevices(ctx, home, k.name, true, others, func(now time.Time, s *devicesOfKey, old [][]byte) ([]queue.Record, error) {
		d = &device{ID: uuid.NewString(), By: requestUser(r), Created: now, secret: sha256.Sum256([]byte(secret)), subscription: x.Subscription}
		if x.Invite != "" {
			invitation := decodeInvitation(old[0])
			if err := invitation.check(now, home, k.name); err != nil {
				return nil, err
			}
			d.Granted = invitation.Tags
		}
		// A browser has one subscription. A device that subscribes again replaces itself.
		s.All = slices.DeleteFunc(s.All, func(o *device) bool { return o.subscription.Endpoint == x.Subscription.Endpoint })
		if len(s.All) >= h.resolved.push.max {
			return nil, errTooManyDevices
		}
		d.Name = s.uniqueName(*x.Name, d.ID)
		d.setTags(x.Tags)
		s.All = append(s.All, d)
		return make([]queue.Record, len(others)), nil
	})
	if err != nil {
		return errDeviceStatus(err)
	}
	q.deviceChanged(deviceAdded, k.name, d.Name, d.By)
	q.tellOfDevice(ctx, h.resolved.devices, home, k.name, d.ID, textOfAdded(d.Name, d.By), nil)
	w.Header().Set("Location", messageRoot(r)+pathOf(routeDevices, k.name)+"/"+d.ID)
	return writeJSON(w, http.StatusCreated, deviceJSON{ID: d.ID, Secret: secret, Name: d.Name, Tags: append([]string{}, d.tags()...)})
}

// setTags sets the tags that the device has chosen itself.
func (d *device) setTags(tags *[]string) {
	if tags == nil {
		return
	}
	d.Own = slices.DeleteFunc(slices.Clone(*tags), func(tag string) bool { return slices.Contains(d.Granted, tag) })
}

// ownDevice returns the device with an ID if the client of r has its secret. Nobody learns
// whether there is another one.
func (h *Handler) ownDevice(r *http.Request, q *openQueue, k *key, id string) (*device, error) {
	d, err := q.findDevice(r.Context(), h.home(k)+"\x00"+k.name, id)
	if err != nil {
		return nil, errQueueUnavailable(err)
	}
	secret, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if d != nil && bearer && d.hasSecret(secret) {
		return d, nil
	}
	return nil, errDeviceSecret
}

// changeDevice changes the name, the tags or the subscription of a device.
func (h *Handler) changeDevice(w http.ResponseWriter, r *http.Request, q *openQueue, k *key, own *device) error {
	var x deviceRequest
	if err := readDeviceRequest(w, r, &x, errDeviceBody); err != nil {
		return err
	}
	if err := h.checkDevice(&x); err != nil {
		return err
	}
	var d *device
	err := q.changeDevices(context.WithoutCancel(r.Context()), h.home(k), k.name, false, nil, func(_ time.Time, s *devicesOfKey, _ [][]byte) ([]queue.Record, error) {
		if d = s.find(own.ID); d == nil {
			return nil, errNoDevice
		}
		if x.Name != nil {
			d.Name = s.uniqueName(*x.Name, d.ID)
		}
		d.setTags(x.Tags)
		if x.Subscription != nil {
			d.subscription = x.Subscription
		}
		return nil, nil
	})
	if err != nil {
		return errDeviceStatus(err)
	}
	return writeJSON(w, http.StatusOK, deviceJSON{ID: d.ID, Name: d.Name, Tags: append([]string{}, d.tags()...)})
}

// deleteDevice removes a device of a key.
func (h *Handler) deleteDevice(w http.ResponseWriter, r *http.Request, q *openQueue, k *key, id string) error {
	d, err := q.removeDevice(context.WithoutCancel(r.Context()), h.home(k), k.name, id, func(*device) bool { return true })
	if err != nil {
		return errDeviceStatus(err)
	}
	q.deviceChanged(deviceRemoved, k.name, d.Name, requestUser(r))
	return writeJSON(w, http.StatusOK, newDeviceJSON(d, nil))
}

// doReceipt takes a receipt. The token of the push is the right to do so.
func (h *Handler) doReceipt(w http.ResponseWriter, r *http.Request, at *route) error {
	if err := checkDeviceRequest(w, r, at); err != nil {
		return err
	}
	var x struct {
		Receipt string `json:"receipt"`
	}
	if err := readDeviceRequest(w, r, &x, errReceiptBody); err != nil {
		return err
	}
	k, q, err := h.deviceKey(r.Context(), at.key)
	if errors.Is(err, errNoKey) {
		return errDeviceSecret
	}
	if err != nil {
		return err
	}
	message, ok := q.checkReceiptToken(at.id, x.Receipt)
	if !ok {
		return errDeviceSecret
	}
	d, err := q.findDevice(r.Context(), h.home(k)+"\x00"+k.name, at.id)
	if err != nil {
		return errQueueUnavailable(err)
	}
	if d == nil {
		return errDeviceSecret
	}
	if err := q.received(context.WithoutCancel(r.Context()), h.home(k), k.name, d, message); err != nil {
		return errDeviceStatus(err)
	}
	return writeJSON(w, http.StatusOK, deviceJSON{ID: d.ID, Name: d.Name, Tags: append([]string{}, d.tags()...)})
}

// doDeviceTest sends a test to a device.
func (h *Handler) doDeviceTest(w http.ResponseWriter, r *http.Request, at *route) (*api.Response, error) {
	if err := checkDeviceRequest(w, r, at); err != nil {
		return nil, err
	}
	k, q, err := h.deviceKey(r.Context(), at.key)
	if errors.Is(err, errNoKey) {
		return nil, errDeviceSecret
	}
	if err != nil {
		return nil, err
	}
	d, err := h.ownDevice(r, q, k, at.id)
	if err != nil {
		return nil, err
	}
	if !q.registrations.allow(clientAddress(r)) {
		return nil, errTooManyAttempts()
	}
	i := slices.IndexFunc(k.targets, func(t notifier.Target) bool { return t.Hash() == deviceHash(d.ID) })
	if i < 0 {
		return nil, errDeviceSecret
	}
	return h.sendTest(w, r, k, &api.Selection{Targets: []notifier.Target{{Destination: k.targets[i].Destination}}})
}
