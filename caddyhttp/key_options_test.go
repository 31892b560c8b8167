package caddyhttp

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/golden"
)

// TestKeyOptionSyntax checks that the comment of UnmarshalCaddyfile has the syntax of each
// option of a key. With UPDATE_GOLDEN set, it writes the comment.
func TestKeyOptionSyntax(t *testing.T) {
	var options, repeated, inConfigs []string
	shown := map[string]bool{}
	for _, o := range keyOptions {
		lines := []string{o.name + " " + o.args}
		if inner := strings.Join(o.block, "\n"); shown[inner] {
			lines[0] += " [{ … }]"
		} else if o.block != nil {
			shown[inner] = true
			lines[0] += " [{"
			for _, line := range o.block {
				lines = append(lines, "\t"+line)
			}
			lines = append(lines, "}]")
		}
		for _, line := range lines {
			options = append(options, "//\t\t\t"+line)
		}
		if o.repeat {
			repeated = append(repeated, o.name)
		}
		if o.configs {
			inConfigs = append(inConfigs, o.name)
		}
	}
	const file = "caddyfile.go"
	text := replaceBetween(t, file, "//\t\tkey <name> {\n", "//\t\t}\n", strings.Join(options, "\n")+"\n")
	text = replaceIn(t, text, "//\t\t\tvariables|", "\n", strings.Join(inConfigs[1:], "|")+" … as in a key")
	text = replaceIn(t, text, "// Options of a key that may be repeated: ", "\n", strings.Join(repeated, ", ")+".")
	golden.Check(t, file, text)
}

// TestKeyOptionRows checks that docs/caddyfile.md has a row for each option of a key. The text
// comes from the comment of its field, which Caddy's website shows: the first sentence and the
// default. With UPDATE_GOLDEN set, it writes the rows.
func TestKeyOptionRows(t *testing.T) {
	docs := readTypeDocs(t, ".")
	var rows strings.Builder
	for _, o := range keyOptions {
		field := strings.ReplaceAll(o.name, "_", "")
		text := ""
		for _, fields := range []map[string]string{docs["Key"].fields, docs["Rules"].fields} {
			for name, comment := range fields {
				if name = strings.ToLower(name); name == field || name == field+"s" {
					text = strings.Join(strings.Fields(comment), " ")
				}
			}
		}
		if text == "" {
			t.Errorf("Key has no field with a text for the option %s", o.name)
		}
		row, _, _ := strings.Cut(text, ". ")
		row = strings.TrimSuffix(row, ".") + "."
		if _, value, has := strings.Cut(text, " Default: "); has && value != "none." {
			row += " Default: " + value
		}
		if o.repeat {
			row += " May be repeated."
		}
		var pages []string
		for page := range strings.FieldsSeq(o.pages) {
			name, _, _ := strings.Cut(page, "#")
			pages = append(pages, "["+name+"]("+page+")")
		}
		usage := o.name + " " + strings.ReplaceAll(o.args, "|", `\|`)
		if o.block != nil {
			usage += " [{ … }]"
		}
		rows.WriteString("| `" + usage + "` | " + row + " See " + strings.Join(pages, " and ") + ". |\n")
	}
	const file = "../docs/caddyfile.md"
	golden.Check(t, file, replaceBetween(t, file, "Otherwise upper and lower case differ. |\n", "\nA key without `inbox`", rows.String()))
}

// TestKeyOptionParts checks that each line in the block of an option has a reader, and that what
// configs has in common with keys comes to saved keys.
func TestKeyOptionParts(t *testing.T) {
	k := &keyBlock{name: "k", Key: Key{
		Variables: map[string]string{"A": "a"}, DefaultTag: "a", Inbox: 1, Expect: []*Expect{{}},
		Rules: Rules{
			Silence: []*Silence{{}}, Dedupe: &Dedupe{}, Hold: &Hold{}, Escalate: &Escalate{},
			Quiet: []*Quiet{{}}, Digest: &Digest{}, Rate: []*Rate{{}},
		},
	}}
	var c Configs
	c.setKey(&k.Key)
	for _, o := range keyOptions {
		if o.configs && (o.has == nil || !o.has(c.key())) {
			t.Errorf("configs loses the option %s", o.name)
		}
		if o.inner == nil {
			continue
		}
		known := o.inner(k)
		for _, usage := range o.block {
			name, _, _ := strings.Cut(usage, " ")
			if known[name].Line == nil {
				t.Errorf("%s: the line %s has no reader", o.name, usage)
			}
			delete(known, name)
		}
		if len(known) > 0 {
			t.Errorf("%s: its syntax lacks %v", o.name, slices.Collect(maps.Keys(known)))
		}
	}
}

// replaceBetween returns the text of a file with another text after the first begin in it, up to
// the next end.
func replaceBetween(t *testing.T, file, begin, end, text string) string {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return replaceIn(t, string(old), begin, end, text)
}

func replaceIn(t *testing.T, old, begin, end, text string) string {
	t.Helper()
	before, rest, found := strings.Cut(old, begin)
	i := strings.Index(rest, end)
	if !found || i < 0 {
		t.Fatalf("there is no text between %q and %q", begin, end)
	}
	return before + begin + text + rest[i:]
}
