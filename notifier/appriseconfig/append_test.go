package appriseconfig

import (
	"strings"
	"testing"
)

func TestAppend(t *testing.T) {
	const url = "json://host/a%3Ab?x=%23&y=1"
	for name, c := range map[string]struct {
		text string
		yaml bool
		tags []string
		want string // "" for an error
	}{
		"nothing":              {"", false, nil, url + "\n"},
		"a text":               {"json://a\n", false, nil, "json://a\n" + url + "\n"},
		"a line without end":   {"# c\njson://a", false, []string{"ops", "2:dev"}, "# c\njson://a\nops,2:dev=" + url + "\n"},
		"CRLF":                 {"json://a\r\n", false, nil, "json://a\r\n" + url + "\r\n"},
		"a broken text":        {"what\n", false, nil, ""},
		"empty YAML":           {"", true, nil, "urls:\n  - " + url + "\n"},
		"YAML without a list":  {"version: 1\n", true, nil, "version: 1\nurls:\n  - " + url + "\n"},
		"YAML with no URL yet": {"urls:\n", true, nil, "urls:\n  - " + url + "\n"},
		"YAML":                 {"urls:\n- json://a", true, nil, "urls:\n- json://a\n- " + url + "\n"},
		"tags in YAML": {
			"urls:\n    - json://a:\n        tag: x\n", true,
			[]string{"ops", "dev"},
			"urls:\n    - json://a:\n        tag: x\n    - " + url + ":\n        tag: ops, dev\n",
		},
		"a key after the list": {
			"urls:\n  - json://a\n\n# more\ntag: all\n", true, nil,
			"urls:\n  - json://a\n  - " + url + "\n\n# more\ntag: all\n",
		},
		"a comment at the end": {"urls:\n  - json://a # one\n  # two\n", true, nil, "urls:\n  - json://a # one\n  - " + url + "\n  # two\n"},
		"a document's end":     {"---\nurls:\n  - json://a\n...\n", true, nil, "---\nurls:\n  - json://a\n  - " + url + "\n...\n"},
		"CRLF in YAML": {
			"urls:\r\n  - json://a\r\n", true,
			[]string{"x"},
			"urls:\r\n  - json://a\r\n  - " + url + ":\r\n      tag: x\r\n",
		},
		"an include":              {"include: other\nurls:\n  - json://a\n", true, nil, "include: other\nurls:\n  - json://a\n  - " + url + "\n"},
		"flow":                    {"urls: [json://a]\n", true, nil, ""},
		"flow of all":             {"{urls: [json://a]}\n", true, nil, ""},
		"an explicit null":        {"urls: ~\n", true, nil, ""},
		"a text block at the end": {"urls:\n  - json://a:\n      body: |\n        x\n        # y\n", true, nil, ""},
		"an anchor":               {"urls: &a\n  - json://a\n", true, nil, ""},
		"broken YAML":             {"urls:\n - [", true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Append(c.text, c.yaml, url, c.tags)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	long := "json://host/" + strings.Repeat("x", 2000)
	got, err := Append("urls:\n  - json://a\n", true, long, []string{"ops"})
	if err != nil || !strings.Contains(got, long) {
		t.Errorf("a long URL with tags: %v", err)
	}
	if _, err := Append("", false, "json://a json://b", []string{"x=y"}); err == nil {
		t.Error("a malformed tag is accepted")
	}
}
