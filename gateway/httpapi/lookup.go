package httpapi

import (
	"context"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Lookup finds the key of a request and compares its secrets with the request's, each once. So
// everything in a request uses the same key even if a client changes it meanwhile. Only one
// goroutine may use it.
type Lookup struct {
	Name string // "" for no key
	site *site.Site

	key    *site.Key
	exists bool
	err    error
	found  bool // key, exists and err are set

	token    string
	compared bool // token is set
	managed  bool // the client may manage, and thus send without a token
}

// Lookup returns a Lookup of the key with a name for one request. It does not read anything yet.
func (h *Base) Lookup(name string) *Lookup { return &Lookup{Name: name, site: h.Resolved} }

// open returns the key for a client that may have no secret; see [site.Site.OpenKey].
func (l *Lookup) open(ctx context.Context) (k *site.Key, exists bool, err error) {
	if !l.found {
		l.found, l.err = true, site.ErrNoKey
		if l.Name != "" {
			l.key, l.exists, l.err = l.site.OpenKey(ctx, l.Name)
		}
	}
	return l.key, l.exists, l.err
}

// Key returns the key. The error is [site.ErrNoKey] if there is none, even if keys are protected.
func (l *Lookup) Key(ctx context.Context) (*site.Key, error) {
	k, exists, err := l.open(ctx)
	if err == nil && !exists {
		err = &site.UnknownKeyError{Name: l.Name}
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Token returns the hash of the key's token that r has in one of the usual places; "" for none.
func (l *Lookup) Token(r *http.Request) string {
	if k, _, err := l.open(r.Context()); err == nil && !l.compared && len(k.Tokens) > 0 {
		l.compared = true
		l.token = new(source.Format).TokenSum(source.NewRequest(r), k.Tokens)
	}
	return l.token
}

// toSend returns the key if the client of r may send to it. It does not read the body.
func (l *Lookup) toSend(r *http.Request) (*site.Key, error) {
	if l.managed {
		return l.Key(r.Context())
	}
	k, _, err := l.open(r.Context())
	if err == nil && len(k.Tokens) > 0 && l.Token(r) == "" {
		err = site.ErrNoToken
	}
	return k, err
}
