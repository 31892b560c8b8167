package site_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// newSite returns a site with keys.
func newSite(t *testing.T, keys ...site.KeyOptions) *site.Site {
	t.Helper()
	s, err := site.New(site.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tags(t *testing.T, text string) notifier.TagExpr {
	t.Helper()
	e, err := notifier.ParseTags(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestKeyMistakes checks which keys a site cannot have.
func TestKeyMistakes(t *testing.T) {
	t.Parallel()
	const other = "fedcba9876543210"
	escalate := func(after ...time.Duration) *rules.Rules {
		return &rules.Rules{Escalate: &rules.Escalate{After: after, Repeat: 3, Ack: time.Hour}}
	}
	for want, change := range map[string]func(*site.KeyOptions){
		"the name of a key must be 1 to 128 letters":  func(k *site.KeyOptions) { k.Name = "a.b" },
		"1 to 128 letters, digits, _ and -":           func(k *site.KeyOptions) { k.Name = strings.Repeat("k", 129) },
		"it has no URL; add one":                      func(k *site.KeyOptions) { k.URLs = nil },
		"untagged cannot be a tag":                    func(k *site.KeyOptions) { k.URLs[0].Tags = []string{"Untagged"} },
		"all cannot be a tag":                         func(k *site.KeyOptions) { k.URLs[0].Tags = []string{"2:ALL"} },
		"a number after a tag":                        func(k *site.KeyOptions) { k.URLs[0].Tags = []string{"a:3"} },
		"the tag is malformed":                        func(k *site.KeyOptions) { k.URLs[0].Tags = []string{"a,b"} },
		"default_tag: no URL of the key has this tag": func(k *site.KeyOptions) { k.DefaultTag = "b" },
		"default_tag: it names no tag":                func(k *site.KeyOptions) { k.DefaultTag = " " },
		"token: a secret has fewer than 16":           func(k *site.KeyOptions) { k.Tokens = []string{"short"} },
		"reader: a secret has a space, a line break":  func(k *site.KeyOptions) { k.Readers = []string{secret + " " + other} },
		"token: a secret occurs twice":                func(k *site.KeyOptions) { k.Tokens = []string{secret, secret + "\n"} },
		"a secret is both a token and a reader": func(k *site.KeyOptions) {
			k.Tokens, k.Readers = []string{other, secret}, []string{secret}
		},
		"inbox: it must be a duration from 1m to 90d": func(k *site.KeyOptions) { k.Inbox = 91 * 24 * time.Hour },
		"dedupe: tag: no URL of the key has the tag nobody": func(k *site.KeyOptions) {
			k.URLs, k.Inbox, k.Rules = nil, time.Hour, &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute, Scope: rules.Scope{Tag: "nobody"}}}
		},
		"hold: tag: no URL of the key has the tag nobody": func(k *site.KeyOptions) {
			k.Rules = &rules.Rules{Hold: &rules.Lasting{For: time.Minute, Scope: rules.Scope{Tag: "nobody"}}}
		},
		"silence: tag: no URL of the key has the tag nobody": func(k *site.KeyOptions) {
			k.Rules = &rules.Rules{Windows: []rules.SilenceWindow{{Tag: "nobody"}}}
		},
		"digest: rules do not apply to URLs with numbers in their tags": func(k *site.KeyOptions) {
			k.URLs[0].Tags, k.Rules = []string{"1:a"}, &rules.Rules{Digest: &rules.Digest{Every: time.Minute}}
		},
		"no URL of the key has a number in a tag, so that there are no steps": func(k *site.KeyOptions) {
			k.Rules = escalate(time.Minute)
		},
		"the number of durations of after is 2; for the steps [1 2] it must be 1": func(k *site.KeyOptions) {
			k.URLs = append(k.URLs, site.URL{URL: "json://localhost/2", Tags: []string{"2:a"}})
			k.URLs[0].Tags, k.Rules = []string{"1:a"}, escalate(time.Minute, time.Minute)
		},
		"there is one step, so that one duration follows after; there are 2": func(k *site.KeyOptions) {
			k.URLs[0].Tags, k.Rules = []string{"1:a"}, escalate(time.Minute, time.Hour)
		},
		"tag: the URL with the number 1 has no tag y": func(k *site.KeyOptions) {
			k.URLs = append(k.URLs, site.URL{URL: "json://localhost/2", Tags: []string{"y"}})
			k.URLs[0].Tags, k.Rules = []string{"1:a"}, escalate(time.Minute)
			k.Rules.Escalate.Tag = "y"
		},
		"default_tag selects no URL with a number": func(k *site.KeyOptions) {
			k.URLs = append(k.URLs, site.URL{URL: "json://localhost/2", Tags: []string{"y"}})
			k.URLs[0].Tags, k.DefaultTag, k.Rules = []string{"1:a"}, "y", escalate(time.Minute)
		},
		"expect nightly: tag: none of the 1 destinations of the key has the tag b": func(k *site.KeyOptions) {
			k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Minute}, Tag: "b"}}
		},
		"expect nightly: the name occurs twice": func(k *site.KeyOptions) {
			b := site.BeatOptions{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: time.Minute}}
			k.Expects = []site.BeatOptions{b, b}
		},
	} {
		k := key("ops", "json://localhost/1", "a")
		change(&k)
		_, err := site.New(site.Options{Keys: []site.KeyOptions{k}, PublicURL: "https://alerts.example.com"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	k := key("ops", "json://localhost", "1:a")
	k.Rules = escalate(time.Minute)
	if _, err := site.New(site.Options{Keys: []site.KeyOptions{k}}); err == nil || !strings.Contains(err.Error(), "add public_url https://") {
		t.Errorf("without the address of the gateway: %v", err)
	}
}

// TestChoose checks which destinations of a key a message reaches by its tags, and what the
// error suggests if it reaches none.
func TestChoose(t *testing.T) {
	t.Parallel()
	urls := []site.URL{
		{URL: "json://localhost/0"},
		{URL: "json://localhost/1", Tags: []string{"disk"}},
		{URL: "json://localhost/2", Tags: []string{"disk", "2:raid"}},
	}
	all := site.KeyOptions{Name: "all", URLs: urls}
	tagged := site.KeyOptions{Name: "tagged", URLs: urls[1:], DefaultTag: "untagged"}
	some := site.KeyOptions{Name: "some", URLs: urls, DefaultTag: "raid"}
	s := newSite(t, all, tagged, some, site.KeyOptions{Name: "read", KeySettings: site.KeySettings{Inbox: time.Hour}})
	for _, tt := range []struct {
		key, tags string
		n         int
		want      string // the error
	}{
		{"all", "", 3, ""},
		{"all", "DISK", 2, ""},
		{"all", "disk raid", 1, ""},
		{"all", "none, raid", 1, ""},
		{"all", "raids", 0, "none of the 3 destinations of the key all has the requested tag raids, so nothing was sent; you may mean raid"},
		{"all", "other", 0, "has the requested tag other, so nothing was sent"},
		{"tagged", "", 0, "the message has no tag, and default_tag matches none of the 2 destinations"},
		{"tagged", "disk", 2, ""},
		{"some", "", 1, ""},
		{"read", "", 0, ""},
	} {
		got, err := s.Configured(tt.key).Choose(tags(t, tt.tags))
		if len(got) != tt.n || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %d destinations, %v; want %d, %q", tt.tags, tt.key, len(got), err, tt.n, tt.want)
		}
	}
	_, err := (&site.Key{Name: "new"}).Choose(notifier.TagExpr{})
	if err == nil || !strings.Contains(err.Error(), "no device has subscribed to it") {
		t.Errorf("a key without a destination: %v", err)
	}
	for tag, want := range map[string]string{
		"raid": "", "RAID": "", "dsk": "has the tag dsk; you may mean disk", "$": "may not hold the character",
	} {
		if err := s.Configured("all").CheckTag(tag); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tag, err, want)
		}
	}
}

