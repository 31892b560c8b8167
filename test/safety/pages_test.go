package safety

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestSecretsOfForms types secrets of every service, or a third of them if CI is not set,
// into the forms that make a URL, and tests the URLs. It checks that neither the result
// of a test nor anything that can be read from the program has a secret.
func TestSecretsOfForms(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	p := newProxy(t)
	p.is("500")
	all := racetest.Part(web(t), 3)
	g := start(t, tracing, "timeout 2s\nkey fixed {\nurl json://127.0.0.1:1/\n}\nconfigs {\nmanage open\n}", p.environment()...)
	const page = "/notify/console/keys/ops"
	submit := func(address, query, accept string, form url.Values) reply {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, g.url+address+"?"+query, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", accept)
		got := g.ask(r)
		if cache := got.Header.Get("Cache-Control"); cache != "no-store" {
			t.Errorf("?%s: Cache-Control: %s", query, cache)
		}
		return got
	}
	var said strings.Builder
	tested := 0 // by a form
	for _, m := range all {
		d, err := notifier.Parse(m.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		service := d.Schemes()[0]
		for _, text := range []string{m.url, "no" + m.url} {
			if r := submit(page, "build", "text/html", url.Values{"text": {text}}); r.Status != http.StatusOK {
				t.Errorf("%s: %d", m.service, r.Status)
			}
		}
		_, values := d.Form()
		form := url.Values{"form": {"1"}, "tags": {"a.b"}}
		for name, texts := range values.Texts {
			form.Set("p."+name, strings.Join(texts, "\n"))
		}
		for name, entries := range values.Maps {
			for key, value := range entries {
				form.Add("k."+name, key)
				form.Add("v."+name, value)
			}
		}
		if r := submit(page, "build="+service, "text/html", form); !strings.Contains(r.Body, `id="own-tags-problem"`) {
			t.Errorf("%s: %d, without the mistake", m.service, r.Status)
		}
		form.Set("tags", "")
		form.Set("do", "test")
		if _, result, ok := strings.Cut(submit(page, "build="+service, "text/html", form).Body, `id="outcome-of-form"`); ok {
			result, _, _ = strings.Cut(result, "</div>")
			said.WriteString(result)
			tested++
		}
		said.WriteString(submit("/cfg/ops", "test", "application/json", url.Values{"url": {m.url}}).Body)
		said.WriteString(submit("/cfg/ops", "test", "application/json", url.Values{"url": {"no" + m.url}}).Body)
	}
	if !strings.Contains(said.String(), `"status":"failed"`) || tested < len(all)/2 {
		t.Errorf("no test was sent, or few by a form: %d", tested)
	}
	g.test("fixed", "")
	eventually(t, "the log has the deliveries", func() bool { return strings.Contains(g.log(), "delivery failed") })
	checkNoSecrets(t, "the result of a test", said.String(), all)
	checkNoSecrets(t, "the gateway", g.exposed("fixed"), all)
}

// TestSecretsOfMistakes saves and checks configurations with a mistake beside the
// secrets of every service, or a third of them if CI is not set. It checks that no
// secret is in an answer for programs or in what can be read from the program.
func TestSecretsOfMistakes(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	all := racetest.Part(web(t), 3)
	g := start(t, tracing, "key fixed {\nurl json://127.0.0.1:1/\n}\nconfigs {\nmanage open\n}")
	var answers strings.Builder
	for _, m := range all {
		for _, c := range []struct{ format, text string }{
			{"text", "no" + m.url + "\nops " + m.url + "\n" + m.url + " =\ninclude " + m.url + "\n"},
			{"text", "tag!=" + m.url + "\n" + strings.Replace(m.url, "://", ":/", 1)},
			{"yaml", "urls:\n- no" + m.url + "\n- '" + m.url + "':\n    tag: '!'\n- x " + m.url + "\n" + m.url + ": x\n"},
			{"yaml", "urls: [" + m.url + "\n"},
		} {
			for _, path := range []string{"/add/ops", "/add/ops?check", "/add/ops?check=local"} {
				r, err := http.NewRequest(http.MethodPost, g.url+path, strings.NewReader(url.Values{"config": {c.text}, "format": {c.format}}.Encode()))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("Accept", "application/json")
				got := g.ask(r)
				if got.Status >= http.StatusInternalServerError {
					t.Errorf("%s: %d %s", m.service, got.Status, got.Body)
				}
				answers.WriteString(got.Body)
			}
		}
	}
	if !strings.Contains(answers.String(), `"line":2`) {
		t.Error("the answers have no lines")
	}
	g.test("fixed", "")
	eventually(t, "the log has the delivery", func() bool { return strings.Contains(g.log(), "delivery failed") })
	checkNoSecrets(t, "an answer", answers.String(), all)
	checkNoSecrets(t, "the gateway", g.exposed("fixed"), all)
}
