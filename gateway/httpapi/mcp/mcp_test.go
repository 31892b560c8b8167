package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

const token = "token-of-the-agent"

// withHeader sends requests with a header.
type withHeader map[string]string

// RoundTrip implements http.RoundTripper.
func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// start starts a gateway with the key k, which has a token and a pager, and serves it.
func start(t *testing.T, p *gatewaytest.Pager) (*gatewaytest.Gateway, *httptest.Server) {
	t.Helper()
	k := gatewaytest.Key("k", p.NotifyURL()+" chat")
	k.Tokens = []string{token}
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{k}, PublicURL: gatewaytest.PublicURL, Egress: gatewaytest.Loopback()},
		Site:   site.Options{MCP: new(true)},
		Queue:  &outbox.Settings{},
	})
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	return g, s
}

// connect connects the SDK's client to the key k.
func connect(t *testing.T, s *httptest.Server, header withHeader) (*sdk.ClientSession, error) {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.URL + "/notify/k/mcp", HTTPClient: &http.Client{Transport: header}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// call calls a tool, and reads its result into v. It returns the text of an error.
func call(t *testing.T, c *sdk.ClientSession, tool string, arguments map[string]any, v any) (problem string) {
	t.Helper()
	got, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error()
	}
	var text string
	for _, x := range got.Content {
		if s, ok := x.(*sdk.TextContent); ok {
			text += s.Text
		}
	}
	if strings.Contains(text, "/notify/asks/") {
		t.Errorf("%s: the agent sees the link: %s", tool, text)
	}
	if got.IsError {
		return text
	}
	data, err := json.Marshal(got.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

type sent struct {
	ID      string
	Results []struct{ Service, Status, Error string }
}

type asked struct {
	ID, State, By, Through string
	Answer                 *string
}

// TestTools checks with the client of the SDK what agents can do with a key.
func TestTools(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g, s := start(t, p)
	c, err := connect(t, s, withHeader{"Authorization": "Bearer " + token})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range list.Tools {
		names = append(names, x.Name)
		if x.Description == "" || x.InputSchema == nil || x.OutputSchema == nil {
			t.Errorf("the tool %s is not described", x.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"answer", "ask", "notify", "resolve"}) {
		t.Errorf("the tools are %v", names)
	}

	var m sent
	if problem := call(t, c, "notify", map[string]any{
		"title": "Disk", "body": "91% full", "type": "failure", "incident": "disk",
		"tag": "chat",
	}, &m); problem != "" || len(m.Results) != 1 || m.Results[0].Status != "delivered" {
		t.Errorf("%s %+v", problem, m)
	}
	if problem := call(t, c, "resolve", map[string]any{"incident": "disk"}, &m); problem != "" {
		t.Error(problem)
	}
	if told := p.Told(); !slices.Equal(told, []string{"failure: Disk | 91% full", "success: Resolved: disk"}) {
		t.Errorf("told %q", told)
	}

	got := make(chan asked)
	go func() {
		var a asked
		if problem := call(t, c, "ask", map[string]any{
			"question": "Delete the table?", "options": []string{"delete", "keep"}, "timeout": "10m",
			"default": "keep",
		}, &a); problem != "" {
			t.Error(problem)
		}
		got <- a
	}()
	gatewaytest.Eventually(t, func() bool { return p.Count() == 3 })
	link, _ := strings.CutPrefix(p.Got()[2].AnswerURL, gatewaytest.PublicURL)
	if r := g.PostForm(link, "answer=delete&by=Ann"); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	a := <-got
	if a.State != "answered" || a.Answer == nil || *a.Answer != "delete" || !strings.Contains(a.By, "Ann") || a.ID == "" {
		t.Errorf("%+v", a)
	}
	var again asked
	if problem := call(t, c, "answer", map[string]any{"id": a.ID}, &again); problem != "" || again.State != "answered" ||
		again.Answer == nil || *again.Answer != "delete" {
		t.Errorf("%s %+v", problem, again)
	}
}

// TestToolErrors checks that an agent learns what is wrong, and that nothing is sent.
func TestToolErrors(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	_, s := start(t, p)
	c, err := connect(t, s, withHeader{"Authorization": "Bearer " + token})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		"no text":          {"notify", map[string]any{"body": ""}, "400"},
		"another type":     {"notify", map[string]any{"body": "b", "type": "fatal"}, "400"},
		"a tag of nobody":  {"notify", map[string]any{"body": "b", "tag": "nobody"}, "nothing was sent"},
		"an unknown field": {"notify", map[string]any{"body": "b", "urls": "json://example.com"}, "urls"},
		"one option":       {"ask", map[string]any{"question": "?", "options": []string{"yes"}}, "ask"},
		"too long":         {"ask", map[string]any{"question": "?", "options": []string{"a", "b"}, "timeout": "8d"}, "timeout"},
		"both texts":       {"ask", map[string]any{"body": "b", "question": "?"}, "ask takes question, title"},
		"no name of ours": {
			"notify",
			map[string]any{"message": "b"},
			`unknown argument "message"; notify takes title, body, type, tag, incident`,
		},
		"nothing":          {"ask", nil, "the argument question is missing; ask takes question, title"},
		"an unknown one":   {"resolve", map[string]any{"incident": "i", "name": "n"}, "resolve takes incident, title, body, tag"},
		"without an ID":    {"answer", map[string]any{"wait": 5}, "answer takes id, wait"},
		"no question":      {"answer", map[string]any{"id": "x"}, "not the ID of a question"},
		"unknown question": {"answer", map[string]any{"id": "01a2c4e6-89ab-7cde-8f01-23456789abcd"}, "404"},
		"no incident":      {"resolve", map[string]any{"incident": ""}, "incident is empty"},
	} {
		if problem := call(t, c, x.tool, x.arguments, new(asked)); !strings.Contains(problem, x.want) {
			t.Errorf("%s: %q, want %q in it", name, problem, x.want)
		}
	}
	if p.Count() != 0 {
		t.Errorf("told %q", p.Told())
	}
}

// TestToolsOfSavedKeys checks that agents can use a saved key only with a token of it.
func TestToolsOfSavedKeys(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		MCP: new(true), Egress: gatewaytest.Loopback(),
		Managers: gatewaytest.Everybody(),
	}, Saved: &saved.Options{Manage: true}})
	if r := g.PostForm("/add/k", "urls="+p.NotifyURL()); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	post := func(token string) gatewaytest.Reply {
		return g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
			"Content-Type", gatewaytest.TypeJSON, "Authorization", "Bearer "+token))
	}
	if r := post("any"); r.Status != http.StatusForbidden || !strings.Contains(r.Body, "the key has none") {
		t.Errorf("a key without a token: %d %s", r.Status, r.Body)
	}
	made := g.Do(gatewaytest.NewRequest(http.MethodPost, "/cfg/k/token", "", "Accept", gatewaytest.TypeJSON))
	var x struct{ Token string }
	if err := json.Unmarshal([]byte(made.Body), &x); err != nil || x.Token == "" {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	if r := post(x.Token); r.Status != http.StatusOK || !strings.Contains(r.Body, `"notify"`) {
		t.Errorf("with its token: %d %s", r.Status, r.Body)
	}
}

