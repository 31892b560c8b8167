package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/caddy-notify/caddy-notify/"

// domain are the floors of the rooms and of what they stand on, from the lowest to the highest.
// They know neither how messages come nor how they are shown.
var domain = [][]string{
	{"gateway/message"},
	{"gateway/event", "gateway/configstore"},
	{"gateway/site"},
	{"gateway/queued", "gateway/metrics", "gateway/history", "gateway/tally"},
	{"gateway/dispatch"},
	{"gateway/outbox"},
	{"gateway/saved", "gateway/inbox", "gateway/heartbeat", "gateway/ruler", "gateway/planned", "gateway/tallystore"},
	{"gateway/alerting"},
	{"gateway/device", "gateway/ask"},
}

// outside are the packages, with those below them, that the domain does not import: they are for
// adapters, which stand above it.
var outside = []string{
	"net/http", "html/template", "net/mail", "net/smtp", module + "internal/smtp", "github.com/emersion", "github.com/modelcontextprotocol",
}

// layers are the floors of the house, from the lowest to the highest. A package may import the
// packages of its floor and of the floors below.
var layers = append(domain, [][]string{
	{"gateway/mail", "gateway/openapi", "gateway/source/payload"},
	{"gateway/source"},
	{"gateway/source/programs/internal/compose"},
	{"gateway/source/programs/slack"},
	{"gateway/source/programs"},
	{"gateway"},
	{"gateway/console/view", "gateway/console/failures", "gateway/console/inline"},
	{"gateway/console/escalation"},
	{"gateway/api", "gateway/smtpd"}, // how messages come in and answers go out
	{
		"gateway/httpapi/mcp", "gateway/httpapi/early", "gateway/httpapi/socket", "gateway/httpapi/feed", "gateway/httpapi/silence",
		"gateway/httpapi/told",
		"gateway/httpapi/refusal", "gateway/httpapi/askpage", "gateway/httpapi/catalogue", "gateway/httpapi/environment",
	},
	{"gateway/httpapi"},
	{"gateway/console/sending", "gateway/console/settings", "gateway/console/bars"},
	{"gateway/console/beats", "gateway/console/week"},
	{"gateway/console"},
	{"gateway/gatewaytest"},
	{"caddyhttp/internal/placeholder", "caddyhttp/logs/logdigest"},
	{"caddyhttp/internal/files", "caddyhttp/internal/failure"},
	{"caddyhttp/internal/block"},
	{"caddyhttp/internal/recipient"},
	{"caddyhttp/internal/process"},
	{"caddyhttp/internal/caddyhttptest"},
	{"caddyhttp/queuestore"},
	apart,
	{"caddyhttp"},
	{
		"caddyhttp/command/internal/adminapi", "caddyhttp/command/internal/commandtest", "caddyhttp/command/internal/exit",
		"caddyhttp/command/internal/folder", "caddyhttp/command/internal/trial", "caddyhttp/command/internal/words",
	},
	{"caddyhttp/command/doctor", "caddyhttp/command/migrate"},
	{"caddyhttp/command"},
}...)

// apart are the packages on one floor that do not know each other: each is a module of Caddy
// or a front end of its own.
var apart = []string{"caddyhttp/admin", "caddyhttp/events", "caddyhttp/logs", "caddyhttp/routing", "caddyhttp/smtp"}

// Sizes without tests.
const (
	maxLines   = 6000
	maxFiles   = 60
	maxMethods = 40 // of a type, without promoted methods
)

// own are the limits of packages that have others.
var own = map[string][2]int{ // lines and files
	"caddyhttp": {7500, 50},  // each new directive lands there
	"notifier":  {11500, 80}, // the core's types know each other
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir string
	Imports         []string
	Deps            []string
	GoFiles         []string
}

// TestLayers checks that imports point down, that the domain knows no adapter, that nothing
// below gateway knows Caddy, and that no package or type of gateway becomes a room in which nobody
// finds anything.
func TestLayers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,Deps,GoFiles", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	floor := map[string]int{}
	for i, names := range layers {
		for _, name := range names {
			floor[name] = i
		}
	}
	seen := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		inGateway := name == "gateway" || strings.HasPrefix(name, "gateway/")
		if inGateway && slices.ContainsFunc(p.Deps, func(path string) bool { return strings.HasPrefix(path, "github.com/caddyserver/caddy/") }) {
			t.Errorf("%s imports Caddy, itself or through another package", name)
		}
		inNotifier := name == "notifier" || strings.HasPrefix(name, "notifier/")
		if inNotifier {
			for _, path := range p.Deps {
				if strings.HasPrefix(path, module+"gateway") || strings.HasPrefix(path, module+"caddyhttp") {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
		at, known := floor[name]
		inCaddy := name == "caddyhttp" || strings.HasPrefix(name, "caddyhttp/")
		if (inGateway || inCaddy) && !known {
			t.Errorf("%s has no floor; add it to layers", name)
		}
		for _, path := range p.Imports {
			imported := strings.TrimPrefix(path, module)
			other, ok := floor[imported]
			if known && ok && other > at {
				t.Errorf("%s imports %s, which is above it", name, path)
			}
			if known && at < len(domain) && slices.ContainsFunc(outside,
				func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }) {
				t.Errorf("%s imports %s, which is for the adapters above it", name, path)
			}
			if slices.Contains(apart, name) && slices.Contains(apart, imported) {
				t.Errorf("%s imports %s, which is beside it", name, path)
			}
		}
		if (inGateway || inCaddy || inNotifier) && name != "notifier/services" { // which has a file for each service
			seen++
			checkSize(t, name, &p)
		}
		if inGateway {
			checkMethods(t, name, &p)
		}
	}
	if seen < 60 {
		t.Errorf("only %d packages are checked", seen)
	}
}

func checkSize(t *testing.T, name string, p *listed) {
	t.Helper()
	lines := 0
	for _, f := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, f))
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	most := [2]int{maxLines, maxFiles}
	if limits, ok := own[name]; ok {
		most = limits
	}
	if lines > most[0] || len(p.GoFiles) > most[1] {
		t.Errorf("%s has %d lines in %d files; at most %d in %d are allowed: make a package of what can be understood alone", name, lines,
			len(p.GoFiles), most[0], most[1])
	}
}

func checkMethods(t *testing.T, name string, p *listed) {
	t.Helper()
	counts := map[string]int{} // by the names of types
	for _, f := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				counts[receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	for typ, n := range counts {
		if n > maxMethods {
			t.Errorf("%s.%s has %d methods; at most %d are allowed: make a type of what can be understood alone", name, typ, n, maxMethods)
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(x ast.Expr) string {
	for {
		switch of := x.(type) {
		case *ast.StarExpr:
			x = of.X
		case *ast.IndexExpr:
			x = of.X
		case *ast.IndexListExpr:
			x = of.X
		default:
			return x.(*ast.Ident).Name
		}
	}
}
