package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Silences makes, lists and ends the silences of keys: /notify/{KEY}/silences.
type Silences struct{ *Base }

var errSilencesOff = api.Errorf(http.StatusForbidden,
	"silences are for those who may manage, and nobody may here; the operator can add console, or configs with manage")

// serveSilences answers a request about the silences of a key, or about one of them.
func (h *Silences) serveSilences(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	err := h.doSilences(w, r, at)
	if err == nil {
		return nil
	}
	resp := h.ErrorResponse(r, err)
	if IsChange(r) {
		h.Refuse(r, at.Lookup(), resp.Status, resp.Error, err)
	}
	return resp
}

func (h *Silences) doSilences(w http.ResponseWriter, r *http.Request, at *Route) error {
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.MayManage(r); err != nil {
		if errors.Is(err, errManageOff) {
			err = errSilencesOff
		}
		return err
	}
	if IsChange(r) {
		if err := CheckOwnOrigin(r); err != nil {
			return err
		}
	}
	k, silences, err := h.Of(r.Context(), at.Key)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPost:
		x, err := silence.Read(w, r)
		if err != nil {
			return err
		}
		if at.ID != "" {
			longer, err := h.ExtendSilence(r, silences, k, at.ID, x)
			if err != nil {
				return err
			}
			return WriteJSON(w, http.StatusOK, silence.New(k.Name, longer, silences.Now()))
		}
		made, err := h.MakeSilence(r, silences, k, x)
		if err != nil {
			return err
		}
		w.Header().Set("Location", messageRoot(r)+site.PathOf(RouteSilences, k.Name)+"/"+made.ID.String())
		return WriteJSON(w, http.StatusCreated, silence.New(k.Name, made, silences.Now()))
	case http.MethodDelete:
		ended, err := h.EndSilence(r, silences, k, at.ID)
		if err != nil {
			return err
		}
		return WriteJSON(w, http.StatusOK, silence.New(k.Name, ended, silences.Now()))
	}
	all, err := silences.List(r.Context(), k.Place(h.Site()).String(), k.SilenceWindows())
	if err != nil {
		return Answer(err)
	}
	if at.ID == "" {
		return WriteJSON(w, http.StatusOK, silence.List(k.Name, all, silences.Now()))
	}
	found := all.ByID(silence.ParseID(at.ID))
	if found == nil {
		return alerting.ErrNoSilence
	}
	return WriteJSON(w, http.StatusOK, silence.New(k.Name, found, silences.Now()))
}

// Of returns a key of the site, and the silences that it can have.
func (h *Silences) Of(ctx context.Context, name string) (k *site.Key, all *alerting.Silences, err error) {
	if k, err = h.Resolved.Key(ctx, name); err == nil {
		all, err = h.App.Silences(k)
	}
	return k, all, err
}

// MakeSilence makes a silence of a key for the client of r.
func (h *Silences) MakeSilence(r *http.Request, of *alerting.Silences, k *site.Key, s silence.Request) (*rules.Silence, error) {
	x, err := s.Silence(environment.User(r), of.Now(), h.ParseDuration)
	if err != nil {
		return nil, err
	}
	return &x, of.Make(r.Context(), k, h.Site(), x)
}

// ExtendSilence lets a silence of a key last longer for the client of r.
func (h *Silences) ExtendSilence(r *http.Request, of *alerting.Silences, k *site.Key, id string, s silence.Request) (
	*rules.Silence, error,
) {
	until, err := s.Longer(h.ParseDuration)
	if err != nil {
		return nil, err
	}
	longer, err := of.Extend(r.Context(), k, h.Site(), silence.ParseID(id), environment.User(r), until)
	return &longer, err
}

// EndSilence ends a silence of a key for the client of r.
func (h *Silences) EndSilence(r *http.Request, of *alerting.Silences, k *site.Key, id string) (*rules.Silence, error) {
	ended, err := of.End(r.Context(), k, h.Site(), silence.ParseID(id), environment.User(r))
	return &ended, err
}

// SilenceAddress returns the address of the page that makes a silence of what the query names, relative
// to a request.
func SilenceAddress(r *http.Request, query url.Values) string {
	return AddressOf(r, RouteConsoleSilences) + "?" + query.Encode()
}

// SilenceLengths returns choices for the length of a silence.
func SilenceLengths() []view.Choice {
	return []view.Choice{
		{Value: "30m", Label: "30 minutes"},
		{Value: "2h", Label: "2 hours", Chosen: true},
		{Value: "8h", Label: "8 hours, for a night"},
		{Value: "1d", Label: "1 day"},
		{Value: "3d", Label: "3 days"},
		{Value: "7d", Label: "1 week"},
		{Value: "30d", Label: "30 days"},
	}
}
