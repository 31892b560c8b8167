package caddyhttp

import (
	"context"
	"testing"

	"github.com/caddyserver/certmagic"
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
