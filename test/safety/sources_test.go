package safety

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// inbox is a destination of the service json that keeps what it gets, and a
// server of images that counts requests.
type inbox struct {
	*httptest.Server
	fetched atomic.Int32
	mu      sync.Mutex
	got     []string
}

func newInbox(t *testing.T) *inbox {
	i := &inbox{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			i.fetched.Add(1)
			return
		}
		text, _ := io.ReadAll(r.Body)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.got = append(i.got, string(text))
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *inbox) take() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	got := i.got
	i.got = nil
	return got
}

// TestSourceSecrets checks that a request without the token or the signature of
// its source sends nothing, and that no answer and no log line shows a secret.
func TestSourceSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cretsourcetoken"
	to := newInbox(t)
	g := start(t, "debug", "key ops {\nurl json://"+authority(to.Server)+
		"\n}\nfrom gotify {\ntoken "+secret+"\n}\nfrom github {\nsign github "+secret+
		"\n}\nfrom mine {\ntitle x\ntoken {env.SOURCE_SECRET}\n}", "SOURCE_SECRET="+secret)
	for _, path := range []string{"gotify/message", "gotify/message?token=wrong", "github", "mine", "mine?token=" + secret[:8]} {
		r := g.do("/notify/ops/"+path, "application/json", strings.NewReader(`{"message":"x","zen":"x"}`))
		if r.Status != http.StatusUnauthorized || strings.Contains(r.Body, secret) {
			t.Errorf("%s: status %d: %s", path, r.Status, r.Body)
		}
	}
	if got := to.take(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	if r := g.do("/notify/ops/mine?token="+secret, "application/json", strings.NewReader(`{}`)); r.Status != http.StatusOK ||
		len(to.take()) != 1 {
		t.Errorf("with the token: status %d: %s", r.Status, r.Body)
	}
	if strings.Contains(strings.ReplaceAll(g.log(), "token="+secret, ""), secret) {
		t.Error("the log has the secret")
	}
}

// TestPayloadsAreData checks that nothing in a payload is run, replaced or
// fetched, and that a payload made to be expensive is answered like any other.
func TestPayloadsAreData(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	to := newInbox(t)
	g := start(t, "", "egress {\nallow 127.0.0.1\n}\nkey ops {\nurl json://"+authority(to.Server)+"\n}", "SOURCE_SECRET=s3cret")
	for _, tt := range []struct{ source, payload, want string }{
		{
			"proxmox",
			`{"title":"{{.severity}}","message":"{env.SOURCE_SECRET} {$SOURCE_SECRET} {{printf \"%1000000d\" 1}} {file./etc/hostname}"}`,
			`{env.SOURCE_SECRET} {$SOURCE_SECRET} {{printf`,
		},
		{"grafana", `{"title":"x","message":"y","alerts":[{"imageURL":"` + to.URL + `/i.png"}]}`, `y`},
		{"slack", `{"text":"x","attachments":[{"image_url":"` + to.URL + `/i.png","text":"y"}]}`, `y`},
		{
			"alertmanager",
			`{"status":"firing","alerts":[` + strings.Repeat(`{"status":"firing","annotations":{"summary":"s"}},`, 99_999) + `{}]}`,
			`and 99980 more`,
		},
	} {
		if tt.source == "alertmanager" && racetest.Enabled {
			continue // the templates have 5 s, which a busy machine may need
		}
		r := g.do("/notify/ops/"+tt.source, "application/json", strings.NewReader(tt.payload))
		got := to.take()
		if r.Status != http.StatusOK || len(got) != 1 || !strings.Contains(got[0], tt.want) || strings.Contains(got[0], "s3cret") {
			t.Errorf("%s: status %d: %.300s, sent %.300q", tt.source, r.Status, r.Body, got)
		}
	}
	if n := to.fetched.Load(); n != 0 {
		t.Errorf("%d images were fetched", n)
	}
}

// TestTemplatesAreCharged checks that functions of templates cannot read a large payload
// again and again. Once, this template read 140 GB and went on after the client had hung
// up.
func TestTemplatesAreCharged(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	g := start(t, "", "key ops {\nurl json://127.0.0.1:9/\n}\nfrom mine {\nbody `{{range 20000}}{{with default \"x\" $.s}}{{end}}{{end}}`\n}")
	r := g.do("/notify/ops/mine", "application/json", strings.NewReader(`{"s":"`+strings.Repeat(" ", 7<<20)+`"}`))
	switch {
	case r.Status == http.StatusBadRequest && strings.Contains(r.Error, "its functions handle more than 32 MiB"):
	case racetest.Enabled && r.Status == http.StatusServiceUnavailable && strings.Contains(r.Error, "have 5s"): // the machine is busy
	default:
		t.Errorf("status %d: %.300s", r.Status, r.Body)
	}
}
