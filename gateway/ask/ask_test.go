package ask_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestAsk checks that each destination gets its own link, that the link shows the question, that
// opening it changes nothing, and that the first answer counts.
func TestAsk(t *testing.T) {
	t.Parallel()
	dir, a, b := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", a.NotifyURL(), b.NotifyURL())))
		id := ask(t, g, deploy)
		settle(time.Second)
		if got := said(state(t, g, id, "")); got != "open" {
			t.Error(got)
		}
		one, other := linkOf(t, a, 0), linkOf(t, b, 0)
		if one == other || !strings.HasPrefix(one, "/notify/asks/") {
			t.Fatalf("links %q and %q", one, other)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for _, query := range []string{"", "?answer=deploy", "?answer=deploy&do=answer&by=Eve"} {
				got := g.Do(gatewaytest.NewRequest(method, one+query, "", "Accept", "text/html"))
				if got.Status != http.StatusOK || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Referrer-Policy") != "no-referrer" ||
					!strings.Contains(got.Header.Get("X-Robots-Tag"), "noindex") {
					t.Errorf("%s%s: status %d, %v", method, query, got.Status, got.Header)
				}
			}
		}
		shown := page(g, one+"?answer=deploy")
		for _, want := range []string{
			"Deploy 1.4?", "It **adds** a column.", `class="primary" name="answer" value="deploy"`,
			`<button name="answer" value="wait"`, "“wait” is taken", "JSON 127.0.0.1:",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("the page has no %q: %s", want, shown)
			}
		}
		if strings.Contains(shown, "json://") {
			t.Errorf("the page has the URL of a destination: %s", shown)
		}
		if got := said(state(t, g, id, "")); got != "open" {
			t.Errorf("a look at the page: %s", got)
		}
		if got := answer(g, one+"?answer=deploy", "answer=never"); got.Status != http.StatusBadRequest ||
			!strings.Contains(got.Body, "one of the options: deploy, wait") {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		if got := answer(g, one+"?answer=deploy", ""); got.Status != http.StatusBadRequest { // the address decides nothing
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		settle(2 * time.Minute)
		wantAnswered(t, g, one, "answer=deploy&by=Ann", http.StatusOK, "answered deploy by Ann (typed)")
		wantAnswered(t, g, other, "answer=wait&by=Bob", http.StatusConflict, "answered deploy by Ann (typed)")
		s := state(t, g, id, "")
		if got := said(s); got != "answered deploy by Ann (typed)" || s.At == nil || s.Through != strings.TrimSuffix(a.NotifyURL(), "/") &&
			!strings.HasPrefix(s.Through, "json://") {
			t.Errorf("%s, %+v", got, s)
		}
		if shown := page(g, other); !strings.Contains(shown, "deploy") || !strings.Contains(shown, "Ann (typed)") ||
			strings.Contains(shown, "<form class=\"card respond\"") {
			t.Errorf("the page after the answer: %s", shown)
		}
		for _, wrong := range []string{
			one[:len(one)-1], one + "a", "/notify/asks/x", "/notify/asks/" + strings.Repeat("a", 52),
			"/notify/console/asks/" + one[len("/notify/asks/"):],
		} {
			if got := g.Get(wrong); got.Status != http.StatusNotFound && got.Status != gatewaytest.NotServed {
				t.Errorf("%s: status %d", wrong, got.Status)
			}
		}
	})
}

