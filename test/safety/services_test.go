package safety

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// named is a service whose URL names the server.
type named struct {
	service notifier.ServiceInfo
	scheme  string
	at      func(address string) string // the URL with this server
}

// servers returns the services whose URLs name the server, once for each scheme
// and each form of URL.
func servers() (out []named) {
	for _, s := range notifier.Services() {
		texts := slices.Clone(otherServers[s.Name])
		for _, p := range s.Params {
			if p.Name != "host" || p.Example == "" {
				continue
			}
			server := regexp.MustCompile(regexp.QuoteMeta(p.Example) + "(:[0-9]+)?")
			for i, example := range s.Examples {
				_, rest, _ := strings.Cut(example, "://")
				if at := server.FindStringIndex(rest); at != nil && strings.Contains(s.URLs[i], "{host}") {
					texts = append(texts, rest[:at[0]]+"{host}:{port}"+rest[at[1]:])
				}
			}
		}
		for _, text := range texts {
			for _, scheme := range s.Schemes {
				n := named{s, scheme, func(address string) string {
					i := strings.LastIndexByte(address, ':')
					return scheme + "://" + strings.NewReplacer("{host}", address[:i], "{port}", address[i+1:]).Replace(text)
				}}
				if _, err := notifier.Parse(n.at("127.0.0.1:1"), nil); err == nil {
					out = append(out, n)
				}
			}
		}
		if s.Name == "Web Push" {
			out = append(out, named{s, "vapid", func(address string) string { return webPush(s.Examples[0], address) }})
		}
	}
	return out
}

// otherServers are URLs that name their server in another place than the host,
// or whose examples need a host on the Internet.
var otherServers = map[string][]string{
	"E-Mail": {
		"user:password@{host}:{port}?from=me@example.com&to=you@example.com&mode=insecure",
		"user:password@{host}:{port}?from=me@example.com&to=you@example.com&mode=ssl",
		"user:password@example.com:{port}/you@example.com?smtp={host}&mode=insecure",
	},
	"IRC":  {"user:password@{host}:{port}/%23ops"},
	"XMPP": {"user:password@example.com:{port}/bob?xmpp={host}"},
}

// webPush returns a URL whose push service is at an address.
func webPush(example, address string) string {
	before, subscription, _ := strings.Cut(example, "subfile=")
	text, err := base64.RawURLEncoding.DecodeString(subscription)
	if err != nil {
		return ""
	}
	return before + "subfile=" + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(text), "push.example.net", address, 1)))
}

// TestEgressOfEveryService checks that egress applies to every service whose
// URL names the server, in every protocol, and not to the operator's URLs.
func TestEgressOfEveryService(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	all := servers()
	guards := map[string]*guarded{} // by URL
	urls := make([]string, len(all))
	for i, n := range all {
		v := newGuarded(t)
		urls[i] = n.at("127.0.0.1:" + v.port)
		guards[urls[i]] = v
	}
	m := message{"body": "a body", "title": "a title", "urls": urls}

	open := start(t, "", "timeout "+seconds(4)+"\negress {\nallow 127.0.0.1\n}")
	got := open.post("/notify", m)
	if len(got.Results) != len(all) {
		t.Fatalf("status %d, %d results for %d URLs: %.300s", got.Status, len(got.Results), len(all), got.Body)
	}
	reached := map[string]bool{}
	var dialling []named
	var block strings.Builder
	for i, n := range all {
		if isRefusal.MatchString(got.Results[i].Error) {
			t.Errorf("%s, allowed: %s", urls[i], got.Results[i].Error)
		}
		dials := guards[urls[i]].take() > 0
		reached[n.scheme] = reached[n.scheme] || dials
		if dials { // other URLs fail before the gateway dials
			fmt.Fprintf(&block, "url `%s`\n", urls[i])
			dialling = append(dialling, n)
		}
	}
	for scheme, dials := range reached {
		if !dials {
			t.Errorf("%s://: no URL makes a connection although egress allows it", scheme)
		}
	}
	if len(reached) < 70 {
		t.Errorf("only %d schemes name a server", len(reached))
	}
	for _, scheme := range []string{"mailto", "mqtt", "irc", "xmpp", "smpp", "growl", "rsyslog", "vapid"} {
		if !reached[scheme] {
			t.Errorf("no URL of %s:// names a server", scheme)
		}
	}

	closed, v := start(t, "", ""), newGuarded(t)
	for _, p := range forbiddenHosts() {
		if p.none || !p.usual || strings.Contains(p.host, "@") {
			continue
		}
		var urls []string
		for _, n := range dialling {
			if u := n.at(p.host + ":" + v.port); parses(u) {
				urls = append(urls, u)
			}
		}
		m["urls"] = urls
		got := closed.post("/notify", m)
		for i, r := range got.Results {
			if r.Status == "delivered" || !p.refusedIn(r.Error) {
				t.Errorf("%s: not refused with %s: %s", urls[i], p.rule, r.Error)
			}
		}
		if n := v.take(); n > 0 || len(got.Results) != len(urls) || len(urls) < len(dialling)/2 {
			t.Errorf("%s: %d connections, %d URLs, %d results", p.host, n, len(urls), len(got.Results))
		}
	}

	operators := start(t, "", "timeout "+seconds(4)+"\negress {\ndeny 0.0.0.0/0 ::/0\n}\nkey all {\n"+block.String()+"}")
	got = operators.post("/notify/all", message{"body": "a body", "title": "a title"})
	for _, r := range got.Results {
		if isRefusal.MatchString(r.Error) {
			t.Errorf("%s of the operator: %s", r.Destination, r.Error)
		}
	}
	for u, v := range guards {
		if strings.Contains(block.String(), "`"+u+"`") && v.take() == 0 {
			t.Errorf("%s of the operator makes no connection", u)
		}
	}
}

func parses(u string) bool {
	_, err := notifier.Parse(u, nil)
	return err == nil
}
