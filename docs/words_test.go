package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wordRow matches a row of the glossary, whose last cell names a declaration.
var wordRow = regexp.MustCompile("^\\| ([^|]+) \\| [^|]+ \\| `(\\w+)\\.(\\w+)(?:\\.(\\w+))?` \\|$")

// wordPackages are the folders of the packages that the glossary names.
var wordPackages = map[string]string{
	"notifier": "notifier", "queue": "notifier/queue", "rules": "notifier/rules", "gateway": "gateway",
	"alerting": "gateway/alerting", "device": "gateway/device", "dispatch": "gateway/dispatch", "heartbeat": "gateway/heartbeat",
	"outbox": "gateway/outbox", "saved": "gateway/saved", "site": "gateway/site", "source": "gateway/source",
}

// TestWords checks that each word of the glossary in CONTRIBUTING names a declaration that
// exists, and that no word stands there twice.
func TestWords(t *testing.T) {
	_, section, ok := strings.Cut(readFile(t, "CONTRIBUTING.md"), "\n## Words\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no glossary")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	seen := map[string]bool{}
	for line := range strings.Lines(section) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| word") || strings.HasPrefix(line, "| ---") {
			continue
		}
		m := wordRow.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q does not end with a declaration", line)
			continue
		}
		if seen[m[1]] {
			t.Errorf("%s stands there twice", m[1])
		}
		seen[m[1]] = true
		if !hasMember(t, wordPackages[m[2]], m[3], m[4]) {
			t.Errorf("%s: there is no %s.%s.%s", m[1], m[2], m[3], m[4])
		}
	}
	if len(seen) < 20 {
		t.Errorf("the glossary has %d words", len(seen))
	}
}

// hasMember reports whether a package declares a type and, if member is not "", the type has
// such a field or method.
func hasMember(t *testing.T, dir, name, member string) bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		t.Error(err)
		return false
	}
	found := false
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return false
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.TypeSpec:
				if x.Name.Name != name {
					return false
				}
				fields, ok := x.Type.(*ast.StructType)
				found = found || member == ""
				for i := 0; ok && i < len(fields.Fields.List); i++ {
					for _, id := range fields.Fields.List[i].Names {
						found = found || id.Name == member
					}
				}
				return false
			case *ast.FuncDecl:
				if member != "" && x.Recv != nil && x.Name.Name == member {
					of := x.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					id, ok := of.(*ast.Ident)
					found = found || ok && id.Name == name
				}
				return false
			}
			return true
		})
	}
	return found
}
