package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wrongRequests are the arguments of curl commands whose responses
// docs/troubleshooting.md quotes.
var wrongRequests = []string{
	`-d body=x http://127.0.0.1:8080/notify/ops`,
	`-d body=x -d urls=json://127.0.0.1:9000/x?foo=1 http://127.0.0.1:8080/notify`,
	`-d title=x http://127.0.0.1:8080/notify/ops`,
	`-d '{"body": "x"}' http://127.0.0.1:8080/notify/ops`,
	`-d body=x -d type=alarm http://127.0.0.1:8080/notify/ops`,
	`-d body=x -d tag=ops.eu http://127.0.0.1:8080/notify/ops`,
	`-d body=x http://127.0.0.1:8080/notify`,
	`-d body=x -d urls=discrod://a/b http://127.0.0.1:8080/notify`,
	`-d body=x http://127.0.0.1:8080/notify/ops?:message=text`,
	`-d {"title":"x"} https://alerts.example.com/notify/ops/signed`,
	`-d {"title":"x"} https://alerts.example.com/notify/ops/locked`,
	`-d {"title":"x"} https://alerts.example.com/notify/only/watchtower`,
	`-d {"title":"x"} https://alerts.example.com/notify/ops/grafanna`,
	`-d x https://alerts.example.com/notify/ops/ntfy/alerts?template=grafana`,
	`-d text=x https://alerts.example.com/notify/ops/slack/api/chat.scheduleMessage`,
	`-d body=x https://closed.example.com/notify`,
	`-d body=x -H X-Apprise-Config-ID:ops https://closed.example.com/notify`,
	`-d body=x -H Sec-Fetch-Site:cross-site http://127.0.0.1:8080/notify/ops`,
	`-d body=x http://127.0.0.1:8080/notify/Ops`,
	`http://127.0.0.1:8080/notify/ops`,
	`-d body=` + strings.Repeat("x", 2000) + ` https://closed.example.com/notify/ops`,
	`-d x -H Content-Type:text/csv http://127.0.0.1:8080/notify/ops`,
	`-d body=x -d tag=nobody http://127.0.0.1:8080/notify/ops`,
	`-d body=x -H X-Apprise-Recursion-Count:2 http://127.0.0.1:8080/notify/ops`,
	`-d body=x -d urls=json://10.0.0.7 http://127.0.0.1:8080/notify`,
	`-d body=x https://alerts.example.com/notify/refused`,
	`-d body=x https://alerts.example.com/notify/401`,
	`-d body=x https://alerts.example.com/notify/404`,
	`-d body=x https://alerts.example.com/notify/429`,
	`-d body=x https://alerts.example.com/notify/slow`,
	`-d body=x https://alerts.example.com/notify/tls`,
}

// wrongCaddyfiles are Caddyfiles or fragments whose errors the page quotes.
var wrongCaddyfiles = []string{
	"notify {\nkeey ops\n}\n",
	"alerts.example.com {\nnotify {\n",
	"notify {\nkey ops {\nurl json://localhost\nreverse_proxy localhost {\n}\n}\n}\n",
	"key ops {\nurl json://localhost/{env.TOKEN/x\n}\n",
	"key ops {\nurl discrod://a/b\n}\n",
	"key ops {\nurl {env.DOCS_TEST_NOT_SET}\n}\n",
	"key ops {\nurl {file./nonexistent/docs-test}\n}\n",
	"key ops {\nurl {$DOCS_TEST_NOT_SET}\n}\n",
	"key ops {\nurl discord://{id}/{token}\n}\n",
	"key ops {\nurl json://{http.request.host}\n}\n",
	"key ops {\nurl json://localhost?foo=1\n}\n",
	"key ops {\nurl json://localhost,json://localhost\n}\n",
	"notify {\nservices {\nallow discord\n}\nkey ops {\nurl json://localhost\n}\n}\n",
	"key ops {\nurl json://localhost chat\ndefault_tag urgent\n}\n",
	"key ops {\nurl json://localhost all\n}\n",
	"notify /alerts/* {\n}\n",
	"{\nnotify {\n}\nnotify {\n}\n}\n",
	"notify {\nkey ops {\nurl json://a\n}\nkey ops {\nurl json://b\n}\n}\n",
	"{\nnotify {\nkey ops {\nurl json://localhost\n}\n}\nevents {\non started notify phone\n}\n}\n",
	"{\nlog errors {\noutput notify phone\n}\n}\n",
}

