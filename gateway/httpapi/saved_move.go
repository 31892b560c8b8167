package httpapi

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// maxMoveRequest bounds the body of a request to move a key, in bytes.
const maxMoveRequest = 8 << 10

// moveConfig gives a saved key another name. The key keeps its tokens, devices, silences,
// incidents, inbox and waiting deliveries.
func (h *SavedKeys) moveConfig(w http.ResponseWriter, r *http.Request, name string) error {
	to, err := readMove(w, r, name)
	if err != nil {
		return err
	}
	if h.Resolved.Keys[to] != nil {
		return fieldError(http.StatusForbidden, "to", ErrKeyFixed(to).Error())
	}
	err = h.Saved.Move(r.Context(), name, to)
	if errors.Is(err, configstore.ErrExists) {
		return fieldError(http.StatusConflict, "to", "there is a saved key "+to+" already; choose another name, or delete that key first")
	}
	if err != nil {
		return err
	}
	destinations := 0
	if k, err := h.Resolved.Key(r.Context(), to); err == nil {
		destinations = len(k.Targets)
	}
	h.configChanged(r, to, changeMoved, destinations)
	writeChanged(w, r, to, "Moved", "Successfully moved configuration", nil)
	return nil
}

// readMove returns the new name of a key from the body of r: the field to of JSON or a form. A form
// of Apprise also has the old name.
func readMove(w http.ResponseWriter, r *http.Request, name string) (string, error) {
	if err := api.DecodeBody(w, r, maxMoveRequest); err != nil {
		return "", err
	}
	var x struct{ From, To string }
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "application/json" {
		d := json.NewDecoder(r.Body)
		if err := d.Decode(&x); err != nil || d.More() {
			if e := api.BodyError(err); err != nil && e.Status != http.StatusBadRequest {
				return "", e
			}
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
				return "", fieldError(http.StatusBadRequest, "to", "the field to must be a text, the new name of the key")
			}
			return "", api.Errorf(http.StatusBadRequest, "the body must be one JSON object with the field to, the new name of the key")
		}
	} else {
		r.Form = nil
		//nolint:gosec // the body is bounded above
		if err := r.ParseMultipartForm(maxMoveRequest); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			return "", api.BodyError(err)
		}
		x.From, x.To = r.PostForm.Get("from"), r.PostForm.Get("to")
	}
	switch {
	case x.From != "" && x.From != name:
		return "", fieldError(http.StatusBadRequest, "from", "the field from and the address name different keys; leave out from")
	case x.To == "":
		return "", fieldError(http.StatusBadRequest, "to", "the field to is missing; send the new name of the key")
	case x.To == name:
		return "", fieldError(http.StatusBadRequest, "to", "the key has this name already; send another one")
	}
	if err := site.CheckKeyName(x.To); err != nil {
		return "", fieldError(http.StatusBadRequest, "to", err.Error())
	}
	return x.To, nil
}

// fieldError returns the error for a field of the request.
func fieldError(status int, field, text string) *api.Error {
	e := api.Errorf(status, "%s", text)
	e.Field = field
	return e
}
