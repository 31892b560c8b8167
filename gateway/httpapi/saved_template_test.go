package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// saveYAML saves a configuration under the key ops.
func saveYAML(t *testing.T, g *gatewaytest.Gateway, text string) {
	t.Helper()
	if r := g.PostForm("/add/ops", url.Values{"format": {"yaml"}, "config": {text}}.Encode()); r.Status != http.StatusOK {
		t.Fatalf("%s is answered with %d %s", text, r.Status, r.Body)
	}
}

// TestTemplateValues checks where the values of a URL's variables come from.
func TestTemplateValues(t *testing.T) {
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	base := strings.TrimSuffix(s.NotifyURL("/"), "/")
	saveYAML(t, g, "version: 2\ntemplate:\n  ROOM:\n  level: low\nurls:\n- "+base+"/${room}/${LEVEL}?tag=chat\n- "+base+
		"/${level}:\n    tag: level\n- "+base+"/plain")
	for _, c := range []struct {
		name, contentType, body string
		status                  int
		paths                   string
	}{
		{"no value", gatewaytest.TypeForm, "body=x&tag=all", 424, "low plain"},
		{"only what needs one", gatewaytest.TypeForm, "body=x&tag=chat", 424, ""},
		{"tags without case", gatewaytest.TypeForm, "body=x&tag=LEVEL", 200, "low"},
		{"a form", gatewaytest.TypeForm, "body=x&tag=all&template[ROOM]=dev", 200, "dev/low low plain"},
		{
			"other names and case", gatewaytest.TypeForm, "body=x&tag=all&template%5Broom%5D=dev&template%5Bother%5D=y&template[Level]=high", 200,
			"dev/high high plain",
		},
		{"JSON", gatewaytest.TypeJSON, `{"body":"x","tag":"all","template":{"room":"dev","level":null,"other":"y"}}`, 200, "dev/low low plain"},
		{"null and blank", gatewaytest.TypeJSON, `{"body":"x","tag":"all","template":{"ROOM":null,"level":" "}}`, 424, "low plain"},
		{"no template", gatewaytest.TypeJSON, `{"body":"x","tag":"level","template":null}`, 200, "low"},
		{"a path", gatewaytest.TypeJSON, `{"body":"x","tag":"chat","template":{"ROOM":"a/b?c#d"}}`, 200, "a/b?c#d/low"},
		{"dots in a path", gatewaytest.TypeJSON, `{"body":"x","tag":"chat","template":{"ROOM":"a/../b"}}`, 424, ""},
		{"dots", gatewaytest.TypeJSON, `{"body":"x","tag":"chat","template":{"ROOM":".."}}`, 424, ""},
	} {
		r := g.Post("/notify/ops", c.contentType, c.body)
		if got := s.Paths(); r.Status != c.status || got != c.paths {
			t.Errorf("%s: %d %s, arrived at %q; want %d and %q", c.name, r.Status, r.Body, got, c.status, c.paths)
		}
		if r.Status == 424 && strings.Contains(strings.ToLower(r.Body), "room") && !strings.HasPrefix(c.name, "dots") {
			t.Errorf("%s: the answer names what is missing: %s", c.name, r.Body)
		}
	}
	// URLs of a request have no variables.
	if r := g.Post("/notify", gatewaytest.TypeJSON,
		`{"body":"x","urls":"`+base+`/${room}","template":{"room":"dev"}}`); r.Status != http.StatusOK || s.Paths() != "${room}" {
		t.Errorf("a message with URLs: %d %s", r.Status, r.Body)
	}
}

// TestTemplateMistakes checks which values are refused.
func TestTemplateMistakes(t *testing.T) {
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	saveYAML(t, g, "template: [a]\nurls:\n- "+strings.TrimSuffix(s.NotifyURL("/"), "/")+"/${a}")
	for contentType, bodies := range map[string][]string{
		gatewaytest.TypeJSON: {
			`{"body":"x","template":"s3cret"}`, `{"body":"x","template":["s3cret"]}`, `{"body":"x","template":1}`, `{"body":"x","template":{"a":1}}`,
			`{"body":"x","template":{"a":{"b":"s3cret"}}}`,
			`{"body":"x","template":{"a":"s3cret","A":"s3cret"}}`, `{"body":"x","template":{"a-b":"s3cret"}}`,
			`{"body":"x","template":{"":"s3cret"}}`, `{"body":"x","template":{"a":"s3cret\n"}}`,
			`{"body":"x","template":{"a":"s3cret\u0085"}}`, `{"body":"x","template":{"a":"` + strings.Repeat("s3cret", 200) + `"}}`,
			`{"body":"x","template":{"` + strings.Repeat("a", 33) + `":"s3cret"}}`,
		},
		gatewaytest.TypeForm: {
			"body=x&template=s3cret", "body=x&template[a]=s3cret&template[A]=s3cret", "body=x&template[a]=s3cret%0A",
			"body=x&template[]=s3cret", "body=x&template[a][b]=s3cret",
		},
	} {
		for _, body := range bodies {
			r := g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/ops", body, "Content-Type", contentType, "Accept", gatewaytest.TypeJSON))
			if r.Status != http.StatusBadRequest || !strings.Contains(r.Body, `"field":"template"`) || strings.Contains(r.Body, "s3cret") {
				t.Errorf("%s: %d %s", body, r.Status, r.Body)
			}
		}
	}
	if got := s.Paths(); got != "" {
		t.Errorf("something arrived at %q", got)
	}
	for text, want := range map[string]string{
		"template: a\nurls: [json://h]":                  "line 1: template must be a map",
		"template: [a]\nurls: []\ntemplate: [b]":         "line 3: the file has a second section template",
		"urls: [json://h]\nurls: [json://h]":             "line 2: the file has a second section urls",
		"version: 3\nurls: [json://h]":                   "version must be 1 or 2",
		"template: [a]\nurls: ['nope://${a}']":           "not a scheme of any service",
		"template: {a: 10.1.2.3}\nurls: ['json://${a}']": "10.1.2.3 is private",
	} {
		if r := g.PostForm("/add/other", url.Values{"format": {"yaml"}, "config": {text}}.Encode()); r.Status != http.StatusBadRequest ||
			!strings.Contains(r.Body, want) {
			t.Errorf("%q: %d %s, want %s", text, r.Status, r.Body, want)
		}
	}
}

