package caddyhttp

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestForEach checks that all calls below the lowest number with an error are
// made, and that this error is returned.
func TestForEach(t *testing.T) {
	for _, n := range []int{0, 1, forEachBatch, forEachBatch + 1, 5000} {
		for _, fail := range [][]int{nil, {0}, {n - 1}, {n / 2, n/2 + 1, n - 1}} {
			want, fails := n, make([]bool, n+1)
			for _, i := range fail {
				if i >= 0 && i < n {
					want, fails[i] = min(want, i), true
				}
			}
			called := make([]atomic.Bool, n)
			failed, err := forEach(n, func(i int) error {
				if called[i].Swap(true) {
					t.Errorf("n=%d, fail=%v: %d is called twice", n, fail, i)
				}
				if fails[i] {
					return fmt.Errorf("error %d", i)
				}
				return nil
			})
			switch {
			case failed != want, want == n && err != nil, want < n && (err == nil || err.Error() != fmt.Sprint("error ", want)):
				t.Errorf("n=%d, fail=%v: %d, %v", n, fail, failed, err)
			}
			for i := range min(want+1, n) {
				if !called[i].Load() {
					t.Errorf("n=%d, fail=%v: %d is not called", n, fail, i)
				}
			}
		}
	}
}

// TestForEachPanic checks that a panic reaches the caller, where net/http
// recovers it during a reload.
func TestForEachPanic(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "broken 70") {
			t.Errorf("the panic is %v", p)
		}
	}()
	_, _ = forEach(100, func(i int) error {
		if i == 70 {
			panic("broken 70")
		}
		return nil
	})
	t.Error("forEach returned")
}

// manyKeys returns a block with 1000 keys, in which the lines with the numbers in
// bad have a URL of an unknown service. Key i has its URL in line 3+3*i.
func manyKeys(bad ...int) string {
	var out strings.Builder
	out.WriteString("notify {\n")
	for i := range 1000 {
		url := "json://localhost"
		for _, line := range bad {
			if line == 3+3*i {
				url = "jsn://localhost"
			}
		}
		fmt.Fprintf(&out, "\tkey k%03d {\n\t\turl %s\n\t}\n", i, url)
	}
	return out.String() + "}"
}

// TestFirstError checks that the error about a configuration with several
// mistakes is always the first one, and that warnings are logged in the order of
// the keys, although URLs are read by several goroutines.
func TestFirstError(t *testing.T) {
	var s Settings
	err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(manyKeys(603, 606, 1803, 2997)))
	if err == nil || !strings.Contains(err.Error(), ":603") {
		t.Errorf("the first error of the Caddyfile is %v", err)
	}

	s = Settings{}
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(manyKeys())); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		s.Keys[fmt.Sprintf("k%03d", i)].URLs[0].URL = "jira://apikey/%40user/?region=us"
	}
	base, err := defaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []int{1000, 777, 301} {
		if bad < 1000 {
			s.Keys[fmt.Sprintf("k%03d", bad)].URLs[0].URL = "jsn://localhost"
		}
		core, logs := observer.New(zap.WarnLevel)
		_, err := s.resolve(base, parseUnshared, zap.New(core))
		if bad < 1000 && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf(":%d: ", 3+3*bad))) {
			t.Errorf("with a mistake in key %d: %v", bad, err)
		}
		all := logs.All()
		if len(all) != bad {
			t.Errorf("with a mistake in key %d, there are %d warnings", bad, len(all))
		}
		for i, e := range all {
			if e.ContextMap()["key"] != fmt.Sprintf("k%03d", i) {
				t.Fatalf("warning %d is %v", i, e.ContextMap())
			}
		}
	}
}
