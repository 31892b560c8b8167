package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

var errWithoutPush = errors.New("the running configuration has no devices; add push to the global option notify")

// invitationJSON is the JSON of an invitation that was made.
type invitationJSON struct {
	URL   string    `json:"url"` // the link for the phone
	Until time.Time `json:"until"`
	Tags  []string  `json:"tags"`
}

// deviceQueue returns the key in the path of r, once for each place that defines it, and the queue.
func deviceQueue(r *http.Request) (*gateway.Gateway, []site.Definition, *gateway.Rooms, error) {
	app, _, err := findDefinitions(r)
	if err != nil {
		return nil, nil, nil, err
	}
	definitions := app.Homes(r.PathValue("key"))
	if app.Resolved.Push == nil {
		return nil, nil, nil, apiError(http.StatusForbidden, errWithoutPush)
	}
	q, err := runningQueue()
	return app, definitions, q, err
}

// linkOf returns the beginning of links to a key: the public URL of the place that defines
// it or, for a key of the app without one, that of a site.
func linkOf(app *gateway.Gateway, d site.Definition) string {
	if d.Settings.PublicURL != "" && d.Settings != app.Resolved {
		return d.Settings.PublicURL
	}
	for _, s := range app.Sites { // which has the pages
		if s.PublicURL != "" && s.Page {
			return s.PublicURL
		}
	}
	return d.Settings.PublicURL
}

// serveInvite makes an invitation to a key of the configuration.
func serveInvite(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := deviceQueue(r)
	if err != nil {
		return err
	}
	if len(definitions) > 1 {
		return apiError(http.StatusConflict, errors.New("several sites define this key differently, so that it is not clear which one the phone is for; make the invitation in the console of the site"))
	}
	var x struct {
		Tags []string `json:"tags"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, httpapi.MaxDeviceRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil || d.More() {
		return apiError(http.StatusBadRequest, errors.New("the body must be one JSON object with the field tags, an array of texts"))
	}
	if err := device.CheckTags(x.Tags, true, site.CheckTag); err != nil {
		return apiError(http.StatusBadRequest, err)
	}
	k := definitions[0]
	token, made, err := q.Invite(context.WithoutCancel(r.Context()), k.Key.DevicePlace(app.SiteOf(k.Settings)), x.Tags)
	if err != nil {
		return deviceError(w, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusCreated)
	return writeJSON(w, invitationJSON{device.InvitationLink(linkOf(app, k), k.Key.Name, token), made.Until.UTC(), append([]string{}, x.Tags...)})
}

// serveDevices lists the devices of a key of the configuration.
func serveDevices(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := deviceQueue(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	all := []device.JSON{}
	for _, d := range definitions {
		some, err := q.ListDevices(ctx, d.Key.DevicePlace(app.SiteOf(d.Settings)))
		if err != nil {
			return deviceError(w, err)
		}
		all = append(all, some...)
	}
	return writeJSON(w, all)
}

// serveRevokeDevice removes a device of a key of the configuration.
func serveRevokeDevice(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := deviceQueue(r)
	if err != nil {
		return err
	}
	var removed *device.Device
	for _, d := range definitions {
		removed, err = q.RemoveDevice(context.WithoutCancel(r.Context()), d.Key.DevicePlace(app.SiteOf(d.Settings)), r.PathValue("id"), device.AnyDevice)
		if !errors.Is(err, device.ErrUnknown) {
			break
		}
	}
	if err != nil {
		return deviceError(w, err)
	}
	q.DeviceChanged(device.DeviceRemoved, r.PathValue("key"), removed.Name, "")
	return writeJSON(w, removed.JSON(nil))
}

// serveRevokeDevices removes all devices of a key of the configuration, also if they cannot
// be read.
func serveRevokeDevices(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := deviceQueue(r)
	if err != nil {
		return err
	}
	all := []device.JSON{}
	for _, d := range definitions {
		removed, err := q.RemoveAllDevices(context.WithoutCancel(r.Context()), d.Key.DevicePlace(app.SiteOf(d.Settings)))
		for _, x := range removed {
			q.DeviceChanged(device.DeviceRemoved, r.PathValue("key"), x.Name, "")
			all = append(all, x.JSON(nil))
		}
		if err != nil {
			return deviceError(w, err)
		}
	}
	return writeJSON(w, all)
}

// deviceError returns the error for an operator, who is told what clients must not
// know.
func deviceError(w http.ResponseWriter, err error) error {
	if errors.Is(err, device.ErrDevicesDamaged) || errors.Is(err, device.ErrPushKeyLost) {
		return apiError(http.StatusServiceUnavailable, err)
	}
	if e, ok := errors.AsType[*api.Error](device.ErrDeviceStatus(err)); ok {
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
		}
		return apiError(e.Status, e)
	}
	return apiError(http.StatusServiceUnavailable, err)
}
