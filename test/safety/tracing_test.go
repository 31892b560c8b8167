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

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	record "github.com/caddy-notify/caddy-notify/internal/wire"
)

// collected are the spans that a receiver of OTLP has got.
type collected struct {
	*httptest.Server
	mu    sync.Mutex
	spans []span
}

func newCollected(t *testing.T) *collected {
	t.Helper()
	c := new(collected)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway was killed
		}
		spans, err := readSpans(body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spans = append(c.spans, spans...)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// span is a span of the protocol OTLP.
type span struct {
	Name       string
	ID, Trace  []byte
	Attributes map[string]string
	Links      []span // each with ID and Trace
}

// readSpans reads the spans of an ExportTraceServiceRequest, whose fields are numbered in
// opentelemetry/proto/trace/v1/trace.proto.
func readSpans(b []byte) (spans []span, err error) {
	err = eachField(b, func(resource record.Reader) error {
		if resource.Field != 1 {
			return nil
		}
		return eachField(resource.Bytes(), func(scope record.Reader) error {
			if scope.Field != 2 {
				return nil
			}
			return eachField(scope.Bytes(), func(r record.Reader) error {
				if r.Field != 2 {
					return nil
				}
				s, err := readSpan(r.Bytes())
				spans = append(spans, s)
				return err
			})
		})
	})
	return spans, err
}

func readSpan(b []byte) (span, error) {
	s := span{Attributes: map[string]string{}}
	err := eachField(b, func(r record.Reader) error {
		switch r.Field {
		case 1:
			s.Trace = r.Bytes()
		case 2:
			s.ID = r.Bytes()
		case 5:
			s.Name = r.Text()
		case 9:
			var name, value string
			err := eachField(r.Bytes(), func(a record.Reader) error {
				if a.Field == 1 {
					name = a.Text()
					return nil
				}
				return eachField(a.Bytes(), func(v record.Reader) error {
					switch v.Field {
					case 1:
						value = v.Text()
					case 3:
						value = strings.Repeat("i", v.Int()) // numbers are small
					}
					return nil
				})
			})
			s.Attributes[name] = value
			return err
		case 13:
			link, err := readSpan(r.Bytes()) // its first two fields are those of a span
			s.Links = append(s.Links, link)
			return err
		}
		return nil
	})
	return s, err
}

// eachField calls a function for each field of a record.
func eachField(b []byte, f func(record.Reader) error) error {
	r := record.NewReader(b)
	for r.Next() {
		if err := f(r); err != nil {
			return err
		}
	}
	return r.Err()
}

// named returns the spans with a name.
func (c *collected) named(name string) (out []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			out = append(out, s)
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
			if a := s.Attributes; a["notify.attempt"] == "ii" {
				if a["notify.id"] != id || a["notify.key"] != "ops" {
					t.Errorf("the attributes are %v", a)
				}
				if len(s.Links) != 1 || !bytes.Equal(s.Links[0].ID, request.ID) ||
					!bytes.Equal(s.Trace, request.Trace) {
					t.Errorf("links %v, trace %x, want one to %x of %x", s.Links, s.Trace, request.ID, request.Trace)
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
			if bytes.Equal(s.Trace, request.Trace) && strings.Contains(parent.(string), hex.EncodeToString(s.ID)) {
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
