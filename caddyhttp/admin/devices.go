package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
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
	definitions := app.Conf.Homes(r.PathValue("key"))
	if app.Conf.Global.Push == nil {
		return nil, nil, nil, apiError(http.StatusForbidden, errWithoutPush)
	}
	q, err := runningQueue()
	return app, definitions, q, err
}

// linkOf returns the beginning of links to a key: the public URL of the place that defines
// it or, for a key of the app without one, the public URL of a site.
func linkOf(app *gateway.Gateway, d site.Definition) string {
	if d.Site.PublicURL != "" && d.Site != app.Conf.Global {
		return d.Site.PublicURL
	}
	for _, s := range app.Conf.Sites { // which has the pages
		if s.PublicURL != "" && s.Page {
			return s.PublicURL
		}
	}
	return d.Site.PublicURL
}

// serveInvite makes an invitation to a key of the configuration.
func serveInvite(w http.ResponseWriter, r *http.Request) error {
	app, definitions, q, err := deviceQueue(r)
	if err != nil {
		return err
	}
	if len(definitions) > 1 {
		return apiError(http.StatusConflict,
			errors.New("several sites define this key differently, so that it is not clear "+
				"which one the phone is for; make the invitation in the console of the site"))
	}
	var x struct {
		Tags []string `json:"tags"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, httpapi.MaxDeviceRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil || d.More() {
		return apiError(http.StatusBadRequest, errors.New("the body must be one JSON object with the field tags, an array of texts"))
	}
	k := definitions[0]
	token, made, err := q.Devices.Invitations.Make(r.Context(), k.Key.Place(app.Conf.SiteID(k.Site)), x.Tags)
	if err != nil {
		return answerError(w, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusCreated)
	return writeJSON(w, invitationJSON{
		device.InvitationLink(linkOf(app, k), k.Key.Name, token), made.Until.UTC(), append([]string{}, x.Tags...),
	})
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
		some, err := q.Devices.List(ctx, d.Key.Place(app.Conf.SiteID(d.Site)))
		if err != nil {
			return answerError(w, err)
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
		removed, err = q.Devices.Remove(r.Context(), d.Key.Place(app.Conf.SiteID(d.Site)), r.PathValue("id"), "")
		if !errors.Is(err, device.ErrUnknown) {
			break
		}
	}
	if err != nil {
		return answerError(w, err)
	}
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
		removed, err := q.Devices.RemoveAll(r.Context(), d.Key.Place(app.Conf.SiteID(d.Site)), "")
		for _, x := range removed {
			all = append(all, x.JSON(nil))
		}
		if err != nil {
			return answerError(w, err)
		}
	}
	return writeJSON(w, all)
}
