package notifier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ofGateway matches what a text of a library does not speak of: commands, settings, files, pages and
// people of the gateway that is built on it.
var ofGateway = regexp.MustCompile(`Caddyfile|\bcaddy [a-z]|(?i:\boperator\b)|\.md\b[^"']|\bdocs/[a-z-]+\.md|client_limits`)

// TestTextsAreOfALibrary reads the texts of this package and of all below it, and reports one that
// speaks of the gateway. Who builds on the package adds such advice: see egress.Advice,
// Limits.Setting and URLError.Unknown. The descriptions of services, which are for readers of the
// catalogue, may name the program that sends.
func TestTextsAreOfALibrary(t *testing.T) {
	texts := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{"testdata", "queuetest", "servicetest"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				n.Tag = nil
			case *ast.FuncDecl:
				return n.Name.Name != "Describe"
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if n.Kind != token.STRING || err != nil {
					break
				}
				texts++
				// The queue may name the program that uses it.
				if ofGateway.MatchString(text) || strings.Contains(text, "the gateway") && !strings.HasPrefix(path, "queue/") {
					t.Errorf("%s speaks of the gateway: %s", files.Position(n.Pos()), text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 5000 {
		t.Errorf("only %d texts were found", texts)
	}
}

// modulesOfLibrary is the number of other modules that a program with all services has in it. The
// package comment says it.
const modulesOfLibrary = 24

// TestNeedsNoCaddy lists what a program has in it that imports this package and all services.
func TestNeedsNoCaddy(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", ".", "./services").Output()
	if err != nil {
		t.Fatal(err)
	}
	const own = "github.com/caddy-notify/caddy-notify"
	var modules []string
	for line := range strings.Lines(string(out)) {
		path, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(path, own+"/gateway") || strings.HasPrefix(path, own+"/caddyhttp") || strings.Contains(path, "caddyserver/") {
			t.Errorf("it needs %s", path)
		}
		if module != "" && module != own {
			modules = append(modules, module)
		}
	}
	slices.Sort(modules)
	if modules = slices.Compact(modules); len(modules) > modulesOfLibrary {
		t.Errorf("it needs %d other modules, want at most %d: %s", len(modules), modulesOfLibrary, strings.Join(modules, ", "))
	}
}
