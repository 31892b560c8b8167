package appriseconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/golden"
)

// load loads a configuration from files by location.
func load(location string, files map[string]string) ([]Entry, []Warning, error) {
	return Load(context.Background(), location, func(_ context.Context, location string) ([]byte, error) {
		text, ok := files[location]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	})
}

// lines formats entries, one to a line: "<file>:<line> [<tags>] <url>".
func lines(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s:%d [%s] %s\n", e.File, e.Line, strings.Join(e.Tags, " "), e.URL)
	}
	return b.String()
}

func TestFiles(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"testdata/all.conf", `
testdata/all.conf:5 [] json://localhost/plain
testdata/all.conf:6 [] json://localhost/equals
testdata/all.conf:7 [ops db crew everyone] json://localhost/ops?+X-Team=a=b
testdata/all.conf:8 [dev crew everyone] json://localhost/dev
testdata/more.yaml:7 [alice plain family] jsons://localhost/alice
testdata/more.yaml:8 [plain] json://localhost/text
testdata/more.yaml:9 [carol plain] json://carol:pw@localhost/?a=b&retry=2&wait=1.5&%2BX-Key=V%2B%261&optional=yes
testdata/more.yaml:18 [bob plain family] mailto://localhost/?format=html&to=b%40example.com
testdata/more.yaml:20 [dave erin plain family] mailto://localhost/?to=d%40example.com&to=e%40example.com&format=text
testdata/more.yaml:26 [plain] json://localhost/beside?overflow=split
testdata/more.yaml:28 [merged plain] json://localhost/merged?retry=1&format=markdown
`},
	} {
		entries, warnings, err := Load(context.Background(), tt.name, func(_ context.Context, name string) ([]byte, error) {
			return os.ReadFile(name)
		})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: error %v, warnings %q", tt.name, err, warnings)
		}
		if got := lines(entries); got != tt.want[1:] {
			t.Errorf("%s: got\n%s", tt.name, got)
		}
	}
}

func TestFormat(t *testing.T) {
	const yaml, text = "urls:\n  - json://a\n", "json://a\n"
	for _, tt := range []struct{ location, content string }{
		{"/f.yml", yaml},
		{"/f.YAML", "# c\n" + yaml},
		{"/f.conf", "\n# c\n; c\n" + text},
		{"/f", "# c\n\n" + yaml},
		{"/f", "---\n" + yaml},
		{"/f", "version: 1\n" + yaml},
		{"/f", "\uFEFF" + yaml},
		{"/f", strings.ReplaceAll(yaml, "\n", "\r\n")},
		{"/f", "{urls: [json://a]}"},
		{"/f", "\uFEFF" + text},
		{"/f", "ops=json://b\n" + text},
		{"/f", "ops = json://b\r\n" + text},
		{"/f", "= json://b\n" + text},
		{"/f", "1:ops=json://b\n" + text},
		{"/f", "crew=ops\n" + text},
		{"file:///f.yml?format=text", text},
		{"https://example.com/get/k?format=yaml", "# c\n" + yaml},
		{"https://u:s3cret@example.com/k", yaml},
		{"http://example.com/k.yml", yaml},
	} {
		name, _, _ := strings.Cut(tt.location, "?")
		entries, _, err := load(tt.location, map[string]string{tt.location: tt.content, strings.TrimPrefix(name, "file://"): tt.content})
		if err != nil || !slices.ContainsFunc(entries, func(e Entry) bool { return e.URL == "json://a" }) {
			t.Errorf("%s %q: %s error %v", tt.location, tt.content, lines(entries), err)
		}
		for _, e := range entries {
			if strings.Contains(e.File, "s3cret") || strings.Contains(e.File, "://") {
				t.Errorf("%s: the file's name shows %s", tt.location, e.File)
			}
		}
	}
}

func TestIncludes(t *testing.T) {
	files := map[string]string{
		"/etc/a":                        "include sub/b\ninclude /srv/c\njson://a\nteam=x",
		"/etc/sub/b":                    "include ../d.yml\nx=json://b",
		"/srv/c":                        "include https://example.com/e",
		"/etc/d.yml":                    "include: \"file:///etc/f, g\"",
		"/etc/f":                        "json://f",
		"/etc/g":                        "include file:h%20i?format=text\ninclude h i",
		"/etc/h i":                      "json://h",
		"https://example.com/e":         "include https://other.example.com/e",
		"https://other.example.com/e":   "urls: [json://e]",
		"https://example.com/cfg?x=y&z": "json://z",
	}
	delete(files, "/etc/g")
	files["/etc/g"] = "include h i"
	entries, _, err := load("/etc/a", files)
	const want = "/etc/a:3 [] json://a\n/etc/sub/b:2 [x] json://b\n" +
		"/etc/f:1 [] json://f\n/etc/h i:1 [] json://h\nother.example.com:1 [] json://e\n"
	if got := lines(entries); err != nil || got != want {
		t.Errorf("error %v, got\n%s", err, got)
	}
}