// TestHome checks which records a key has: a saved key keeps its records when it is moved, and has
// none of a deleted key of its name.
func TestHome(t *testing.T) {
	t.Parallel()
	for want, k := range map[site.Place]site.Key{
		{Home: "", Key: "ops"}:             {Name: "ops"},
		{Home: "site x", Key: "ops"}:       {Name: "ops", OfSite: true},
		{Home: "space ", Key: "ops"}:       {Name: "ops", Saved: true},
		{Home: "space team 7", Key: "a"}:   {Name: "b", First: "a", Saved: true, Space: "team", ID: "7"},
		{Home: "space team 8", Key: "ops"}: {Name: "ops", Saved: true, Space: "team", ID: "8"},
	} {
		if got := k.Place("x"); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if (*site.Key)(nil).SilenceWindows() != nil {
		t.Error("no key has silences")
	}
}

// TestAccess checks that a site with secrets does not reveal which keys exist, and which sources a
// key accepts.
func TestAccess(t *testing.T) {
	t.Parallel()
	open, guarded := key("ops", "json://localhost"), key("ops", "json://localhost")
	guarded.Tokens, guarded.Accept = []string{secret}, []string{"grafana"}
	for _, tt := range []struct {
		k         site.KeyOptions
		name      string
		exists    bool
		protected bool // the key has a token
		want      string
	}{
		{open, "ops", true, false, ""},
		{open, "none", false, false, "there is no such key"},
		{guarded, "ops", true, true, ""},
		{guarded, "none", false, true, ""},
	} {
		s := newSite(t, tt.k)
		k, exists, err := s.OpenKey(t.Context(), tt.name)
		if exists != tt.exists || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %t, %v", tt.name, exists, err)
		}
		if err == nil && (len(k.Tokens) > 0) != tt.protected {
			t.Errorf("%s: %d tokens", tt.name, len(k.Tokens))
		}
		if k != nil && k.Tokens.Has("") {
			t.Errorf("%s: no token opens it", tt.name)
		}
	}
	s := newSite(t, guarded)
	k := s.Configured("ops")
	for name, want := range map[string]string{"grafana": "", "slack": "add the source to accept", site.SourceDirect: "add direct to accept"} {
		if err := k.CheckSource(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.ConfiguredName("ops") != "ops" || s.ConfiguredName("none") != "" || s.HasInboxes() {
		t.Errorf("%+v", s)
	}
}

// TestServices checks which services keys may use, by their schemes in any case.
func TestServices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		allow, deny string
		usable      bool
	}{
		{"", "", true},
		{"json", "", true},
		{"jsons", "", true}, // any scheme of a service stands for all
		{"JSON xml", "", true},
		{"xml", "", false},
		{"", "xml", true},
		{"", "jsons", false},
		{"json xml", "json", false},
	} {
		rule := &site.ServiceRule{Allow: strings.Fields(tt.allow), Deny: strings.Fields(tt.deny)}
		k := key("ops", "json://localhost")
		own, err := site.New(site.Options{Services: rule, Keys: []site.KeyOptions{k}})
		if (err == nil) != tt.usable || err != nil && !strings.Contains(err.Error(), "the service JSON may not be used here") {
			t.Errorf("allow %s, deny %s: %v", tt.allow, tt.deny, err)
		}
		base, err := site.New(site.Options{Services: rule})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := site.New(site.Options{Base: base, Keys: []site.KeyOptions{k}}); (err == nil) != tt.usable {
			t.Errorf("allow %s, deny %s for all sites: %v", tt.allow, tt.deny, err)
		}
		if own == nil {
			continue
		}
		d := own.Configured("ops").Targets[0].Destination
		if err := (site.ServiceRules{nil, rule, {Deny: []string{"json"}}}).Check(d); err == nil {
			t.Errorf("allow %s, deny %s: a rule of several does not count", tt.allow, tt.deny)
		}
	}
	if a, b := (&site.ServiceRule{Allow: []string{"a"}}), (&site.ServiceRule{Deny: []string{"a"}}); a.Equal(b) || !a.Equal(a) {
		t.Error("equal rules")
	}
}

