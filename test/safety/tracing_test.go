package safety

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// collected are the spans that a receiver of OTLP has got.
type collected struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracev1.Span
}

func newCollected(t *testing.T) *collected {
	t.Helper()
	c := new(collected)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway was killed
		}
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// named returns the spans with a name.
func (c *collected) named(name string) (out []*tracev1.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.GetName() == name {
			out = append(out, s)
		}
	}
	return out
}

// attributesOf returns the attributes of a span as text.
func attributesOf(s *tracev1.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.GetKey()] = a.GetValue().GetStringValue()
		if n := a.GetValue().GetIntValue(); n != 0 {
			out[a.GetKey()] = strings.Repeat("i", int(n)) // numbers are small
		}
	}
	return out
}

// TestTracingAfterKill checks with a receiver of OTLP that the attempt of a gateway that
// was killed and started again is in the trace of the request, with a link to its span,
// and that destinations get this trace with propagate_trace.
func TestTracingAfterKill(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	c := newCollected(t)
	var status atomic.Int64
	var parents sync.Map
	status.Store(http.StatusServiceUnavailable)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parents.Store(r.Header.Get("Traceparent"), true)
		w.WriteHeader(int(status.Load()))
	}))
	defer to.Close()
	g := prepare(t, "notify {\nqueue {\nwait 5s\n}\n}",
		"propagate_trace on\nkey ops {\nurl json://"+strings.TrimPrefix(to.URL, "http://")+"/?retry=0\n}",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=50")
	text, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("\trespond /up up\n"), []byte("\trespond /up up\n\ttracing /notify/ops {\n\t\tspan alerts\n\t}\n"), 1)
	if err := os.WriteFile(g.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	g.run()
	r := g.post("/notify/ops", message{"body": "x"})
	_, id, ok := strings.Cut(r.Header.Get("Location"), "/messages/")
	if !ok {
		t.Fatalf("the message is not queued: %d %s", r.Status, r.text())
	}
	eventually(t, "the request has a span", func() bool { return len(c.named("alerts")) == 1 })
	request := c.named("alerts")[0]
	g.kill()
	status.Store(http.StatusOK)
	g.run()
	eventually(t, "the message is tried again", func() bool {
		resp, err := g.client.Post(g.adminURL+"/notify/queue/"+id+"/retry", "", nil)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		status, state := g.get(g.url+"/notify/messages/"+id, "application/json")
		return status == http.StatusOK && strings.Contains(state, `"state":"delivered"`)
	})
	eventually(t, "the second attempt has a span", func() bool {
		for _, s := range c.named("notify") {
			if a := attributesOf(s); a["notify.attempt"] == "ii" {
				if a["notify.id"] != id || a["notify.key"] != "ops" {
					t.Errorf("the attributes are %v", a)
				}
				if len(s.GetLinks()) != 1 || !bytes.Equal(s.GetLinks()[0].GetSpanId(), request.GetSpanId()) ||
					!bytes.Equal(s.GetTraceId(), request.GetTraceId()) {
					t.Errorf("links %v, trace %x, want one to %x of %x", s.GetLinks(), s.GetTraceId(), request.GetSpanId(), request.GetTraceId())
				}
				return true
			}
		}
		return false
	})
	eventually(t, "both deliveries have a span", func() bool { return len(c.named("deliver JSON")) == 2 })
	n := 0
	parents.Range(func(parent, _ any) bool {
		for _, s := range c.named("deliver JSON") {
			if bytes.Equal(s.GetTraceId(), request.GetTraceId()) && strings.Contains(parent.(string), hex.EncodeToString(s.GetSpanId())) {
				n++
			}
		}
		return true
	})
	if n != 2 {
		t.Errorf("%d of 2 requests to the destination belong to their span", n)
	}
	if others := len(c.named("handler")); others > 0 {
		t.Errorf("%d spans that nobody asked for", others)
	}
}
