package caddyhttp

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// TestFromPrometheus checks what a configuration says of rulers, and what is refused when it
// loads.
func TestFromPrometheus(t *testing.T) {
	const global = "queue {\npath %s\n}\n"
	for block, want := range map[string]string{
		"from prometheus {\ngroup_wait 10s\n}": "the alerts of rulers are kept " +
			"in the queue, and there is none; add queue to the global option notify, or remove the block",
		"from prometheus {\ntitle x\n}":                                "title",
		"from prometheus {\ngroup_by alertname\n}":                     "alertname is always one of the labels; remove it",
		"from prometheus {\ntoken \"\"\n}":                             "token",
		"from Prometheus {\ntoken abc\n}":                              "is an address of the gateway itself",
		"from grafana {\ngroup_wait 10s\n}":                            "group_wait",
		"from prometheus {\ntoken a\n}\nfrom prometheus {\ntoken b\n}": "the source prometheus occurs twice",
	} {
		if _, err := provision(t, block, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", block, err, want)
		}
	}
	h := newGateway(t,
		"key k {\nurl json://127.0.0.1\n}\nfrom prometheus {\ngroup_by b a\ngroup_interval 1m\ntoken abc\n}",
		strings.Replace(global, "%s", t.TempDir(), 1))
	r := h.api.Resolved.Ruler
	if r == nil || strings.Join(r.GroupBy, " ") != "a b" || r.Times.Wait != 30*time.Second ||
		r.Times.Interval != time.Minute || r.Token != "abc" {
		t.Errorf("%+v", r)
	}
	for name, s := range map[string]*Source{
		"group_by, group_wait and group_interval are for the source prometheus only": {Title: "x", GroupWait: caddy.Duration(time.Second)},
	} {
		if _, err := s.load("own"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := (&Source{Title: "x"}).loadRuler(); err == nil ||
		!strings.Contains(err.Error(), "its messages are those of the source alertmanager") {
		t.Error(err)
	}
}
