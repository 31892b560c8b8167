package httpapi

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// maxMoveRequest bounds the body of a request to move a key, in bytes.
const maxMoveRequest = 8 << 10

// moveConfig gives a saved key another name.
func (h *SavedKeys) moveConfig(w http.ResponseWriter, r *http.Request, name string) error {
	to, err := readMove(w, r, name)
	if err != nil {
		return err
	}
	if err := h.Changes(r).Move(r.Context(), name, to); err != nil {
		return err
	}
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
				return "", fieldError("to", "the field to must be a text, the new name of the key")
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
		return "", fieldError("from", "the field from and the address name different keys; leave out from")
	case x.To == "":
		return "", fieldError("to", "the field to is missing; send the new name of the key")
	}
	return x.To, nil
}

// fieldError returns the error for a field of the request.
func fieldError(field, text string) *api.Error {
	e := api.Errorf(http.StatusBadRequest, "%s", text)
	e.Field = field
	return e
}
