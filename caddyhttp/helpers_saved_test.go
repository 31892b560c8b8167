package caddyhttp

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// newConfigGateway returns a gateway with saved configurations in a folder, and
// their storage.
func newConfigGateway(t *testing.T, dir, configs, global string) (*Handler, *storagetest.Storage) {
	t.Helper()
	h := newGateway(t, open+"configs {\n"+configs+"\n}", global)
	storage := storagetest.New(dir)
	h.app.spaces.Storage = storage
	var err error
	if h.api.Saved.Store, err = configstore.New(configstore.Options{
		Storage: storage, Index: h.api.Saved.Index, Secret: h.api.Saved.Secret,
	}); err != nil {
		t.Fatal(err)
	}
	return h, storage
}
