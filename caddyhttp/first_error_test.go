package caddyhttp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

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
	for _, bad := range []int{1000, 777, 301} {
		if bad < 1000 {
			s.Keys[fmt.Sprintf("k%03d", bad)].URLs[0].URL = "jsn://localhost"
		}
		core, logs := observer.New(zap.WarnLevel)
		_, err := s.resolve(nil, nil, parseUnshared, zap.New(core))
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
