package httpapi_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// The secrets of keys of the tests.
const (
	keyToken    = "0psT0ken-0psT0ken"
	secondToken = "0psT0ken2-0psT0ken2"
	keyReader   = "0psReader-0psReader"
)

// newSite returns a gateway whose site has options.
func newSite(t testing.TB, o site.Options) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{Site: o})
}

// newSavedKeys returns a gateway with keys of its configuration and saved keys. m may read and
// change the saved keys; nobody may if m is nil. A nil storage stands for a new one.
func newSavedKeys(t testing.TB, storage certmagic.Storage, m *site.Managers, o saved.Options,
	keys ...site.KeyOptions,
) *gatewaytest.Gateway {
	t.Helper()
	o.Manage = m != nil
	return gatewaytest.New(t, gatewaytest.Options{
		Global:  site.Options{Keys: keys},
		Site:    site.Options{Egress: gatewaytest.Loopback(), Managers: m},
		Saved:   &o,
		Storage: storage,
	})
}

// protectedKey returns options of a key with the token [keyToken].
func protectedKey(name string, urls ...string) site.KeyOptions {
	k := gatewaytest.Key(name, urls...)
	k.Tokens = []string{keyToken}
	return k
}

// getAccepting gets an address and accepts types of content.
func getAccepting(g *gatewaytest.Gateway, target, accept string) gatewaytest.Reply {
	return g.Do(gatewaytest.NewRequest(http.MethodGet, target, "", "Accept", accept))
}

// bearerToken returns the value of Authorization with a token.
func bearerToken(token string) string { return "Bearer " + token }

// basicPassword returns the value of Authorization with a password.
func basicPassword(password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+password))
}

// unreadBody fails the test when it is read.
type unreadBody struct{ t testing.TB }

// Read implements [io.Reader].
func (u unreadBody) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}
