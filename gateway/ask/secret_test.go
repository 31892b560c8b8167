package ask_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestAskerSeesNoLink checks that nothing that the asker can read has the link of a question:
// answers, the message, the callback, lines of the log, events, the history, traces, deliveries
// that were given up, and the pages of the console. A destination that repeats the link in its
// error does not change that.
func TestAskerSeesNoLink(t *testing.T) {
	t.Parallel()
	dir, p, c := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), newCalled(t)
	var mu sync.Mutex
	links := map[string]bool{}
	rude := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var m gatewaytest.Arrived
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if m.AnswerURL != "" { // the outcome has none
			links[m.AnswerURL] = true
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"what is %s?"}`, m.AnswerURL)
	}))
	rude.Config.SetKeepAlivesEnabled(false)
	rude.Start()
	t.Cleanup(rude.Close)
	gatewaytest.InBubble(t, func(t *testing.T) {
		var seen strings.Builder
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(zapcore.AddSync(&seen)),
			zapcore.DebugLevel))
		spans := tracetest.NewInMemoryExporter()
		o := options(dir, gatewaytest.Key("k", p.NotifyURL(), "json"+strings.TrimPrefix(rude.URL, "http")+"/"))
		o.Site.Managers, o.Log, o.Tracer = gatewaytest.Everybody(), log, trace.NewTracerProvider(trace.WithSyncer(spans))
		var events []string
		o.Emit = func(name string, data map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprint(name, data))
		}
		g := gatewaytest.New(t, o)
		var texts []string
		note := func(r gatewaytest.Reply) { texts = append(texts, fmt.Sprint(r.Status, r.Header, r.Body)) }
		look := func(id string) {
			for _, path := range []string{
				"/notify/messages/" + id, "/notify/messages/" + id + "?wait=0", "/notify/console",
				"/notify/console/messages", "/notify/console/messages/" + id, "/notify/console/queue", "/notify/console/incidents",
				"/notify/console/keys/k", "/notify/incidents", "/notify/openapi.json", "/notify/status",
			} {
				for _, accept := range []string{"text/html", gatewaytest.TypeJSON, "text/plain"} {
					note(g.Do(gatewaytest.NewRequest(http.MethodGet, path, "", "Accept", accept)))
				}
			}
		}
		ctx, span := o.Tracer.Tracer("test").Start(t.Context(), "request")
		question := `{"title":"Deploy?","body":"b","ask":{"options":["a","b"],"timeout":"10m","tell":true,"callback":"` + c.URL + `"}}`
		r := gatewaytest.NewRequest(http.MethodPost, "/notify/k", question, "Content-Type", gatewaytest.TypeJSON, "Idempotency-Key", "x")
		asked := g.Do(r.WithContext(ctx))
		span.End()
		note(asked)
		id := asked.JSON(t).ID
		settle(time.Second)
		note(g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k", question, "Content-Type", gatewaytest.TypeJSON, "Idempotency-Key", "x")))
		look(id)
		link := linkOf(t, p, 0)
		wantAnswered(t, g, link, "answer=a&by=Ann", http.StatusOK, "answered a by Ann (typed)")
		settle(time.Minute)
		look(id)
		note(g.Message(http.MethodGet, id, "text/event-stream"))
		note(g.Message(http.MethodDelete, id, gatewaytest.TypeJSON))
		for _, got := range c.take() {
			texts = append(texts, fmt.Sprint(got.header, got.body))
		}
		list, _, err := g.Rooms().Outbox.Queue.Messages(t.Context(), uuid.UUID{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			for _, j := range e.Jobs {
				texts = append(texts, string(j.Result), j.Reason, j.Destination)
			}
			texts = append(texts, string(e.Message.Summary), string(e.Message.Body))
		}
		texts = append(texts, fmt.Sprintf("%+v", g.Process.History.List()), seen.String(), fmt.Sprint(spans.GetSpans()))
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, events...)
		if len(links) != 1 || len(texts) < 70 || !strings.Contains(seen.String(), "question answered") || len(spans.GetSpans()) < 4 ||
			len(events) == 0 {
			t.Errorf("%d links, %d texts, %d spans, %d events", len(links), len(texts), len(spans.GetSpans()), len(events))
		}
		secrets := []string{link[strings.LastIndexByte(link, '/')+1:]}
		for l := range links {
			secrets = append(secrets, l[strings.LastIndexByte(l, '/')+1:])
		}
		for _, text := range texts {
			for _, s := range secrets {
				if i := strings.Index(text, s); i >= 0 || strings.Contains(text, s[len(s)-26:]) {
					t.Errorf("a link stands in %.600s", text[max(0, i-300):])
				}
			}
		}
	})
}

// TestCallbackAddressIsSecret checks that nothing shows more of the address of a callback than its
// host, also if the other side repeats the rest, whole or in parts.
func TestCallbackAddressIsSecret(t *testing.T) { //nolint:tparallel // they share a folder
	t.Parallel()
	dir, p := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK)
	for name, echo := range map[string]func(r *http.Request) string{
		"address": func(r *http.Request) string { return "http://" + r.Host + r.RequestURI },
		"target":  func(r *http.Request) string { return "no route for " + r.RequestURI },
		"path":    func(r *http.Request) string { return "Cannot POST " + r.URL.Path },
		"segment": func(r *http.Request) string {
			return "unknown hook " + r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		},
		"query":  func(r *http.Request) string { return "bad query " + r.URL.RawQuery },
		"values": func(r *http.Request) string { return fmt.Sprint(r.URL.Query()) },
		"JSON":   func(r *http.Request) string { return fmt.Sprintf(`{"error":%q}`, r.URL.Path+"?"+r.URL.RawQuery) },
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			rude := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				called++
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, echo(r))
			}))
			rude.Config.SetKeepAlivesEnabled(false)
			rude.Start()
			t.Cleanup(rude.Close)
			gatewaytest.InBubble(t, func(t *testing.T) {
				var seen strings.Builder
				o := options(dir+"/"+name, gatewaytest.Key("k", p.NotifyURL()))
				o.Site.Managers = gatewaytest.Everybody()
				o.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
					zapcore.Lock(zapcore.AddSync(&seen)), zapcore.DebugLevel))
				g := gatewaytest.New(t, o)
				before := p.Count()
				id := ask(t, g,
					`{"options":["a","b"],"callback":"`+rude.URL+`/hooks/s3cr3tpath/p%C3%A4ss+w?token=s3cr3t%2Bquery&b=with%20blank"}`)
				settle(time.Second)
				wantAnswered(t, g, linkOf(t, p, before), "answer=a", http.StatusOK, "answered a")
				settle(time.Hour)
				texts := []string{seen.String(), fmt.Sprintf("%+v", g.Process.History.List())}
				for _, path := range []string{
					"/notify/console", "/notify/console/messages", "/notify/console/messages/" + id, "/notify/console/queue",
					"/notify/console/keys/k", "/notify/status",
				} {
					texts = append(texts, g.Get(path).Body)
				}
				list, _, err := g.Rooms().Outbox.Queue.Messages(t.Context(), uuid.UUID{}, 100)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					for _, j := range e.Jobs {
						texts = append(texts, string(j.Result), j.Reason, g.Get("/notify/console/messages/"+e.Message.ID.String()).Body)
					}
				}
				if called == 0 || !strings.Contains(seen.String(), "400") {
					t.Errorf("called %d times: %s", called, &seen)
				}
				for _, text := range texts {
					for _, secret := range []string{"s3cr3tpath", "s3cr3t", "p%C3%A4ss", "päss", "with blank", "with%20blank"} {
						if i := strings.Index(text, secret); i >= 0 {
							t.Errorf("%s stands in %.400s", secret, text[max(0, i-200):])
						}
					}
				}
			})
		})
	}
}
