package programs

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// compatible are the payloads of a program that the source of another one accepts, by the two
// sources, with the reason.
var compatible = map[[2]string]string{
	{"alertmanager", "grafana"}: "Grafana sends Alertmanager's fields and some more",
	{"grafana", "alertmanager"}: "contact points of Grafana that belong to another Alertmanager send its format",
	{"github", "gitea"}:         "Gitea sends the fields and headers of GitHub",
	{"slack", "truenas"}:        "TrueNAS sends messages for Slack",
	{"slack", "cloudflare"}:     "the test of Cloudflare is a text, as a message for Slack is",
	{"truenas", "cloudflare"}:   "the test of Cloudflare is a text, as a message of TrueNAS is",
	{"cloudflare", "truenas"}:   "a message of TrueNAS is a text, as the test of Cloudflare is",
	{"gotify", "watchtower"}:    "a title and a message are a message for Gotify",
	{"nagios", "icinga"}:        "the commands of Nagios and Icinga post the same fields",
	{"icinga", "nagios"}:        "the commands of Nagios and Icinga post the same fields",
	{"opsgenie", "gotify"}:      "a message is all that an alert for Opsgenie needs",
	{"opsgenie", "watchtower"}:  "a message is all that an alert for Opsgenie needs",
	{"proxmox", "watchtower"}:   "a title and a message may be all that the body of a Proxmox target has",
}

// TestForeignPayloads posts every sample to every other source. It must be refused with
// an error that names its own source.
func TestForeignPayloads(t *testing.T) {
	racetest.SkipIfSlow(t)
	used := map[[2]string]bool{}
	for _, sample := range samples(t) {
		for _, f := range source.Formats() {
			if f.Name == sample.source {
				continue
			}
			s, err := source.Builtin(f.Name)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Read(t.Context(), sample.new())
			pair := [2]string{f.Name, sample.source}
			if err == nil {
				if used[pair] = true; compatible[pair] == "" {
					t.Errorf("%s takes %s", f.Name, sample.path)
				}
				continue
			}
			if e, ok := errors.AsType[*source.Error](err); !ok || e.Status != http.StatusBadRequest ||
				!strings.Contains(err.Error(), "/"+sample.source) {
				t.Errorf("%s: the error for %s is %v", f.Name, sample.path, err)
			}
		}
	}
	for pair, reason := range compatible {
		if !used[pair] {
			t.Errorf("%s takes no sample of %s, so there is no exception: %s", pair[0], pair[1], reason)
		}
	}
}

// TestPayloadsWithoutHeaders checks that a source takes its samples without the headers
// of the program, as somebody pastes them on a page.
func TestPayloadsWithoutHeaders(t *testing.T) {
	for _, sample := range samples(t) {
		if filepath.Base(sample.path) == "binary.json" || filepath.Base(sample.path) == "encoded.json" {
			continue // the event is in the headers
		}
		s, err := source.Builtin(sample.source)
		if err != nil {
			t.Fatal(err)
		}
		r := sample.new()
		r.Header = http.Header{"Content-Type": {"application/json"}}
		if strings.HasPrefix(sample.header.Get("Content-Type"), "application/cloudevents") {
			r.Header = sample.header
		}
		if _, err := s.Read(t.Context(), r); err != nil {
			t.Errorf("%s: %v", sample.path, err)
		}
	}
}

// TestInstanceNames checks that Sonarr and its relatives are recognized by the name of the
// instance, which begins or ends with the program's name.
func TestInstanceNames(t *testing.T) {
	renamed := 0
	for _, sample := range samples(t) {
		program := strings.ToUpper(sample.source[:1]) + sample.source[1:]
		for _, name := range []string{program + " 4K", "My " + program} {
			body := bytes.Replace(sample.body, []byte(`"instanceName": "`+program+`"`), []byte(`"instanceName": "`+name+`"`), 1)
			if bytes.Equal(body, sample.body) {
				continue
			}
			renamed++
			for _, other := range []string{"lidarr", "prowlarr", "radarr", "readarr", "sonarr", "whisparr"} {
				s, err := source.Builtin(other)
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Read(t.Context(), request{body: body, header: sample.header}.new())
				if other == sample.source && err != nil || other != sample.source &&
					(err == nil || !strings.Contains(err.Error(), "ends with /"+sample.source+";")) {
					t.Errorf("%s as %q, sent to %s: %v", sample.path, name, other, err)
				}
			}
		}
	}
	if renamed == 0 {
		t.Error("no sample has a name of an instance")
	}
}

