package site

import (
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// CheckSource returns an error if the key does not accept messages of the source.
func (k *Key) CheckSource(name string) error {
	if len(k.Accept) == 0 || slices.Contains(k.Accept, name) {
		return nil
	}
	if name == SourceDirect {
		return errNotDirect
	}
	return errNotAccepted
}

var (
	ErrNoKey       = api.Errorf(http.StatusNotFound, "there is no such key")
	errNotAccepted = api.Errorf(http.StatusForbidden, "the key does not accept messages from this source; add the source to accept of the key")
	errNotDirect   = api.Errorf(http.StatusForbidden, "the key accepts messages from its sources only; post to /notify/{KEY}/{SOURCE}, or add direct to accept of the key")
)