// errorsOfOthers are quoted from other programs, libraries and servers. The integration tests
// cause those that docs/postgres.md quotes.
var errorsOfOthers = []string{
	"unrecognized directive: notify", "curl: (3) bad range",
	"cannot parse", "invalid port", "password authentication failed for user", `database "other" does not exist`, "no such host",
	"read only connection", "in a read-only transaction", "permission denied for schema public",
}

// remedy finds what an error says after its problem: what to do.
var remedy = regexp.MustCompile(
	`; (add|check|create|enter|give|post|put|remove|send|set|use|write|you may mean) |, so add | must be |; GET shows `)

// TestTroubleshooting causes errors and reports those that neither say what to do nor stand in
// docs/troubleshooting.md. It also reports quoted errors that no program returns.
func TestTroubleshooting(t *testing.T) {
	g, l := startGateway(t), newLoader(t)
	var errs []string
	for _, args := range wrongRequests {
		lines, err := splitShell("curl " + args)
		if err != nil {
			t.Fatal(err)
		}
		var out output
		if err := g.runCurl(lines[0][0], &out); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		errs = append(errs, out.text)
	}
	for _, text := range wrongCaddyfiles {
		errs = append(errs, fmt.Sprint(l.loadCaddyfile(text)))
	}

	quoted := quotedErrors(t)
	for _, err := range errs {
		if !remedy.MatchString(err) && !slices.ContainsFunc(quoted, func(text string) bool { return matchesQuote(err, text) }) {
			t.Errorf("the error does not say what to do, and the page does not quote it: %s", err)
		}
	}
	// Some errors need a full gateway, a name server or a destination with
	// limits; their texts are searched in the source code.
	source := programText(t)
	for _, text := range quoted {
		caused := slices.ContainsFunc(errs, func(err string) bool { return matchesQuote(err, text) })
		if !caused && !slices.Contains(errorsOfOthers, text) && !matchesQuote(source, text) {
			t.Errorf("no error has the text: %s", text)
		}
	}
}

// matchesQuote reports whether an error contains the text that the page quotes, where …
// stands for any text.
func matchesQuote(err, text string) bool {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*")).MatchString(err)
}

// quotedErrors lists the code in the columns "you see" of docs/troubleshooting.md.
func quotedErrors(t *testing.T) []string {
	t.Helper()
	texts := quotedIn(readPage(t, "docs/troubleshooting.md"))
	if len(texts) < 20 {
		t.Fatalf("the page quotes only %d errors", len(texts))
	}
	return texts
}

// quotedIn lists the code in the columns "you see" of a page.
func quotedIn(p *page) (texts []string) {
	column := -1
	for line := range strings.Lines(p.prose) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "¦"), "|")
		if len(cells) < 3 {
			column = -1
			continue
		}
		if column < 0 {
			column = slices.IndexFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "you see" })
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(cells[column], -1) {
			texts = append(texts, m[1])
		}
	}
	return texts
}

// programText is the source of the program, without tests and comments.
func programText(t *testing.T) string {
	t.Helper()
	comment := regexp.MustCompile(`(?m)^\s*//.*$`)
	joint := regexp.MustCompile(`(" ?\+\n\s*"|\x60 ?\+\n\s*\x60)`) // of a text that is divided between lines
	var b strings.Builder
	for _, dir := range []string{"caddyhttp", "gateway", "internal", "notifier"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			b.Write(joint.ReplaceAll(comment.ReplaceAll(content, nil), nil))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