// TestToolAccess checks that only an agent with a token of the key can use it, and no page of
// another origin; and that without mcp on there is no such address.
func TestToolAccess(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g, s := start(t, p)
	for _, header := range []withHeader{
		{},
		{"Authorization": "Bearer wrong"},
		{"Authorization": "Bearer " + token, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
	} {
		if _, err := connect(t, s, header); err == nil {
			t.Errorf("an agent with %v can connect", header)
		}
	}
	call := "\uFEFF" + `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}` // with a byte order mark, as some programs send it
	post := func(g *gatewaytest.Gateway, header ...string) gatewaytest.Reply {
		return g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k/mcp", call,
			append(header, "Content-Type", gatewaytest.TypeJSON, "Accept", "application/json, text/event-stream")...))
	}
	if r := post(g, "Authorization", "Bearer "+token); r.Status != http.StatusOK || !strings.Contains(r.Body, `"notify"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if r := post(g); r.Status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", r.Status, r.Body)
	}
	if r := g.Get("/notify/k/mcp"); r.Status != http.StatusMethodNotAllowed || r.Header.Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d %s", r.Status, r.Body)
	}
	off := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}}})
	if r := post(off); r.Status != http.StatusNotFound {
		t.Errorf("without mcp on: %d %s", r.Status, r.Body)
	}
	if _, err := gatewaytest.Start(t,
		gatewaytest.Options{Site: site.Options{MCP: new(true), Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}}}); err == nil ||
		!strings.Contains(err.Error(), "key k: with mcp on, agents need a token of each key") {
		t.Errorf("a key without a token: %v", err)
	}
	if p.Count() != 0 {
		t.Errorf("told %q", p.Told())
	}
}

// TestOtherNames checks that each tool accepts the name of the other tools for the text that people
// read.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g, s := start(t, p)
	c, err := connect(t, s, withHeader{"Authorization": "Bearer " + token})
	if err != nil {
		t.Fatal(err)
	}
	if problem := call(t, c, "notify", map[string]any{"question": "Anybody there?"}, new(sent)); problem != "" {
		t.Error(problem)
	}
	if problem := call(t, c, "resolve", map[string]any{"incident": "disk", "question": "is fine"}, new(sent)); problem != "" {
		t.Error(problem)
	}
	go func() {
		gatewaytest.Eventually(t, func() bool { return p.Count() == 3 })
		link, _ := strings.CutPrefix(p.Got()[2].AnswerURL, gatewaytest.PublicURL)
		g.PostForm(link, "answer=yes")
	}()
	var a asked
	if problem := call(t, c, "ask", map[string]any{"body": "Deploy?", "options": []string{"yes", "no"}}, &a); problem != "" ||
		a.State != "answered" {
		t.Errorf("%s %+v", problem, a)
	}
	for _, wait := range []any{1e18, 1e30, -1e30, 0.5} {
		if problem := call(t, c, "answer", map[string]any{"id": a.ID, "wait": wait}, &a); problem != "" || a.State != "answered" {
			t.Errorf("%v: %s %+v", wait, problem, a)
		}
	}
	if told := p.Told(); !slices.Equal(told[:2], []string{"info: Anybody there?", "success: is fine"}) ||
		!strings.Contains(told[2], "Deploy?") {
		t.Errorf("told %q", told)
	}
}

// TestOneCall checks that a request has one call, in each version of the protocol.
func TestOneCall(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g, _ := start(t, p)
	one := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notify","arguments":{"body":"b"}}}`
	for _, version := range []string{"", "2025-03-26", "2025-06-18", "2025-11-25"} {
		header := []string{"Content-Type", gatewaytest.TypeJSON, "Authorization", "Bearer " + token}
		if version != "" {
			header = append(header, "Mcp-Protocol-Version", version)
		}
		for body, want := range map[string]int{
			one: 200, " \r\n\t" + one: 200,
			"[" + one + "]": 400, "\n [" + one + "," + one + "]": 400, "[]": 400, "": 400, strings.Repeat(" ", 5000) + one: 400,
		} {
			if r := g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k/mcp", body, header...)); r.Status != want {
				t.Errorf("version %q, %.60q: %d %s", version, body, r.Status, r.Body)
			}
		}
	}
	if n := p.Count(); n != 8 {
		t.Errorf("told %d times", n)
	}
}
