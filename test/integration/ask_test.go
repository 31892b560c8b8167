package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// questions is a destination that collects the links of questions.
type questions struct {
	*httptest.Server
	links chan string // their last segments
}

func newQuestions(t *testing.T) *questions {
	q := &questions{links: make(chan string, 100)}
	q.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			AnswerURL string `json:"answer_url"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		_, link, _ := strings.Cut(m.AnswerURL, "/notify/asks/")
		q.links <- link
	}))
	t.Cleanup(q.Close)
	return q
}

// key returns a key of a Caddyfile with two URLs of the destination.
func (q *questions) key() string {
	to := "json" + strings.TrimPrefix(q.URL, "http")
	return "public_url https://alerts.example.com\nkey ops {\nurl " + to + "/a\nurl " + to + "/b\n}"
}

// TestAskPostgres answers a question at two gateways that share a database at the same
// moment: one answer counts, and both show it. A client that waits at the gateway that it was
// not given to hears of it.
func TestAskPostgres(t *testing.T) {
	t.Parallel()
	p, q := newPostgres(t), newQuestions(t)
	a, b := newQueueGatewayWith(t, p, q.key(), ""), newQueueGatewayWith(t, p, q.key(), "")
	get := func(address string, status int) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Error(err)
			return ""
		}
		r.Header.Set("Accept", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != status {
			t.Errorf("%s: status %d: %s", address, resp.StatusCode, body)
		}
		return string(body)
	}
	for range 10 {
		resp, err := http.PostForm(a.url+"/notify/ops", url.Values{"body": {"Deploy?"}, "ask": {"deploy", "wait"}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		location := resp.Header.Get("Location")
		if resp.StatusCode != http.StatusAccepted || location == "" {
			t.Fatalf("status %d, %v", resp.StatusCode, resp.Header)
		}
		links := []string{<-q.links, <-q.links}
		var all sync.WaitGroup
		heard := ""
		all.Go(func() { heard = get(a.url+location+"?wait=60", http.StatusOK) })
		statuses, shown := make([]int, 2), make([]string, 2)
		begin := make(chan struct{})
		for i, g := range []*queueGateway{a, b} {
			all.Go(func() {
				<-begin
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					g.url+"/notify/asks/"+links[i], strings.NewReader("answer="+[]string{"deploy", "wait"}[i]))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/x-www-form-urlencoded"}}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				statuses[i], shown[i] = resp.StatusCode, string(body)
			})
		}
		close(begin)
		all.Wait()
		if statuses[0]+statuses[1] != http.StatusOK+http.StatusConflict ||
			shown[0] != shown[1] || !strings.Contains(shown[0], `"state":"answered"`) {
			t.Errorf("statuses %v, %s and %s", statuses, shown[0], shown[1])
		}
		winner := map[bool]string{true: `"answer":"deploy"`, false: `"answer":"wait"`}[statuses[0] == http.StatusOK]
		if !strings.Contains(shown[0], winner) || !strings.Contains(heard, winner) {
			t.Errorf("%s counts; shown is %s, and heard %s", winner, shown[0], heard)
		}
	}
}

// TestAskPage follows the link of a question on a phone and on a desk, light and dark, with a
// script and without it: the answer that the link names is offered first, one button answers,
// and who comes later sees what counts.
func TestAskPage(t *testing.T) {
	q, port := newQuestions(t), freePort(t)
	address := fmt.Sprintf("http://localhost:%d", port)
	startGateway(t, port,
		fmt.Sprintf("{\nnotify {\nqueue\n}\n}\nhttp://localhost:%d {\nnotify {\n%s\negress {\nallow 127.0.0.1\n}\n}\n}\n", port, q.key()))
	question := func(fields url.Values) string {
		t.Helper()
		fields.Set("title", "Deploy 1.4?")
		fields.Set("body", "It adds a column.\nIt takes two minutes.")
		postForm(t, address+"/notify/ops", http.StatusAccepted, fields)
		<-q.links
		return address + "/notify/asks/" + <-q.links
	}
	withAndWithoutScript(t, func(ctx context.Context, script bool) {
		link := question(url.Values{"ask": {"deploy", "wait"}, "ask_default": {"wait"}})
		run(t, ctx, open(link+"?answer=deploy"))
		shows(t, ctx, "h1", "Deploy 1.4?")
		shows(t, ctx, ".question", "It takes two minutes.")
		shows(t, ctx, "button.primary", "deploy")
		if script {
			checkPage(t, ctx, "ask")
		}
		run(t, ctx, chromedp.SendKeys("#by", "Eve", chromedp.ByQuery), chromedp.Click("button[value=deploy]", chromedp.ByQuery))
		shows(t, ctx, ".done", "Your answer counts.")
		run(t, ctx, open(link))
		shows(t, ctx, ".answer", "deploy")
		shows(t, ctx, "main", "Eve (typed)")
		if script {
			checkPage(t, ctx, "ask-decided")
		}
		link = question(url.Values{"ask_text": {"true"}})
		run(t, ctx, open(link))
		if script {
			checkPage(t, ctx, "ask-text")
		}
		run(t, ctx, chromedp.SendKeys("#answer", "because <b>", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery))
		shows(t, ctx, ".answer", "because <b>")
	})
}