// TestRuler checks what says how alerts of rulers are grouped.
func TestRuler(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]site.Ruler{
		"group_wait: the time must be from 1s to 24h":                {Times: rules.GroupTimes{Wait: 25 * time.Hour}},
		"group_interval: the time must be from 1s to 24h":            {Times: rules.GroupTimes{Interval: time.Millisecond}},
		"group_by: alertname is always one of the labels; remove it": {GroupBy: []string{"alertname"}},
		"the label a occurs twice; remove one":                       {GroupBy: []string{"a", "b", "a"}},
		"... is not possible here; name the labels":                  {GroupBy: []string{"..."}},
		"a name of a label is empty; remove it":                      {GroupBy: []string{""}},
		"it names 11 labels; at most 10 are possible":                {GroupBy: strings.Fields("a b c d e f g h i j k")},
	} {
		if _, err := site.NewRuler(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	r, err := site.NewRuler(site.Ruler{GroupBy: []string{"b", "a"}, Times: rules.GroupTimes{Interval: time.Minute}})
	if err != nil || strings.Join(r.GroupBy, " ") != "a b" || r.Times != (rules.GroupTimes{Wait: 30 * time.Second, Interval: time.Minute}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRepeatedURL checks the warning about a URL that a key has twice with the same tags.
func TestRepeatedURL(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	twice := key("ops", "json://localhost/1", "a", "B")
	twice.URLs = append(twice.URLs, site.URL{URL: "json://localhost/1"}, site.URL{URL: "json://localhost/1", Tags: []string{"b", "A"}})
	twice.Lines = func(setting string) string { return map[string]string{"key ops, URL 3": "Caddyfile:9"}[setting] }
	imported, err := notifier.Parse("json://localhost/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	twice.Import = func(func(about, text string)) ([]notifier.Target, error) {
		return []notifier.Target{{Destination: imported}}, nil
	}
	if _, err := site.New(site.Options{Keys: []site.KeyOptions{twice}, Log: zap.New(core)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range logged.All() {
		text, _ := e.ContextMap()["warning"].(string)
		before, _, _ := strings.Cut(text, ", so each")
		got = append(got, before)
	}
	const want = "Caddyfile:9: the key ops has this URL already in key ops, URL 1\n" +
		"an imported file: the key ops has this URL already in key ops, URL 2"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}

// TestDirectory checks how a key is found by its name and by its place, in the configuration
// and among saved keys, and under the name that it has now.
func TestDirectory(t *testing.T) {
	t.Parallel()
	global := newSite(t, key("ops", "json://localhost/1"), key("dev", "json://localhost/2"))
	base := func(keys ...site.KeyOptions) *site.Site {
		s, err := site.New(site.Options{Base: global, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := base(key("ops", "json://localhost/3")), base()
	b.Saved = site.Finder{
		Find: func(_ context.Context, name string) (*site.Key, error) {
			if name != "new" {
				return nil, site.ErrNoKey
			}
			return &site.Key{Name: "new", First: "old", Saved: true, ID: "7"}, nil
		},
		Moved: func(_ context.Context, name string) ([]*site.Key, error) {
			if name != "old" {
				return nil, nil
			}
			return []*site.Key{{Name: "new", First: "old", Saved: true, ID: "7"}}, nil
		},
		MayHaveMoved: func(name string) bool { return name == "old" },
		Protected:    func(context.Context) bool { return false },
	}
	index := &site.Index{IDs: map[*site.Site]string{a: "A", b: "B"}, ByID: map[string][]*site.Site{"A": {a}, "B": {b}}}
	d := &site.Directory{Global: global, Sites: []*site.Site{a, b}, SiteIndex: func() *site.Index { return index }}

	all := d.Definitions()
	if len(all) != 2 || len(all["ops"]) != 2 || len(all["dev"]) != 1 || all["ops"][1].Scope != "site" {
		t.Errorf("%+v", all)
	}
	if homes := d.Homes("ops"); len(homes) != 2 || homes[0].Site != global || homes[1].Site != a {
		t.Errorf("%+v", homes)
	}
	if saved, err := d.SavedDefinitions(t.Context(), "new"); err != nil || len(saved) != 1 || saved[0].Scope != "saved" {
		t.Errorf("%+v, %v", saved, err)
	}
	for place, want := range map[site.Place]string{
		{Key: "ops"}:                   "ops",
		{Home: "site A", Key: "ops"}:   "ops",
		{Home: "site B", Key: "ops"}:   "",
		{Home: "space  7", Key: "old"}: "new",
		{Home: "space  8", Key: "old"}: "",
	} {
		k, _, _ := d.FindPlace(t.Context(), place)
		if (k == nil) != (want == "") || k != nil && k.Name != want {
			t.Errorf("%+v is %+v, want %q", place, k, want)
		}
		if want == "" {
			want = place.Key // a key that is gone keeps its name
		}
		if got := d.NameOfIncident(t.Context(), &rules.Incident{Home: place.Home, Key: place.Key}); got != want {
			t.Errorf("%+v has the name %s, want %s", place, got, want)
		}
	}
	k, s, err := d.KeyOfIncident(t.Context(), &rules.Incident{Home: "site A", Key: "ops", Site: "A"})
	if err != nil || s != a || k != a.Keys["ops"] {
		t.Errorf("%+v, %v", k, err)
	}
	for id, want := range map[string]int{"": 1, "A": 2, "gone": 3} {
		if got := d.Candidates(id); len(got) != want {
			t.Errorf("%q: %d sites, want %d", id, len(got), want)
		}
	}
}
