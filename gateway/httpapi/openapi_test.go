package httpapi_test

import (
	"bytes"
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

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// openAPI is the document as OpenAPI 3.1, with its schemas as JSON Schema.
type openAPI struct{ root any }

func readOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	document := siteWith(t).Do(httptest.NewRequest(http.MethodGet, "/notify/openapi.json", nil))
	return &openAPI{schemaInstance(t, document.Body)}
}

// at returns the part of the document at a path, following references, or nil.
func (d *openAPI) at(place ...string) map[string]any {
	here, _ := d.root.(map[string]any)
	for i, name := range place {
		if i == 1 && place[0] == "paths" {
			name = httpapi.DescribedPath(name)
		}
		here, _ = here[name].(map[string]any)
		here = d.resolve(here)
	}
	return here
}

func (d *openAPI) resolve(v map[string]any) map[string]any {
	if ref, ok := v["$ref"].(string); ok && v["type"] == nil {
		return d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return v
}

// schema returns a schema of the document, with all that it refers to.
func (d *openAPI) schema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	all, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": d.at("components", "schemas")})
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(bytes.ReplaceAll(all, []byte("#/components/schemas/"), []byte("#/$defs/")), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return resolved
}

func schemaInstance(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

func TestDescriptionIsComplete(t *testing.T) {
	t.Parallel()
	d := readOpenAPI(t)
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
// the query parameters of operations.
func TestDescriptionOfParameters(t *testing.T) {
	t.Parallel()
	d := readOpenAPI(t)
	for path, want := range map[string]string{
		"/notify": "header Accept, header Idempotency-Key, header Incident, header Prefer, header Priority, header Title, header " +
			"X-Apprise-Config-ID, header X-Apprise-Recursion-Count, query format, query incident, query mapping, query preview, query stream, " +
			"query title, query type",
		"/notify/{KEY}": "header Accept, header Idempotency-Key, header Incident, header Prefer, header Priority, header Tags, header Title, " +
			"header X-Apprise-Recursion-Count, query beat, query exit, query format, query incident, query mapping, query preview, query " +
			"send_at, query state, query stream, query tag, query tags, query title, query type",
		"/notify/openapi.json": "header If-None-Match",
	} {
		var got []string
		operation := d.at("paths", path, "post")
		if operation == nil {
			operation = d.at("paths", path, "get")
		}
		for _, p := range operation["parameters"].([]any) {
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
	t.Parallel()
	file := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	defer file.Close()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys:   []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/")+" a")},
		Egress: gatewaytest.Loopback(),
	}})
	message := readOpenAPI(t).schema(t, "Message")
	values := []string{
		`null`, `""`, `"a"`, `"info"`, `" FAILURE "`, `"disk\ndb1"`, `"disk\n"`, `"text"`, `"MarkDown"`, `"html"`, `5`, `true`, `{}`, `[]`,
		`["a"]`, `["a",["b","c"]]`, `[[1]]`, `[null]`, `[true]`, `[{}]`,
		`"` + file.URL + `"`, `["` + file.URL + `",""]`, `{"url":"` + file.URL + `"}`, `{"url":""}`, `{"url":5}`, `{"url":null}`,
		`{"base64":"eA=="}`, `[{"base64":"eA==","filename":"f","mimetype":"text/plain"}]`, `{"base64":null,"url":"` + file.URL + `"}`,
		`{"base64":5}`, `{"filename":"x"}`, `{"base64":"eA==","filename":5}`,
	}
	for _, field := range []string{"body", "title", "type", "format", "incident", "tag", "tags", "attach", "attachment", "attachments"} {
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
			invalid := message.Validate(schemaInstance(t, string(text)))
			if got := g.Post("/notify/ops", gatewaytest.TypeJSON, string(text)); (got.Status == 400) != (invalid != nil) {
				t.Errorf("%s: status %d, but the description says %v\n%s", text, got.Status, invalid, got.Body)
			}
		}
	}
}

// TestDescriptionOfAnswers checks that every response is described, and that
// every described response occurs.
func TestDescriptionOfAnswers(t *testing.T) {
	d := readOpenAPI(t)
	schemas := map[string]*jsonschema.Resolved{
		"Answer": d.schema(t, "Answer"), "StreamLine": d.schema(t, "StreamLine"),
		"QueuedMessage": d.schema(t, "QueuedMessage"), "Incidents": d.schema(t, "Incidents"), "Silence": d.schema(t, "Silence"),
		"Device": d.schema(t, "Device"), "IncidentRecord": d.schema(t, "IncidentRecord"), "Question": d.schema(t, "Question"),
		"Inbox": d.schema(t, "Inbox"), "InboxMessage": d.schema(t, "InboxMessage"), "NtfyError": d.schema(t, "NtfyError"),
	}
	answers := &describedAnswers{d, schemas, map[string]bool{}}
	s := gatewaytest.NewStation(t)
	block := site.Options{
		Egress: gatewaytest.Loopback(), MaxInFlight: 5, MaxBody: 1 << 10, DefaultURLs: gatewaytest.URLs(s.NotifyURL("/a")),
		Keys: []site.KeyOptions{{Name: "ops", URLs: gatewaytest.URLs(s.NotifyURL("/a")+" a", s.NotifyURL("/refuse")+" b"), DefaultTag: "a"}},
	}
	g := gatewaytest.New(t, gatewaytest.Options{
		Site: block, Sources: sourcesWith(t, source.Config{Name: "locked", Templates: source.Templates{Title: "x"}, Token: "t"}),
	})
	closed := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Stateless: new(false)}})
	named := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{ConfigID: new(true)}})
	guarded := siteWith(t, lockedKey("ops", describedToken, s.NotifyURL("/a")))
	block.Page = new(false)
	off := gatewaytest.New(t, gatewaytest.Options{
		Site: block, Sources: sourcesWith(t, source.Config{Name: "locked", Templates: source.Templates{Title: "x"}, Token: "t"}),
	})
	const key, stateless, ofSource = "/notify/{KEY}", "/notify", "/notify/{KEY}/{SOURCE}"
	type call = describedCall
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	busy := func() func() {
		entries := make([]site.Admission, 5)
		for i := range entries {
			var err error
			if entries[i], err = g.Process.InFlight.Enter(g.Resolved.Limits.InFlight); err != nil {
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
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: "{"},
		{g: g, target: "/notify/ops/locked", contentType: gatewaytest.TypeJSON, body: payload},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, header: header("Sec-Fetch-Site", "cross-site")},
		{g: g, target: "/notify/ops/none", contentType: gatewaytest.TypeJSON, body: payload},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, slow: true},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: strings.Repeat("x", 2000)},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, header: header("Content-Encoding", "gzip")},
		{g: g, target: "/notify/ops/proxmox?tag=none", contentType: gatewaytest.TypeJSON, body: payload},
		{g: g, target: "/notify/ops/proxmox?tag=b", contentType: gatewaytest.TypeJSON, body: payload},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, before: busy},
		{g: g, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, header: header("X-Apprise-Recursion-Count", "2")},
		{g: g, target: "/notify/ops/proxmox", contentType: "multipart/form-data; boundary=x", body: large, before: noTempDir},
		{g: g, target: "/notify/ops/proxmox", contentType: "multipart/form-data; boundary=x", body: large, before: fullDisk},
	}
	for op, target := range map[string]string{"POST " + key: "/notify/ops", "POST " + stateless: "/notify"} {
		calls[op] = []call{
			{g: g, target: target, contentType: gatewaytest.TypeForm, body: "body=x"},
			{g: g, target: target, contentType: gatewaytest.TypeJSON, body: `{"body":5}`},
			{g: g, target: target, contentType: gatewaytest.TypeForm, body: "body=x", header: header("Sec-Fetch-Site", "cross-site")},
			{g: g, target: target, contentType: gatewaytest.TypeForm, body: "body=", slow: true},
			{g: g, target: target, contentType: gatewaytest.TypeForm, body: "body=" + strings.Repeat("x", 2000)},
			{g: g, target: target, contentType: "text/csv", body: "x"},
			{g: g, target: target, contentType: gatewaytest.TypeForm, body: "body=x", before: busy},
			{g: g, target: target, contentType: gatewaytest.TypeForm, body: "body=x", header: header("X-Apprise-Recursion-Count", "2")},
			{g: g, target: target, contentType: "multipart/form-data; boundary=x", body: large, before: noTempDir},
			{g: g, target: target, contentType: "multipart/form-data; boundary=x", body: large, before: fullDisk},
		}
	}
	calls["POST "+key] = append(calls["POST "+key],
		call{g: g, target: "/notify/none", contentType: gatewaytest.TypeForm, body: "body=x"},
		call{g: g, target: "/notify/ops", contentType: gatewaytest.TypeForm, body: "body=x&tag=b"},
		call{g: g, target: "/notify/ops", contentType: gatewaytest.TypeForm, body: "body=x&tag=none"})
	calls["POST "+stateless] = append(calls["POST "+stateless],
		call{g: g, target: "/notify", contentType: gatewaytest.TypeForm, body: "body=x&urls=nonsense://h," + s.NotifyURL("/refuse")},
		call{g: closed, target: "/notify", contentType: gatewaytest.TypeForm, body: "body=x"},
		call{g: closed, target: "/notify", contentType: gatewaytest.TypeForm, body: "body=x", header: header("X-Apprise-Config-Id", "ops")},
		call{g: guarded, target: "/notify", contentType: gatewaytest.TypeForm, body: "body=x", header: header("X-Apprise-Config-Id", "ops")},
		call{g: named, target: "/notify", contentType: gatewaytest.TypeForm, body: "body=x", header: header("X-Apprise-Config-Id", "none")})
	calls["POST "+key] = append(calls["POST "+key], call{g: guarded, target: "/notify/ops", contentType: gatewaytest.TypeForm, body: "body=x"})
	calls["GET "+key] = []call{
		{g: guarded, target: "/notify/ops"},
		{g: g, target: "/notify/ops"},
		{g: g, target: "/notify/none"},
		{g: off, target: "/notify/ops"},
	}
	calls["GET "+stateless] = []call{{g: g, target: "/notify"}, {g: closed, target: "/notify"}, {g: off, target: "/notify"}}
	calls["GET /notify/openapi.json"] = []call{
		{g: g, target: "/notify/openapi.json"},
		{g: g, target: "/notify/openapi.json", header: header("If-None-Match", "*")},
	}
	// The disk is full for the whole process, so these gateways answer before others open a store,
	// which would refuse messages for a moment.
	answers.check(t, calls)
	clear(calls)

	pager := gatewaytest.NewPager(t, http.StatusBadGateway)
	q := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{
			DefaultURLs: gatewaytest.URLs(pager.NotifyURL()),
			Keys:        []site.KeyOptions{gatewaytest.Key("ops", pager.NotifyURL())},
		},
		Queue: &outbox.Settings{},
	})
	notOpen := newNotOpen(t, gatewaytest.Options{})
	calls["GET /notify/status"] = []call{{g: q, target: "/notify/status"}, {g: notOpen, target: "/notify/status"}}
	k := gatewaytest.Key("k", pager.NotifyURL()+"?tz=UTC")
	k.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
	managing := gatewaytest.Options{
		Site:  site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback(), Page: new(false)},
		Saved: &saved.Options{Manage: true},
	}
	managedNotOpen := newNotOpen(t, managing)
	managing.Global.Keys, managing.Queue = []site.KeyOptions{k}, &outbox.Settings{}
	managed := gatewaytest.New(t, managing)
	withConsole := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{}})
	managed.PostForm("/notify/k", "type=failure&body=down&incident=db1")
	incidents, _, err := managed.Rooms().Alerts.Incidents.List(t.Context(), []string{"\x00k"},
		&alerting.IncidentQuery{Stage: rules.Stages[0], Limit: 1})
	if err != nil || len(incidents) != 1 {
		t.Fatalf("%d incidents, %v", len(incidents), err)
	}
	incident := "/notify/incidents/" + incidents[0].Incident.ID
	calls["GET /notify/incidents"] = []call{
		{g: managed, target: "/notify/incidents"},
		{g: managed, target: "/notify/incidents?limit=x"},
		{g: q, target: "/notify/incidents"},
		{g: managedNotOpen, target: "/notify/incidents"},
		{g: withConsole, target: "/notify/incidents"},
	}
	maps.Copy(calls, silenceCalls(t, s))
	maps.Copy(calls, inboxCalls(t))
	maps.Copy(calls, mcpCalls(t))
	maps.Copy(calls, rulerCalls(t, s))
	maps.Copy(calls, deviceCalls(t))
	askCalls(t, calls, managedNotOpen)
	form := func(body string) call {
		return call{g: managed, target: incident, contentType: gatewaytest.TypeForm, body: body}
	}
	foreign, foreignResolve := form("by=Eve"), form("do=resolve")
	foreign.header, foreignResolve.header = header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "cross-site")
	calls["GET "+httpapi.RouteIncident] = []call{
		{g: managed, target: incident},
		{g: q, target: incident},
		{g: managedNotOpen, target: incident},
	}
	calls["POST "+httpapi.RouteIncident] = []call{
		form("by=Ann"), form("do=nothing"),
		form("by=" + strings.Repeat("x", httpapi.MaxIncidentForm)), foreign, foreignResolve,
		{g: q, target: incident},
		{g: managedNotOpen, target: incident},
	}
	for _, path := range []string{key, stateless} {
		target := strings.Replace(path, "{KEY}", "ops", 1)
		first := q.PostForm(target, "body=x", "Idempotency-Key", "1").JSON(t)
		calls["POST "+path] = append(calls["POST "+path],
			call{g: q, target: target, contentType: gatewaytest.TypeForm, body: "body=x"},
			call{g: q, target: target, contentType: gatewaytest.TypeForm, body: "body=x", header: header("Prefer", "respond-async")},
			call{g: q, target: target, contentType: gatewaytest.TypeForm, body: "body=y", header: header("Idempotency-Key", "1")})
		message := "/notify/messages/" + first.ID
		calls["GET /notify/messages/{ID}"] = append(calls["GET /notify/messages/{ID}"], call{g: q, target: message})
		calls["DELETE /notify/messages/{ID}"] = append(calls["DELETE /notify/messages/{ID}"], call{g: q, target: message},
			call{g: q, target: message, header: header("Sec-Fetch-Site", "cross-site")})
		locked := gatewaytest.New(t,
			gatewaytest.Options{
				Global: site.Options{Keys: []site.KeyOptions{lockedKey("k", "0123456789abcdef", "json://127.0.0.1:1")}},
				Queue:  &outbox.Settings{},
			})
		secret := locked.PostForm("/notify/k", "body=x", "Authorization", "Bearer 0123456789abcdef").JSON(t)
		calls["DELETE /notify/messages/{ID}"] = append(calls["DELETE /notify/messages/{ID}"],
			call{g: locked, target: "/notify/messages/" + secret.ID})
		for _, op := range []string{"GET /notify/messages/{ID}", "DELETE /notify/messages/{ID}"} {
			calls[op] = append(calls[op], call{g: notOpen, target: message}, call{g: q, target: "/notify/messages/none"})
		}
	}

	other := httptest.NewRequest(http.MethodPost, "/notify/ops/proxmox", strings.NewReader(strings.Replace(payload, `":"`, `":"other `, 1)))
	other.Header = http.Header{"Content-Type": {gatewaytest.TypeJSON}, "Idempotency-Key": {"1"}}
	q.Do(other)
	calls["POST "+ofSource] = append(calls["POST "+ofSource],
		call{g: q, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, header: header("Prefer", "respond-async")},
		call{g: q, target: "/notify/ops/proxmox", contentType: gatewaytest.TypeJSON, body: payload, header: header("Idempotency-Key", "1")})

	maps.Copy(calls, configCalls(t, s))

	answers.check(t, calls)
	for path, methods := range d.at("paths") {
		for method, o := range methods.(map[string]any) {
			operation, ok := o.(map[string]any)
			if !ok { // path parameters
				continue
			}
			for status, response := range operation["responses"].(map[string]any) {
				content, _ := d.resolve(response.(map[string]any))["content"].(map[string]any)
				if len(content) == 0 {
					content = map[string]any{"": nil} // an answer without a body
				}
				for media := range content {
					if at := strings.ToUpper(method) + " " + path + " " + status + " " + media; !answers.given[at] {
						t.Errorf("%s is described, but does not occur", at)
					}
				}
			}
		}
	}
}

