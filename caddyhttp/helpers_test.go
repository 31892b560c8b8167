package caddyhttp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// open lets clients use the test's destinations, which are on loopback.
const open = "egress {\nallow 127.0.0.1\n}\n"

// newGateway provisions a handler with the options of its block, and an app
// with the options of the global block.
func newGateway(t *testing.T, block, global string) *Handler {
	t.Helper()
	h, err := provision(t, block, global)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// provisioning is locked while Caddy provisions a configuration, which sets its
// global variables.
var provisioning sync.Mutex

func provision(t *testing.T, block, global string) (*Handler, error) {
	t.Helper()
	var site Handler
	var app App
	for to, text := range map[caddyfile.Unmarshaler]string{&site: block, &app: global} {
		if err := to.UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\n" + text + "\n}")); err != nil {
			return nil, err
		}
	}
	off := false
	provisioning.Lock()
	defer provisioning.Unlock()
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:   &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &off}},
		AppsRaw: caddy.ModuleMap{"notify": caddyconfig.JSON(app, nil)},
	})
	if err != nil {
		return nil, err
	}
	m, err := ctx.LoadModuleByID("http.handlers.notify", caddyconfig.JSON(site, nil))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = m.(*Handler).Cleanup() })
	return m.(*Handler), nil
}

// reply is a response of the gateway.
type reply struct {
	status int
	header http.Header
	body   string
}

// jsonResponse is the JSON body of a response.
type jsonResponse struct {
	Error   *string      `json:"error"`
	Details [][3]string  `json:"details"`
	Results []api.Result `json:"results"`
}

// json decodes the response, which was requested as JSON.
func (r reply) json(t *testing.T) jsonResponse {
	t.Helper()
	var a jsonResponse
	if err := json.Unmarshal([]byte(r.body), &a); err != nil {
		t.Fatalf("the response is not JSON: %v\n%s", err, r.body)
	}
	return a
}

// nextStatus is the status of the next handler in tests.
const nextStatus = http.StatusTeapot

func do(t *testing.T, h *Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(nextStatus)
		return nil
	})
	if err := h.ServeHTTP(w, r, next); err != nil {
		t.Fatalf("ServeHTTP: %v", err)
	}
	return reply{w.Code, w.Header(), w.Body.String()}
}

func post(t *testing.T, h *Handler, target, contentType, body string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept", "application/json")
	return do(t, h, r)
}

const (
	typeJSON   = "application/json"
	typeForm   = "application/x-www-form-urlencoded"
	typeStream = "application/x-ndjson"
)

// arrived is a message as a destination received it.
type arrived struct {
	Path        string `json:"-"`
	Title       string `json:"title"`
	Message     string `json:"message"`
	Type        string `json:"type"`
	Attachments []struct {
		Filename string `json:"filename"`
		Base64   []byte `json:"base64"`
		Mimetype string `json:"mimetype"`
	} `json:"attachments"`
}

// station is a destination that receives messages of the service json.
type station struct {
	*httptest.Server
	mu  sync.Mutex
	got []arrived
}

func newStation(t *testing.T) *station {
	s := &station{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := arrived{Path: r.URL.Path}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &a)
		}
		if err != nil {
			t.Errorf("the destination got no message: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got = append(s.got, a)
		if strings.HasPrefix(r.URL.Path, "/refuse") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// url returns the notification URL of a path of the station.
func (s *station) url(path string) string {
	return "json://" + strings.TrimPrefix(s.URL, "http://") + path
}

// take returns and removes the messages that have arrived, ordered by path.
func (s *station) take() []arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	slices.SortFunc(got, func(a, b arrived) int { return strings.Compare(a.Path, b.Path) })
	return got
}

// one returns the only message that has arrived.
func (s *station) one(t *testing.T) arrived {
	t.Helper()
	got := s.take()
	if len(got) != 1 {
		t.Fatalf("%d messages arrived, want 1: %+v", len(got), got)
	}
	return got[0]
}

// paths returns the paths at which messages have arrived.
func (s *station) paths() string {
	var out []string
	for _, a := range s.take() {
		out = append(out, strings.TrimPrefix(a.Path, "/"))
	}
	return strings.Join(out, " ")
}