// TestAskExpires checks what the page of a question says of the time after it, with a default and
// without one, the outcome if nobody answers, and that nobody can answer after that. The page once
// said "no counts", as if the answer "no" did, and "no answer counts".
func TestAskExpires(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ask, open, want, shown string }{
		{deploy, "“wait” is taken", "expired wait", "so “wait” is taken"},
		{`{"options":["yes","no"],"timeout":"10m","default":"no"}`, "“no” is taken", "expired no", "so “no” is taken"},
		{`{"options":["yes","no"],"timeout":"10m"}`, "nothing is decided", "expired", "Nobody has answered in time; nothing is decided"},
		{`{"text":true,"timeout":"600s","default":"nothing"}`, "“nothing” is taken", "expired nothing", "so “nothing” is taken"},
	} {
		dir, p := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK)
		gatewaytest.InBubble(t, func(t *testing.T) {
			g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL()+" 1:ann chat")))
			id := ask(t, g, tt.ask)
			settle(9*time.Minute + 59*time.Second)
			if shown := page(g, linkOf(t, p, 0)); !strings.Contains(shown, "<dt>If nobody answers</dt><dd>"+tt.open+"</dd>") ||
				!strings.Contains(shown, "(1:ann, chat)</dd>") {
				t.Errorf("the open page: %s", shown)
			}
			if got := said(state(t, g, id, "")); got != "open" {
				t.Errorf("%s: %s", tt.ask, got)
			}
			settle(2 * time.Second)
			if got := said(state(t, g, id, "")); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.ask, got, tt.want)
			}
			wantAnswered(t, g, linkOf(t, p, 0), "answer=yes", http.StatusConflict, tt.want)
			if shown := page(g, linkOf(t, p, 0)); !strings.Contains(shown, tt.shown) {
				t.Errorf("the page: %s", shown)
			}
		})
	}
}

// TestAskText checks that a free answer is shown as text on the page and in the JSON, and never as
// markup.
func TestAskText(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		id := ask(t, g, `{"text":true}`)
		settle(time.Second)
		link := linkOf(t, p, 0)
		for form, want := range map[string]int{
			"answer=": 400, "answer=+": 400, "answer=" + strings.Repeat("x", 2001): 400,
			"answer=" + strings.Repeat("x", 20_000): 400,
		} {
			if got := answer(g, link, form); got.Status != want {
				t.Errorf("%.20s: status %d, want %d: %s", form, got.Status, want, got.Body)
			}
		}
		wantAnswered(t, g, link, "answer=%3Cscript%3Ealert(1)%3C%2Fscript%3E%0D%0A{{.}}&by=%3Cb%3EEve", http.StatusOK,
			"answered <script>alert(1)</script>\n{{.}} by <b>Eve (typed)")
		if got := said(state(t, g, id, "")); !strings.HasPrefix(got, "answered <script>") {
			t.Error(got)
		}
		if shown := page(g, link); strings.Contains(shown, "<script>alert") || strings.Contains(shown, "<b>Eve") ||
			!strings.Contains(shown, "&lt;script&gt;") {
			t.Errorf("the page: %s", shown)
		}
	})
}

// TestAskWho checks who has answered: the user of the site before a name typed in.
func TestAskWho(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		for i, tt := range []struct{ user, by, want string }{{"ann", "Eve", "answered deploy by ann"}, {"", "", "answered deploy"}} {
			id := ask(t, g, deploy)
			settle(time.Second)
			g.Do(asUser(http.MethodPost, linkOf(t, p, i), "answer=deploy&by="+tt.by, tt.user))
			if got := said(state(t, g, id, "")); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		}
	})
}

// TestAskLogin checks that the page of a question with login needs the login of the console, and
// nowhere else.
func TestAskLogin(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		o.Site.Managers = &site.Managers{Named: []string{"root"}}
		g := gatewaytest.New(t, o)
		id := ask(t, g, `{"options":["deploy","wait"],"login":true}`)
		settle(time.Second)
		link := linkOf(t, p, 0)
		if !strings.HasPrefix(link, "/notify/console/asks/") {
			t.Fatalf("the link is %s", link)
		}
		if got := answer(g, link, "answer=deploy&by=Eve"); got.Status != http.StatusForbidden {
			t.Errorf("nobody is logged in: status %d: %s", got.Status, got.Body)
		}
		if got := g.Get(link); got.Status != http.StatusForbidden || strings.Contains(got.Body, "Deploy 1.4?") {
			t.Errorf("nobody is logged in: status %d: %s", got.Status, got.Body)
		}
		if got := answer(g, strings.Replace(link, "/console", "", 1), "answer=deploy"); got.Status != http.StatusNotFound {
			t.Errorf("without the console: status %d: %s", got.Status, got.Body)
		}
		if got := g.Do(asUser(http.MethodPost, link, "answer=deploy&by=Eve", "ann")); got.Status != http.StatusOK {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		if got := said(state(t, g, id, "")); got != "answered deploy by ann" {
			t.Error(got)
		}
	})
}