// describedAnswers are the answers that have occurred, each by its operation, status and type.
type describedAnswers struct {
	*openAPI
	schemas map[string]*jsonschema.Resolved
	given   map[string]bool
}

// check makes calls, by operation, and checks that their answers are described.
func (x *describedAnswers) check(t *testing.T, calls map[string][]describedCall) {
	t.Helper()
	const rulerRoutes = "/notify/{KEY}/prometheus/"
	for op, list := range calls {
		method, path, _ := strings.Cut(op, " ")
		responses := x.at("paths", path, strings.ToLower(method), "responses")
		described := httpapi.DescribedPath(path)
		for _, c := range list {
			if strings.HasPrefix(described, "/notify/-/") { // other tests use the addresses of links
				c.target = strings.Replace(c.target, "/notify/", "/notify/-/", 1)
			}
			for _, accept := range []string{"text/plain", gatewaytest.TypeJSON, "text/html", gatewaytest.TypeStream, "text/event-stream"} {
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
				got := c.g.Do(r)
				after()
				media, _, _ := mime.ParseMediaType(got.Header.Get("Content-Type"))
				status := strconv.Itoa(got.Status)
				at := method + " " + described + " " + status + " " + media
				response, _ := responses[status].(map[string]any)
				response = x.resolve(response)
				content, _ := response["content"].(map[string]any)
				empty := response != nil && len(content) == 0 && media == "" && got.Body == ""
				if content[media] == nil && !empty {
					t.Errorf("%s %s for %s: status %d with %s is not described", method, c.target, accept, got.Status, media)
					continue
				}
				x.given[at] = true
				headers, _ := response["headers"].(map[string]any)
				for name := range headers {
					if got.Header.Get(name) == "" {
						t.Errorf("%s lacks the header %s", at, name)
					}
				}
				if headers["ETag"] == nil && got.Header.Get("Etag") != "" {
					t.Errorf("%s has an ETag that is not described", at)
				}
				if empty {
					continue
				}
				schema := "Answer"
				lines := []string{got.Body}
				switch {
				case path == "/notify/openapi.json", path == httpapi.RouteHealth, media == "text/plain", media == "text/html",
					media == "text/event-stream":
					continue
				case !strings.HasPrefix(path, "/notify") && (got.Status == http.StatusOK || strings.HasPrefix(path, "/status")):
					continue // other tests cover these answers
				case path == site.RouteIncidents && got.Status == 200:
					schema = "Incidents"
				case path == httpapi.RouteSilences && method == http.MethodGet && got.Status == 200:
					schema, lines = "Silence", describedItems(t, got.Body)
				case strings.HasPrefix(path, httpapi.RouteSilences) && got.Status < 300:
					schema = "Silence"
				case strings.HasPrefix(path, rulerRoutes) && got.Status == 200:
					continue // other tests cover the answers for clients of Alertmanager
				case path == httpapi.RouteNtfyInbox && got.Status == 200:
					continue // other tests cover the answers for ntfy's clients
				case path == httpapi.RouteNtfyInbox:
					schema = "NtfyError"
				case path == httpapi.RouteMCP && got.Status == 200:
					continue // it is JSON-RPC
				case path == httpapi.RouteInbox && media == feed.MediaAtom:
					continue // it is XML
				case path == httpapi.RouteInbox && got.Status == 200:
					schema = "Inbox"
				case path == httpapi.RouteInboxStream && got.Status == 200:
					schema, lines = "InboxMessage", strings.Split(strings.TrimSuffix(got.Body, "\n"), "\n")
				case path == httpapi.RouteDevices && method == http.MethodGet && got.Status == 200:
					schema, lines = "Device", describedItems(t, got.Body)
				case strings.HasPrefix(path, httpapi.RouteDevices) && path != httpapi.RouteDeviceTest && got.Status < 300:
					schema = "Device"
				case path == httpapi.RouteIncident && got.Status == 200:
					schema = "IncidentRecord"
				case path == httpapi.RouteAsk && (got.Status == 200 || got.Status == 409):
					schema = "Question"
				case strings.Contains(path, "{ID}") && path != httpapi.RouteDeviceTest && got.Status == 200:
					schema = "QueuedMessage"
				case media == gatewaytest.TypeStream:
					schema, lines = "StreamLine", strings.Split(strings.TrimSuffix(got.Body, "\n"), "\n")
				}
				for _, l := range lines {
					if err := x.schemas[schema].Validate(schemaInstance(t, l)); err != nil {
						t.Errorf("%s: %v\n%s", at, err, l)
					}
				}
			}
		}
	}
}