func TestDepth(t *testing.T) {
	files := map[string]string{}
	for i := range 7 {
		files[fmt.Sprintf("/%d", i)] = fmt.Sprintf("include %d", i+1)
	}
	files["/7"] = "json://a"
	if entries, _, err := load("/2", files); err != nil || len(entries) != 1 {
		t.Errorf("five includes: %v, error %v", entries, err)
	}
	_, _, err := load("/1", files)
	if want := "/6:1: include: includes are nested more than 5 deep"; err == nil || err.Error() != want {
		t.Errorf("six includes: error %v", err)
	}
	files = map[string]string{"/a": strings.Repeat("include b\n", 100), "/b": "json://b"}
	if _, _, err := load("/a", files); err == nil || !strings.Contains(err.Error(), "more than 100 files") {
		t.Errorf("a hundred includes: error %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ location, content, want string }{
		{"/f", "json://a\nwhat is this?", "/f:2: unknown line; write"},
		{"/f", "json//s3cret", "/f:1: unknown line; write"},
		{"/f", "ops:3=json://s3cret", "/f:1: a tag cannot have a number of retries"},
		{"/f", "json://a\n=b", "/f:2: the name of a group is missing"},
		{"/f", "\n\ninclude f", "/f:3: include: the file includes itself"},
		{"/f", "include ./x/../f", "/f:1: include: the file includes itself"},
		{"/f", "include nothing", "/nothing: reading the file: file does not exist"},
		{"/f", "include discord://s3cret/s3cret", "/f:1: include: the location must be the path of a file"},
		{"/f", "include https:///s3cret", "/f:1: include: the URL is malformed"},
		{"http://u:s3cret@host/s3cret", "json://a\ninclude /etc/passwd", "host:2: include: a file that was fetched cannot include a local file"},
		{"http://u:s3cret@host/s3cret", "include file:///etc/passwd", "host:1: include: a file that was fetched cannot include a local file"},
		{"http://u:s3cret@host/s3cret", "include more", "host:1: include: a file that was fetched cannot include a local file"},
		{"http://u:s3cret@host/s3cret", "nonsense", "host:1: unknown line; write"},
		{"/f", "\xff", "/f: the file is not text in UTF-8"},

		{"/f.yml", "urls:\n  - json://a\n - s3cret: [", "/f.yml:3: the YAML is malformed: did not find expected"},
		{"/f.yml", "urls:\n  - *s3cret\n", "/f.yml: the YAML is malformed: unknown anchor"},
		{"/f.yml", "urls: []\n---\nurls: []", "/f.yml:2: the file has a second YAML document"},
		{"/f.yml", "- json://s3cret", "/f.yml:1: the file must be a map"},
		{"/f.yml", "version: 3", "/f.yml:1: version must be 1 or 2"},
		{"/f.yml", "version: 1\nurls: json://s3cret", "/f.yml:2: urls must be a list"},
		{"/f.yml", "[a]: b", "/f.yml:1: the key of a map must be a text"},
		{"/f.yml", "urls:\n- json://a\n- s3cret", "/f.yml:3: the item is not a notification URL"},
		{"/f.yml", "urls:\n- [json://s3cret]", "/f.yml:2: the item is not a notification URL"},
		{"/f.yml", "urls:\n- url: json://s3cret", "/f.yml:2: the item has no notification URL as a key"},
		{"/f.yml", "urls:\n- json://s3cret:\n  json://b:", "/f.yml:3: the item has two URLs"},
		{"/f.yml", "urls:\n- json://s3cret: []", "/f.yml:2: below a URL write options"},
		{"/f.yml", "urls:\n- json://s3cret:\n  - ops", "/f.yml:3: each item of the list below a URL"},
		{"/f.yml", "urls:\n- json://s3cret:\n    to: {s3cret: 1}", "/f.yml:3: an option must be a text"},
		{"/f.yml", "urls:\n- json://s3cret:\n    to:\n    - s3cret: 1", "/f.yml:4: an option must be a text"},
		{"/f.yml", "version: '1.1'", "/f.yml:1: version must be 1"},
		{"/f.yml", "version:", "/f.yml:1: version must be 1"},
		{"/f.yml", "tag: 'a:2'\nurls:\n- json://s3cret", "/f.yml:3: a tag cannot have a number of retries"},
		{"/f.yml", "tag: {a: b}", "/f.yml:1: a tag must be a text"},
		{"/f.yml", "groups: ops", "/f.yml:1: groups must be a map"},
		{"/f.yml", "groups:\n  ops:\n    a: b", "/f.yml:3: a tag must be a text"},
		{"/f.yml", "include: [[a]]", "/f.yml:1: include must be a text"},
		{"/f.yml", "include:\n- a\n- f.yml", "/a: reading the file: file does not exist"},
		{"/f.yml", "<<: s3cret", "/f.yml:1: << must be followed by the alias of a map"},
		{"", "", "the location: the location is empty"},
		{"ftp://s3cret", "", "the location: the location must be the path"},
	} {
		_, _, err := load(tt.location, map[string]string{tt.location: tt.content})
		_, ok := errors.AsType[*Error](err)
		if !ok || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s %q: error %v, want %s", tt.location, tt.content, err, tt.want)
		}
	}
}