// TestAskForeign checks that a page of another site cannot answer.
func TestAskForeign(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		id := ask(t, g, deploy)
		settle(time.Second)
		if got := g.PostForm(linkOf(t, p, 0), "answer=deploy", "Sec-Fetch-Site", "cross-site", "Origin",
			"https://evil.example"); got.Status != http.StatusForbidden {
			t.Errorf("status %d", got.Status)
		}
		if got := said(state(t, g, id, "")); got != "open" {
			t.Error(got)
		}
	})
}

// TestAskRefused checks what cannot be asked: the error names the field, and nothing is sent.
func TestAskRefused(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		g := gatewaytest.New(t, o)
		long := strings.Repeat("x", 41)
		for ask, want := range map[string]string{
			`{"options":["a"]}`: "ask.options must have 2 to 6",
			`{}`:                "ask.options must have 2 to 6",
			`{"options":["a","b","c","d","e","f","g"]}`:                              "ask.options must have 2 to 6",
			`{"options":["a","a"]}`:                                                  "ask.options[1] is the same",
			`{"options":["a",""]}`:                                                   "ask.options[1] must be 1 to 40",
			`{"options":["a"," b"]}`:                                                 "ask.options[1] must be 1 to 40",
			`{"options":["a","b\n"]}`:                                                "ask.options[1] must be 1 to 40",
			`{"options":["a","` + long + `"]}`:                                       "ask.options[1] must be 1 to 40",
			`{"options":["a","b"],"default":"c"}`:                                    "ask.default must be one of the options",
			`{"options":["a","b"],"timeout":"9s"}`:                                   "ask.timeout must be from 10s to 7d",
			`{"options":["a","b"],"timeout":"8d"}`:                                   "ask.timeout must be from 10s to 7d",
			`{"options":["a","b"],"timeout":"soon"}`:                                 "ask.timeout must be a duration",
			`{"options":["a","b"],"timeout":5}`:                                      "ask.timeout is a number",
			`{"options":"a"}`:                                                        "ask.options is a string",
			`{"options":["a","b"],"text":true}`:                                      "options and text",
			`{"options":["a","b"],"tmeout":"1h"}`:                                    `no member "tmeout"`,
			`{"options":["a","b"],"secret":"x"}`:                                     "ask.secret signs the callback",
			`{"options":["a","b"],"callback":"x"}`:                                   "ask.callback must be",
			`{"options":["a","b"],"callback":"ftp://x"}`:                             "ask.callback must be",
			`{"options":["a","b"],"callback":"https://x","secret":"whsec_c2hvcnQ="}`: "ask.secret",
			`{"options":["a","b"],"login":true}`:                                     "ask.login needs a console",
			`["a","b"]`:                                                              "the field ask is an array; it must be an object",
			`5`:                                                                      "the field ask is a number",
		} {
			got := post(g, ask)
			if got.Status != http.StatusBadRequest || !strings.Contains(strings.ReplaceAll(got.Body, `\"`, `"`), want) ||
				!strings.Contains(got.Body, `"field":"ask"`) {
				t.Errorf("%s: status %d: %s; want %q", ask, got.Status, got.Body, want)
			}
		}
		for body, want := range map[string]string{
			`{"body":"b","ask":` + deploy + `,"send_at":"1h"}`: "send_at",
			`{"body":"b","ask":` + deploy + `,"incident":"x"}`: "incident",
		} {
			if got := g.Post("/notify/k", gatewaytest.TypeJSON, body); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, want) {
				t.Errorf("%s: status %d: %s", body, got.Status, got.Body)
			}
		}
		if got := g.Post("/notify", gatewaytest.TypeJSON,
			`{"urls":"`+p.NotifyURL()+`","body":"b","ask":`+deploy+`}`); got.Status != http.StatusBadRequest ||
			!strings.Contains(got.Body, "needs a key") {
			t.Errorf("without a key: status %d: %s", got.Status, got.Body)
		}
		settle(time.Minute)
		if n := p.Count(); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
	})
	for want, change := range map[string]func(o *gatewaytest.Options){
		"needs a queue":    func(o *gatewaytest.Options) { o.Queue = nil },
		"needs public_url": func(o *gatewaytest.Options) { o.Global.PublicURL = "" },
		"needs a queue,":   func(o *gatewaytest.Options) { o.Global.Keys[0].Unqueued = true },
	} {
		gatewaytest.InBubble(t, func(t *testing.T) {
			o := options(t.TempDir(), gatewaytest.Key("k", p.NotifyURL()))
			change(&o)
			if got := post(gatewaytest.New(t, o), deploy); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, want) {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
		})
	}
}

