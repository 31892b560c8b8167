package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// requestErrors has a curl command for each text that docs/troubleshooting.md
// quotes from an answer.
var requestErrors = map[string]string{
	"[INFO] Sent … notification.":                       `-d body=x http://127.0.0.1:8080/notify/ops`,
	"[WARNING]":                                         `-d body=x -d urls=json://127.0.0.1:9000/x?foo=1 http://127.0.0.1:8080/notify`,
	"the field body is missing":                         `-d title=x http://127.0.0.1:8080/notify/ops`,
	"the request is JSON that came as a form":           `-d '{"body": "x"}' http://127.0.0.1:8080/notify/ops`,
	"unknown type":                                      `-d body=x -d type=alarm http://127.0.0.1:8080/notify/ops`,
	"a tag expression may not hold the character":       `-d body=x -d tag=ops:2 http://127.0.0.1:8080/notify/ops`,
	"the field urls is missing":                         `-d body=x http://127.0.0.1:8080/notify`,
	"no usable URL among urls":                          `-d body=x -d urls=discrod://a/b http://127.0.0.1:8080/notify`,
	"the target must be":                                `-d body=x http://127.0.0.1:8080/notify/ops?:message=text`,
	"there is no field":                                 `-d body=x http://127.0.0.1:8080/notify/ops?:a.b=title`,
	"messages without a key are turned off here":        `-d body=x https://closed.example.com/notify`,
	"a page of another site wants to send this message": `-d body=x -H Sec-Fetch-Site:cross-site http://127.0.0.1:8080/notify/ops`,
	"there is no such key":                              `-d body=x http://127.0.0.1:8080/notify/Ops`,
	"messages are sent with POST":                       `http://127.0.0.1:8080/notify/ops`,
	"the request is larger than":                        `-d body=` + strings.Repeat("x", 2000) + ` https://closed.example.com/notify/ops`,
	"the body must be application/json":                 `-d x -H Content-Type:text/csv http://127.0.0.1:8080/notify/ops`,
	"has the tag that was asked for":                    `-d body=x -d tag=nobody http://127.0.0.1:8080/notify/ops`,
	"the message has passed through too many gateways":  `-d body=x -H X-Apprise-Recursion-Count:2 http://127.0.0.1:8080/notify/ops`,
	"may not reach it":                                  `-d body=x -d urls=json://10.0.0.7 http://127.0.0.1:8080/notify`,
	"connection refused":                                `-d body=x https://alerts.example.com/notify/refused`,
	"the service answered 401":                          `-d body=x https://alerts.example.com/notify/401`,
	"the service answered 404":                          `-d body=x https://alerts.example.com/notify/404`,
	"the service answered 429":                          `-d body=x https://alerts.example.com/notify/429`,
	"not done within":                                   `-d body=x https://alerts.example.com/notify/slow`,
	"certificate":                                       `-d body=x https://alerts.example.com/notify/tls`,
}

// configErrors has a Caddyfile, or a part of one, for each text that the page
// quotes from an error of the configuration.
var configErrors = map[string]string{
	"is no subdirective of notify":                      "notify {\nkeey ops\n}\n",
	"unexpected EOF":                                    "alerts.example.com {\nnotify {\n",
	"which is no service's":                             "key ops {\nurl discrod://a/b\n}\n",
	"there is no such environment variable":             "key ops {\nurl {env.DOCS_TEST_NOT_SET}\n}\n",
	"there is no such file":                             "key ops {\nurl {file./nonexistent/docs-test}\n}\n",
	"expected url <url> [<tags...>]":                    "key ops {\nurl {$DOCS_TEST_NOT_SET}\n}\n",
	"something in braces is no placeholder":             "key ops {\nurl discord://{id}/{token}\n}\n",
	"has no value when the configuration loads":         "key ops {\nurl json://{http.request.host}\n}\n",
	"has no effect":                                     "key ops {\nurl json://localhost?foo=1\n}\n",
	"this holds several URLs":                           "key ops {\nurl json://localhost,json://localhost\n}\n",
	"the service may not be used here":                  "notify {\nservices {\nallow discord\n}\nkey ops {\nurl json://localhost\n}\n}\n",
	"no URL of the key fits":                            "key ops {\nurl json://localhost chat\ndefault_tag urgent\n}\n",
	"all is no tag":                                     "key ops {\nurl json://localhost all\n}\n",
	"the matcher lets nothing through":                  "notify /alerts/* {\n}\n",
	"there is a global notify block already":            "{\nnotify {\n}\nnotify {\n}\n}\n",
	"there is a key ops already":                        "notify {\nkey ops {\nurl json://a\n}\nkey ops {\nurl json://b\n}\n}\n",
	"there is no key phone in the global option notify": "{\nnotify {\nkey ops {\nurl json://localhost\n}\n}\nevents {\non started notify phone\n}\n}\n",
	"there is no global option notify":                  "{\nlog errors {\noutput notify phone\n}\n}\n",
}

// sourceErrors are quoted texts that are not caused here: they are somewhere in
// the program.
var sourceErrors = []string{
	"the gateway has as many messages under way as it may have",
	"the host name has no address",
	"only the beginning of the text has arrived",
	"the text has arrived, but not the files",
	"made no message",
}

// otherErrors are those of other programs.
var otherErrors = []string{"unrecognized directive: notify", "curl: (3) bad range"}

// TestTroubleshooting causes the errors that docs/troubleshooting.md quotes.
func TestTroubleshooting(t *testing.T) {
	g, l := startGateway(t), newLoader(t)
	quoted := map[string]bool{}
	for _, text := range quotedErrors(t) {
		quoted[text] = true
	}
	cause := func(text, got string) {
		if !quoted[text] {
			t.Errorf("the page does not quote: %s", text)
		}
		delete(quoted, text)
		if pattern := strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*"); !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("want %s\ngot  %s", text, got)
		}
	}
	for text, command := range requestErrors {
		lines, err := splitShell("curl " + command)
		if err != nil {
			t.Fatal(err)
		}
		var out output
		if err := g.runCurl(lines[0][0], &out); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		cause(text, out.text)
	}
	for text, part := range configErrors {
		cause(text, fmt.Sprint(l.loadCaddyfile(part)))
	}
	source := programText(t)
	for _, text := range sourceErrors {
		cause(text, source)
	}
	for _, text := range otherErrors {
		cause(text, text)
	}
	for text := range quoted {
		t.Errorf("the test does not know what causes: %s", text)
	}
}

// quotedErrors lists the code in the columns "you see" of the page.
func quotedErrors(t *testing.T) (texts []string) {
	column := -1
	for line := range strings.Lines(readPage(t, "docs/troubleshooting.md").prose) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "¦"), "|")
		if len(cells) < 3 {
			column = -1
			continue
		}
		if column < 0 {
			for i, c := range cells {
				if strings.TrimSpace(c) == "you see" {
					column = i
				}
			}
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(cells[column], -1) {
			texts = append(texts, m[1])
		}
	}
	if len(texts) < 40 {
		t.Fatalf("the page quotes %d errors only", len(texts))
	}
	return texts
}

// programText is the source of the program, tests left out.
func programText(t *testing.T) string {
	var b strings.Builder
	for _, dir := range []string{"caddyhttp", "notifier"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			b.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