// TestTemplateListed checks how /json/urls shows templates.
func TestTemplateListed(t *testing.T) {
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	saveYAML(t, g, "template: {PW: s3cret, to: null, host: "+
		"}\nurls:\n- gotify://h.example/${PW}?+X-Y=${to}\n- json://u:${pw}@${HOST}/${to}/x?+X-Y=${to}\n- tgram://"+
		"123456789:s3cretabcdefghijklmnopqrstuvwxyz0123/${to}\n- json://h")
	var list struct {
		URLs []struct {
			URL      string
			Template map[string]*string
		}
	}
	body := getAccepting(g, "/json/urls/ops", "*/*").Body
	if err := json.Unmarshal([]byte(body), &list); err != nil || strings.Contains(body, "s3cret") || len(list.URLs) != 4 {
		t.Fatalf("%s: %v", body, err)
	}
	for i, want := range []string{
		"gotify://h.example/${PW} 2", "json://u:${pw}@${HOST}/${to}/x?+X-Y=${to} 3", "tgram://xxxxx/${to} 1",
		"json://h 0",
	} {
		if got := fmt.Sprint(list.URLs[i].URL, " ", len(list.URLs[i].Template)); got != want {
			t.Errorf("URL %d is %s, want %s", i, got, want)
		}
		for name, value := range list.URLs[i].Template {
			if value != nil {
				t.Errorf("%s has the default %s", name, *value)
			}
		}
	}
}

// TestTemplateEgress checks that a host in a value is under the rules for clients when it is
// dialled, and that no value in a secret place is shown.
func TestTemplateEgress(t *testing.T) {
	s := gatewaytest.NewStation(t)
	core, logged := observer.New(zap.DebugLevel)
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:  site.Options{Managers: gatewaytest.Everybody(), Services: &site.ServiceRule{Deny: []string{"xml"}}},
		Saved: &saved.Options{Manage: true}, Log: zap.New(core),
	})
	port := s.URL[strings.LastIndex(s.URL, ":")+1:]
	saveYAML(t, g, "template: [host, pw]\nurls:\n- json://u:${pw}@${host}/path")
	for _, host := range []string{
		"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, "[::ffff:127.0.0.1]:" + port,
		"0x7f000001:" + port, "evil.example/@127.0.0.1:" + port, "@127.0.0.1:" + port,
	} {
		r := g.PostForm("/notify/ops", url.Values{"body": {"x"}, "template[host]": {host}, "template[pw]": {"s3cret/pw"}}.Encode())
		if r.Status != http.StatusFailedDependency || strings.Contains(r.Body, "s3cret") {
			t.Errorf("%s: %d %s", host, r.Status, r.Body)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("it was sent: %+v", got)
	}
	for _, e := range logged.All() {
		if text, _ := json.Marshal(e.ContextMap()); strings.Contains(e.Message+string(text), "s3cret") {
			t.Errorf("the log has the value: %s %s", e.Message, text)
		}
	}
	for _, text := range []string{"template: [a]\nurls: ['xml://h/${a}']", "template: [a]\nurls: ['xml://h/${a}', 'json://h']"} {
		if r := g.PostForm("/add/other", url.Values{"format": {"yaml"}, "config": {text}}.Encode()); r.Status != http.StatusBadRequest ||
			!strings.Contains(r.Body, "services forbids it") {
			t.Errorf("%q: %d %s", text, r.Status, r.Body)
		}
	}
}

// TestTemplateTrusted checks that no message can choose the server of a URL with the operator's
// rights.
func TestTemplateTrusted(t *testing.T) {
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(),
		saved.Options{Trusted: true, Value: func(name string) (string, bool) { return "of/operator", name == "a" }})
	for _, text := range []string{
		"json://${a}", "json://h:${a}", "json://u:p@${a}.example", "mailto://u:p@h.example?smtp=${a}",
		"mailto://_?user=${a}&pass=x", "discord://id/token?template=${a}",
	} {
		r := g.PostForm("/add/ops", url.Values{"format": {"yaml"}, "config": {"template: [a]\nurls: ['" + text + "']"}}.Encode())
		if r.Status != http.StatusBadRequest || !strings.Contains(r.Body, "a variable of the template decides") {
			t.Errorf("%s: %d %s", text, r.Status, r.Body)
		}
	}
	saveYAML(t, g, "template: [a]\nurls:\n- "+strings.TrimSuffix(s.NotifyURL("/"), "/")+"/${a}")
	for form, path := range map[string]string{"body=x": "of/operator", "body=x&template[a]=mine": "mine"} {
		if r := g.PostForm("/notify/ops", form); r.Status != http.StatusOK || s.Paths() != path {
			t.Errorf("%s: %d %s", form, r.Status, r.Body)
		}
	}
}
