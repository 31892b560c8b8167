package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wayStep matches a line of the way of a message: a function with its file.
var wayStep = regexp.MustCompile("^\\d+\\. \\[`(\\w+)\\.(?:\\((\\w+)\\)\\.)?(\\w+)`\\]\\(([^)]+)\\) ")

// TestWayOfAMessage checks that CONTRIBUTING shows the way of a message in at most a dozen
// functions, and that each is in the file that it links to.
func TestWayOfAMessage(t *testing.T) {
	_, section, ok := strings.Cut(readFile(t, "CONTRIBUTING.md"), "\n## The way of a message\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md does not show the way of a message")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	steps := 0
	for line := range strings.Lines(section) {
		if line == "\n" || !strings.ContainsAny(line[:1], "0123456789") {
			continue
		}
		steps++
		m := wayStep.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q does not begin with a function and a link to its file", line)
			continue
		}
		if !declares(t, m[4], m[1], m[2], m[3]) {
			t.Errorf("%s has no function %s.(%s).%s", m[4], m[1], m[2], m[3])
		}
	}
	if steps < 6 || steps > 12 {
		t.Errorf("the way has %d steps", steps)
	}
}

// declares reports whether a file of a package declares a function or, with a receiver, a
// method.
func declares(t *testing.T, file, pkg, receiver, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name || f.Name.Name != pkg {
			continue
		}
		of := ""
		if fn.Recv != nil {
			x := fn.Recv.List[0].Type
			if star, ok := x.(*ast.StarExpr); ok {
				x = star.X
			}
			if id, ok := x.(*ast.Ident); ok {
				of = id.Name
			}
		}
		if of == receiver {
			return true
		}
	}
	return false
}