// TestAskForm checks the fields of a form.
func TestAskForm(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		got := g.PostForm("/notify/k", "body=Deploy%3F&ask=deploy&ask=wait&ask_timeout=20s&ask_default=wait")
		if got.Status != http.StatusAccepted || strings.Contains(got.Body, "no effect") {
			t.Fatalf("status %d: %s", got.Status, got.Body)
		}
		id := got.JSON(t).ID
		settle(time.Second)
		if m := p.Got()[0]; m.Type != "info" {
			t.Errorf("the type is %s", m.Type)
		}
		settle(20 * time.Second)
		if got := said(state(t, g, id, "")); got != "expired wait" {
			t.Error(got)
		}
		for form, field := range map[string]string{
			"ask=a": "ask.options", "ask=a&ask=b&ask_timeout=x": "ask.timeout",
			"ask=a&ask=b&ask_tell=perhaps": "ask_tell", "ask_text=1&ask=a": "ask has options and text",
		} {
			if got := g.PostForm("/notify/k", "body=b&"+form); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, field) {
				t.Errorf("%s: status %d: %s", form, got.Status, got.Body)
			}
		}
	})
}

// TestAskWait checks that a client that waits hears of the answer at once, of an expiry, and
// of nothing after the time that it waits.
func TestAskWait(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		id := ask(t, g, deploy)
		settle(time.Second)
		began := time.Now()
		if got := said(state(t, g, id, "?wait=20")); got != "open" || time.Since(began) != 20*time.Second {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		began = time.Now()
		if got := said(state(t, g, id, "?wait=300")); got != "open" || time.Since(began) != time.Minute {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		go func() {
			time.Sleep(5 * time.Second)
			answer(g, linkOf(t, p, 0), "answer=wait")
		}()
		began = time.Now()
		if got := said(state(t, g, id, "", "Prefer", "wait=60")); got != "answered wait" || time.Since(began) != 5*time.Second {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		began = time.Now()
		if got := said(state(t, g, id, "?wait=60")); got != "answered wait" || time.Since(began) != 0 {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		id = ask(t, g, `{"options":["a","b"],"timeout":"30s"}`)
		began = time.Now()
		if got := said(state(t, g, id, "?wait=60")); got != "expired" || time.Since(began) != 30*time.Second {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		if got := g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/messages/"+id+"?wait=long", "")); got.Status != http.StatusBadRequest {
			t.Errorf("status %d", got.Status)
		}
	})
}

// TestAskAccess checks that only who may send to the key or manage sees the answer.
func TestAskAccess(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		k := gatewaytest.Key("k", p.NotifyURL())
		k.Tokens, k.Readers = []string{"s3cret-s3cret-s3cret"}, []string{"reader-reader-reader"}
		g := gatewaytest.New(t, options(dir, k))
		got := post(g, deploy, "Authorization", "Bearer s3cret-s3cret-s3cret")
		id := got.JSON(t).ID
		settle(time.Second)
		wantAnswered(t, g, linkOf(t, p, 0), "answer=deploy", http.StatusOK, "answered deploy")
		for auth, want := range map[string]string{
			"": "answered", "Bearer reader-reader-reader": "answered",
			"Bearer s3cret-s3cret-s3cret": "answered deploy",
		} {
			if got := said(state(t, g, id, "", "Authorization", auth)); got != want {
				t.Errorf("%q: %s, want %s", auth, got, want)
			}
		}
	})
}