// TestForeignErrors checks the error for a payload of another program.
func TestForeignErrors(t *testing.T) {
	const media = "application/json"
	kuma := `{"heartbeat":null,"monitor":null,"msg":"Testing"}`
	for name, tt := range map[string]struct {
		source, media, body string
		header              http.Header
		want                string
	}{
		"another program": {
			"grafana", media, kuma, nil,
			`this is no payload of Grafana: "alerts" is missing; it looks like one of Uptime Kuma, whose address ends with /uptime_kuma; it has ` +
				`"heartbeat", "monitor" and "msg"`,
		},
		"in a form": {
			"diun", "application/x-www-form-urlencoded", "data=" + url.QueryEscape(kuma), nil,
			`this is no payload of Diun: "diun_version" is missing; it looks like one of Uptime Kuma, whose address ends with /uptime_kuma; it ` +
				`has "heartbeat", "monitor" and "msg"`,
		},
		"in a form, which both have": {
			"github", "application/x-www-form-urlencoded", "payload=" + url.QueryEscape(`{"event":"media.play","Account":{"title":"bob"}}`), nil,
			`it looks like one of Plex, whose address ends with /plex; it has "Account" and "event"`,
		},
		"part of a field": {
			"alertmanager", media, `{"alerts":[{"status":"firing"}]}`, nil,
			`this is no payload of Prometheus Alertmanager: "alerts[].labels" is missing; it has "alerts"`,
		},
		"what the program has, and more of another": {
			"proxmox", media, `{"title":"Disk","message":"full","priority":5}`, nil,
			`this is no payload of Proxmox VE and Backup Server: it looks like one of Gotify, whose address ends with /gotify; it has "message", ` +
				`"priority" and "title"`,
		},
		"a header of another program": {
			"gitea", media, `{"action":"created","repository":{"full_name":"acme/shop"}}`,
			http.Header{"X-Github-Event": {"star"}},
			`this is no payload of Gitea and Forgejo: it looks like one of GitHub, whose address ends with /github; it has "action" and ` +
				`"repository"`,
		},
		"several programs": {
			"sonarr", media, `{"title":"Disk","message":"full"}`, nil,
			`it looks like one of Gotify, Proxmox VE and Backup Server or Watchtower, whose addresses end with /gotify, /proxmox and ` +
				`/watchtower; it has`,
		},
		"a message for the gateway": {
			"zabbix", media, `{"title":"Disk","body":"full"}`, nil,
			`it looks like a message for the address of the key, without /zabbix; it has "body" and "title"`,
		},
		"an API": {
			"slack", media, kuma, nil,
			`this is no payload of Slack, Mattermost and Rocket.Chat: it looks like one of Uptime Kuma, whose`,
		},
		"an API, no text": {
			"discord", media, kuma, nil,
			`this is no payload of Discord: "content" is missing; it looks like one of Uptime Kuma, whose`,
		},
		"no event": {
			"cloudevents", media, kuma, nil,
			`"specversion" is missing; it looks like one of Uptime Kuma, whose address ends with /uptime_kuma; it has "heartbeat", "monitor" ` +
				`and "msg"`,
		},
		"a list": {"plex", media, `[1]`, nil, `"event" is missing; it is no object`},
		"many fields": {
			"plex", media, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`, nil,
			`it has "a", "b", "c", "d", "e", "f" and 2 more`,
		},
		"names with secret": {"plex", "application/x-www-form-urlencoded", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", nil, `it has "…"`},
		"a name with space": {"plex", media, `{"the password is x":1,"ok_1":2}`, nil, `it has "ok_1" and "…"`},
		"a long name":       {"plex", media, `{"` + strings.Repeat("x", 99) + `":1}`, nil, `it has "…"`},
	} {
		s, err := source.Builtin(tt.source)
		if err != nil {
			t.Fatal(err)
		}
		if tt.header == nil {
			tt.header = http.Header{}
		}
		tt.header.Set("Content-Type", tt.media)
		_, err = s.Read(t.Context(), request{body: []byte(tt.body), header: tt.header}.new())
		if e, ok := errors.AsType[*source.Error](err); !ok || e.Status != http.StatusBadRequest || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := source.New(source.Config{Name: "plex", Token: "hunter"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), request{body: []byte(`{"hunter":1}`), header: http.Header{}}.new()); err == nil ||
		strings.Contains(err.Error(), "hunter") {
		t.Errorf("the error shows the token: %v", err)
	}
}

// TestConditionsOfFormats checks that every format has conditions for its payloads, and that each
// program in Reads exists.
func TestConditionsOfFormats(t *testing.T) {
	for _, f := range source.Formats() {
		required := false
		for _, row := range f.Has {
			required = required || !strings.HasSuffix(row, "?")
		}
		if !required {
			t.Errorf("Has of %s has no condition that a payload must meet", f.Name)
		}
		for _, name := range f.Reads {
			if source.Lookup(name) == nil {
				t.Errorf("%s reads payloads of %s, which is no format", f.Name, name)
			}
		}
	}
}
