package httpapi

import (
	"crypto/sha256"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // registers json
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // registers json
)

// TestTokenIsComparedOnce checks that a request compares its token once, although it needs the
// outcome several times.
func TestTokenIsComparedOnce(t *testing.T) {
	const right, wrong = "the-token-of-the-key", "another-token-of-it"
	of,
		err := site.New(site.Options{Keys: []site.KeyOptions{{
		Name: "ops", URLs: []site.URL{{URL: "json://127.0.0.1"}},
		Tokens: []string{right},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	k, base := of.Keys["ops"], &Base{Options: Options{Resolved: of}}
	r := httptest.NewRequest("POST", "/notify/ops", nil)
	r.Header.Set("Authorization", "Bearer "+right)
	bad := httptest.NewRequest("POST", "/notify/ops?token="+wrong, nil)
	good, refused := base.Lookup("ops"), base.Lookup("ops")
	if _, err := good.toSend(r); err != nil {
		t.Fatal(err)
	}
	if _, err := refused.toSend(bad); !errors.Is(err, site.ErrNoToken) {
		t.Fatal(err)
	}
	sum := good.Token(r)
	k.Tokens[0] = sha256.Sum256([]byte(wrong)) // another comparison would have another outcome
	if _, err := good.toSend(r); err != nil || good.Token(r) != sum {
		t.Error("the token is compared again")
	}
	if _, err := refused.toSend(bad); !errors.Is(err, site.ErrNoToken) || refused.Token(bad) != "" {
		t.Error("the wrong token is compared again")
	}
	for _, name := range []string{"unknown", "ops"} { // a key that does not exist is like one with another token
		if _, err := base.Lookup(name).toSend(r); !errors.Is(err, site.ErrNoToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := base.Lookup("unknown").Key(t.Context()); !errors.Is(err, site.ErrNoKey) {
		t.Error(err)
	}
}

// TestWhereTokensAreCompared checks that tokens of keys are compared in only two functions, which
// keep the outcome: one for the API, one for the formats of sources.
func TestWhereTokensAreCompared(t *testing.T) {
	var found []string
	for _, dir := range []string{".", "../console"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(f, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					of, inner := s.X.(*ast.SelectorExpr)
					if s.Sel.Name == "TokenSum" || s.Sel.Name == "Has" && inner && of.Sel.Name == "Tokens" {
						found = append(found, f.Name.Name)
					}
					return true
				})
			}
		}
	}
	if slices.Sort(found); !slices.Equal(found, []string{"Token", "findToken"}) {
		t.Errorf("tokens are compared in %q", found)
	}
}
