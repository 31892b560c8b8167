package site

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// KeyOf returns the key of an incident, and the settings that have it; nil if it is gone.
// The error is one of saved keys that cannot be read.
func (a *Directory) KeyOf(ctx context.Context, x *rules.Incident) (*Key, *Site, error) {
	for _, s := range a.Candidates(x.Site) {
		k, err := s.Key(ctx, x.Key)
		if err == nil && k.Home(x.Site) == x.Home {
			return k, s, nil
		}
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}