// TestAskWithdrawn checks that a client can withdraw its question, and that the page says so.
func TestAskWithdrawn(t *testing.T) {
	t.Parallel()
	dir, p, down := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL(), down.NotifyURL())))
		id := ask(t, g, deploy)
		settle(time.Second)
		if got := g.Do(gatewaytest.NewRequest(http.MethodDelete, "/notify/messages/"+id, "")); got.Status != http.StatusOK ||
			!strings.Contains(got.Body, `"state":"cancelled"`) {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		n := down.Count()
		down.Answer(http.StatusOK)
		settle(time.Hour)
		if down.Count() != n {
			t.Error("a question that was withdrawn was sent")
		}
		wantAnswered(t, g, linkOf(t, p, 0), "answer=deploy", http.StatusConflict, "cancelled")
		if shown := page(g, linkOf(t, p, 0)); !strings.Contains(shown, "The question was withdrawn") {
			t.Errorf("the page: %s", shown)
		}
	})
}

// TestAskRetry checks that a destination that was down is asked when it is back, unless somebody
// has answered meanwhile.
func TestAskRetry(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{false, true} {
		dir, p, down := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusServiceUnavailable)
		gatewaytest.InBubble(t, func(t *testing.T) {
			g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL(), down.NotifyURL())))
			id := ask(t, g, `{"options":["a","b"],"timeout":"6h"}`)
			settle(time.Second)
			n := down.Count()
			down.Answer(http.StatusOK)
			if answered {
				wantAnswered(t, g, linkOf(t, p, 0), "answer=a", http.StatusOK, "answered a")
			}
			settle(time.Hour)
			want := n + 1
			if answered {
				want = n
			}
			if down.Count() != want {
				t.Errorf("answered %t: %d messages, want %d", answered, down.Count(), want)
			}
			got := g.Message(http.MethodGet, id, gatewaytest.TypeJSON).Body
			if answered != strings.Contains(got, `"rule":"decided"`) {
				t.Errorf("answered %t: %s", answered, got)
			}
		})
	}
}

// TestAskEscalates checks that the steps of a key ask one after the other, also for a message
// of type info, and that an answer ends them.
func TestAskEscalates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer bool
		want   []int
	}{{true, []int{1, 1, 1, 0}}, {false, []int{1, 1, 1, 1}}} {
		x, dir := gatewaytest.NewTeam(t, 3), t.TempDir()
		gatewaytest.InBubble(t, func(t *testing.T) {
			g := gatewaytest.New(t, options(dir, x.Key(escalate)))
			id := ask(t, g, `{"options":["deploy","wait"],"timeout":"1h"}`)
			settle(time.Second)
			x.WantCounts(t, 1, 1, 0, 0)
			settle(6 * time.Minute)
			x.WantCounts(t, 1, 1, 1, 0)
			if tt.answer {
				wantAnswered(t, g, linkOf(t, x.Phones[1], 0), "answer=deploy&by=Ann", http.StatusOK, "answered deploy by Ann (typed)")
				if list := g.ListIncidents("k"); len(list) != 1 || list[0].IsOpen() || list[0].Escalating() {
					t.Errorf("incidents %+v", list)
				}
			}
			settle(30 * time.Minute)
			x.WantCounts(t, tt.want...)
			settle(time.Hour)
			if !tt.answer {
				if got := said(state(t, g, id, "")); got != "expired" {
					t.Error(got)
				}
				if list := g.ListIncidents("k"); len(list) != 1 || list[0].IsOpen() {
					t.Errorf("incidents %+v", list)
				}
			}
		})
	}
}

