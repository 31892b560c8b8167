package caddyhttp

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestStateStore(t *testing.T) {
	ctx := context.Background()
	s := stateStore{&certmagic.FileStorage{Path: t.TempDir()}}
	load := func(want string) {
		t.Helper()
		if data, err := s.Load(ctx, "abc"); string(data) != want || (data == nil) != (want == "") || err != nil {
			t.Errorf("got %q and the error %v, want %q", data, err, want)
		}
	}
	load("")
	for _, text := range []string{"one", "two"} {
		if err := s.Store(ctx, "abc", []byte(text)); err != nil {
			t.Fatal(err)
		}
		load(text)
	}
	for range 2 {
		if err := s.Delete(ctx, "abc"); err != nil {
			t.Error(err)
		}
	}
	load("")
}

// States are removed when no configuration has had their URL for 30 days. States of URLs in the
// configuration and in saved keys stay.
func TestSweepStates(t *testing.T) {
	dir := t.TempDir()
	storage := &certmagic.FileStorage{Path: dir}
	const configured, saved, gone, back = "json://configured", "json://saved", "json://gone", "json://back"
	h := newGateway(t, "default_urls "+configured+"\nconfigs {\nmanage open\ntrust operator\n}", "")
	sweeper := stateSweeper{storage: storage, log: zap.NewNop(), each: h.app.eachDestination}
	if err := h.api.Saved.Store.Save(t.Context(), "k", configstore.FormatText, saved, 10); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = h.api.Saved.Store.Delete(context.Background(), "k") })
	file := func(url string) string {
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return stateFolder + notifier.StateFolder(d) + "/token"
	}
	now := time.Now()
	for _, url := range []string{configured, saved, gone, back} {
		if err := storage.Store(t.Context(), file(url), []byte("x")); err != nil {
			t.Fatal(err)
		}
		old := now.Add(-40 * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, file(url)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	// A gateway with another configuration has marked this one just now.
	if err := markStates(t.Context(), storage, path.Dir(file(back)), now); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		days int
		has  map[string]bool
	}{
		{10, map[string]bool{configured: true, saved: true, gone: false, back: true}},
		{29, map[string]bool{configured: true, saved: true, gone: false, back: true}},
		{31, map[string]bool{configured: true, saved: true, gone: false, back: false}},
	} {
		if err := sweeper.sweep(t.Context(), now.Add(time.Duration(tt.days)*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		for url, want := range tt.has {
			if storage.Exists(t.Context(), file(url)) != want {
				t.Errorf("after %d days: the state of %s: want %v", tt.days, url, want)
			}
			if storage.Exists(t.Context(), path.Dir(file(url))) != want {
				t.Errorf("after %d days: the folder of %s: want %v", tt.days, url, want)
			}
		}
	}
}
