package caddyhttp

import (
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// description is the document as OpenAPI 3.1, with its schemas as JSON Schema.
type description struct {
	root     any
	compiler *jsonschema.Compiler
}

func readDescription(t *testing.T) *description {
	t.Helper()
	document := do(t, newGateway(t, "", ""), httptest.NewRequest(http.MethodGet, "/notify/openapi.json", nil))
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(document.body))
	if err != nil {
		t.Fatal(err)
	}
	d := &description{root, jsonschema.NewCompiler()}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := d.compiler.AddResource("openapi.json", root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at returns the part of the document at a path, following references, or nil.
func (d *description) at(place ...string) map[string]any {
	here, _ := d.root.(map[string]any)
	for _, name := range place {
		here, _ = here[name].(map[string]any)
		here = d.resolve(here)
	}
	return here
}

func (d *description) resolve(v map[string]any) map[string]any {
	if ref, ok := v["$ref"].(string); ok && v["type"] == nil {
		return d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return v
}

func (d *description) schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := d.compiler.Compile("openapi.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instance(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

func TestDescriptionIsComplete(t *testing.T) {
	d := readDescription(t)
	for name := range d.at("components", "schemas") {
		d.schema(t, name)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && d.resolve(map[string]any{"$ref": ref}) == nil {
				t.Errorf("%s leads nowhere", ref)
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(d.root)
	for name, e := range d.at("paths", "/notify", "post", "requestBody", "content", "application/json", "examples") {
		if err := d.schema(t, "Message").Validate(e.(map[string]any)["value"]); err != nil {
			t.Errorf("example %s: %v", name, err)
		}
	}
}

// TestDescriptionOfParameters checks that the description has the headers and
// the query parameters of each operation.
func TestDescriptionOfParameters(t *testing.T) {
	d := readDescription(t)
	for path, want := range map[string]string{
		"/notify":       "header Accept, header Idempotency-Key, header Incident, header Prefer, header Priority, header Title, header X-Apprise-Config-ID, header X-Apprise-Recursion-Count, query format, query incident, query mapping, query preview, query title, query type",
		"/notify/{KEY}": "header Accept, header Idempotency-Key, header Incident, header Prefer, header Priority, header Tags, header Title, header X-Apprise-Recursion-Count, query beat, query format, query incident, query mapping, query preview, query tag, query tags, query title, query type",
	} {
		var got []string
		for _, p := range d.at("paths", path, "post")["parameters"].([]any) {
			p := d.resolve(p.(map[string]any))
			got = append(got, p["in"].(string)+" "+p["name"].(string))
		}
		slices.Sort(got)
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s describes %s, want %s", path, s, want)
		}
	}
}

// TestDescriptionOfMessages checks that the reader accepts the messages that
// the description allows, and refuses the others.
func TestDescriptionOfMessages(t *testing.T) {
	file := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	defer file.Close()
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"key ops {\nurl "+s.NotifyURL("/")+" a\n}", "")
	message := readDescription(t).schema(t, "Message")
	values := []string{
		`null`, `""`, `"a"`, `"info"`, `" FAILURE "`, `"disk\ndb1"`, `"disk\n"`, `"text"`, `"MarkDown"`, `"html"`, `5`, `true`, `{}`, `[]`, `["a"]`, `["a",["b","c"]]`, `[[1]]`, `[null]`, `[true]`, `[{}]`,
		`"` + file.URL + `"`, `["` + file.URL + `",""]`, `{"url":"` + file.URL + `"}`, `{"url":""}`, `{"url":5}`, `{"url":null}`,
		`{"base64":"eA=="}`, `[{"base64":"eA==","filename":"f","mimetype":"text/plain"}]`, `{"base64":null,"url":"` + file.URL + `"}`, `{"base64":5}`, `{"filename":"x"}`, `{"base64":"eA==","filename":5}`,
	}
	for _, field := range []string{"urls", "body", "title", "type", "format", "incident", "tag", "tags", "attach", "attachment", "attachments"} {
		for _, value := range values {
			fields := map[string]json.RawMessage{"body": json.RawMessage(`"x"`)}
			if field == "body" {
				fields["attach"] = json.RawMessage(`{"base64":"eA=="}`)
			}
			if strings.HasPrefix(field, "tag") && strings.Contains(value, "://") {
				continue // a text, but not an expression
			}
			fields[field] = json.RawMessage(value)
			text, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			invalid := message.Validate(instance(t, string(text)))
			if got := post(t, h, "/notify/ops", typeJSON, string(text)); (got.status == 400) != (invalid != nil) {
				t.Errorf("%s: status %d, but the description says %v\n%s", text, got.status, invalid, got.body)
			}
		}
	}
}

// describedCall is a request whose answers must be described.
type describedCall struct {
	h           *Handler
	target      string
	contentType string
	body        string
	slow        bool // it takes longer than the server allows
	header      http.Header
	before      func() (after func())
}

// configCalls returns requests to the routes for saved configurations, by
// operation.
func configCalls(t *testing.T, s *gatewaytest.Station) map[string][]describedCall {
	h, _ := newConfigGateway(t, t.TempDir(), "manage open\nmax_size 1KiB", "")
	broken, storage := newConfigGateway(t, t.TempDir(), "manage open", "")
	storage.Down.Store(true)
	locked, _ := newConfigGateway(t, t.TempDir(), "", "")
	save := func(h *Handler) func() func() {
		return func() func() {
			if r := post(t, h, "/add/ops", typeForm, "urls="+s.NotifyURL("/a")); r.status != http.StatusOK {
				t.Fatal(r.body)
			}
			return func() {}
		}
	}
	saved := save(h)
	guarded, _ := newConfigGateway(t, t.TempDir(), "", "key ops {\nurl "+s.NotifyURL("/a")+"\ntoken "+opsToken+"\n}")
	fresh := func() func() { // without tokens
		post(t, h, "/del/ops", "", "")
		return saved()
	}
	full := func() func() { // with as many tokens as a key can have
		done := fresh()
		for range configstore.MaxTokens {
			if r := post(t, h, "/cfg/ops/token", "", ""); r.status != http.StatusOK {
				t.Fatal(r.body)
			}
		}
		return done
	}
	healthy := func(h *Handler) func() func() {
		return func() func() {
			h.api.Saved.Shared.Checked = time.Time{}
			return func() {}
		}
	}
	urls := "urls=" + s.NotifyURL("/a")
	calls := map[string][]describedCall{
		"POST /add/{KEY}": {
			{h: h, target: "/add/ops", contentType: typeForm, body: urls},
			{h: h, target: "/add/ops", contentType: typeForm, body: "urls=nope"},
			{h: locked, target: "/add/ops", contentType: typeForm, body: urls},
			{h: h, target: "/add/a.b", contentType: typeForm, body: urls},
			{h: h, target: "/add/ops", contentType: typeForm, body: urls + strings.Repeat("x", 1100)},
			{h: broken, target: "/add/ops", contentType: typeForm, body: urls},
		},
		"POST /get/{KEY}": {
			{h: h, target: "/get/ops", before: saved}, {h: locked, target: "/get/ops"}, {h: h, target: "/get/none"}, {h: broken, target: "/get/ops"},
		},
		"POST /del/{KEY}": {
			{h: h, target: "/del/ops", before: saved}, {h: locked, target: "/del/ops"}, {h: h, target: "/del/none"}, {h: broken, target: "/del/ops"},
		},
		"GET /cfg": {
			{h: h, target: "/cfg", before: saved}, {h: locked, target: "/cfg"}, {h: broken, target: "/cfg"},
		},
		"POST /cfg/{KEY}": {
			{h: h, target: "/cfg/ops?test", contentType: typeForm, body: "destination=1", before: saved},
			{h: h, target: "/cfg/ops?test", contentType: typeForm, body: "destination=9"},
			{h: locked, target: "/cfg/ops?test", contentType: typeForm, body: "destination=1"},
			{h: h, target: "/cfg/none?test", contentType: typeForm, body: "destination=1"},
			{h: h, target: "/cfg/ops?test", contentType: typeForm, body: "destination=1", slow: true},
			{h: h, target: "/cfg/ops?test", contentType: typeForm, body: "destination=1&shown=json://other"},
			{h: h, target: "/cfg/ops?test", contentType: typeForm, body: strings.Repeat("x", console.MaxPageForm+1)},
			{h: h, target: "/cfg/ops?test", contentType: typeForm, body: "url=" + s.NotifyURL("/refuse")},
			{h: broken, target: "/cfg/ops?test", contentType: typeForm, body: "destination=1"},
		},
		"POST /cfg/{KEY}/token": {
			{h: h, target: "/cfg/ops/token", before: fresh},
			{h: locked, target: "/cfg/ops/token"},
			{h: h, target: "/cfg/none/token"},
			{h: h, target: "/cfg/ops/token", before: full},
			{h: broken, target: "/cfg/ops/token"},
		},
		"DELETE /cfg/{KEY}/token": {
			{h: h, target: "/cfg/ops/token", before: full},
			{h: locked, target: "/cfg/ops/token"},
			{h: h, target: "/cfg/none/token"},
			{h: broken, target: "/cfg/ops/token"},
		},
		"GET /json/urls/{KEY}": {
			{h: guarded, target: "/json/urls/ops"},
			{h: h, target: "/json/urls/ops", before: saved},
			{h: h, target: "/json/urls/ops?tag=a!b", before: saved},
			{h: h, target: "/json/urls/none"},
			{h: broken, target: "/json/urls/ops"},
		},
		"GET /status": {
			{h: h, target: "/status", before: healthy(h)}, {h: broken, target: "/status", before: healthy(broken)},
		},
		"GET /details": {{h: h, target: "/details"}},
	}
	return calls
}

// TestDescriptionOfAnswers checks that every response is described, and that
// every described response occurs.
func TestDescriptionOfAnswers(t *testing.T) {
	d := readDescription(t)
	schemas := map[string]*jsonschema.Schema{"Answer": d.schema(t, "Answer"), "StreamLine": d.schema(t, "StreamLine"), "QueuedMessage": d.schema(t, "QueuedMessage"), "Incidents": d.schema(t, "Incidents"), "Silence": d.schema(t, "Silence"), "Device": d.schema(t, "Device"), "IncidentRecord": d.schema(t, "IncidentRecord"), "Inbox": d.schema(t, "Inbox"), "InboxMessage": d.schema(t, "InboxMessage"), "NtfyError": d.schema(t, "NtfyError")}
	s := gatewaytest.NewStation(t)
	block := open + "max_in_flight 5\nmax_body 1KiB\ndefault_urls " + s.NotifyURL("/a") + "\nkey ops {\nurl " + s.NotifyURL("/a") + " a\nurl " + s.NotifyURL("/refuse") + " b\ndefault_tag a\n}\nfrom locked {\ntitle x\ntoken t\n}\n"
	h := newGateway(t, block, "")
	closed, named := newGateway(t, "stateless off\n", ""), newGateway(t, "config_id on\n", "")
	guarded := newGateway(t, "key ops {\nurl "+s.NotifyURL("/a")+"\ntoken "+opsToken+"\n}", "")
	off := newGateway(t, block+"page off", "")
	const key, stateless, ofSource = "/notify/{KEY}", "/notify", "/notify/{KEY}/{SOURCE}"
	type call = describedCall
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	busy := func() func() {
		entries := make([]site.Admission, 5)
		for i := range entries {
			var err error
			if entries[i], err = h.shared.InFlight.Enter(h.api.Resolved.Limits.InFlight); err != nil {
				t.Fatal(err)
			}
		}
		return func() {
			for i := range entries {
				entries[i].Leave()
			}
		}
	}
	tmp := os.TempDir()
	noTempDir := func() func() {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
		return func() { t.Setenv("TMPDIR", tmp) }
	}
	fullDisk := func() func() { // a disk without room for a file of 2 MiB
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	large := "--x\r\nContent-Disposition: form-data; name=attach; filename=f\r\n\r\n" + strings.Repeat("x", 2<<20) + "\r\n--x--\r\n"
	calls := map[string][]call{"POST " + key: nil, "POST " + stateless: nil}
	const payload = `{"message":"x"}`
	calls["POST "+ofSource] = []call{
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: "{"},
		{h: h, target: "/notify/ops/locked", contentType: typeJSON, body: payload},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, header: header("Sec-Fetch-Site", "cross-site")},
		{h: h, target: "/notify/ops/none", contentType: typeJSON, body: payload},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, slow: true},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: strings.Repeat("x", 2000)},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, header: header("Content-Encoding", "gzip")},
		{h: h, target: "/notify/ops/proxmox?tag=none", contentType: typeJSON, body: payload},
		{h: h, target: "/notify/ops/proxmox?tag=b", contentType: typeJSON, body: payload},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, before: busy},
		{h: h, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, header: header("X-Apprise-Recursion-Count", "2")},
		{h: h, target: "/notify/ops/proxmox", contentType: "multipart/form-data; boundary=x", body: large, before: noTempDir},
		{h: h, target: "/notify/ops/proxmox", contentType: "multipart/form-data; boundary=x", body: large, before: fullDisk},
	}
	for op, target := range map[string]string{"POST " + key: "/notify/ops", "POST " + stateless: "/notify"} {
		calls[op] = []call{
			{h: h, target: target, contentType: typeForm, body: "body=x"},
			{h: h, target: target, contentType: typeJSON, body: `{"body":5}`},
			{h: h, target: target, contentType: typeForm, body: "body=x", header: header("Sec-Fetch-Site", "cross-site")},
			{h: h, target: target, contentType: typeForm, body: "body=", slow: true},
			{h: h, target: target, contentType: typeForm, body: "body=" + strings.Repeat("x", 2000)},
			{h: h, target: target, contentType: "text/csv", body: "x"},
			{h: h, target: target, contentType: typeForm, body: "body=x", before: busy},
			{h: h, target: target, contentType: typeForm, body: "body=x", header: header("X-Apprise-Recursion-Count", "2")},
			{h: h, target: target, contentType: "multipart/form-data; boundary=x", body: large, before: noTempDir},
			{h: h, target: target, contentType: "multipart/form-data; boundary=x", body: large, before: fullDisk},
		}
	}
	calls["POST "+key] = append(calls["POST "+key],
		call{h: h, target: "/notify/none", contentType: typeForm, body: "body=x"},
		call{h: h, target: "/notify/ops", contentType: typeForm, body: "body=x&tag=b"},
		call{h: h, target: "/notify/ops", contentType: typeForm, body: "body=x&tag=none"})
	calls["POST "+stateless] = append(calls["POST "+stateless],
		call{h: h, target: "/notify", contentType: typeForm, body: "body=x&urls=nonsense://h," + s.NotifyURL("/refuse")},
		call{h: closed, target: "/notify", contentType: typeForm, body: "body=x"},
		call{h: closed, target: "/notify", contentType: typeForm, body: "body=x", header: header("X-Apprise-Config-Id", "ops")},
		call{h: guarded, target: "/notify", contentType: typeForm, body: "body=x", header: header("X-Apprise-Config-Id", "ops")},
		call{h: named, target: "/notify", contentType: typeForm, body: "body=x", header: header("X-Apprise-Config-Id", "none")})
	calls["POST "+key] = append(calls["POST "+key], call{h: guarded, target: "/notify/ops", contentType: typeForm, body: "body=x"})
	calls["GET "+key] = []call{{h: guarded, target: "/notify/ops"}, {h: h, target: "/notify/ops"}, {h: h, target: "/notify/none"}, {h: off, target: "/notify/ops"}}
	calls["GET "+stateless] = []call{{h: h, target: "/notify"}, {h: closed, target: "/notify"}, {h: off, target: "/notify"}}
	calls["GET /notify/openapi.json"] = []call{{h: h, target: "/notify/openapi.json"}}

	pager := newPager(t, http.StatusBadGateway)
	q := newQueueGateway(t, t.TempDir(), "", "default_urls "+pager.NotifyURL()+"\nkey ops {\nurl "+pager.NotifyURL()+"\n}")
	notOpen := newGateway(t, "", "queue {\npath "+t.TempDir()+"\n}")
	notOpen.app.ready()
	calls["GET /notify/status"] = []call{{h: q, target: "/notify/status"}, {h: notOpen, target: "/notify/status"}}
	managed := newQueueGateway(t, t.TempDir(), "configs {\nmanage open\n}\npage off", ruledKey(pager, "dedupe 1h"))
	postWith(t, managed, "/notify/k", alertForm("failure", "down", "db1"))
	managedNotOpen := newGateway(t, "configs {\nmanage open\n}\npage off", "queue {\npath "+t.TempDir()+"\n}")
	managedNotOpen.app.ready()
	calls["GET /notify/incidents"] = []call{
		{h: managed, target: "/notify/incidents"}, {h: managed, target: "/notify/incidents?limit=x"}, {h: q, target: "/notify/incidents"}, {h: managedNotOpen, target: "/notify/incidents"},
	}
	maps.Copy(calls, silenceCalls(t, s))
	maps.Copy(calls, inboxCalls(t))
	maps.Copy(calls, deviceCalls(t))
	incident := "/notify/incidents/" + incidentsOf(t, managed)[0].ID
	form := func(body string) call { return call{h: managed, target: incident, contentType: typeForm, body: body} }
	foreign, foreignResolve := form("by=Eve"), form("do=resolve")
	foreign.header, foreignResolve.header = header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "cross-site")
	calls["GET "+httpapi.RouteIncident] = []call{{h: managed, target: incident}, {h: q, target: incident}, {h: managedNotOpen, target: incident}}
	calls["POST "+httpapi.RouteIncident] = []call{form("by=Ann"), form("do=nothing"), form("by=" + strings.Repeat("x", httpapi.MaxIncidentForm)), foreign, foreignResolve, {h: q, target: incident}, {h: managedNotOpen, target: incident}}
	for _, path := range []string{key, stateless} {
		target := strings.Replace(path, "{KEY}", "ops", 1)
		first := postWith(t, q, target, "body=x", "Idempotency-Key", "1").queued(t)
		calls["POST "+path] = append(calls["POST "+path],
			call{h: q, target: target, contentType: typeForm, body: "body=x"},
			call{h: q, target: target, contentType: typeForm, body: "body=x", header: header("Prefer", "respond-async")},
			call{h: q, target: target, contentType: typeForm, body: "body=y", header: header("Idempotency-Key", "1")})
		message := "/notify/messages/" + first.ID
		calls["GET /notify/messages/{ID}"] = append(calls["GET /notify/messages/{ID}"], call{h: q, target: message})
		calls["DELETE /notify/messages/{ID}"] = append(calls["DELETE /notify/messages/{ID}"], call{h: q, target: message},
			call{h: q, target: message, header: header("Sec-Fetch-Site", "cross-site")})
		locked := newQueueGateway(t, t.TempDir(), "", "key k {\nurl json://127.0.0.1:1\ntoken 0123456789abcdef\n}")
		secret := postWith(t, locked, "/notify/k", "body=x", "Authorization", "Bearer 0123456789abcdef").queued(t)
		calls["DELETE /notify/messages/{ID}"] = append(calls["DELETE /notify/messages/{ID}"], call{h: locked, target: "/notify/messages/" + secret.ID})
		for _, op := range []string{"GET /notify/messages/{ID}", "DELETE /notify/messages/{ID}"} {
			calls[op] = append(calls[op], call{h: notOpen, target: message}, call{h: q, target: "/notify/messages/none"})
		}
	}

	other := httptest.NewRequest(http.MethodPost, "/notify/ops/proxmox", strings.NewReader(strings.Replace(payload, `":"`, `":"other `, 1)))
	other.Header = http.Header{"Content-Type": {typeJSON}, "Idempotency-Key": {"1"}}
	do(t, q, other)
	calls["POST "+ofSource] = append(calls["POST "+ofSource],
		call{h: q, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, header: header("Prefer", "respond-async")},
		call{h: q, target: "/notify/ops/proxmox", contentType: typeJSON, body: payload, header: header("Idempotency-Key", "1")})

	maps.Copy(calls, configCalls(t, s))

	given := map[string]bool{}
	for op, list := range calls {
		method, path, _ := strings.Cut(op, " ")
		responses := d.at("paths", path, strings.ToLower(method), "responses")
		for _, c := range list {
			for _, accept := range []string{"text/plain", typeJSON, "text/html", typeStream} {
				r := httptest.NewRequest(method, c.target, strings.NewReader(c.body))
				if c.slow {
					r.Body = io.NopCloser(io.MultiReader(r.Body, iotest.ErrReader(os.ErrDeadlineExceeded)))
				}
				maps.Copy(r.Header, c.header)
				r.Header.Set("Accept", accept)
				r.Header.Set("Content-Type", c.contentType)
				after := func() {}
				if c.before != nil {
					after = c.before()
				}
				got := do(t, c.h, r)
				after()
				media, _, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
				status := strconv.Itoa(got.status)
				at := op + " " + status + " " + media
				response, _ := responses[status].(map[string]any)
				content, _ := response["content"].(map[string]any)
				if got.status == http.StatusNoContent && response != nil && got.body == "" {
					continue
				}
				if content[media] == nil {
					t.Errorf("%s %s for %s: status %d with %s is not described", method, c.target, accept, got.status, media)
					continue
				}
				given[at] = true
				headers, _ := response["headers"].(map[string]any)
				for name := range headers {
					if got.header.Get(name) == "" {
						t.Errorf("%s lacks the header %s", at, name)
					}
				}
				schema := "Answer"
				lines := []string{got.body}
				switch {
				case path == "/notify/openapi.json", path == httpapi.RouteHealth, media == "text/plain", media == "text/html":
					continue
				case !strings.HasPrefix(path, "/notify") && (got.status == http.StatusOK || path == "/status"):
					continue // other tests cover these answers
				case path == site.RouteIncidents && got.status == 200:
					schema = "Incidents"
				case path == httpapi.RouteSilences && method == http.MethodGet && got.status == 200:
					schema, lines = "Silence", jsonItems(t, got.body)
				case strings.HasPrefix(path, httpapi.RouteSilences) && got.status < 300:
					schema = "Silence"
				case path == httpapi.RouteNtfyInbox && got.status == 200:
					continue // other tests cover what ntfy's clients get
				case path == httpapi.RouteNtfyInbox:
					schema = "NtfyError"
				case path == httpapi.RouteInbox && got.status == 200:
					schema = "Inbox"
				case path == httpapi.RouteInboxStream && got.status == 200:
					schema, lines = "InboxMessage", strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
				case path == httpapi.RouteDevices && method == http.MethodGet && got.status == 200:
					schema, lines = "Device", jsonItems(t, got.body)
				case strings.HasPrefix(path, httpapi.RouteDevices) && path != httpapi.RouteDeviceTest && got.status < 300:
					schema = "Device"
				case path == httpapi.RouteIncident && got.status == 200:
					schema = "IncidentRecord"
				case strings.Contains(path, "{ID}") && path != httpapi.RouteDeviceTest && got.status == 200:
					schema = "QueuedMessage"
				case media == typeStream:
					schema, lines = "StreamLine", strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
				}
				for _, l := range lines {
					if err := schemas[schema].Validate(instance(t, l)); err != nil {
						t.Errorf("%s: %v\n%s", at, err, l)
					}
				}
			}
		}
	}
	for path, methods := range d.at("paths") {
		for method, o := range methods.(map[string]any) {
			operation, ok := o.(map[string]any)
			if !ok { // path parameters
				continue
			}
			for status, response := range operation["responses"].(map[string]any) {
				for media := range response.(map[string]any)["content"].(map[string]any) {
					if at := strings.ToUpper(method) + " " + path + " " + status + " " + media; !given[at] {
						t.Errorf("%s is described, but does not occur", at)
					}
				}
			}
		}
	}
}
