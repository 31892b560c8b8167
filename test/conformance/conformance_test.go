package conformance

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// recorded is a case of a file.
type recorded struct {
	ID       string   `json:"id"`
	URL      string   `json:"url"`
	Message  string   `json:"message"`
	Answers  []answer `json:"answers"`
	Response *answer  `json:"response"` // the answer to all requests, in place of Answers

	Expect struct {
		// Result is ok if the client has to get status 200, fail if it has to get 424, and reject
		// if the URL cannot be used: then the client gets an error, and nothing is sent.
		Result   string          `json:"result"`
		Requests json.RawMessage `json:"requests"`
	} `json:"expect"`
}

// TestConformance sends the message of each case to its URL, and compares the requests. A case that
// deviates must be judged, and one that is judged must deviate.
func TestConformance(t *testing.T) {
	t.Parallel()
	racetest.SkipIfSlow(t)
	judged := readJudged(t)
	for name, cases := range readRecordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := new(destination)
			g := newGateway(t, to)
			for _, c := range cases {
				differ, answer := try(t, g, to, &c)
				why, deviates := judged[c.ID]
				switch {
				case len(differ) > 0 && !deviates:
					t.Errorf("%s: the message %s to %s\nthe client got %s\n%s", c.ID, c.Message, c.URL, answer, strings.Join(differ, "\n"))
				case len(differ) == 0 && deviates:
					t.Errorf("%s passes: remove it from testdata/judged.json, where it is because %s", c.ID, why)
				}
			}
		})
	}
}

// TestJudged checks that what is judged is recorded, and that docs/deviations.md has a row for each
// service with such a case, and no other row.
func TestJudged(t *testing.T) {
	t.Parallel()
	unknown, services := readJudged(t), map[string]bool{}
	total, deviating := 0, len(unknown)
	for name, cases := range readRecordings(t) {
		total += len(cases)
		for _, c := range cases {
			if _, deviates := unknown[c.ID]; deviates {
				services[path.Base(name)] = true
				delete(unknown, c.ID)
			}
		}
	}
	for id := range unknown {
		t.Errorf("%s in testdata/judged.json is no recorded case", id)
	}
	t.Logf("of %d cases, %d deviate", total, deviating)
	text, err := os.ReadFile("../../docs/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| service | here |\n| --- | --- |\n")
	if !found {
		t.Fatal("docs/deviations.md has no table of the services")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]bool{}
	for row := range strings.SplitSeq(table, "\n") {
		for name := range strings.SplitSeq(strings.Split(row, "|")[1], ",") {
			rows[strings.TrimSpace(name)] = true
		}
	}
	for name := range services {
		if !rows[name] {
			t.Errorf("docs/deviations.md has no row for %s", name)
		}
	}
	for name := range rows {
		if !services[name] {
			t.Errorf("docs/deviations.md has a row for %s, and no case of it deviates", name)
		}
	}
}

// newGateway returns a gateway whose destinations are all d.
func newGateway(t *testing.T, d *destination) *gatewaytest.Gateway {
	t.Helper()
	p := gatewaytest.NewProcess(t)
	p.Sender = notifier.NewSender(egress.NewPoolWithTransport(version.Agent, d), 0)
	anywhere, err := egress.NewPolicy([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return gatewaytest.New(t, gatewaytest.Options{Process: p, Site: site.Options{
		Identity: servicetest.Message(t, "plain").Identity, Egress: anywhere,
	}})
}

// try returns how the requests of a case and the status for the client differ from what is expected,
// and what the client got.
func try(t *testing.T, g *gatewaytest.Gateway, to *destination, c *recorded) (differ []string, answer string) {
	t.Helper()
	if c.Response != nil {
		c.Answers = append(c.Answers, *c.Response)
	}
	to.begin(c.Answers)
	got := g.Do(newRequest(t, c.URL, message(t, c.Message)))
	sent := slices.DeleteFunc(to.end(), endsSession)
	switch want := map[string]int{"ok": http.StatusOK, "fail": http.StatusFailedDependency}[c.Expect.Result]; {
	case want != 0 && got.Status != want:
		differ = append(differ, fmt.Sprintf("status %d, want %d", got.Status, want))
	case want == 0 && got.Status == http.StatusOK:
		differ = append(differ, "status 200, want an error, because the URL cannot be used")
	}
	var want any = []any{}
	if len(c.Expect.Requests) > 0 {
		var err error
		if want, err = decode(c.Expect.Requests); err != nil {
			t.Fatal(err)
		}
	}
	return append(differ, match(want, sent)...), fmt.Sprintf("%d %.300s", got.Status, got.Body)
}

// endsSession reports whether a request ends a session. That may happen later than the message, or
// never if the session is kept for the next one.
func endsSession(request any) bool {
	path, _ := request.(map[string]any)["path"].(string)
	path = strings.ToLower(path)
	return strings.HasSuffix(path, "/logout") || strings.HasSuffix(path, "/oauth/revoke")
}

// readRecordings returns the cases of each file, by its name without the ending.
func readRecordings(t *testing.T) map[string][]recorded {
	t.Helper()
	files := map[string][]recorded{}
	for _, release := range []string{"apprise1", "apprise2"} {
		entries, err := os.ReadDir("testdata/" + release)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := release + "/" + strings.TrimSuffix(e.Name(), ".json.gz")
			if files[name] = readCases(t, "testdata/"+release+"/"+e.Name()); len(files[name]) == 0 {
				t.Fatalf("%s has no case", name)
			}
		}
	}
	return files
}

func readCases(t *testing.T, file string) (all []recorded) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(plain).Decode(&all)
	}
	if err != nil {
		t.Fatal(file, err)
	}
	return all
}

// readJudged returns the cases in which the gateway deviates, each with the reason.
func readJudged(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/judged.json")
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Why   string
		Cases []string
	}
	if err := json.Unmarshal(b, &groups); err != nil {
		t.Fatal(err)
	}
	judged := map[string]string{}
	for _, g := range groups {
		for _, id := range g.Cases {
			if judged[id] != "" {
				t.Errorf("%s is in testdata/judged.json twice", id)
			}
			judged[id] = g.Why
		}
	}
	return judged
}