// TestAskEscalationEnds checks that the steps end when the time of a question is over.
func TestAskEscalationEnds(t *testing.T) {
	t.Parallel()
	x, dir := gatewaytest.NewTeam(t, 3), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, x.Key(escalate)))
		ask(t, g, `{"options":["deploy","wait"],"timeout":"7m"}`)
		settle(time.Hour)
		x.WantCounts(t, 1, 1, 1, 0)
	})
}

// TestAskRules checks that rules of the key neither hold, join, nor drop a question.
func TestAskRules(t *testing.T) {
	t.Parallel()
	quiet, err := rules.ParseWindow([]string{"00:00-23:59"})
	if err != nil {
		t.Fatal(err)
	}
	p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, gatewaytest.RuledKey("k", rules.Rules{
			Dedupe: &rules.Dedupe{Window: time.Hour}, Quiet: []rules.Quiet{{Window: quiet}}, Rate: []rules.Rate{{Count: 1, Per: time.Hour}},
		}, p.NotifyURL())))
		for range 3 {
			ask(t, g, deploy)
		}
		settle(time.Second)
		if p.Count() != 3 {
			t.Errorf("%d questions arrived, want 3", p.Count())
		}
		ids := map[string]bool{}
		for i := range 3 {
			ids[linkOf(t, p, i)] = true
		}
		if len(ids) != 3 {
			t.Errorf("links %v", ids)
		}
	})
}

// TestAskSilenced checks that who asks hears of a silence that covers all destinations, and
// that a silence of some keeps only them from being asked.
func TestAskSilenced(t *testing.T) {
	t.Parallel()
	a, b, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := options(dir, gatewaytest.Key("k", a.NotifyURL()+" a", b.NotifyURL()+" b"))
		o.Site.Managers = gatewaytest.Everybody()
		g := gatewaytest.New(t, o)
		g.AddSilence("k", "for=1h&tag=a")
		if got := post(g, deploy); got.Status != http.StatusAccepted ||
			!strings.Contains(got.Body, "A silence keeps the question from 1 of 2 destinations") {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		settle(time.Second)
		if a.Count() != 0 || b.Count() != 1 {
			t.Errorf("%d and %d were asked", a.Count(), b.Count())
		}
		g.AddSilence("k", "for=1h&title=Deploy&reason=holidays")
		got := post(g, deploy)
		if got.Status != http.StatusConflict ||
			!strings.Contains(got.Body, "a silence until 1 Jan 2000, 01:00 UTC covers all destinations: holidays") {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		settle(2 * time.Hour)
		if n := a.Count() + b.Count(); n != 1 {
			t.Errorf("%d messages, want 1", n)
		}
	})
}

// TestAskTooMany checks the limit of open questions of a key.
func TestAskTooMany(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL()), gatewaytest.Key("other", p.NotifyURL())))
		var ids []string
		for range 100 {
			ids = append(ids, ask(t, g, deploy))
		}
		if got := post(g, deploy); got.Status != http.StatusTooManyRequests || !strings.Contains(got.Body, "100 open questions") {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		if got := g.PostForm("/notify/other", "body=b&ask=a&ask=b"); got.Status != http.StatusAccepted {
			t.Errorf("another key: status %d: %s", got.Status, got.Body)
		}
		g.Do(gatewaytest.NewRequest(http.MethodDelete, "/notify/messages/"+ids[7], ""))
		ask(t, g, deploy)
		settle(time.Minute)
	})
}

// TestAskIdempotent checks that a request that is sent again asks once.
func TestAskIdempotent(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		var ids []string
		for range 2 {
			got := post(g, deploy, "Idempotency-Key", "abc")
			if got.Status != http.StatusAccepted || got.Header.Get("Location") == "" {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
			ids = append(ids, got.JSON(t).ID)
			settle(time.Second)
		}
		if p.Count() != 1 || len(slices.Compact(ids)) != 1 {
			t.Errorf("%d questions, IDs %v", p.Count(), ids)
		}
	})
}