// TestAllMistakes checks that Load goes on after a mistake.
func TestAllMistakes(t *testing.T) {
	for _, tt := range []struct{ name, content, entries, want string }{
		{"/f", "s3cret\njson://a\n!=json://b\nops=json://c\n=ops\n", "/f:2 [] json://a\n/f:4 [ops] json://c\n", "1 3 5"},
		{
			"/f.yml",
			"version: 3\nurls:\n- s3cret\n- json://a:\n  - tag: ops\n  - 5\n- json://b:\n    tag: 'c:2'\ngroups:\n- [s3cret]\n- ops: {a: b}\n",
			"/f.yml:5 [ops] json://a\n", "1 3 6 7 10 11",
		},
	} {
		entries, _, err := load(tt.name, map[string]string{tt.name: tt.content})
		all, _ := errors.AsType[Errors](err)
		var got []int
		for _, e := range all {
			got = append(got, e.Line)
		}
		slices.Sort(got)
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != tt.want || lines(entries) != tt.entries {
			t.Errorf("%q: mistakes in the lines %s, want %s; the entries are\n%s", tt.content, text, tt.want, lines(entries))
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct{ location, content, want string }{
		{"/f", "# nothing", "/f: the file has no destinations"},
		{"/f.yml", "# nothing", "/f.yml: the file has no destinations"},
		{"/f.yml", "---", "/f.yml: the file has no destinations"},
		{"/f", "json://a\nops=", "/f:2: the group has no tags"},
		{"/f.yml", "urls: [json://a]\nasset:\n  app_id: me", "/f.yml:2: asset is ignored"},
		{"/f.yml", "urls: [json://a]\nUrls: []", "/f.yml:2: unknown key is ignored"},
		{"/f.yml", "urls: [json://a]\ntag: a\ntags: b", "/f.yml:3: tags is ignored"},
		{"/f.yml", "urls:\n- json://a:\n    tag: a\n    tags: b", "/f.yml:4: tags is ignored"},
		{"/f", "# c\n_x=json://a", "/f:2: a tag begins with a letter or digit"},
		{"/f", "json://a\n-a=b", "/f:2: a tag begins with a letter or digit"},
		{"/f.yml", "urls:\n- json://a\ntag: a\ntag: b", "/f.yml:4: the map has the key twice"},
		{"/f.yml", "urls:\n- json://a: s3cret", "/f.yml:2: the text below the URL is ignored"},
		{"/f.yml", "tag: s3cret.b\nurls:\n- json://a\n- json://b", "/f.yml:1: a tag begins with a letter or digit"},
		{"/f.yml", "urls: [json://a]\ngroups:\n- s3cret", "/f.yml:3: the group has no tags"},
		{"/f.yml", "urls: [json://a]\ngroups:\n- ops:", "/f.yml:3: the group has no tags"},
		{"/f.yml", "urls: [json://a]\ngroups:\n  ops:", "/f.yml:3: the group has no tags"},
		{"/f.yml", "urls: [json://a]\ngroups:\n-", "/f.yml:3: the group has no tags"},
	} {
		entries, warnings, err := load(tt.location, map[string]string{tt.location: tt.content})
		if err != nil || len(warnings) == 0 || !strings.HasPrefix(warnings[0].String(), tt.want) ||
			strings.Contains(fmt.Sprint(warnings), "s3cret") {
			t.Errorf("%q: error %v, warnings %q, want %s", tt.content, err, warnings, tt.want)
		}
		if strings.Contains(tt.content, "json://a") && len(entries) == 0 {
			t.Errorf("%q: the entry is not loaded", tt.content)
		}
	}
	// Aliases repeat a map, but not its warnings.
	text := "urls:\n- &i\n  json://a:\n  to: a\n  to: b\n" + strings.Repeat("- *i\n", 50)
	if _, warnings, err := load("/f.yml", map[string]string{"/f.yml": text}); err != nil || len(warnings) != 1 {
		t.Errorf("error %v, warnings %q, want one", err, warnings)
	}
	text = "json://a\n" + strings.Repeat("!=json://a\n_=json://a\n", MaxErrors+1)
	if _, warnings, err := load("/f", map[string]string{"/f": text}); len(warnings) != MaxErrors || err == nil {
		t.Errorf("%d warnings, error %v", len(warnings), err)
	}
}

// TestItemByItem checks that one item that Apprise skips, or reads in a way of its
// own, takes no other with it.
func TestItemByItem(t *testing.T) {
	const file = "testdata/items.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(text), "\n=== ")
	var out strings.Builder
	out.WriteString(cases[0])
	for _, c := range cases[1:] {
		name, rest, _ := strings.Cut(c, "\n")
		content, want, _ := strings.Cut(rest, "--- ")
		location := "file:///f?format=yaml"
		if strings.HasSuffix(name, "(text)") {
			location = "file:///f?format=text"
		}
		entries, _, err := load(location, map[string]string{"/f": content})
		fmt.Fprintf(&out, "\n=== %s\n%s", name, content)
		for _, e := range entries {
			fmt.Fprintf(&out, "--- %d [%s] %s\n", e.Line, strings.Join(e.Tags, " "), e.URL)
		}
		all, _ := errors.AsType[Errors](err)
		for _, e := range all {
			fmt.Fprintf(&out, "--- mistake %d\n", e.Line)
		}
		if i := strings.Index(want, "apprise: "); i >= 0 {
			out.WriteString(strings.TrimSuffix(want[i:], "\n"))
			out.WriteString("\n")
		}
	}
	golden.Check(t, file, out.String())
}

// TestTags checks the tags of entries, with the tags of the file and its groups.
func TestTags(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"2:ops, b c=json://x", "2:ops b c"},
		{"A a=json://x", "A"},
		{"g=a\na=json://x", "a g"},
		{"A=json://x\ng h=a\nall2=H", "A g h all2"},
		{"a=b\nb=a\nb=json://x", "b a"},
		{"g=2\n3:2=json://x", "3:2"}, // a group has the tags without a number, as in Apprise
		{"g=2\n0:2=json://x", "0:2"},
		{"2:g=u\nu=json://x", "u 2:g"},
		{"2:ops, OPS, 1:ops=json://x", "2:ops OPS 1:ops"},
		{"urls:\n- json://x:\n    - tag: a\n  tags: b", "a"},
		{"urls:\n- json://x:\n  tags: [a, 'b, c']", "a b c"},
		{"tags: [g]\nurls:\n- json://x:\n    tag: a", "a g"},
		{"tag:\nurls:\n- json://x:\n    tag:", ""},
		{"urls:\n- json://x: {tag: a}\ngroups:\n- g: [a, b]\n- h: g\n- i, j:\n  - a:", "a g i j h"},
	} {
		entries, _, err := load("/f", map[string]string{"/f": tt.content})
		if err != nil || len(entries) != 1 || strings.Join(entries[0].Tags, " ") != tt.want {
			t.Errorf("%q: error %v, got %s", tt.content, err, lines(entries))
		}
	}
}

// TestManyEntries checks the limit of entries with a small
// file whose aliases make very many.
func TestManyEntries(t *testing.T) {
	text := "urls:\n- &i\n  json://a:\n" + strings.Repeat("  - {}\n", 1000) + strings.Repeat("- *i\n", 1000)
	if _, _, err := load("/f.yml", map[string]string{"/f.yml": text}); err == nil ||
		!strings.Contains(err.Error(), "more than 10000 destinations") {
		t.Errorf("error %v", err)
	}
}
